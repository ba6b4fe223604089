//! A model that starts from numbers of a public file, instead of at zero or at random.

use crate::error::LearnError;
use crate::model::{Named, Network};
use crate::params::Layout;
use crate::release::torch::sequential;
use crate::release::{Shape, shapes_of};
use safetensors::{Dtype, SafeTensors};

/// A model that stands where a file says, and a hash of its numbers.
#[derive(Debug)]
pub struct Started {
    /// The model.
    pub network: Network,
    /// A hash of all numbers, in our order: the same file under another name, or laid out in the other way, is the same start.
    pub hash: String,
}

/// What to do about a file that does not fit.
const AS_IT_SHOULD_BE: &str = "take a file of safetensors with all tensors of this model and no others, as `output.model` is written, or as `save_file(model.state_dict(), …)` writes those of an \
    nn.Sequential of PyTorch; docs/learning.md lists their names";

/// Puts the numbers of a file of safetensors into a model, by our names or by PyTorch's.
///
/// The file is public: nothing private is read, so all that is wrong with it is said, by the tensor's name.
pub fn start(network: Network, model: &Named, bytes: &[u8]) -> Result<Started, LearnError> {
    let wrong = |what: String| LearnError::file(what, AS_IT_SHOULD_BE);
    let file =
        SafeTensors::deserialize(bytes).map_err(|why| wrong(format!("it cannot be read as safetensors: {why}")))?;
    let layout = Layout::of(&network).0;
    let shapes = shapes_of(&layout);
    let theirs = sequential(model, &shapes);
    let names = file.names();
    let is_ours = shapes.first().is_some_and(|shape| names.contains(&shape.name.as_str()));
    let mut values = Vec::with_capacity(layout.len());
    for (ours, torch) in shapes.iter().zip(&theirs) {
        let expected: &Shape = if is_ours { ours } else { &torch.shape };
        let found = file.tensor(&expected.name).map_err(|_| {
            let instead = if is_ours { String::new() } else { format!(", nor `{}`", ours.name) };
            wrong(format!(
                "it has no tensor `{}`{instead}, and the model has one of {:?}",
                expected.name, expected.sides
            ))
        })?;
        if found.shape() != expected.sides {
            let (name, is, needs) = (&expected.name, found.shape(), &expected.sides);
            return Err(wrong(format!("its tensor `{name}` is of {is:?}, and that of the model is of {needs:?}")));
        }
        if found.dtype() != Dtype::F32 {
            let what = format!("its tensor `{}` has other numbers than 32-bit floats", expected.name);
            return Err(LearnError::file(what, "write it as those: `tensor.float()` in PyTorch"));
        }
        let numbers: Vec<f32> =
            found.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err(wrong(format!("its tensor `{}` has a number that is infinite or none", expected.name)));
        }
        if is_ours { values.extend(numbers) } else { values.extend(torch.ours(&numbers)) }
    }
    if let Some(other) = names.iter().find(|name| {
        let known = |shape: &Shape| shape.name == **name;
        !if is_ours { shapes.iter().any(known) } else { theirs.iter().any(|torch| known(&torch.shape)) }
    }) {
        return Err(wrong(format!("its tensor `{other}` is none of this model's")));
    }
    let mut hasher = blake3::Hasher::new();
    for value in &values {
        hasher.update(&value.to_le_bytes());
    }
    Ok(Started { network: layout.fill(network, &values)?, hash: hasher.finalize().to_hex().to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Activation;
    use safetensors::tensor::TensorView;
    use whit_noise::Replay;

    const MODEL: Named = Named::Perceptron { hidden: Vec::new(), activation: Activation::Relu, dropout: 0.0 };

    fn file(tensors: &[(&str, &[usize], &[f32])]) -> Vec<u8> {
        let bytes: Vec<Vec<u8>> =
            tensors.iter().map(|tensor| tensor.2.iter().flat_map(|value| value.to_le_bytes()).collect()).collect();
        let views = tensors.iter().zip(&bytes).map(|((name, sides, _), bytes)| {
            ((*name).to_owned(), TensorView::new(Dtype::F32, sides.to_vec(), bytes).unwrap())
        });
        safetensors::serialize(views, None).unwrap()
    }

    fn started(bytes: &[u8]) -> Result<Started, LearnError> {
        start(MODEL.build(2, 3, &mut Replay::new(1)).unwrap(), &MODEL, bytes)
    }

    #[test]
    fn both_layouts_are_the_same_start() {
        let bias = [7.0, 8.0, 9.0];
        let torch = file(&[("0.weight", &[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]), ("0.bias", &[3], &bias)]);
        let ours = file(&[
            ("Perceptron.layers.0.weight", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
            ("Perceptron.layers.0.bias", &[3], &bias),
        ]);
        let (one, other) = (started(&torch).unwrap(), started(&ours).unwrap());
        assert_eq!(Layout::of(&one.network).1, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        assert_eq!(Layout::of(&one.network).1, Layout::of(&other.network).1);
        assert_eq!(one.hash, other.hash);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let said = |tensors: &[(&str, &[usize], &[f32])]| started(&file(tensors)).unwrap_err().to_string();
        let (weight, bias) = (("0.weight", &[3, 2][..], &[0.0; 6][..]), ("0.bias", &[3][..], &[0.0; 3][..]));
        assert!(said(&[weight]).contains("no tensor `0.bias`, nor `Perceptron.layers.0.bias`"), "{}", said(&[weight]));
        let turned = said(&[("0.weight", &[2, 3], &[0.0; 6]), bias]);
        assert!(turned.contains("`0.weight` is of [2, 3], and that of the model is of [3, 2]"), "{turned}");
        let more = said(&[weight, bias, ("2.bias", &[1], &[0.0])]);
        assert!(more.contains("`2.bias` is none of this model's"), "{more}");
        let none = said(&[("0.weight", &[3, 2], &[f32::NAN; 6]), bias]);
        assert!(none.contains("`0.weight` has a number that is infinite or none"), "{none}");
        assert!(started(b"no file").unwrap_err().to_string().contains("cannot be read as safetensors"));
    }
}
