//! Scalars that stay inside Θ and never step past a loss of 0: both are factors on a bag's gradient.

/// Shrinks `theta` onto the ball of this radius about 0, and says by which factor. A point inside stays, to the bit.
///
/// After the noise: noise alone can carry an iterate out of Θ, and a bound on gradients that holds in Θ says nothing
/// there (E11). Projection reads what is released already, so it costs nothing.
///
/// ```
/// use whit_learn::optimise::project;
/// let mut theta = [3.0_f32, 4.0];
/// assert_eq!(project(&mut theta, 1.0), 0.2);
/// assert_eq!(theta, [0.6, 0.8]);
/// ```
pub fn project(theta: &mut [f32], radius: f64) -> f64 {
    let squared: f64 = theta.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
    let norm = squared.sqrt();
    if norm <= radius {
        return 1.0;
    }
    let factor = radius / norm;
    for value in theta {
        *value = (f64::from(*value) * factor) as f32;
    }
    factor
}

/// The factor on a bag's gradient g that makes a step of size `alpha` minimise the truncated model
/// `max(loss + ⟨g, θ − θ0⟩, 0) + |θ − θ0|²/(2·alpha)`: `min(1, loss / (alpha·|g|²))`.
///
/// The step is then `min(alpha, loss/|g|²)·g`: the ordinary one, unless it would promise a loss below 0 (Asi, Duchi
/// 2019). Losses must not be negative; where one is, or is not a number, the bag does not move anything. The factor
/// reads the bag alone and is at most 1, so a clipped bag stays clipped: fold it into the clip factor, as `min(1,
/// C/(factor·|g|))·factor`.
///
/// ```
/// use whit_learn::optimise::truncated;
/// assert_eq!(truncated(2.0, 4.0, 0.1), 1.0); // promises 2 − 0.4, an ordinary step
/// assert_eq!(truncated(2.0, 4.0, 2.0), 0.25); // promises 2 − 8, so a quarter of it
/// assert_eq!(truncated(0.0, 0.0, 0.1), 1.0); // no gradient: nothing to shorten, and no 0/0
/// ```
pub fn truncated(loss: f64, squared_norm: f64, alpha: f64) -> f64 {
    let promised = alpha * squared_norm;
    if loss.is_nan() || squared_norm.is_nan() || loss < 0.0 {
        0.0
    } else if promised <= loss {
        1.0
    } else {
        loss / promised
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Algorithm 1's update of one bag, `(θ0 − proj(θ0 − α·g))/α`, as `gradient·g + theta·θ0`: two scalars a bag, so that
    /// per-bag gradients are never stored.
    ///
    /// Clip the whole to C with `c = min(1, C/√squared_norm)`; the sum over bags is then `Σ c·gradient·g + (Σ c·theta)·θ0`.
    ///
    /// Its sign is the gradient's: it is subtracted (E10; the paper's Δ is minus this, and is printed as subtracted too).
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Mapping {
        /// The factor on the bag's gradient.
        gradient: f64,
        /// The factor on the parameters.
        theta: f64,
        /// The squared length of the whole, which is what must be clipped: it can exceed |g|² when θ0 is outside of Θ
        /// (E11).
        squared_norm: f64,
    }

    impl Mapping {
        /// From |θ0|², ⟨θ0, g⟩ and |g|², for the ball Θ of this radius about 0.
        fn onto_ball(theta_squared: f64, inner: f64, gradient_squared: f64, alpha: f64, radius: f64) -> Self {
            let moved = (theta_squared - 2.0 * alpha * inner + alpha * alpha * gradient_squared).max(0.0).sqrt();
            if moved <= radius {
                return Self { gradient: 1.0, theta: 0.0, squared_norm: gradient_squared };
            }
            let shrink = radius / moved;
            let theta = (1.0 - shrink) / alpha;
            let squared_norm =
                shrink * shrink * gradient_squared + 2.0 * shrink * theta * inner + theta * theta * theta_squared;
            Self { gradient: shrink, theta, squared_norm: squared_norm.max(0.0) }
        }
    }

    /// E11: Θ = \[−1, 1\], θ = 1.5 (the noise took it there), gradient 0, α = 0.1. The update is 5 long, though the
    /// loss is 0-Lipschitz.
    #[test]
    fn noise_outside_of_theta_makes_updates_that_no_lipschitz_constant_bounds() {
        let outside = Mapping::onto_ball(1.5 * 1.5, 0.0, 0.0, 0.1, 1.0);
        assert!((outside.squared_norm.sqrt() - 5.0).abs() < 1e-12);
        assert!((outside.theta * 1.5 - 5.0).abs() < 1e-12);
        // Projected after the noise, the same point gives the update that the Lipschitz constant promises.
        let mut theta = [1.5_f32];
        project(&mut theta, 1.0);
        assert_eq!(theta, [1.0]);
        assert_eq!(Mapping::onto_ball(1.0, 0.0, 0.0, 0.1, 1.0).squared_norm, 0.0);
    }

    proptest! {
        #[test]
        fn the_mapping_is_the_projected_step(
            theta in proptest::array::uniform3(-2_f64..2.0), g in proptest::array::uniform3(-9_f64..9.0),
            alpha in 0.01_f64..1.0
        ) {
            let dot = |a: &[f64; 3], b: &[f64; 3]| -> f64 { a.iter().zip(b).map(|(x, y)| x * y).sum() };
            let mapping = Mapping::onto_ball(dot(&theta, &theta), dot(&theta, &g), dot(&g, &g), alpha, 1.0);
            let free: [f64; 3] = std::array::from_fn(|i| theta[i] - alpha * g[i]);
            let shrink = (1.0 / dot(&free, &free).sqrt()).min(1.0);
            let update: [f64; 3] = std::array::from_fn(|i| (theta[i] - shrink * free[i]) / alpha);
            for i in 0..3 {
                prop_assert!((mapping.gradient * g[i] + mapping.theta * theta[i] - update[i]).abs() < 1e-9);
            }
            let squared = dot(&update, &update);
            prop_assert!((mapping.squared_norm - squared).abs() < 1e-8 * (1.0 + squared));
        }

        /// Against the argmin over a fine grid of step lengths: the minimiser lies on the line along −g.
        #[test]
        fn truncated_steps_minimise_the_truncated_model(
            loss in 0_f64..5.0, norm in 0.1_f64..5.0, alpha in 0.01_f64..3.0
        ) {
            let squared = norm * norm;
            let model = |t: f64| (loss - t * squared).max(0.0) + t * t * squared / (2.0 * alpha);
            let found = model(alpha * truncated(loss, squared, alpha));
            for i in 0..=400 {
                prop_assert!(found <= model(alpha * f64::from(i) / 300.0) + 1e-12);
            }
        }
    }

    #[test]
    fn a_truncated_step_never_lengthens() {
        assert_eq!(truncated(-1.0, 1.0, 1.0), 0.0);
        assert_eq!(truncated(f64::NAN, 1.0, 1.0), 0.0);
        assert_eq!(truncated(1.0, f64::NAN, 1.0), 0.0);
        assert_eq!(truncated(1.0, f64::INFINITY, 1.0), 0.0);
        assert_eq!(truncated(0.0, 1.0, 1.0), 0.0);
        assert_eq!(truncated(f64::INFINITY, 1.0, 1.0), 1.0);
    }
}
