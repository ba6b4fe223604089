//! A model in the format of ONNX, which most runtimes read.
//!
//! The file is a protocol buffer of a few kinds of messages, which are written here byte by byte: fields are a number and a kind, numbers are in base 128, and
//! whatever is longer is preceded by its length. Operators are those of version 13 of the standard set.

use super::torch::sequential;
use super::{Shape, Trained};
use crate::kernel::Window;
use crate::loss::LossFunction;
use crate::model::{Activation, Named};

/// The version of the format and of the operators.
const VERSIONS: (u64, u64) = (8, 13);
/// The types of numbers in tensors.
const FLOATS: u64 = 1;
const WHOLE: u64 = 7;

/// A message in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn base_128(&mut self, mut value: u64) {
        while value >= 128 {
            self.0.push((value & 127) as u8 | 128);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u64, value: u64) -> Self {
        self.base_128(field << 3);
        self.base_128(value);
        self
    }

    fn float(mut self, field: u64, value: f32) -> Self {
        self.base_128(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.base_128(field << 3 | 2);
        self.base_128(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u64, inner: &Self) -> Self {
        self.bytes(field, &inner.0)
    }
}

/// A graph in the making: operators one after the other, each reading what the one before gives.
#[derive(Default)]
struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    /// The name of what was computed last.
    last: String,
    named: usize,
}

/// What an operator is told besides its inputs.
enum Attribute {
    Float(f32),
    Number(u64),
    Numbers(Vec<usize>),
}

impl Graph {
    fn constant(&mut self, name: &str, sides: &[usize], kind: u64, bytes: &[u8]) -> String {
        let sides = sides.iter().fold(Message::default(), |message, &side| message.number(1, side as u64));
        self.constants.push(sides.number(2, kind).text(8, name).bytes(9, bytes));
        name.to_owned()
    }

    fn floats(&mut self, shape: &Shape, values: &[f32]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(&shape.name, &shape.sides, FLOATS, &bytes)
    }

    fn one(&mut self, name: &str, value: f32) -> String {
        self.constant(name, &[], FLOATS, &value.to_le_bytes())
    }

    /// An operator on these inputs; what it gives has a name of its own, unless one is given.
    fn node(
        &mut self,
        kind: &str,
        inputs: &[String],
        attributes: Vec<(&str, Attribute)>,
        name: Option<&str>,
    ) -> String {
        self.named += 1;
        let output = name.map_or_else(|| format!("{}_{}", kind.to_lowercase(), self.named), str::to_owned);
        let mut node = inputs.iter().fold(Message::default(), |node, input| node.text(1, input));
        node = node.text(2, &output).text(3, &format!("{kind} {}", self.named)).text(4, kind);
        for (name, attribute) in attributes {
            let named = Message::default().text(1, name);
            node = node.message(
                5,
                &match attribute {
                    Attribute::Float(value) => named.float(2, value).number(20, 1),
                    Attribute::Number(value) => named.number(3, value).number(20, 2),
                    Attribute::Numbers(values) => {
                        values.iter().fold(named, |named, &value| named.number(8, value as u64)).number(20, 7)
                    }
                },
            );
        }
        self.nodes.push(node);
        output
    }

    /// An operator on what came last, and further inputs.
    fn then(&mut self, kind: &str, more: &[String], attributes: Vec<(&str, Attribute)>) {
        let inputs: Vec<String> = std::iter::once(self.last.clone()).chain(more.iter().cloned()).collect();
        self.last = self.node(kind, &inputs, attributes, None);
    }

    fn activate(&mut self, activation: Activation) {
        match activation {
            Activation::Relu => self.then("Relu", &[], Vec::new()),
            Activation::Tanh => self.then("Tanh", &[], Vec::new()),
            // z·Φ(z) = z/2·(1 + erf(z/√2)): there is no operator for it in this version.
            Activation::Gelu => {
                let z = self.last.clone();
                let at = self.named;
                let (root, one, half) = (
                    self.one(&format!("root_{at}"), std::f32::consts::SQRT_2),
                    self.one(&format!("one_{at}"), 1.0),
                    self.one(&format!("half_{at}"), 0.5),
                );
                self.then("Div", &[root], Vec::new());
                self.then("Erf", &[], Vec::new());
                self.then("Add", &[one], Vec::new());
                self.then("Mul", &[z], Vec::new());
                self.then("Mul", &[half], Vec::new());
            }
        }
    }
}

/// What goes in or comes out: rows of so many numbers.
fn rows_of(name: &str, width: usize) -> Message {
    let rows = Message::default().text(2, "rows");
    let sides = Message::default().message(1, &rows).message(1, &Message::default().number(1, width as u64));
    let tensor = Message::default().number(1, FLOATS).message(2, &sides);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

fn window(window: Window) -> Vec<(&'static str, Attribute)> {
    let [down, across] = window.padding;
    vec![
        ("kernel_shape", Attribute::Numbers(window.kernel.to_vec())),
        ("strides", Attribute::Numbers(window.stride.to_vec())),
        ("pads", Attribute::Numbers(vec![down, across, down, across])),
    ]
}

impl Trained {
    /// The model as a file of ONNX. It reads `features`, the numbers of a row in the order of the recipe, encoded and scaled as that says, and gives `output`, which is what the model says,
    /// and `prediction`: probabilities of classes, or of the second of two, or the expected number.
    pub fn to_onnx(&self) -> Vec<u8> {
        let mut graph = Graph { last: "features".to_owned(), ..Graph::default() };
        if let Some(projection) = &self.projection {
            let shape = Shape { name: "projection".to_owned(), sides: vec![projection.kept(), projection.columns()] };
            let directions = graph.floats(&shape, projection.directions());
            graph.then("Gemm", &[directions], vec![("transB", Attribute::Number(1))]);
        }
        self.layers(&mut graph);
        // A name that everybody can ask for.
        let output = graph.node("Identity", &[graph.last.clone()], Vec::new(), Some("output"));
        let (kind, attributes) = match self.recipe.loss {
            LossFunction::Softmax => ("Softmax", vec![("axis", Attribute::Number(1))]),
            LossFunction::Logistic => ("Sigmoid", Vec::new()),
            LossFunction::Poisson => ("Exp", Vec::new()),
            LossFunction::Squared | LossFunction::Huber { .. } => ("Identity", Vec::new()),
        };
        graph.node(kind, &[output], attributes, Some("prediction"));
        let mut whole = graph.nodes.iter().fold(Message::default(), |whole, node| whole.message(1, node));
        whole = graph.constants.iter().fold(whole.text(2, "model"), |whole, constant| whole.message(5, constant));
        whole = whole.message(11, &rows_of("features", self.recipe.inputs));
        for name in ["output", "prediction"] {
            whole = whole.message(12, &rows_of(name, self.recipe.outputs));
        }
        let opset = Message::default().text(1, "").number(2, VERSIONS.1);
        let mut file = Message::default().number(1, VERSIONS.0).text(2, "whit");
        file = file.text(3, env!("CARGO_PKG_VERSION")).message(7, &whole).message(8, &opset);
        for (name, text) in
            [("card", serde_json::to_string(&self.card)), ("recipe", serde_json::to_string(&self.recipe))]
        {
            let text = text.unwrap_or_default(); // plain structs have a text
            file = file.message(14, &Message::default().text(1, name).text(2, &text));
        }
        file.0
    }

    /// Layer by layer.
    fn layers(&self, graph: &mut Graph) {
        let mut tensors = self.shapes.iter().zip(sequential(&self.recipe.model, &self.shapes)).peekable();
        let mut place = 0;
        // Weight and bias of the next layer; convolutions as PyTorch has them, whose layout is that of ONNX.
        let mut next = |graph: &mut Graph, turned: bool| {
            let mut found = Vec::new();
            while let Some((ours, theirs)) =
                tensors.next_if(|(ours, _)| found.is_empty() || ours.name.ends_with("bias"))
            {
                let end = place + ours.sides.iter().product::<usize>();
                let numbers = &self.theta[place..end];
                place = end;
                let name = theirs.shape.name.clone();
                found.push(if turned {
                    graph.floats(&Shape { name, sides: theirs.shape.sides.clone() }, &theirs.numbers(numbers))
                } else {
                    graph.floats(&Shape { name, sides: ours.sides.clone() }, numbers)
                });
            }
            found
        };
        let (hidden, activation) = match &self.recipe.model {
            Named::Linear { .. } => (0, Activation::Relu),
            Named::Perceptron { hidden, activation, .. } => (hidden.len(), *activation),
            Named::Convolutional { image, stages, hidden, activation } => {
                // As many images as there are rows.
                let sides: Vec<u8> =
                    [-1].into_iter().chain(image.map(|side| side as i64)).flat_map(i64::to_le_bytes).collect();
                let sides = graph.constant("image", &[4], WHOLE, &sides);
                graph.then("Reshape", &[sides], Vec::new());
                for stage in stages {
                    let parameters = next(graph, true);
                    let [kernel, stride, padding] = [stage.kernel, stage.stride, stage.padding].map(|side| [side; 2]);
                    graph.then("Conv", &parameters, window(Window { kernel, stride, padding }));
                    graph.activate(*activation);
                    let [kernel, stride] = stage.pool.map(|side| [side; 2]);
                    graph.then("MaxPool", &[], window(Window { kernel, stride, padding: [0; 2] }));
                }
                graph.then("Flatten", &[], vec![("axis", Attribute::Number(1))]);
                (hidden.len(), *activation)
            }
        };
        for layer in 0..=hidden {
            let parameters = next(graph, false);
            graph.then("Gemm", &parameters, vec![("alpha", Attribute::Float(1.0))]);
            if layer < hidden {
                graph.activate(activation);
            }
        }
    }
}

#[cfg(test)]
mod tests;
