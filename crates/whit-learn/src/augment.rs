//! Images that are seen several times, each time a little otherwise.
//!
//! All that is made of a row stays in its unit's bag, with weights that add up to the same, and the bag's gradient is clipped as one: a unit contributes no more than before, and
//! augmentation costs nothing in privacy (De et al. 2022).

use crate::error::LearnError;
use serde::{Deserialize, Serialize};
use whit_noise::{Entropy, below};

/// How often an image is seen in a step, and what is done to it each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Augmenting {
    /// So many times.
    pub copies: usize,
    /// A coin decides whether it is mirrored, left to right.
    #[serde(default)]
    pub flip: bool,
    /// It is moved by up to so many pixels, up or down and left or right; what comes in is 0.
    #[serde(default)]
    pub crop: usize,
}

/// The most times that an image is seen in a step.
const MOST_COPIES: usize = 256;

impl Augmenting {
    /// Whether it can be done to images of this shape.
    pub(crate) fn check(&self, [_, height, width]: [usize; 3]) -> Result<(), LearnError> {
        let Self { copies, crop, .. } = *self;
        if !(1..=MOST_COPIES).contains(&copies) {
            let what = format!("an image is to be seen {copies} times in a step: expected 1 to {MOST_COPIES}");
            return Err(LearnError::file(what, "write augment = { copies = 4, flip = true, crop = 2 }"));
        }
        if crop >= height.min(width) {
            let what = format!("images of {height} × {width} cannot be moved by {crop}: nothing would be left of some");
            return Err(LearnError::file(what, "write a smaller augment.crop"));
        }
        Ok(())
    }

    /// The image, once more: appended to `out`. What is done to it depends on coins alone.
    pub(crate) fn take(
        &self,
        [channels, height, width]: [usize; 3],
        image: &[f32],
        entropy: &mut dyn Entropy,
        out: &mut Vec<f32>,
    ) {
        let mirrored = self.flip && entropy.bits(1) == 1;
        let span = 2 * self.crop as u64 + 1;
        let [down, across] = [(); 2].map(|()| below(span, entropy) as isize - self.crop as isize);
        let inside = |place: usize, by: isize, side: usize| place.checked_add_signed(by).filter(|&place| place < side);
        for channel in 0..channels {
            for y in 0..height {
                for x in 0..width {
                    let x = if mirrored { width - 1 - x } else { x };
                    let from = inside(y, down, height).zip(inside(x, across, width));
                    out.push(from.map_or(0.0, |(y, x)| image[(channel * height + y) * width + x]));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_noise::Replay;

    #[test]
    fn images_are_mirrored_and_moved_and_nothing_else() {
        let image: Vec<f32> = (1..=12).map(|pixel| pixel as f32).collect(); // two channels of 2 × 3
        let mut entropy = Replay::new(7);
        let mut seen = |flip, crop| {
            let how = Augmenting { copies: 1, flip, crop };
            let mut out = Vec::new();
            how.take([2, 2, 3], &image, &mut entropy, &mut out);
            out
        };
        assert_eq!(seen(false, 0), image);
        let mirror = [3.0, 2.0, 1.0, 6.0, 5.0, 4.0, 9.0, 8.0, 7.0, 12.0, 11.0, 10.0];
        let flips: Vec<Vec<f32>> = (0..40).map(|_| seen(true, 0)).collect();
        assert!(flips.iter().all(|found| *found == image || found == &mirror));
        assert!(flips.contains(&image) && flips.contains(&mirror.to_vec()));
        let left = [2.0, 3.0, 0.0, 5.0, 6.0, 0.0, 8.0, 9.0, 0.0, 11.0, 12.0, 0.0];
        let moved: Vec<Vec<f32>> = (0..200).map(|_| seen(false, 1)).collect();
        assert!(moved.contains(&left.to_vec()) && moved.contains(&image));
        let mut different = moved.clone();
        different.sort_by(|a, b| a.partial_cmp(b).unwrap());
        different.dedup();
        assert_eq!(different.len(), 9, "up or down and left or right");
    }

    #[test]
    fn what_leaves_nothing_of_an_image_is_refused() {
        let how = |copies, crop| Augmenting { copies, flip: true, crop }.check([1, 4, 8]);
        assert!(how(4, 3).is_ok());
        assert!(how(0, 1).is_err() && how(1000, 1).is_err());
        assert!(how(4, 4).unwrap_err().to_string().contains("4 × 8 cannot be moved by 4"));
    }
}
