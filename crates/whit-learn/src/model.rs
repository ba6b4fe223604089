//! Models by name. One of your own is a [`custom::Model`](crate::custom::Model).

pub use crate::layer::Activation;

use crate::custom::{Inputs, Model};
use crate::error::LearnError;
use crate::kernel::Window;
use crate::layer::{Convolution, Linear, Pooling, Tape, dropout};
use crate::params::Layout;
use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use whit_noise::Entropy;

impl Model for Linear {
    fn forward(&self, inputs: &Inputs, tape: &mut Tape) -> Result<Tensor<2>, LearnError> {
        Ok(Linear::forward(self, inputs.features.clone(), tape))
    }

    fn outputs(&self) -> usize {
        Linear::outputs(self)
    }

    fn merged(self) -> Self {
        Linear::merged(self)
    }
}

/// Layers one after the other, with an activation between them.
#[derive(Module, Debug)]
pub struct Perceptron {
    layers: Vec<Linear>,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    dropout: f64,
}

impl Perceptron {
    /// With layers of these widths: the input, those between, the output.
    pub fn new(widths: &[usize], activation: Activation, dropout: f64, entropy: &mut dyn Entropy) -> Self {
        let layers = widths.windows(2).map(|pair| Linear::new(pair[0], pair[1], entropy)).collect();
        Self { layers, activation, dropout }
    }

    /// The same with another function in the place of each layer.
    fn each(self, change: impl FnMut(Linear) -> Linear) -> Self {
        Self { layers: self.layers.into_iter().map(change).collect(), ..self }
    }

    fn of(&self, mut x: Tensor<2>, tape: &mut Tape) -> Tensor<2> {
        for (i, layer) in self.layers.iter().enumerate() {
            x = layer.forward(x, tape);
            if i + 1 < self.layers.len() {
                x = dropout(self.activation.forward(x), self.dropout, tape);
            }
        }
        x
    }
}

impl Model for Perceptron {
    fn forward(&self, inputs: &Inputs, tape: &mut Tape) -> Result<Tensor<2>, LearnError> {
        Ok(self.of(inputs.features.clone(), tape))
    }

    fn outputs(&self) -> usize {
        self.layers.last().map_or(0, Linear::outputs)
    }
}

/// One convolution of a network, and the pooling after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// How many channels come out.
    pub channels: usize,
    /// The side of the window.
    pub kernel: usize,
    /// How far the window moves.
    pub stride: usize,
    /// How far the window begins outside.
    pub padding: usize,
    /// The side of the largest-value window, and how far it moves.
    pub pool: [usize; 2],
}

/// Convolutions, each with an activation and the largest value of windows, and a perceptron on what is left.
#[derive(Module, Debug)]
pub struct Convolutional {
    convolutions: Vec<Convolution>,
    dense: Perceptron,
    #[module(skip)]
    pools: Vec<Pooling>,
    #[module(skip)]
    shape: [usize; 3],
    #[module(skip)]
    activation: Activation,
}

impl Convolutional {
    /// For images of this shape (channels, height, width).
    pub fn new(
        shape: [usize; 3],
        stages: &[Stage],
        hidden: &[usize],
        outputs: usize,
        activation: Activation,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, LearnError> {
        let [mut channels, height, width] = shape;
        let mut size = [height, width];
        let (mut convolutions, mut pools) = (Vec::new(), Vec::new());
        for stage in stages {
            let window = Window { kernel: [stage.kernel; 2], stride: [stage.stride; 2], padding: [stage.padding; 2] };
            let convolution = Convolution::new(channels, stage.channels, window, entropy);
            let pool = Pooling::Max(Window { kernel: [stage.pool[0]; 2], stride: [stage.pool[1]; 2], padding: [0; 2] });
            size = pool.over(convolution.over(size)?)?;
            channels = stage.channels;
            convolutions.push(convolution);
            pools.push(pool);
        }
        let mut widths = vec![channels * size[0] * size[1]];
        widths.extend_from_slice(hidden);
        widths.push(outputs);
        let dense = Perceptron::new(&widths, activation, 0.0, entropy);
        Ok(Self { convolutions, dense, pools, shape, activation })
    }
}

impl Model for Convolutional {
    fn forward(&self, inputs: &Inputs, tape: &mut Tape) -> Result<Tensor<2>, LearnError> {
        let [channels, height, width] = self.shape;
        let rows = inputs.rows();
        let mut x = inputs.features.clone().reshape([rows, channels, height, width]);
        for (convolution, pool) in self.convolutions.iter().zip(&self.pools) {
            x = pool.forward_after(self.activation, convolution.forward(x, tape)?)?;
        }
        Ok(self.dense.of(x.reshape([rows as i32, -1]), tape))
    }

    fn outputs(&self) -> usize {
        Model::outputs(&self.dense)
    }
}

/// A model as a file names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Named {
    /// One layer: linear, logistic, softmax and Poisson regression, by the loss that goes with it.
    Linear {
        /// Whether there is a constant.
        #[serde(default = "yes")]
        bias: bool,
    },
    /// A multi-layer perceptron.
    Perceptron {
        /// The widths between input and output; 600-300-100 is 600 numbers in, and here 300 and 100.
        hidden: Vec<usize>,
        /// What stands between.
        #[serde(default = "relu")]
        activation: Activation,
        /// The chance that a number is left out while learning.
        #[serde(default)]
        dropout: f64,
    },
    /// A small convolutional network.
    Convolutional {
        /// Channels, height and width of an image.
        image: [usize; 3],
        /// Its convolutions; as in the PyTorch tutorial where nothing is said.
        #[serde(default = "tutorial")]
        stages: Vec<Stage>,
        /// The widths after them.
        #[serde(default = "tutorial_hidden")]
        hidden: Vec<usize>,
        /// What stands between.
        #[serde(default = "relu")]
        activation: Activation,
    },
}

fn yes() -> bool {
    true
}

fn relu() -> Activation {
    Activation::Relu
}

fn tutorial() -> Vec<Stage> {
    let stage = |channels| Stage { channels, kernel: 5, stride: 1, padding: 0, pool: [2, 2] };
    vec![stage(6), stage(16)]
}

fn tutorial_hidden() -> Vec<usize> {
    vec![120, 84]
}

/// A model that a file named.
#[derive(Module, Debug)]
pub enum Network {
    /// One layer.
    Linear(Linear),
    /// A perceptron.
    Perceptron(Perceptron),
    /// A convolutional network.
    Convolutional(Convolutional),
}

impl Named {
    /// The model, for rows of so many numbers and so many outputs.
    pub fn build(&self, inputs: usize, outputs: usize, entropy: &mut dyn Entropy) -> Result<Network, LearnError> {
        Ok(match self {
            Self::Linear { bias } => Network::Linear(Linear::at_zero(inputs, outputs, *bias)),
            Self::Perceptron { hidden, activation, dropout } => {
                if !(0.0..1.0).contains(dropout) {
                    return Err(LearnError::Layer(format!("a dropout of {dropout} is not between 0 and 1")));
                }
                let widths: Vec<usize> =
                    std::iter::once(inputs).chain(hidden.iter().copied()).chain([outputs]).collect();
                Network::Perceptron(Perceptron::new(&widths, *activation, *dropout, entropy))
            }
            Self::Convolutional { image, stages, hidden, activation } => {
                if image.iter().product::<usize>() != inputs {
                    let sides = image.map(|side| side.to_string()).join(" × ");
                    return Err(LearnError::Data(format!("an image of {sides} is not {inputs} numbers")));
                }
                Network::Convolutional(Convolutional::new(*image, stages, hidden, outputs, *activation, entropy)?)
            }
        })
    }
}

impl Model for Network {
    fn forward(&self, inputs: &Inputs, tape: &mut Tape) -> Result<Tensor<2>, LearnError> {
        match self {
            Self::Linear(model) => Model::forward(model, inputs, tape),
            Self::Perceptron(model) => Model::forward(model, inputs, tape),
            Self::Convolutional(model) => Model::forward(model, inputs, tape),
        }
    }

    fn outputs(&self) -> usize {
        match self {
            Self::Linear(model) => Model::outputs(model),
            Self::Perceptron(model) => Model::outputs(model),
            Self::Convolutional(model) => Model::outputs(model),
        }
    }

    fn merged(self) -> Self {
        self.each_linear(Linear::merged)
    }
}

impl Network {
    /// The same with another function in the place of each linear layer.
    fn each_linear(self, mut change: impl FnMut(Linear) -> Linear) -> Self {
        match self {
            Self::Linear(model) => Self::Linear(change(model)),
            Self::Perceptron(model) => Self::Perceptron(model.each(change)),
            Self::Convolutional(model) => {
                Self::Convolutional(Convolutional { dense: model.dense.each(change), ..model })
            }
        }
    }

    /// The same function, whose linear layers are adapted from now on: to each of them the product of two matrices of this rank is added, times alpha over the rank.
    #[must_use]
    pub fn adapted(self, rank: usize, alpha: f64, entropy: &mut dyn Entropy) -> Self {
        self.each_linear(|layer| layer.adapted(rank, alpha, entropy))
    }
}

/// Whether a parameter, by its name, belongs to an adapter.
pub fn is_of_adapter(name: &str) -> bool {
    name.contains(".adapter.")
}

/// The names of the parameters of each layer of a model, layer by layer in the order in which rows go through them. Adapters are parts of their layers.
pub fn layers_of(layout: &Layout) -> Vec<Vec<String>> {
    let mut layers: Vec<(String, Vec<String>)> = Vec::new();
    for slot in layout.slots() {
        let end = slot.name.find(".adapter.").or_else(|| slot.name.rfind('.')).unwrap_or(0);
        let layer = &slot.name[..end];
        match layers.last_mut() {
            Some((last, names)) if last == layer => names.push(slot.name.clone()),
            _ => layers.push((layer.to_owned(), vec![slot.name.clone()])),
        }
    }
    layers.into_iter().map(|(_, names)| names).collect()
}
