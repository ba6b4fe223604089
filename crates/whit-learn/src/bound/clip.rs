//! What a bag may contribute.

use crate::plan::{Clip, Clipping};

impl Clip {
    /// The factors of bags, layer by layer; one list that serves all layers unless they are clipped one by one.
    ///
    /// `squared` has at least the squared norms of bags, layer by layer, all of them finite, and `scales` is by how much each bag's gradient is multiplied
    /// before it is clipped. A gradient of zero stays zero, and no factor is 0/0.
    ///
    /// A gradient of exactly the given length becomes no longer than C: what adding up layers, root, product and quotient may lose is added to the
    /// length, a unit in the last place for each of them.
    pub(super) fn factors(&self, squared: &[&[f64]], scales: Option<&[f64]>) -> Vec<Vec<f64>> {
        let bags = squared.first().map_or(0, |layer| layer.len());
        let scale = |bag: usize| scales.map_or(1.0, |scales| scales[bag]);
        let norm = self.of_layer();
        let factor = |length: f64, scale: f64| {
            let scaled = length * scale.abs();
            match self.how {
                Clipping::Flat | Clipping::PerLayer { .. } if scaled <= norm => scale,
                _ if scaled == 0.0 => 0.0,
                // Down, so that rounding does not lift it above the norm.
                _ => scale.signum() * (norm / length).next_down().max(0.0),
            }
        };
        let raise = 1.0 + (squared.len() + 8) as f64 * f64::EPSILON;
        match self.how {
            Clipping::Flat | Clipping::Normalising => {
                let of = |bag: usize| {
                    let length = squared.iter().map(|layer| layer[bag]).sum::<f64>().sqrt();
                    factor(length * raise, scale(bag))
                };
                vec![(0..bags).map(of).collect()]
            }
            Clipping::PerLayer { .. } => squared
                .iter()
                .map(|layer| (0..bags).map(|bag| factor(layer[bag].sqrt() * raise, scale(bag))).collect())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(found: &[Vec<f64>], expected: &[&[f64]]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.iter().zip(*expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {expected:?}");
        }
    }

    #[test]
    fn a_gradient_of_zero_stays_zero_and_others_get_the_norm() {
        // g·min(|g|, C)/|g|, as the feature paper has it, is 0/0 at zero: F5.
        let clip = |how| Clip { norm: 1.0, how };
        let squared = [25.0, 0.0, 0.25];
        is_near(&clip(Clipping::Flat).factors(&[&squared], None), &[&[0.2, 1.0, 1.0]]);
        is_near(&clip(Clipping::Normalising).factors(&[&squared], None), &[&[0.2, 0.0, 2.0]]);
    }

    #[test]
    fn layers_one_by_one_have_the_norm_together() {
        let factors = Clip { norm: 1.0, how: Clipping::PerLayer { layers: 2 } }.factors(&[&[100.0], &[100.0]], None);
        let whole: f64 = factors.iter().map(|layer| layer[0] * layer[0] * 100.0).sum();
        assert!(whole <= 1.0 && whole > 1.0 - 1e-12);
    }

    #[test]
    fn a_scale_comes_before_the_clip() {
        let clip = Clip { norm: 1.0, how: Clipping::Flat };
        is_near(&clip.factors(&[&[25.0, 25.0, 25.0]], Some(&[0.1, 2.0, -2.0])), &[&[0.1, 0.2, -0.2]]);
    }
}
