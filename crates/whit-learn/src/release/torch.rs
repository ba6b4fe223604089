//! Tensors as PyTorch lays them out: those of an `nn.Sequential` of the same layers.
//!
//! A linear layer is x·W there with W turned, [out, in], and a convolution has [out, channels, height, width]. What stands between layers counts, since PyTorch numbers
//! every module of a sequence: `Linear, ReLU, Linear` has the weights `0.weight` and `2.weight`.

use super::Shape;
use crate::model::Named;
use serde::{Deserialize, Serialize};

/// How the tensors of a model's file are named and laid out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrangement {
    /// By the paths to them, input by output.
    #[default]
    Whit,
    /// As an `nn.Sequential` of PyTorch has them.
    Torch,
}

/// Where one tensor of ours is found among PyTorch's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TorchTensor {
    pub(crate) shape: Shape,
    /// The sides of the matrix that is turned, as we have it; nothing for vectors.
    turned: Option<[usize; 2]>,
}

/// The numbers of a matrix, column by column.
fn turn(values: &[f32], [rows, columns]: [usize; 2]) -> Vec<f32> {
    (0..columns).flat_map(|column| (0..rows).map(move |row| values[row * columns + column])).collect()
}

impl TorchTensor {
    /// Our numbers as PyTorch has them.
    pub(crate) fn numbers(&self, ours: &[f32]) -> Vec<f32> {
        self.turned.map_or_else(|| ours.to_vec(), |sides| turn(ours, sides))
    }

    /// PyTorch's numbers as we have them.
    pub(crate) fn ours(&self, numbers: &[f32]) -> Vec<f32> {
        self.turned.map_or_else(|| numbers.to_vec(), |[rows, columns]| turn(numbers, [columns, rows]))
    }
}

/// The places of layers with parameters in a sequence of modules.
fn places(model: &Named) -> Vec<usize> {
    match model {
        Named::Linear { .. } => vec![0],
        Named::Perceptron { hidden, dropout, .. } => {
            let each = if *dropout > 0.0 { 3 } else { 2 };
            (0..=hidden.len()).map(|layer| layer * each).collect()
        }
        Named::Convolutional { stages, hidden, .. } => {
            // Convolution, activation, pooling; then what flattens.
            let dense = 3 * stages.len() + 1;
            (0..stages.len()).map(|stage| 3 * stage).chain((0..=hidden.len()).map(|layer| dense + 2 * layer)).collect()
        }
    }
}

/// Where the tensors of a model, in our order, are found among PyTorch's.
pub(crate) fn sequential(model: &Named, shapes: &[Shape]) -> Vec<TorchTensor> {
    let places = places(model);
    let mut layer = 0;
    let tensor = |shape: &Shape| {
        let end = shape.name.rsplit('.').next().unwrap_or(&shape.name);
        // A weight comes before the bias of its layer.
        layer += usize::from(end == "weight");
        let index = usize::max(layer, 1) - 1;
        let name = format!("{}.{end}", places.get(index).copied().unwrap_or(index));
        let (sides, turned) = match (&shape.sides[..], model) {
            (&[rows, columns], Named::Convolutional { stages, .. }) if index < stages.len() => {
                let kernel = stages[index].kernel;
                (vec![columns, rows / (kernel * kernel).max(1), kernel, kernel], Some([rows, columns]))
            }
            (&[rows, columns], _) => (vec![columns, rows], Some([rows, columns])),
            (sides, _) => (sides.to_vec(), None),
        };
        TorchTensor { shape: Shape { name, sides }, turned }
    };
    shapes.iter().map(tensor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Activation, Stage};
    use crate::params::Layout;
    use crate::release::shapes_of;
    use whit_noise::Replay;

    fn named(model: &Named, inputs: usize) -> Vec<(String, Vec<usize>)> {
        let network = model.build(inputs, 3, &mut Replay::new(1)).unwrap();
        let tensors = sequential(model, &shapes_of(&Layout::of(&network).0));
        tensors.into_iter().map(|tensor| (tensor.shape.name, tensor.shape.sides)).collect()
    }

    fn pairs(expected: &[(&str, &[usize])]) -> Vec<(String, Vec<usize>)> {
        expected.iter().map(|(name, sides)| ((*name).to_owned(), sides.to_vec())).collect()
    }

    #[test]
    fn tensors_are_called_as_a_sequence_of_modules_calls_them() {
        let perceptron = |dropout| Named::Perceptron { hidden: vec![5], activation: Activation::Relu, dropout };
        let two: [(&str, &[usize]); 4] =
            [("0.weight", &[5, 2]), ("0.bias", &[5]), ("2.weight", &[3, 5]), ("2.bias", &[3])];
        assert_eq!(named(&perceptron(0.0), 2), pairs(&two));
        assert_eq!(named(&perceptron(0.5), 2)[2].0, "3.weight", "after activation and dropout");
        assert_eq!(named(&Named::Linear { bias: false }, 2), pairs(&[("0.weight", &[3, 2])]));
        let stages = vec![Stage { channels: 4, kernel: 3, stride: 1, padding: 1, pool: [2, 2] }; 2];
        let windows = Named::Convolutional { image: [2, 8, 8], stages, hidden: vec![6], activation: Activation::Tanh };
        let expected: [(&str, &[usize]); 8] = [
            ("0.weight", &[4, 2, 3, 3]),
            ("0.bias", &[4]),
            ("3.weight", &[4, 4, 3, 3]),
            ("3.bias", &[4]),
            ("7.weight", &[6, 16]),
            ("7.bias", &[6]),
            ("9.weight", &[3, 6]),
            ("9.bias", &[3]),
        ];
        assert_eq!(named(&windows, 128), pairs(&expected));
    }

    #[test]
    fn a_matrix_that_is_turned_twice_is_the_same() {
        let shapes = [Shape { name: "Linear.weight".to_owned(), sides: vec![2, 3] }];
        let tensor = &sequential(&Named::Linear { bias: false }, &shapes)[0];
        let ours = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(tensor.numbers(&ours), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!(tensor.ours(&tensor.numbers(&ours)), ours);
    }
}
