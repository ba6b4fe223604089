//! What is written is read back by a reader of its own, which runs the graph in the plainest way.

use super::super::{Card, Recipe, shapes_of};
use super::*;
use crate::custom::{Inputs, Model, Tape};
use crate::model::Stage;
use crate::params::Layout;
use crate::plan::{Count, Draft};
use crate::projection::{Projecting, Projection};
use crate::tensor;
use std::collections::BTreeMap;
use whit_core::unit::Caps;
use whit_core::{Change, Kind, Ladder, Unit};
use whit_noise::{Entropy, Replay};

/// One field of a message.
enum Field<'a> {
    Number(u64),
    Float(f32),
    Bytes(&'a [u8]),
}

fn base_128(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 127) << shift;
        shift += 7;
        if first & 128 == 0 {
            return value;
        }
    }
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = base_128(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(base_128(&mut bytes)),
            5 => {
                let (number, rest) = bytes.split_first_chunk::<4>().unwrap();
                bytes = rest;
                Field::Float(f32::from_le_bytes(*number))
            }
            2 => {
                let length = base_128(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(inner)
            }
            other => panic!("a field of kind {other}"),
        };
        found.push((key >> 3, field));
    }
    found
}

fn all<'a>(message: &'a [u8], field: u64) -> Vec<&'a [u8]> {
    let bytes = |(number, value): (u64, Field<'a>)| match value {
        Field::Bytes(bytes) if number == field => Some(bytes),
        _ => None,
    };
    fields(message).into_iter().filter_map(bytes).collect()
}

fn numbers(message: &[u8], field: u64) -> Vec<usize> {
    let number = |(number, value): (u64, Field<'_>)| match value {
        Field::Number(value) if number == field => Some(value as usize),
        _ => None,
    };
    fields(message).into_iter().filter_map(number).collect()
}

fn text(message: &[u8], field: u64) -> String {
    String::from_utf8(all(message, field)[0].to_vec()).unwrap()
}

type Array = (Vec<usize>, Vec<f32>);

/// Runs a file on rows.
fn run(file: &[u8], features: &[f32], width: usize) -> BTreeMap<String, Array> {
    let graph = all(file, 7)[0];
    let mut known: BTreeMap<String, Array> = BTreeMap::new();
    let rows = features.len() / width;
    known.insert(text(all(graph, 11)[0], 1), (vec![rows, width], features.to_vec()));
    for constant in all(graph, 5) {
        let (sides, raw) = (numbers(constant, 1), all(constant, 9)[0]);
        let values = match numbers(constant, 2)[0] {
            1 => raw.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
            7 => raw.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes) as f32).collect(),
            other => panic!("numbers of kind {other}"),
        };
        known.insert(text(constant, 8), (sides, values));
    }
    for node in all(graph, 1) {
        let inputs: Vec<Array> =
            all(node, 1).iter().map(|name| known[std::str::from_utf8(name).unwrap()].clone()).collect();
        let attribute =
            |name: &str| all(node, 5).into_iter().find(|found| text(found, 1) == name).map(|found| numbers(found, 8));
        let turned = all(node, 5).into_iter().any(|found| text(found, 1) == "transB" && numbers(found, 3) == [1]);
        let output = compute(&text(node, 4), &inputs, turned, &attribute);
        known.insert(text(node, 2), output);
    }
    let outputs = all(graph, 12).into_iter().map(|output| text(output, 1));
    outputs.map(|name| (name.clone(), known[&name].clone())).collect()
}

fn compute(kind: &str, inputs: &[Array], turned: bool, attribute: &dyn Fn(&str) -> Option<Vec<usize>>) -> Array {
    let (sides, values) = &inputs[0];
    let each = |of: &dyn Fn(f32) -> f32| (sides.clone(), values.iter().map(|&value| of(value)).collect());
    let with = |of: &dyn Fn(f32, f32) -> f32| {
        let other = &inputs[1].1;
        (sides.clone(), values.iter().enumerate().map(|(i, &value)| of(value, other[i % other.len()])).collect())
    };
    match kind {
        "Identity" => inputs[0].clone(),
        "Relu" => each(&|z| z.max(0.0)),
        "Tanh" => each(&f32::tanh),
        "Exp" => each(&f32::exp),
        "Sigmoid" => each(&|z| 1.0 / (1.0 + (-z).exp())),
        "Erf" => each(&|z| (1.0 - whit_account::normal::cdf(-f64::from(z) * std::f64::consts::SQRT_2) * 2.0) as f32),
        "Div" => with(&|a, b| a / b),
        "Add" => with(&|a, b| a + b),
        "Mul" => with(&|a, b| a * b),
        "Reshape" => {
            let rest: Vec<usize> = inputs[1].1[1..].iter().map(|&side| side as usize).collect();
            let rows = values.len() / rest.iter().product::<usize>();
            (std::iter::once(rows).chain(rest).collect(), values.clone())
        }
        "Flatten" => (vec![sides[0], sides[1..].iter().product()], values.clone()),
        "Softmax" => {
            let sums: Vec<f32> = values.chunks(sides[1]).map(|row| row.iter().map(|z| z.exp()).sum()).collect();
            (sides.clone(), values.iter().enumerate().map(|(i, z)| z.exp() / sums[i / sides[1]]).collect())
        }
        "Gemm" => {
            let (by, weights) = &inputs[1];
            let (inner, columns) = if turned { (by[1], by[0]) } else { (by[0], by[1]) };
            let weight = |i: usize, j: usize| if turned { weights[j * inner + i] } else { weights[i * columns + j] };
            let bias = |j: usize| inputs.get(2).map_or(0.0, |bias| bias.1[j]);
            let row = |row: usize| {
                let at =
                    move |j: usize| (0..inner).map(|i| values[row * inner + i] * weight(i, j)).sum::<f32>() + bias(j);
                (0..columns).map(at).collect::<Vec<f32>>()
            };
            (vec![sides[0], columns], (0..sides[0]).flat_map(row).collect())
        }
        "Conv" | "MaxPool" => windows(kind, inputs, attribute),
        other => panic!("an operator `{other}`"),
    }
}

fn windows(kind: &str, inputs: &[Array], attribute: &dyn Fn(&str) -> Option<Vec<usize>>) -> Array {
    let (sides, values) = &inputs[0];
    let [rows, channels, height, width] = sides[..] else { panic!("{sides:?} are no images") };
    let (kernel, stride, pad) =
        (attribute("kernel_shape").unwrap(), attribute("strides").unwrap(), attribute("pads").unwrap());
    let high = (height + pad[0] + pad[2] - kernel[0]) / stride[0] + 1;
    let wide = (width + pad[1] + pad[3] - kernel[1]) / stride[1] + 1;
    let outputs = if kind == "Conv" { inputs[1].0[0] } else { channels };
    let mut found = Vec::new();
    for (row, output) in (0..rows).flat_map(|row| (0..outputs).map(move |output| (row, output))) {
        for (y, x) in (0..high).flat_map(|y| (0..wide).map(move |x| (y, x))) {
            let (mut sum, mut most) = (inputs.get(2).map_or(0.0, |bias| bias.1[output]), f32::NEG_INFINITY);
            for (down, across) in (0..kernel[0]).flat_map(|down| (0..kernel[1]).map(move |across| (down, across))) {
                let at = (y * stride[0] + down, x * stride[1] + across);
                let Some((top, left)) = at.0.checked_sub(pad[0]).zip(at.1.checked_sub(pad[1])) else { continue };
                if top >= height || left >= width {
                    continue;
                }
                let value = |channel: usize| values[((row * channels + channel) * height + top) * width + left];
                if kind == "Conv" {
                    let weight = |channel: usize| {
                        inputs[1].1[((output * channels + channel) * kernel[0] + down) * kernel[1] + across]
                    };
                    sum += (0..channels).map(|channel| value(channel) * weight(channel)).sum::<f32>();
                } else {
                    most = most.max(value(output));
                }
            }
            found.push(if kind == "Conv" { sum } else { most });
        }
    }
    (vec![rows, outputs, high, wide], found)
}

fn trained(model: Named, loss: LossFunction, inputs: usize, outputs: usize, components: Option<usize>) -> Trained {
    let projection = components.map(|components| Projecting { components, radius: 1.0, noise: 1.0 });
    let recipe = Recipe {
        dataset: "visits".to_owned(),
        features: vec!["a".into()],
        widths: BTreeMap::new(),
        bits: false,
        scale: 1.0,
        offset: 0.0,
        target: "y".to_owned(),
        classes: None,
        model,
        loss,
        projection,
        inputs,
        outputs,
    };
    let network = recipe.model.build(recipe.read(), outputs, &mut Replay::new(5)).unwrap();
    let (layout, mut theta) = Layout::of(&network);
    if theta.iter().all(|value| *value == 0.0) {
        theta.iter_mut().enumerate().for_each(|(i, value)| *value = 0.3 - 0.2 * i as f32);
    }
    let ladder = Ladder::new(vec![Unit::event(Change::AddRemove)], Caps::default(), Kind::Event).unwrap();
    let plan = Draft::new(ladder, "1/2".parse().unwrap(), Count::Declared(10), 1.0, 1).with_noise(1.0).unwrap();
    let card = Card::of(&plan, 1e-6, &recipe, theta.len()).unwrap();
    let directions = components.map(|kept| {
        let numbers = (0..kept * inputs).map(|i| (i as f32 * 0.7).sin()).collect();
        Projection::of_numbers(&[kept, inputs], numbers).unwrap()
    });
    Trained { card, recipe, projection: directions, shapes: shapes_of(&layout), theta }
}

/// Whether a graph says of random rows what the model says.
fn agrees(trained: &Trained, predicted: impl Fn(&[f32]) -> Vec<f32>) {
    let (inputs, outputs, mut coins) = (trained.recipe.inputs, trained.recipe.outputs, Replay::new(11));
    let features: Vec<f32> = (0..7 * inputs).map(|_| (coins.bits(20) as f32 / 524_288.0) - 1.0).collect();
    let network = trained.recipe.model.build(trained.recipe.read(), outputs, &mut Replay::new(6)).unwrap();
    let network = trained.fill(network).unwrap();
    let read = trained.projection.as_ref().map_or_else(|| features.clone(), |by| by.apply(&features).unwrap());
    let z = tensor::floats(network.forward(&Inputs::of(read, trained.recipe.read()), &mut Tape::open()).unwrap());
    let found = run(&trained.to_onnx(), &features, inputs);
    assert_eq!(found["output"].0, [7, outputs]);
    let expected: Vec<f32> = z.chunks(outputs).flat_map(predicted).collect();
    for (name, expected) in [("output", &z), ("prediction", &expected)] {
        for (ours, theirs) in expected.iter().zip(&found[name].1) {
            assert!((ours - theirs).abs() < 1e-5, "{name} of {:?}: {ours} and {theirs}", trained.recipe.model);
        }
    }
}

#[test]
fn a_graph_says_what_its_model_says() {
    let same = |z: &[f32]| z.to_vec();
    let sigmoid = |z: &[f32]| z.iter().map(|z| 1.0 / (1.0 + (-z).exp())).collect();
    let softmax = |z: &[f32]| {
        let sum: f32 = z.iter().map(|z| z.exp()).sum();
        z.iter().map(|z| z.exp() / sum).collect()
    };
    agrees(&trained(Named::Linear { bias: true }, LossFunction::Squared, 4, 1, None), same);
    agrees(&trained(Named::Linear { bias: false }, LossFunction::Logistic, 4, 1, Some(2)), sigmoid);
    agrees(&trained(Named::Linear { bias: true }, LossFunction::Poisson, 3, 1, None), |z| vec![z[0].exp()]);
    for activation in [Activation::Relu, Activation::Tanh, Activation::Gelu] {
        let perceptron = Named::Perceptron { hidden: vec![6, 5], activation, dropout: 0.5 };
        agrees(&trained(perceptron, LossFunction::Softmax, 4, 3, None), softmax);
        let stages = vec![
            Stage { channels: 3, kernel: 3, stride: 1, padding: 1, pool: [2, 2] },
            Stage { channels: 4, kernel: 2, stride: 2, padding: 0, pool: [2, 1] },
        ];
        let windows = Named::Convolutional { image: [2, 9, 8], stages, hidden: vec![5], activation };
        agrees(&trained(windows, LossFunction::Softmax, 144, 3, None), softmax);
    }
}

#[test]
fn a_file_says_what_it_is_and_of_which_version() {
    let file = trained(Named::Linear { bias: true }, LossFunction::Squared, 2, 1, None).to_onnx();
    assert_eq!((numbers(&file, 1), text(&file, 2)), (vec![8], "whit".to_owned()));
    assert_eq!(numbers(all(&file, 8)[0], 2), [13]);
    let said: Vec<String> = all(&file, 14).into_iter().map(|property| text(property, 1)).collect();
    assert_eq!(said, ["card", "recipe"]);
    let gemm = all(all(&file, 7)[0], 1)[0];
    let alpha = fields(all(gemm, 5)[0]).into_iter().find_map(|(_, field)| match field {
        Field::Float(alpha) => Some(alpha),
        Field::Number(_) | Field::Bytes(_) => None,
    });
    assert_eq!((text(gemm, 4), alpha), ("Gemm".to_owned(), Some(1.0)));
}
