//! The parameters of a model as one flat vector, which is what is clipped, sanitised, stepped, averaged and saved.

use crate::custom::Model;
use crate::error::LearnError;
use crate::tensor;
use burn::module::{ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::Tensor;
use std::ops::Range;

/// Where one parameter stands in the vector.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamSlot {
    /// The path to it in the model, such as `first.weight`.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Where it stands.
    pub range: Range<usize>,
    pub(crate) id: ParamId,
}

/// Where each parameter of a model stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    slots: Vec<ParamSlot>,
    /// Those that stay as they are, and stand nowhere.
    frozen: Vec<ParamId>,
}

#[derive(Default)]
struct Visit<'a> {
    path: Vec<String>,
    slots: Vec<ParamSlot>,
    values: Vec<f32>,
    /// The names of those that are left out.
    without: &'a [String],
    frozen: Vec<ParamId>,
}

impl ModuleVisitor for Visit<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let name = self.path.join(".");
        if self.without.contains(&name) {
            self.frozen.push(param.id);
            return;
        }
        let value = param.val().inner();
        let shape = value.dims().to_vec();
        let values = tensor::floats(value);
        let range = self.values.len()..self.values.len() + values.len();
        self.values.extend(values);
        self.slots.push(ParamSlot { name, shape, range, id: param.id });
    }
}

struct Fill<'a> {
    layout: &'a Layout,
    values: &'a [f32],
    next: usize,
}

impl ModuleMapper for Fill<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.layout.frozen.contains(&param.id) {
            return param;
        }
        let start = self.next;
        let values = self.values;
        let mut end = start;
        let mapped = param.map(|value| {
            let shape = value.dims();
            end = start + shape.iter().product::<usize>();
            tensor::of(values[start..end].to_vec(), shape)
        });
        self.next = end;
        mapped
    }
}

impl Layout {
    /// Of a model, with the values that its parameters have now.
    pub fn of<M: Model>(model: &M) -> (Self, Vec<f32>) {
        Self::without(model, &[])
    }

    /// The same without the parameters of these names, which stay as they are: they have no place in the vector, so they are neither clipped nor sanitised nor moved.
    pub fn without<M: Model>(model: &M, frozen: &[String]) -> (Self, Vec<f32>) {
        let mut visit = Visit { without: frozen, ..Visit::default() };
        model.visit(&mut visit);
        (Self { slots: visit.slots, frozen: visit.frozen }, visit.values)
    }

    /// Those that stay as they are.
    pub(crate) fn frozen(&self) -> &[ParamId] {
        &self.frozen
    }

    /// The parameters, one after the other.
    pub fn slots(&self) -> &[ParamSlot] {
        &self.slots
    }

    /// How many numbers they are.
    pub fn len(&self) -> usize {
        self.slots.last().map_or(0, |slot| slot.range.end)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The model with these values.
    pub fn fill<M: Model>(&self, model: M, values: &[f32]) -> Result<M, LearnError> {
        if values.len() != self.len() {
            let what = format!("there are {} parameters, not {}", self.len(), values.len());
            return Err(LearnError::file(what, "take the parameters of the same model"));
        }
        Ok(model.map(&mut Fill { layout: self, values, next: 0 }))
    }

    pub(crate) fn find(&self, id: ParamId) -> Option<&ParamSlot> {
        self.slots.iter().find(|slot| slot.id == id)
    }
}
