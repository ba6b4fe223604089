//! What is known of a layer's gradients bag by bag: how long they are, and the gradients themselves where they were formed. Norms, windows and sums all speak of it.

use super::total::Part;

/// The gradients of one layer's parameters, bag by bag.
pub(crate) struct Lengths {
    /// At least the squared norm of each bag's gradient, whatever finite numbers it is made of. Not finite where what was formed is not.
    pub(crate) squared: Vec<f64>,
    /// Σᵢ |aᵢ|·|gᵢ| of each bag: what rounding errors of a sum are proportional to. 0 for bags whose gradient is formed, and nothing where all are.
    pub(crate) spread: Option<Vec<f64>>,
    /// The gradients themselves, where they were formed and kept.
    pub(crate) formed: Option<Formed>,
}

/// Gradients of some bags.
pub(crate) struct Formed {
    /// Which bags, in order.
    pub(crate) bags: Vec<usize>,
    /// Their gradients, weight and then bias, bag by bag.
    pub(crate) values: Vec<f32>,
}

impl Lengths {
    /// Nothing is left of the marked bags.
    pub(super) fn empty(&mut self, marks: &[bool]) {
        let numbers = self.squared.iter_mut().zip(marks).chain(self.spread.iter_mut().flatten().zip(marks));
        numbers.filter(|(_, mark)| **mark).for_each(|(number, _)| *number = 0.0);
        if let Some(Formed { bags, values }) = &mut self.formed {
            let size = values.len() / bags.len().max(1);
            let formed = bags.iter().zip(values.chunks_exact_mut(size.max(1)));
            formed.filter(|(bag, _)| marks[**bag]).for_each(|(_, values)| values.fill(0.0));
        }
    }
}

/// a·b in f64. Nothing of f32 is too small or too large for it.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0_f64; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
    for (a, b) in a.zip(b) {
        for lane in 0..8 {
            lanes[lane] += f64::from(a[lane]) * f64::from(b[lane]);
        }
    }
    rest + lanes.iter().sum::<f64>()
}

/// At least the squared norm of numbers that are written out.
pub(super) fn squared_up(values: &[f32]) -> f64 {
    dot(values, values) * (1.0 + (values.len() as f64 + 64.0) * f64::EPSILON)
}

/// Adds the gradients of bags that were formed, `size` numbers each, from a place in them on: block by block of the sum, and in each bag by bag.
///
/// Each factor·number is rounded once, which moves a unit's contribution by 2⁻⁵³ of itself, and depends on no other unit.
pub(super) fn add_formed(formed: &[f32], size: usize, from: usize, factors: &[f64], sum: &mut Part<'_>) {
    sum.by_blocks(|start, mut sum| {
        let place = from + start..from + start + sum.len();
        for (gradient, &factor) in formed.chunks_exact(size).zip(factors).filter(|(_, factor)| **factor != 0.0) {
            sum.add(gradient[place.clone()].iter().map(|&value| factor * f64::from(value)));
        }
    });
}
