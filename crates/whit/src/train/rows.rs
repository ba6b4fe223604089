//! What is read of a data set for a training, and how rows become what a learner takes.
//!
//! [`read`] comes after the charge, and nothing that is in a row can make it fail.

use super::features::ChosenRows;
use super::spec::{self, Spec, asked};
use crate::Error;
use whit_core::Kind;
use whit_core::declare::{Dataset, UnitDeclaration};
use whit_learn::loss::{LossFunction, Targets};
use whit_learn::model::Named;
use whit_learn::plan::check_scale;
use whit_learn::store::Builder;
use whit_learn::{Keep, LearnError, Owners, Recipe, Rows, Store};
use whit_query::source::learn::{Block, Checked, Fits, Misfits, Numbers, Reading, Target};
use whit_query::{Fault, QueryError, Tables};

pub(crate) fn declared<'a>(spec: &Spec, tables: &'a Tables) -> Result<(&'a Dataset, &'a UnitDeclaration), Error> {
    let dataset = tables.warehouse().declaration().dataset(&spec.dataset).map_err(whit_query::QueryError::from)?;
    let unit = dataset.unit.as_ref().ok_or_else(|| unprotected(&dataset.name))?;
    Ok((dataset, unit))
}

/// Rows as a run needs them, before they are cut. Runs that read the same may share them.
#[derive(Clone)]
pub(crate) struct Read {
    pub(crate) rows: Rows,
    /// A hash of each, where some may have to be chosen.
    pub(crate) contents: Option<Vec<u64>>,
    /// Where further rows may lie.
    rest: Keep,
}

impl Read {
    /// Where further rows may lie.
    pub(crate) fn rest(&self) -> Keep {
        self.rest.clone()
    }
}

/// What is read of a data set for a recipe, to try a model on or to tell its target. Rows that do not fit are left out.
pub(crate) fn reading<'a>(recipe: &'a Recipe, chosen: ChosenRows<'a>, with_target: bool) -> Reading<'a> {
    let fits = match recipe.loss {
        LossFunction::Logistic => Fits::ZeroOrOne,
        LossFunction::Poisson => Fits::NotNegative,
        LossFunction::Squared | LossFunction::Softmax | LossFunction::Huber { .. } => Fits::Any,
    };
    let target = Target { column: &recipe.target, classes: recipe.classes.as_deref(), counted: false, fits };
    Reading {
        dataset: &recipe.dataset,
        features: &recipe.features,
        widths: &recipe.widths,
        bits: recipe.bits,
        scaled: (recipe.scale, recipe.offset),
        target: with_target.then_some(target),
        filter: chosen.filter,
        part: chosen.part,
        users: false,
        elements: false,
        contents: false,
        misfits: Misfits::LeftOut,
        carried: &[],
    }
}

/// The same, to learn from: with whose rows they are, as far as the unit asks.
pub(crate) fn learning<'a>(recipe: &'a Recipe, spec: &'a Spec, unit: &UnitDeclaration) -> Reading<'a> {
    of_units(recipe, spec, unit, spec.learned_from())
}

/// The same of other rows.
pub(crate) fn of_units<'a>(
    recipe: &'a Recipe,
    spec: &'a Spec,
    unit: &UnitDeclaration,
    chosen: ChosenRows<'a>,
) -> Reading<'a> {
    let kind = unit.protect;
    let in_view = in_view(kind);
    let plain = reading(recipe, chosen, true);
    let counted = matches!(spec.classes, Some(spec::Classes::Number(_)));
    Reading {
        target: plain.target.map(|target| Target { counted, ..target }),
        users: true,
        // Of rows that are units of their own, where an element holds so many of them only.
        elements: kind == Kind::Element || kind == Kind::Event && unit.caps().rows_per_element.is_some(),
        contents: kind == Kind::Event || !in_view && rows_per_unit(unit).is_some(),
        misfits: if in_view { Misfits::Zero } else { Misfits::LeftOut },
        ..plain
    }
}

/// Whether rows stay in view, so that how many there are, and whose, is public.
pub(crate) fn in_view(kind: Kind) -> bool {
    match kind {
        Kind::Feature | Kind::Label => true,
        Kind::Event | Kind::Element | Kind::User => false,
    }
}

/// The most rows of one protected unit.
pub(crate) fn rows_per_unit(unit: &UnitDeclaration) -> Option<u64> {
    match unit.protect {
        Kind::Element => unit.caps().rows_per_element,
        Kind::User => unit.caps.rows_per_user,
        Kind::Event | Kind::Feature | Kind::Label => None,
    }
}

/// Reads rows, of which the features go where they may lie, scaled as the recipe has it.
pub(crate) fn gather(
    tables: &Tables,
    recipe: &Recipe,
    reading: &Reading<'_>,
    keep: &Keep,
) -> Result<(Store, Numbers), Error> {
    let width = tables.check_learning(reading)?.widths.iter().sum();
    let made = Builder::new(width, keep.clone()).map_err(LearnError::from)?;
    let mut store = made.scaled(recipe.scale, recipe.offset);
    let mut take = |block: Block<'_>| match block {
        Block::Bytes(values) => store.push_bytes(values),
        Block::Floats(values) => store.push_floats(values),
    };
    let mut sink = |_: usize, block: Block<'_>| {
        take(block).map_err(|error| {
            let fault = if error.is_of_the_disk() { Fault::Failed } else { Fault::Asked };
            QueryError { fault, ..QueryError::asked(error.to_string(), error.hint()) }
        })
    };
    let numbers = tables.rows_for_learning(reading, &mut sink)?;
    Ok((store.finish(), numbers))
}

/// What rows are measured against. Those that do not fit were left out, or are the first class.
pub(crate) fn targets(recipe: &Recipe, values: Vec<f32>) -> Targets {
    match recipe.loss {
        LossFunction::Softmax => Targets::Classes {
            labels: values.iter().map(|&value| value as u32).collect(),
            classes: recipe.classes.as_ref().map_or(0, Vec::len) as u32,
        },
        _ => Targets::Numbers { values, width: 1 },
    }
}

/// What a training file says of rows and model, before any row is read.
pub(crate) fn recipe(spec: &Spec) -> Result<Recipe, Error> {
    let classes = spec.classes.as_ref().map(spec::Classes::names);
    let many = classes.as_ref().map(Vec::len);
    if many.is_some_and(|many| many < 2) {
        return Err(asked("there are fewer than 2 classes", "leave `classes` out to tell a number"));
    }
    let loss = spec.loss.unwrap_or(match many {
        None => LossFunction::Squared,
        Some(2) => LossFunction::Logistic,
        Some(_) => LossFunction::Softmax,
    });
    let outputs = match (loss, many) {
        (LossFunction::Softmax, None) => {
            return Err(asked("softmax tells classes apart, and none are named", "write classes = 10"));
        }
        (LossFunction::Softmax, Some(many)) => many,
        (LossFunction::Logistic, Some(many)) if many > 2 => {
            return Err(asked(
                format!("logistic tells 2 classes apart, and there are {many}"),
                "write loss = \"softmax\"",
            ));
        }
        _ => 1,
    };
    let mut widths = spec.widths.clone();
    if let (Named::Convolutional { image, .. }, [only]) = (&spec.model.named, &spec.features[..]) {
        widths.entry(only.feature.of.clone()).or_insert_with(|| image.iter().product());
    }
    spec.check_split()?;
    let (features, scale, offset) = spec.read()?;
    check_scale(scale, offset).map_err(|error| asked(error.to_string(), error.hint()))?;
    Ok(Recipe {
        dataset: spec.dataset.clone(),
        features,
        widths,
        bits: spec.features_as == spec::Opened::Bits,
        scale,
        offset,
        target: spec.target.clone(),
        classes,
        model: spec.model.named.clone(),
        loss,
        projection: spec.projection.clone(),
        inputs: 0,
        outputs,
    })
}

/// The same with what is declared of features, as it was when they were looked at.
pub(crate) fn frozen(spec: &Spec, checked: &Checked) -> Result<Recipe, Error> {
    Ok(Recipe { features: checked.features.clone(), inputs: checked.widths.iter().sum(), ..recipe(spec)? })
}

/// Rows brought together by unit, all that there are.
pub(crate) fn rows_of(
    unit: &UnitDeclaration,
    features: Store,
    numbers: &Numbers,
    targets: Targets,
) -> Result<Rows, Error> {
    let kind = unit.protect;
    // The features or labels of one user's rows move together.
    let together = if unit.user.is_some() && in_view(kind) { Kind::User } else { kind };
    let owners = Owners { users: numbers.users.as_deref(), elements: numbers.elements.as_deref() };
    Ok(Rows::new(features, targets, together, owners)?)
}

pub(crate) fn unprotected(dataset: &str) -> Error {
    asked(format!("`{dataset}` is public, so there is nothing to protect"), "declare its unit in whit.toml")
}

/// No rows, as a run would read them.
pub(crate) fn nothing(recipe: &Recipe, unit: &UnitDeclaration) -> Result<Read, Error> {
    let numbers = Numbers { users: Some(Vec::new()), elements: Some(Vec::new()), ..Numbers::default() };
    let features = Store::of(Vec::new(), recipe.inputs).map_err(LearnError::from)?;
    let rows = rows_of(unit, features, &numbers, targets(recipe, Vec::new()))?;
    Ok(Read { rows, contents: None, rest: Keep::default() })
}

/// Reads the rows: after the charge, or for whoever owns them.
pub(crate) fn read(spec: &Spec, tables: &Tables, keep: Keep) -> Result<Read, Error> {
    let (_, unit) = declared(spec, tables)?;
    let recipe = recipe(spec)?;
    let (features, mut numbers) = gather(tables, &recipe, &learning(&recipe, spec, unit), &keep)?;
    let targets = targets(&recipe, std::mem::take(&mut numbers.targets));
    let rows = rows_of(unit, features, &numbers, targets)?;
    let rest = Keep { memory: keep.memory.saturating_sub(rows.memory()), ..keep };
    Ok(Read { rows, contents: numbers.contents, rest })
}
