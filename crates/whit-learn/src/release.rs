//! What leaves: a model with its card, paid for before the first step.
//!
//! [`TrainingRun`] is a mechanism like every other: [`train`] reserves the whole [`Plan::charge`], takes all steps, commits the model to the ledger, and
//! only then can it be read. Files of models are in the format of safetensors, with card and recipe among their metadata.

mod labels;
mod onnx;
mod run;
pub(crate) mod torch;

pub use labels::LabelRun;
pub use run::{AfterStep, Begun, Keeping, Make, Task, TrainingRun, run_hash, train, train_once};
pub use torch::Arrangement;

use crate::custom::Model;
use crate::error::LearnError;
use crate::loss::LossFunction;
use crate::model::Named;
use crate::plan::{COARSE, Clipping, Plan};
use crate::projection::{Projecting, Projection};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whit_account::{Name, Unsupported};
use whit_core::digits::number_of;
use whit_core::feature::Feature;
use whit_core::release::Persist;
use whit_core::{Draw, Rung, Sampling};
use whit_noise::Replay;

/// The version of cards and of what stands next to them in a model's file. Cards of version 1 had a hash of the data, which is not read any more.
const VERSION: u32 = 2;

/// The version of the file of a model. From 3 on it has a checksum.
const FORMAT: u32 = 3;
/// What a file says of its layout where its tensors are PyTorch's; those that are ours have nothing to say.
const TORCH: &str = "torch";
/// What to do about a file that is no model, or another.
const AGAIN: &str = "`Session::train` writes it again, from the ledger and at no cost";

/// What the whole run loses one rung.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RungLoss {
    /// The unit with its change, in words: "element (user, topic), replace".
    pub unit: String,
    /// How neighbours differ, in a sentence.
    pub neighbours: String,
    /// At most so many protected units move with one unit of this rung.
    pub holds: u64,
    /// ε at the card's δ; infinite where nothing bounds it.
    #[serde(with = "whit_core::persist::finite_or_word")]
    pub epsilon: f64,
}

/// What a model says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// The version of the format.
    pub version: u32,
    /// The data set.
    pub dataset: String,
    /// What is lost, rung by rung; the protected one first.
    pub rungs: Vec<RungLoss>,
    /// The δ at which each ε holds.
    pub delta: f64,
    /// The accountant that said so.
    pub accountant: String,
    /// What one coin decides about.
    pub draw: String,
    /// How coins are thrown.
    pub sampling: String,
    /// The probability of being drawn, exactly.
    pub rate: String,
    /// The largest norm of what one bag adds.
    pub clip: f64,
    /// How it is enforced.
    pub clipping: String,
    /// Standard deviation of the noise over the clip norm.
    pub noise: f64,
    /// How many steps were taken.
    pub steps: u64,
    /// What float sums and the lattice may add to the distance of neighbours, over the clip norm; ε includes it.
    pub slack: f64,
    /// What each noisy sum was divided by.
    pub divisor: f64,
    /// What rows were projected on before the steps, in words; ε includes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection: Option<String>,
    /// How labels were reported by randomised response before the steps, in words; ε is theirs, and steps cost nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    /// What is released around the parameters after the steps, in words; ε includes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<String>,
    /// What it was chosen among, and how, in words; ε includes all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// Which public numbers it started from, and what of them was learned, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// The model.
    pub model: Named,
    /// What it was measured by.
    pub loss: LossFunction,
    /// How many numbers it has.
    pub parameters: usize,
    /// The entry in the ledger.
    pub entry: Option<u64>,
    /// Whether the noise can be drawn again: then the model is non-private.
    pub reproducible: bool,
}

impl RungLoss {
    /// What a plan promises each rung: nothing, where its noise is not secret.
    pub fn of(plan: &Plan, delta: f64) -> Result<Vec<Self>, Unsupported> {
        let lost = plan.loss(delta)?.into_iter().map(|(rung, loss)| Self {
            unit: rung.unit.to_string(),
            neighbours: neighbours(&rung),
            holds: rung.holds,
            epsilon: loss.upper,
        });
        Ok(lost.collect())
    }
}

impl Card {
    /// What a plan promises of the model that a recipe makes. It speaks of the data set by its name: no hash of it leaves.
    ///
    /// Noise that comes from a seed promises nothing: whoever knows the seed subtracts it.
    pub fn of(plan: &Plan, delta: f64, recipe: &Recipe, parameters: usize) -> Result<Self, Unsupported> {
        let rungs = RungLoss::of(plan, delta)?;
        Ok(Self {
            version: VERSION,
            dataset: recipe.dataset.clone(),
            rungs,
            delta,
            accountant: if plan.has_noisy_labels() {
                Name::Basic.to_string()
            } else {
                format!("{}, and {} for coarser units where that says more than {COARSE}", Name::Pld, Name::Rdp)
            },
            draw: match plan.draw() {
                Draw::Unit => "units".to_owned(),
                Draw::User { elements } => format!("users, with at most {} each", number_of(elements, "unit")),
            },
            sampling: match plan.sampling() {
                Sampling::Poisson => "poisson",
                Sampling::Fixed => "fixed",
            }
            .to_owned(),
            rate: plan.rate().to_string(),
            clip: plan.clip().norm,
            clipping: match plan.clip().how {
                Clipping::Flat => "flat".to_owned(),
                Clipping::PerLayer { layers } => format!("per-layer, {layers} layers"),
                Clipping::Normalising => "normalising".to_owned(),
            },
            noise: if plan.has_noisy_labels() { 0.0 } else { plan.noise() },
            steps: plan.steps(),
            slack: plan.slack(),
            divisor: plan.divisor(),
            projection: recipe.projection.as_ref().map(|asked| {
                format!(
                    "{} of {} directions, from second moments of rows of length {} at most, with noise of {} squared lengths",
                    asked.components, recipe.inputs, asked.radius, asked.noise
                )
            }),
            labels: None,
            intervals: None,
            choice: None,
            start: None,
            model: recipe.model.clone(),
            loss: recipe.loss,
            parameters,
            entry: None,
            reproducible: !plan.source().protects(),
        })
    }

    /// Whether it speaks of this plan and its noise, as far as that can be seen without pricing steps again; what labels cost takes no time to say.
    fn is_of(&self, plan: &Plan) -> bool {
        let protects = plan.source().protects();
        let noise = if plan.has_noisy_labels() { 0.0 } else { plan.noise() };
        let numbers = [self.noise, self.clip, self.slack, self.divisor];
        let units = plan.ladder().rungs().iter().map(|rung| rung.unit.to_string());
        self.reproducible != protects
            && (protects || self.rungs.iter().all(|rung| rung.epsilon == f64::INFINITY))
            && numbers == [noise, plan.clip().norm, plan.slack(), plan.divisor()]
            && (self.steps, &self.rate) == (plan.steps(), &plan.rate().to_string())
            && self.rungs.iter().map(|rung| rung.unit.clone()).eq(units)
            && (!plan.has_noisy_labels() || RungLoss::of(plan, self.delta).is_ok_and(|rungs| rungs == self.rungs))
    }

    /// The card for people, one thing a line.
    pub fn words(&self) -> String {
        let mut text = String::new();
        let mut say = |name: &str, what: &str| {
            let _ = writeln!(text, "{name:<12} {what}"); // a text takes everything
        };
        if self.reproducible {
            say("WARNING", "the noise can be drawn again from a seed, so this model is non-private");
        }
        for (place, rung) in self.rungs.iter().enumerate() {
            // Upwards, so that what people read is promised too.
            let epsilon = if rung.epsilon.is_finite() {
                format!("{:.4}", (rung.epsilon * 1e4).ceil() / 1e4)
            } else {
                "∞".to_owned()
            };
            let name = if place == 0 { "protected" } else { "and" };
            say(name, &format!("{}: ε = {epsilon} at δ = {:e}", rung.unit, self.delta));
            say("", &rung.neighbours);
        }
        say("accountant", &self.accountant);
        say("drawn", &format!("{}, {} at rate {}", self.draw, self.sampling, self.rate));
        if let Some(labels) = &self.labels {
            say("labels", labels);
        } else {
            say("clip", &format!("{} ({})", self.clip, self.clipping));
            say(
                "noise",
                &format!(
                    "{:.6} clip norms; ε is for sums {:.6} clip norms further apart than exact ones",
                    self.noise, self.slack
                ),
            );
        }
        say("steps", &format!("{}, each divided by {}", self.steps, self.divisor));
        if let Some(projection) = &self.projection {
            say("projection", &format!("{projection}; ε includes it"));
        }
        if let Some(intervals) = &self.intervals {
            say("intervals", &format!("{intervals}; ε includes it"));
        }
        if let Some(choice) = &self.choice {
            say("choice", &format!("{choice}; ε includes it"));
        }
        if let Some(start) = &self.start {
            say("start", start);
        }
        let plain = |value: serde_json::Result<String>| value.unwrap_or_default().replace('"', ""); // plain enums have a text
        let (model, loss) = (plain(serde_json::to_string(&self.model)), plain(serde_json::to_string(&self.loss)));
        say("model", &format!("{model}, {}; loss {loss}", number_of(self.parameters, "parameter")));
        say("data", &self.dataset);
        match self.entry {
            Some(entry) => say("ledger", &format!("entry {entry}")),
            None => say("ledger", "not charged"),
        }
        text
    }
}

/// How the neighbours of a rung differ.
fn neighbours(rung: &Rung) -> String {
    let unit = &rung.unit;
    let change = match unit.change() {
        whit_core::Change::AddRemove => "comes or goes",
        whit_core::Change::Replace => "is replaced",
    };
    let what = match unit.kind() {
        whit_core::Kind::Event => "one row",
        whit_core::Kind::Element => "all that one user has in one element",
        whit_core::Kind::Feature if unit.key().is_empty() => "what is not public of one row",
        whit_core::Kind::Feature => "what is not public of one user's rows",
        whit_core::Kind::Label if unit.key().is_empty() => "the label of one row",
        whit_core::Kind::Label => "the labels of one user's rows",
        whit_core::Kind::User => "all that one user has",
    };
    format!("neighbours: {what} {change}")
}

/// How rows become what a model reads, and what comes out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The data set.
    pub dataset: String,
    /// The columns and what is made of them, in order.
    pub features: Vec<Feature>,
    /// How many numbers a row has in columns whose type does not say so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub widths: BTreeMap<String, usize>,
    /// Whether bytes are opened up to bits.
    pub bits: bool,
    /// Every number is multiplied with this,
    pub scale: f32,
    /// and this is added.
    pub offset: f32,
    /// What is to be predicted.
    pub target: String,
    /// The names of the classes; nothing for numbers.
    pub classes: Option<Vec<String>>,
    /// The model.
    pub model: Named,
    /// What it is measured by.
    pub loss: LossFunction,
    /// What rows are projected on before the model reads them, where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection: Option<Projecting>,
    /// How many numbers a row has.
    pub inputs: usize,
    /// How many come out.
    pub outputs: usize,
}

impl Recipe {
    /// How many numbers the model reads of a row.
    pub fn read(&self) -> usize {
        self.projection.as_ref().map_or(self.inputs, |asked| asked.components)
    }
}

/// One tensor of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The path to it in the model.
    pub name: String,
    /// Its sides.
    pub sides: Vec<usize>,
}

/// A model that was learned, with what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// What it says of itself.
    pub card: Card,
    /// How rows become its input.
    pub recipe: Recipe,
    /// What rows are projected on first.
    pub projection: Option<Projection>,
    shapes: Vec<Shape>,
    theta: Vec<f32>,
}

impl Trained {
    /// A model that was learned, by the places and values of its parameters.
    pub(crate) fn of(card: Card, recipe: Recipe, (layout, theta): (&crate::params::Layout, Vec<f32>)) -> Self {
        Self { card, recipe, projection: None, shapes: shapes_of(layout), theta }
    }

    /// The parameters, one after the other.
    pub fn theta(&self) -> &[f32] {
        &self.theta
    }

    /// The file of the model: safetensors, with card and recipe among the metadata.
    ///
    /// The header is written here and not by the crate of that name, which lays tensors out by their names and metadata in the order of a hash map, so that the same model
    /// would be another file each time.
    pub(crate) fn to_file(&self) -> Vec<u8> {
        self.to_file_as(Arrangement::Whit)
    }

    /// The same, with its tensors arranged in one of two ways. [`Trained::of_file`] reads both.
    pub fn to_file_as(&self, arrangement: Arrangement) -> Vec<u8> {
        let (shapes, theta) = match arrangement {
            Arrangement::Whit => (self.shapes.clone(), self.theta.clone()),
            Arrangement::Torch => self.as_torch(),
        };
        let text = |value: serde_json::Result<String>| value.unwrap_or_default(); // plain structs have a text
        let projection = self.projection.as_ref().map(|projection| Shape {
            name: Projection::TENSOR.to_owned(),
            sides: vec![projection.kept(), projection.columns()],
        });
        let projected = self.projection.iter().flat_map(Projection::directions);
        let data: Vec<u8> = projected.chain(&theta).flat_map(|value| value.to_le_bytes()).collect();
        let (card, recipe) = (text(serde_json::to_string(&self.card)), text(serde_json::to_string(&self.recipe)));
        let format = format!("whit model {FORMAT}");
        let layout = (arrangement == Arrangement::Torch).then_some(TORCH);
        let texts = [&format, &card, &recipe].into_iter().map(String::as_str).chain(layout);
        let checksum = checksum(texts, projection.iter().chain(&shapes), &data);
        let mut metadata: BTreeMap<&str, String> =
            BTreeMap::from([("format", format), ("card", card), ("recipe", recipe), ("checksum", checksum)]);
        metadata.extend(layout.map(|layout| ("layout", layout.to_owned())));
        let mut header = serde_json::Map::new();
        header.insert("__metadata__".to_owned(), serde_json::json!(metadata));
        let mut start = 0;
        for shape in projection.iter().chain(&shapes) {
            let end = start + 4 * shape.sides.iter().product::<usize>();
            let stored = TensorInfo { dtype: Dtype::F32, shape: shape.sides.clone(), data_offsets: (start, end) };
            header.insert(shape.name.clone(), serde_json::json!(stored));
            start = end;
        }
        let mut header = serde_json::Value::Object(header).to_string().into_bytes();
        // The data begins at a multiple of eight bytes.
        header.resize(header.len().next_multiple_of(8), b' ');
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header);
        bytes.extend(data);
        bytes
    }

    /// A hash of its file, by which it is known.
    pub fn hash(&self) -> String {
        blake3::hash(&self.to_file()).to_hex().to_string()
    }

    /// Names, sides and numbers of tensors as PyTorch has them.
    fn as_torch(&self) -> (Vec<Shape>, Vec<f32>) {
        let (mut shapes, mut theta, mut place) = (Vec::new(), Vec::with_capacity(self.theta.len()), 0);
        for tensor in torch::sequential(&self.recipe.model, &self.shapes) {
            let end = place + tensor.shape.sides.iter().product::<usize>();
            theta.extend(tensor.numbers(&self.theta[place..end]));
            place = end;
            shapes.push(tensor.shape);
        }
        (shapes, theta)
    }

    /// The same as we have them, of tensors that are PyTorch's of this recipe; nothing where they are not.
    fn of_torch(recipe: &Recipe, shapes: &[Shape], theta: &[f32]) -> Option<(Vec<Shape>, Vec<f32>)> {
        let model = recipe.model.build(recipe.read(), recipe.outputs, &mut Replay::new(0)).ok()?;
        let ours = shapes_of(&crate::params::Layout::of(&model).0);
        let (mut numbers, mut place) = (Vec::with_capacity(theta.len()), 0);
        let theirs = torch::sequential(&recipe.model, &ours);
        if !theirs.iter().map(|tensor| &tensor.shape).eq(shapes) {
            return None;
        }
        for tensor in theirs {
            let end = place + tensor.shape.sides.iter().product::<usize>();
            numbers.extend(tensor.ours(theta.get(place..end)?));
            place = end;
        }
        Some((ours, numbers))
    }

    /// Reads the file of a model; what is not exactly one is refused.
    pub fn of_file(bytes: &[u8]) -> Result<Self, LearnError> {
        Self::of_file_checked(bytes).map(|(trained, _)| trained)
    }

    /// The same, and whether the file has a checksum: those of earlier formats have none, and are taken as they are.
    pub fn of_file_checked(bytes: &[u8]) -> Result<(Self, bool), LearnError> {
        let wrong = |what: &str| LearnError::file(format!("this is no model of whit: {what}"), AGAIN);
        let length = bytes.first_chunk::<8>().ok_or_else(|| wrong("it is too short"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| wrong("its header is too long"))?;
        let end = length.checked_add(8).filter(|&end| end <= bytes.len() && length <= 100_000_000);
        let end = end.ok_or_else(|| wrong("its header is longer than the file"))?;
        let data = &bytes[end..];
        // It checks, before any number is read, that tensors follow one another from the start without a gap, each as long as its shape says.
        let header: Metadata = serde_json::from_slice(&bytes[8..end])
            .map_err(|why| wrong(&format!("its header cannot be read: {why}")))?;
        if header.data_len() < data.len() {
            return Err(wrong("there are numbers that belong to no tensor"));
        }
        if header.data_len() > data.len() {
            return Err(wrong("its numbers end before its tensors do"));
        }
        let metadata = header.metadata().iter().flatten().map(|(name, text)| (name.clone(), text.clone()));
        let metadata: BTreeMap<String, String> = metadata.collect();
        let format = metadata.get("format").and_then(|format| format.strip_prefix("whit model "));
        let earlier = matches!(format, Some("1" | "2"));
        if !earlier && format.is_none_or(|format| format != FORMAT.to_string()) {
            return Err(wrong("its format is another"));
        }
        let says = metadata.get("checksum");
        if says.is_none() && !earlier {
            return Err(wrong("it has no checksum"));
        }
        let mut card: serde_json::Map<String, serde_json::Value> =
            read(&metadata, "card").map_err(|why| wrong(&why))?;
        if format == Some("1") {
            card.remove("fingerprint"); // it is not to be read any more
            card.insert("version".to_owned(), VERSION.into());
        }
        let card: Card =
            serde_json::from_value(card.into()).map_err(|why| wrong(&format!("its card cannot be read: {why}")))?;
        let recipe: Recipe = read(&metadata, "recipe").map_err(|why| wrong(&why))?;
        let mut tensors: Vec<(String, &TensorInfo)> = header.tensors().into_iter().collect();
        if let Some((name, _)) = tensors.iter().find(|(_, tensor)| tensor.dtype != Dtype::F32) {
            return Err(wrong(&format!("`{name}` has other numbers than 32-bit floats")));
        }
        tensors.sort_by(|(a, one), (b, other)| (one.data_offsets, a).cmp(&(other.data_offsets, b)));
        let shape = |(name, tensor): (String, &TensorInfo)| Shape { name, sides: tensor.shape.clone() };
        let mut shapes: Vec<Shape> = tensors.into_iter().map(shape).collect();
        let text = |name: &str| metadata.get(name).map_or("", String::as_str);
        let layout = metadata.get("layout").map(String::as_str);
        if layout.is_some_and(|layout| layout != TORCH) {
            return Err(wrong("its tensors are laid out in a way that is not known"));
        }
        let texts = ["format", "card", "recipe"].map(text).into_iter().chain(layout);
        let found = checksum(texts, shapes.iter(), data);
        if says.is_some_and(|says| *says != found) {
            let what = "the model is not as it was written: its checksum is another";
            return Err(LearnError::file(what, AGAIN));
        }
        let mut theta: Vec<f32> = data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let projection = match (&recipe.projection, shapes.first()) {
            (None, _) => None,
            (Some(asked), Some(first)) if first.name == Projection::TENSOR => {
                let sides = shapes.remove(0).sides;
                let rest = theta.split_off(sides.iter().product());
                let projection = Projection::of_numbers(&sides, std::mem::replace(&mut theta, rest))?;
                if (projection.kept(), projection.columns()) != (asked.components, recipe.inputs) {
                    return Err(wrong("its projection has other sides than its recipe says"));
                }
                Some(projection)
            }
            (Some(_), _) => return Err(wrong("its projection is missing")),
        };
        if layout.is_some() {
            let ours = Self::of_torch(&recipe, &shapes, &theta);
            (shapes, theta) = ours.ok_or_else(|| wrong("its tensors are not those of its recipe"))?;
        }
        Ok((Self { card, recipe, projection, shapes, theta }, says.is_some()))
    }

    /// The model with what was learned; another model than the one that learned is refused, and what differs is named.
    pub fn fill<M: Model>(&self, model: M) -> Result<M, LearnError> {
        let (layout, _) = crate::params::Layout::of(&model);
        let shapes = shapes_of(&layout);
        for (own, other) in self.shapes.iter().zip(&shapes) {
            if own != other {
                let named = |shape: &Shape| format!("`{}` of {:?}", shape.name, shape.sides);
                let what = format!(
                    "the file holds another model: it has {}, where the model has {}",
                    named(own),
                    named(other)
                );
                return Err(LearnError::file(what, AGAIN));
            }
        }
        if self.shapes.len() != shapes.len() {
            let (own, other) = (self.shapes.len(), shapes.len());
            let what = format!("the file holds another model: it has {own} tensors, and the model has {other}");
            return Err(LearnError::file(what, AGAIN));
        }
        layout.fill(model, &self.theta)
    }
}

/// A hash of all that is in the file of a model: its texts, the names and sides of its tensors in their order, and their numbers.
///
/// All of it was released, or was public before, so that a hash of it says nothing of rows that the file does not. It finds what a disk or a
/// hand has changed; who changes it as well is not found.
fn checksum<'a>(texts: impl Iterator<Item = &'a str>, shapes: impl Iterator<Item = &'a Shape>, data: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut take = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    for text in texts {
        take(text.as_bytes());
    }
    for shape in shapes {
        take(format!("{} {:?}", shape.name, shape.sides).as_bytes());
    }
    take(data);
    hasher.finalize().to_hex().to_string()
}

fn read<T: serde::de::DeserializeOwned>(metadata: &BTreeMap<String, String>, name: &str) -> Result<T, String> {
    let text = metadata.get(name).ok_or_else(|| format!("it has no {name}"))?;
    serde_json::from_str(text).map_err(|why| format!("its {name} cannot be read: {why}"))
}

pub(crate) fn shapes_of(layout: &crate::params::Layout) -> Vec<Shape> {
    let shape = |slot: &crate::params::ParamSlot| Shape { name: slot.name.clone(), sides: slot.shape.clone() };
    layout.slots().iter().map(shape).collect()
}

impl Persist for Trained {
    fn to_bytes(&self) -> Vec<u8> {
        self.to_file()
    }
}

#[cfg(test)]
mod tests;
