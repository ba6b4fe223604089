//! Pictures as PNG. The letters are those of DejaVu Sans, which is built in: no font of the machine is read, so a
//! picture looks the same everywhere.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Latin, Greek, Cyrillic and some signs of DejaVu Sans; `assets/LICENSE-DejaVu.txt` is its licence.
const PLAIN: &[u8] = include_bytes!("../assets/DejaVuSans.ttf");
/// The same in bold.
const BOLD: &[u8] = include_bytes!("../assets/DejaVuSans-Bold.ttf");
/// Pixels for each of the picture's units: enough for slides and for screens of high density.
const SCALE: f32 = 2.0;
/// The longest side that is drawn.
const LONGEST: f32 = 16_000.0;

/// What the plain font has.
const LETTERS: [std::ops::RangeInclusive<char>; 52] = [
    ' '..='~',
    '\u{A0}'..='\u{17F}',
    '\u{218}'..='\u{21B}',
    '\u{2C6}'..='\u{2DD}',
    '\u{300}'..='\u{304}',
    '\u{307}'..='\u{308}',
    '\u{30A}'..='\u{30C}',
    '\u{327}'..='\u{328}',
    '\u{384}'..='\u{38A}',
    '\u{38C}'..='\u{38C}',
    '\u{38E}'..='\u{3A1}',
    '\u{3A3}'..='\u{3CE}',
    '\u{400}'..='\u{45F}',
    '\u{490}'..='\u{491}',
    '\u{1E9E}'..='\u{1E9E}',
    '\u{2007}'..='\u{200A}',
    '\u{2010}'..='\u{2015}',
    '\u{2018}'..='\u{201E}',
    '\u{2020}'..='\u{2022}',
    '\u{2026}'..='\u{2026}',
    '\u{202F}'..='\u{2030}',
    '\u{2032}'..='\u{2033}',
    '\u{2039}'..='\u{203A}',
    '\u{2044}'..='\u{2044}',
    '\u{2070}'..='\u{2071}',
    '\u{2074}'..='\u{208E}',
    '\u{20AC}'..='\u{20AC}',
    '\u{20BD}'..='\u{20BD}',
    '\u{2113}'..='\u{2113}',
    '\u{2116}'..='\u{2116}',
    '\u{2122}'..='\u{2122}',
    '\u{2190}'..='\u{2195}',
    '\u{2200}'..='\u{2209}',
    '\u{220B}'..='\u{220C}',
    '\u{2211}'..='\u{2213}',
    '\u{2217}'..='\u{221A}',
    '\u{221E}'..='\u{221E}',
    '\u{2227}'..='\u{222B}',
    '\u{2248}'..='\u{2248}',
    '\u{2260}'..='\u{2261}',
    '\u{2264}'..='\u{2265}',
    '\u{2282}'..='\u{2287}',
    '\u{22C5}'..='\u{22C5}',
    '\u{25A0}'..='\u{25A1}',
    '\u{25B2}'..='\u{25B2}',
    '\u{25BC}'..='\u{25BC}',
    '\u{25CB}'..='\u{25CB}',
    '\u{25CF}'..='\u{25CF}',
    '\u{2713}'..='\u{2713}',
    '\u{2717}'..='\u{2717}',
    '\n'..='\n',
    '\t'..='\t',
];

/// Draws the picture.
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    let mut options = Options { font_family: "DejaVu Sans".into(), ..Options::default() };
    let fonts = options.fontdb_mut();
    fonts.load_font_data(PLAIN.to_vec());
    fonts.load_font_data(BOLD.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let tree = Tree::from_str(svg, &options).map_err(|why| why.to_string())?;
    let size = tree.size();
    let scale = SCALE.min(LONGEST / size.width().max(size.height()));
    let (width, height) = ((size.width() * scale).ceil() as u32, (size.height() * scale).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| format!("{width} × {height} pixels are none"))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|why| why.to_string())
}

/// Up to five of the letters that the picture has and the font does not.
pub fn unknown_letters(svg: &str) -> String {
    let mut unknown: Vec<char> =
        svg.chars().filter(|c| !LETTERS.iter().any(|known| known.contains(c)) && !c.is_control()).collect();
    unknown.sort_unstable();
    unknown.dedup();
    unknown.iter().take(5).map(|c| format!("“{c}”")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Measure;
    use crate::plot::{BLUE, BarChart, BarSeries};

    fn chart(title: &str) -> String {
        let values = vec![Some(Measure::around(20.0, 4.0)); 3];
        let chart = BarChart {
            title: title.into(),
            subtitle: "Protects one user, replace, with ε ≤ 1".into(),
            axis: "visits".into(),
            groups: vec!["a".into(), "b".into(), "Ωμέγα".into()],
            series: vec![BarSeries { name: "visits".into(), note: String::new(), colour: BLUE, values }],
            exact: None,
            note: String::new(),
        };
        chart.draw().svg().to_owned()
    }

    /// The share of pixels that a test picks.
    fn share(pixels: &Pixmap, picked: impl Fn(u8, u8, u8) -> bool) -> f64 {
        let hits = pixels.pixels().iter().filter(|p| picked(p.red(), p.green(), p.blue())).count();
        hits as f64 / pixels.pixels().len() as f64
    }

    #[test]
    fn a_png_reads_back_and_has_bars_and_letters() {
        let pixels = Pixmap::decode_png(&png(&chart("visits by site")).unwrap()).unwrap();
        assert_eq!(pixels.width(), 1960);
        let blue = share(&pixels, |r, g, b| (r, g, b) == (0x00, 0x72, 0xb2));
        assert!((0.02..0.5).contains(&blue), "{blue} of the picture is blue");
        let white = share(&pixels, |r, g, b| (r, g, b) == (255, 255, 255));
        assert!((0.4..0.97).contains(&white), "{white} of the picture is white");
        let bare = Pixmap::decode_png(&png(&chart("")).unwrap()).unwrap();
        let dark = |pixels: &Pixmap| share(pixels, |r, g, b| r < 90 && g < 90 && b < 90);
        assert!(dark(&pixels) > 1.02 * dark(&bare), "the title is drawn: {} {}", dark(&pixels), dark(&bare));
    }

    #[test]
    fn every_letter_that_the_font_is_said_to_have_is_drawn() {
        let ink = |c: char| {
            let text = if c == '&' || c == '<' { "x".to_owned() } else { c.to_string() };
            let svg = format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"24\" height=\"24\"><text x=\"6\" y=\"17\" font-family=\"sans-serif\" font-size=\"14\">{text}</text></svg>"
            );
            png(&svg).unwrap()
        };
        // What is not in the font is drawn as one and the same box, or not at all.
        let missing = ink('\u{4E00}');
        for c in ['A', 'ß', 'ž', 'ε', 'Ω', 'Ж', '±', '…', '≤', '∞', '×', '⁹', '−', '№', '☐'] {
            assert_eq!(ink(c) != missing, unknown_letters(&c.to_string()).is_empty(), "{c}");
        }
        assert_eq!(unknown_letters("ab 単位位"), "“位”, “単”");
    }

    #[test]
    fn keys_that_break_xml_are_still_drawn() {
        assert!(png(&chart("a\u{1b}[31m\u{0} <b> & \"c\" ]]>")).is_ok());
    }
}
