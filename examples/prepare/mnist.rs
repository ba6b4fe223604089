//! Digits: MNIST as it is, or made of seven strokes.

use super::dice::Dice;
use super::{Fallible, table};
use std::path::Path;

const SIDE: usize = 28;
const TRAIN: usize = 4000;
const TEST: usize = 1000;

/// Declares a file with columns `split`, `label` and `pixels`, wherever it is.
pub(crate) fn declare(file: &Path, to: &Path) -> Fallible<()> {
    if !file.is_file() {
        return Err(format!("there is no `{}`", file.display()).into());
    }
    let source = file.to_string_lossy();
    let declared = format!(
        r#"# One image is the unit: somebody gave one, and neighbours have it or do not.
[dataset.mnist]
source = {source:?}
unit.public = ["split"]
unit.protect = "event"
unit.change = "add-remove"
budget.event = {{ epsilon = 8.0, delta = 1e-5, currency = "renyi" }}
"#
    );
    Ok(std::fs::write(to.join("whit.toml"), declared)?)
}

/// Makes digits of strokes, and declares them.
pub(crate) fn make(to: &Path) -> Fallible<()> {
    let dice = &mut Dice::new(0xd161);
    let (mut splits, mut labels, mut pixels) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..TRAIN + TEST {
        let digit = dice.below(10);
        splits.push(if row < TRAIN { "train" } else { "test" });
        labels.push(u8::try_from(digit)?);
        draw(digit, dice, &mut pixels);
    }
    let columns = vec![
        ("split", table::texts(&splits)),
        ("label", table::labels(labels)),
        ("pixels", table::bytes(pixels, SIDE * SIDE)?),
    ];
    let file = to.join("mnist.parquet");
    table::write(&file, columns)?;
    declare(&file.canonicalize()?, to)
}

/// The corners between which strokes go: two columns, three rows.
const CORNERS: [(f64, f64); 6] = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 2.0), (1.0, 2.0)];
/// The strokes of a pocket calculator, as pairs of corners.
const STROKES: [(usize, usize); 7] = [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5)];
/// Which strokes each digit has, the first one as the highest bit.
const DIGITS: [u8; 10] = [
    0b111_0111, 0b001_0010, 0b101_1101, 0b101_1011, 0b011_1010, 0b110_1011, 0b110_1111, 0b101_0010, 0b111_1111,
    0b111_1011,
];

/// Draws a digit somewhere in the middle, more or less upright, thick and large, with noise over all of it.
fn draw(digit: usize, dice: &mut Dice, pixels: &mut Vec<u8>) {
    let (left, top) = (7.0 + 5.0 * dice.uniform(), 3.0 + 4.0 * dice.uniform());
    let (wide, high) = (7.0 + 4.0 * dice.uniform(), 7.0 + 2.0 * dice.uniform());
    let (slant, thick) = (0.3 * dice.normal(), 0.8 + 1.2 * dice.uniform());
    let corners = CORNERS.map(|(x, y)| {
        let shake = (0.7 * dice.normal(), 0.7 * dice.normal());
        (left + wide * x + slant * high * (1.0 - y) + shake.0, top + high * y + shake.1)
    });
    let strokes: Vec<((f64, f64), (f64, f64))> = (STROKES.iter().enumerate())
        .filter(|(place, _)| DIGITS[digit] >> (6 - place) & 1 == 1)
        .map(|(_, &(from, to))| (corners[from], corners[to]))
        .collect();
    for y in 0..SIDE {
        for x in 0..SIDE {
            let nearest = strokes.iter().map(|&(from, to)| distance((x as f64, y as f64), from, to));
            let ink = (thick + 0.5 - nearest.fold(f64::INFINITY, f64::min)).clamp(0.0, 1.0);
            let noisy = 255.0 * ink + 40.0 * dice.normal();
            pixels.push(noisy.clamp(0.0, 255.0) as u8);
        }
    }
}

/// How far a point is from a stroke.
fn distance((x, y): (f64, f64), (ax, ay): (f64, f64), (bx, by): (f64, f64)) -> f64 {
    let (dx, dy) = (bx - ax, by - ay);
    let along = (((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy).max(1e-9)).clamp(0.0, 1.0);
    (x - ax - along * dx).hypot(y - ay - along * dy)
}
