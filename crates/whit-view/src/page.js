(() => {
'use strict';
// Marks tell what they stand for at once, where the browser alone would wait a second.
const tip = document.createElement('div');
tip.className = 'tip';
tip.hidden = true;
document.body.append(tip);
for (const svg of document.querySelectorAll('figure svg')) {
  const title = [...svg.children].find(child => child.tagName === 'title');
  if (title) { svg.setAttribute('aria-label', title.textContent); title.remove(); }
}
for (const hit of document.querySelectorAll('figure .hit')) {
  const title = hit.querySelector('title');
  if (!title) continue;
  const words = title.textContent;
  title.remove();
  hit.setAttribute('aria-label', words);
  hit.addEventListener('mousemove', at => {
    tip.textContent = words;
    tip.hidden = false;
    tip.style.left = Math.max(4, Math.min(at.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
    tip.style.top = (at.clientY + 38 > innerHeight ? at.clientY - 38 : at.clientY + 16) + 'px';
  });
  hit.addEventListener('mouseleave', () => { tip.hidden = true; });
}
// Headings sort; numbers by their size, words by the alphabet, what is no number comes last.
const number = text => parseFloat(text.replace(/[,\s\u2007]/g, '').replace('\u2212', '-').replace('\u221e', 'Infinity'));
for (const table of document.querySelectorAll('table')) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  heads.forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = head.textContent;
    head.replaceChildren(button);
    const counts = head.classList.contains('num');
    button.addEventListener('click', () => {
      const before = head.getAttribute('aria-sort');
      const up = before ? before === 'descending' : !counts;
      heads.forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const keyed = [...body.rows].map(row => {
        const text = row.cells[column].textContent;
        return { row, key: counts ? number(text) : text };
      });
      keyed.sort((a, b) => {
        if (!counts) return (up ? 1 : -1) * a.key.localeCompare(b.key);
        const gone = Number.isNaN(a.key) - Number.isNaN(b.key);
        return gone || (up ? 1 : -1) * (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
      });
      body.append(...keyed.map(entry => entry.row));
    });
  });
}
})();
