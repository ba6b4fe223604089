//! What pictures have in common: the heading, the legend, and the note under them.

use super::letters::{bold, fit, lines};
use super::{Anchor, EDGE, Svg, WIDTH};

/// How an entry of the legend looks in the picture.
#[derive(Clone, Copy)]
pub(super) enum Sign {
    /// A bar.
    Bar(&'static str),
    /// A line with its band; perhaps with dashes.
    Line(&'static str, bool),
    /// The mark of an exact value, across bars that stand.
    Level,
    /// The same, across bars that lie.
    Upright,
}

/// One entry of the legend.
pub(super) struct LegendEntry<'a> {
    /// How it looks.
    pub(super) sign: Sign,
    /// What it is.
    pub(super) name: &'a str,
    /// A second line; may be empty.
    pub(super) note: &'a str,
}

/// Draws the headline and the lines under it; returns how far down they reach.
pub(super) fn heading(svg: &mut Svg, title: &str, subtitle: &str) -> f64 {
    // The title is bold, so it gets the room that its plain letters may take.
    let room = (WIDTH - 2.0 * EDGE) / 1.15;
    svg.text("title", (EDGE, 34.0), Anchor::Start, &fit(title, 19.0, room));
    let mut y = 34.0;
    for line in lines(subtitle, 13.0, WIDTH - 2.0 * EDGE) {
        y = if y == 34.0 { 56.0 } else { y + 18.0 };
        svg.text("subtitle", (EDGE, y), Anchor::Start, &line);
    }
    y + 6.0
}

/// Draws the legend from left to right, in as many lines as it takes; returns how far down it reaches.
pub(super) fn legend(svg: &mut Svg, entries: &[LegendEntry], top: f64) -> f64 {
    let noted = entries.iter().any(|entry| !entry.note.is_empty());
    let (tall, pitch) = if noted { (30.0, 44.0) } else { (14.0, 24.0) };
    let room = WIDTH - 2.0 * EDGE;
    let wide = |entry: &LegendEntry| {
        let words = bold(entry.name, 13.0).max(super::letters::width(entry.note, 12.0));
        (sign_width(entry.sign) + 9.0 + words + 26.0).min(room)
    };
    let equal = room / entries.len().max(1) as f64;
    let even = entries.iter().all(|entry| wide(entry) <= equal) && noted;
    let (mut x, mut y) = (EDGE, top + 17.0);
    for entry in entries {
        let needed = if even { equal } else { wide(entry) };
        if x + needed > WIDTH - EDGE + 26.0 && x > EDGE {
            (x, y) = (EDGE, y + pitch);
        }
        let words = x + sign_width(entry.sign) + 9.0;
        match entry.sign {
            Sign::Bar(colour) => svg.bar((x, y), 14.0, tall, colour),
            Sign::Line(colour, dashed) => {
                let dashes = if dashed { " stroke-dasharray=\"6 5\"" } else { "" };
                let attributes = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.4\"{dashes}");
                svg.path(&format!("M{x:.1} {:.1}h26", y + 7.5), &attributes);
            }
            Sign::Level => svg.line("exact", (x, y + 8.0), (x + 14.0, y + 8.0)),
            Sign::Upright => svg.line("exact", (x + 7.0, y - 1.0), (x + 7.0, y + tall)),
        }
        let letters = WIDTH - EDGE - words;
        svg.text("strong", (words, y + 12.0), Anchor::Start, &fit(entry.name, 13.0, letters / 1.15));
        if !entry.note.is_empty() {
            svg.text("tick", (words, y + 29.0), Anchor::Start, &fit(entry.note, 12.0, letters));
        }
        x += needed;
    }
    if entries.is_empty() { top } else { y + tall }
}

fn sign_width(sign: Sign) -> f64 {
    match sign {
        Sign::Bar(_) | Sign::Level | Sign::Upright => 14.0,
        Sign::Line(..) => 26.0,
    }
}

/// Writes what does not fit into the picture under it, from `top` on; returns how far down it reaches.
pub(super) fn note(svg: &mut Svg, note: &str, top: f64) -> f64 {
    let mut y = top;
    for line in lines(note, 12.0, WIDTH - 2.0 * EDGE) {
        y += 17.0;
        svg.text("tick", (EDGE, y), Anchor::Start, &line);
    }
    y
}
