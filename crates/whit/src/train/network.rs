//! The model of a training file: what it is, which public numbers it starts from, and what of it is learned.

use crate::Error;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use whit_account::meaning::number;
use whit_learn::model::{Named, Network, is_of_adapter, layers_of};
use whit_learn::params::Layout;
use whit_learn::{LearnError, Recipe, start};
use whit_noise::Entropy;

/// The table `model` of a training file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelSpec {
    pub(crate) named: Named,
    /// A public file of safetensors that it starts from; at zero or at random without.
    pub(crate) start: Option<PathBuf>,
    /// Layers that stay as they are: `layer.0` is the first.
    pub(crate) frozen: Vec<String>,
    /// All weights stay as they are, and products of narrow matrices are learned beside those of linear layers.
    pub(crate) lora: Option<Lora>,
}

/// How linear layers are adapted.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lora {
    rank: usize,
    alpha: f64,
}

/// The keys that are not the named model's own.
#[derive(Deserialize)]
struct Besides {
    start: Option<PathBuf>,
    #[serde(default)]
    frozen: Vec<String>,
    lora: Option<Lora>,
}

impl<'de> Deserialize<'de> for ModelSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut own = toml::Table::deserialize(deserializer)?;
        let besides =
            ["start", "frozen", "lora"].into_iter().filter_map(|key| Some((key.to_owned(), own.remove(key)?)));
        let besides: toml::Table = besides.collect();
        let wrong = |error: toml::de::Error| D::Error::custom(error.message());
        let Besides { start, frozen, lora } = besides.try_into().map_err(wrong)?;
        Ok(Self { named: own.try_into().map_err(wrong)?, start, frozen, lora })
    }
}

/// A model where it starts.
#[derive(Debug)]
pub(crate) struct StartingModel {
    pub(crate) network: Network,
    /// The parameters that stay as they are, by their names.
    pub(crate) frozen: Vec<String>,
    /// What of this is meant besides the model's name; nothing where it starts as its name says and is learned as a whole.
    pub(crate) meaning: Option<Value>,
    /// The same for people.
    pub(crate) words: Option<String>,
}

impl ModelSpec {
    /// A model by its name alone.
    pub(crate) const fn of(named: Named) -> Self {
        Self { named, start: None, frozen: Vec::new(), lora: None }
    }

    /// Whether all of it is learned.
    pub(crate) fn is_learned_as_a_whole(&self) -> bool {
        self.frozen.is_empty() && self.lora.is_none()
    }

    /// Whether it starts where its name says, and all of it is learned.
    pub(crate) fn is_plain(&self) -> bool {
        self.start.is_none() && self.is_learned_as_a_whole()
    }

    /// How many layers are clipped, where they are one by one. An adapter is two.
    pub(crate) fn layers(&self) -> u32 {
        let (windows, linear) = match &self.named {
            Named::Linear { .. } => (0, 1),
            Named::Perceptron { hidden, .. } => (0, hidden.len() + 1),
            Named::Convolutional { stages, hidden, .. } => (stages.len(), hidden.len() + 1),
        };
        let many = if self.lora.is_some() { 2 * linear } else { (windows + linear).saturating_sub(self.frozen.len()) };
        many as u32
    }

    /// The model for rows and outputs of a recipe, where it starts. What is read here is public.
    pub(crate) fn build(&self, recipe: &Recipe, entropy: &mut dyn Entropy) -> Result<StartingModel, Error> {
        let mut network = self.named.build(recipe.read(), recipe.outputs, entropy)?;
        let (mut meaning, mut words) = (Map::new(), Vec::new());
        if let Some(file) = &self.start {
            let started = self.read(file, network)?;
            network = started.network;
            words.push(format!("from `{}`, whose numbers have the hash {}", name_of(file), &started.hash[..16]));
            meaning.insert("hash".to_owned(), json!(started.hash));
        }
        let frozen = match self.lora {
            Some(lora) => {
                network = self.adapted(network, lora, entropy)?;
                let Lora { rank, alpha } = lora;
                meaning.insert("lora".to_owned(), json!({ "rank": rank, "alpha": number(alpha) }));
                words.push(format!(
                    "linear layers are adapted by products of rank {rank}, times {alpha} over it, and all else stays as it is"
                ));
                let layout = Layout::of(&network).0;
                let names = layout.slots().iter().map(|slot| slot.name.clone());
                names.filter(|name| !is_of_adapter(name)).collect()
            }
            None => {
                let (places, names) = self.stay(&network)?;
                if !places.is_empty() {
                    words.push(format!("{} stay as they are", self.frozen.join(", ")));
                    meaning.insert("frozen".to_owned(), json!(places));
                }
                names
            }
        };
        let meaning = (!meaning.is_empty()).then(|| Value::Object(meaning));
        Ok(StartingModel { network, frozen, meaning, words: (!words.is_empty()).then(|| words.join("; ")) })
    }

    fn read(&self, file: &Path, network: Network) -> Result<start::Started, Error> {
        let called = format!("model.start is `{}`", file.display());
        let bytes = std::fs::read(file).map_err(|why| {
            Error::asked(
                format!("{called}, which cannot be read: {why}"),
                "name a file of safetensors, relative to the training file",
            )
        })?;
        start::start(network, &self.named, &bytes).map_err(|error| match error {
            LearnError::File { what, hint } => Error::asked(format!("{called}, and {what}"), hint),
            other => other.into(),
        })
    }

    fn adapted(
        &self,
        network: Network,
        Lora { rank, alpha }: Lora,
        entropy: &mut dyn Entropy,
    ) -> Result<Network, Error> {
        if self.start.is_none() {
            return Err(Error::asked(
                "model.lora adapts a model that was learned before, and model.start names none",
                "write start = \"base.safetensors\", a public file, or leave lora out",
            ));
        }
        if !self.frozen.is_empty() {
            return Err(Error::asked(
                "with model.lora all weights stay as they are, and model.frozen names some of them",
                "leave one of them out",
            ));
        }
        if rank == 0 || rank > 1 << 16 || !(alpha > 0.0 && alpha.is_finite()) {
            return Err(Error::asked(
                format!(
                    "model.lora has rank {rank} and alpha {alpha}: expected a rank from 1 to 65,536 and an alpha above 0"
                ),
                "write lora = { rank = 4, alpha = 8.0 }",
            ));
        }
        Ok(network.adapted(rank, alpha, entropy))
    }

    /// The layers that stay as they are, and the names of their parameters.
    fn stay(&self, network: &Network) -> Result<(Vec<usize>, Vec<String>), Error> {
        let layers = layers_of(&Layout::of(network).0);
        let mut places = Vec::new();
        for named in &self.frozen {
            let place = named.strip_prefix("layer.").and_then(|place| place.parse::<usize>().ok());
            let Some(place) = place.filter(|&place| place < layers.len()) else {
                let last = layers.len() - 1;
                return Err(Error::asked(
                    format!("model.frozen names `{named}`, and the layers of this model are layer.0 to layer.{last}"),
                    "write frozen = [\"layer.0\"]",
                ));
            };
            if places.contains(&place) {
                return Err(Error::asked(format!("model.frozen names `{named}` twice"), "name each layer once"));
            }
            places.push(place);
        }
        if places.len() == layers.len() {
            return Err(Error::asked(
                "model.frozen names all layers, so there is nothing to learn",
                "leave at least one out",
            ));
        }
        places.sort_unstable();
        let names = places.iter().flat_map(|&place| layers[place].clone()).collect();
        Ok((places, names))
    }
}

fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        toml::from_str::<ModelSpec>(text).unwrap_err().message().to_owned()
    }

    #[test]
    fn keys_of_the_start_stand_beside_those_of_the_model() {
        let text = "name = 'perceptron'\nhidden = [3]\nstart = 'base.safetensors'\nlora = { rank = 2, alpha = 4.0 }";
        let model: ModelSpec = toml::from_str(text).unwrap();
        assert!(matches!(&model.named, Named::Perceptron { hidden, .. } if *hidden == [3]));
        assert_eq!(model.lora, Some(Lora { rank: 2, alpha: 4.0 }));
        assert_eq!((model.layers(), model.is_plain()), (4, false));
        assert!(said("name = 'linear'\nfreeze = ['layer.0']").contains("unknown field `freeze`"));
        assert!(said("name = 'linear'\nlora = { rnk = 1 }").contains("unknown field `rnk`"));
        assert!(said("name = 'lineal'").contains("unknown variant `lineal`"));
    }
}
