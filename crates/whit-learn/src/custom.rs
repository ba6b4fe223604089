//! A model of your own: the one place where types of burn are public.
//!
//! Whoever takes a model by [name](crate::model::Named) needs nothing of this. To bring another architecture is a feature, and automatic differentiation goes through
//! it, so it is written in burn, of exactly the version that this crate is built with: that is re-exported as [`burn`], and what is derived finds it by that name.
//! Layers come from here and from nowhere else. They have the taps by which what one unit contributes is known, and a parameter without one is refused.
//!
//! ```
//! use whit_learn::custom::burn::{self, module::Module, tensor::Tensor};
//! use whit_learn::custom::{Activation, Inputs, Linear, Model, Tape, dropout};
//! use whit_learn::params::Layout;
//! use whit_learn::LearnError;
//! use whit_noise::Replay;
//!
//! /// Reads three numbers, one at a time, and forgets half of what it sees while it learns.
//! #[derive(Module, Debug)]
//! struct Narrow {
//!     each: Linear,
//!     all: Linear,
//! }
//!
//! impl Model for Narrow {
//!     fn forward(&self, inputs: &Inputs, tape: &mut Tape) -> Result<Tensor<2>, LearnError> {
//!         let x = self.each.forward_each(inputs.features.clone().reshape([inputs.rows(), 3, 1]), tape);
//!         let x = Activation::Tanh.forward(x.reshape([inputs.rows(), 6]));
//!         Ok(self.all.forward(dropout(x, 0.5, tape), tape))
//!     }
//!
//!     fn outputs(&self) -> usize {
//!         self.all.outputs()
//!     }
//! }
//!
//! let mut coins = Replay::new(1);
//! let model = Narrow { each: Linear::new(1, 2, &mut coins), all: Linear::new(6, 1, &mut coins) };
//! assert_eq!(Layout::of(&model).0.len(), 4 + 7);
//! let outputs = model.forward(&Inputs::of(vec![0.5; 6], 3), &mut Tape::open())?;
//! assert_eq!(outputs.dims(), [2, 1]);
//! # Ok::<(), LearnError>(())
//! ```

pub use crate::kernel::Window;
pub use crate::layer::{Activation, Convolution, Embedding, GroupNorm, LayerNorm, Linear, Pooling, Tape, dropout};
pub use burn;

use crate::error::LearnError;
use crate::tensor;
use burn::module::Module;
use burn::tensor::Tensor;

/// What goes into a model: numbers, and tokens where it reads them, row by row.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// Rows by numbers.
    pub features: Tensor<2>,
    /// Tokens, equally many a row.
    pub tokens: Vec<u32>,
}

impl Inputs {
    /// Rows of so many numbers.
    pub fn of(values: Vec<f32>, width: usize) -> Self {
        let rows = values.len() / width.max(1);
        Self { features: tensor::of(values, [rows, width]), tokens: Vec::new() }
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.features.dims()[0]
    }
}

/// A function of single rows, whose parameters all have taps.
///
/// It must not mix rows: what comes out for a row may depend on that row alone. Layers of this crate keep to it, and so do operations that
/// keep the first dimension of a tensor apart.
pub trait Model: Module + Send {
    /// What comes out, row by row.
    fn forward(&self, inputs: &Inputs, tape: &mut Tape) -> Result<Tensor<2>, LearnError>;

    /// How many numbers come out for a row.
    fn outputs(&self) -> usize;

    /// The same function without what only learning needs: adapters become a part of the weights that they adapt.
    #[must_use]
    fn merged(self) -> Self {
        self
    }
}
