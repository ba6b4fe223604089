//! A layer that has a vector for each token.

use super::Tape;
use super::uniform;
use crate::error::LearnError;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use whit_noise::Entropy;

/// A vector for each token.
#[derive(Module, Debug)]
pub struct Embedding {
    weight: Param<Tensor<2>>,
}

impl Embedding {
    /// Of so many tokens, in so many dimensions.
    pub fn new(tokens: usize, dimension: usize, entropy: &mut dyn Entropy) -> Self {
        Self { weight: uniform([tokens, dimension], 1.0 / (dimension.max(1) as f64).sqrt(), entropy) }
    }

    /// The vectors of rows of `positions` tokens each.
    pub fn forward(&self, tokens: &[u32], positions: usize, tape: &mut Tape) -> Result<Tensor<3>, LearnError> {
        let [known, dimension] = self.weight.lazy_shape().dims();
        if positions == 0 || !tokens.len().is_multiple_of(positions) {
            return Err(LearnError::Data("rows of tokens are not equally long".to_owned()));
        }
        if tokens.iter().any(|&token| token as usize >= known) {
            return Err(LearnError::Data(format!("a token is out of range: there are {known}")));
        }
        Ok(tape.lookup(tokens, &self.weight).reshape([tokens.len() / positions, positions, dimension]))
    }
}
