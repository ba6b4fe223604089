//! How wide text is, so that labels fit where they stand.
//!
//! The widths are those of DejaVu Sans, which is wider than the fonts that browsers take for `system-ui`: what fits in it
//! fits in them.

/// The widths of the ASCII characters from the blank on, in thousandths of the font's size.
const ASCII: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636,
    636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863,
    748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635,
    615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636,
    337, 636, 838,
];
/// How much wider bold letters are, at most in the mean of a word.
const BOLD: f64 = 1.15;

/// The width of a text in pixels at a font size in pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let thousandths: u32 = text
        .chars()
        .map(|c| match u32::from(c) {
            code @ 0x20..=0x7E => u32::from(ASCII[code as usize - 0x20]),
            0x0300..=0x036F | 0x200B..=0x200F | 0xFE00..=0xFE0F => 0,
            0x00A0..=0x03FF => 650,
            0x0400..=0x052F => 700,
            _ => 1000,
        })
        .sum();
    f64::from(thousandths) / 1000.0 * size
}

/// The same in bold.
pub(crate) fn bold(text: &str, size: f64) -> f64 {
    BOLD * width(text, size)
}

/// The text, or as much of its beginning as fits with an ellipsis.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = width("…", size);
    for c in text.chars() {
        used += width(c.encode_utf8(&mut [0; 4]), size);
        if used > room {
            break;
        }
        kept.push(c);
    }
    kept.trim_end().to_owned() + "…"
}

/// The text, or as much of its two ends as fits with an ellipsis between them: names often differ at their ends.
pub(crate) fn fit_middle(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().collect();
    let wide = |c: char| width(c.encode_utf8(&mut [0; 4]), size);
    let (mut start, mut end, mut used) = (0, letters.len(), width("…", size));
    while start < end {
        let from_start = start <= letters.len() - end;
        used += wide(if from_start { letters[start] } else { letters[end - 1] });
        if used > room {
            break;
        }
        if from_start { start += 1 } else { end -= 1 }
    }
    letters[..start].iter().chain(&['…']).chain(&letters[end..]).collect()
}

/// The text in lines that fit, broken at blanks; a word that is too long for a line is cut.
pub(crate) fn lines(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(fit(word, size, room)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_and_says_so() {
        assert_eq!(fit("short", 13.0, 100.0), "short");
        let cut = fit("a-rather-long-domain-name.example", 13.0, 100.0);
        assert!(cut.ends_with('…') && width(&cut, 13.0) <= 100.0 && cut.starts_with("a-rather"), "{cut}");
        assert_eq!(fit("anything", 13.0, 0.0), "…");
        let cut = fit_middle("a-rather-long-domain-name.example", 13.0, 100.0);
        assert!(cut.starts_with("a-ra") && cut.ends_with("mple") && width(&cut, 13.0) <= 100.0, "{cut}");
        assert_eq!((fit_middle("short", 13.0, 100.0), fit_middle("long", 13.0, 1.0)), ("short".into(), "…".into()));
    }

    #[test]
    fn sentences_break_at_blanks() {
        let broken = lines("Protects one element, at most ε = 1. Each interval holds with 95 %.", 13.0, 200.0);
        assert!(broken.len() >= 3 && broken.iter().all(|line| width(line, 13.0) <= 200.0), "{broken:?}");
        assert_eq!(broken.join(" "), "Protects one element, at most ε = 1. Each interval holds with 95 %.");
        assert!(lines("", 13.0, 200.0).is_empty());
    }
}
