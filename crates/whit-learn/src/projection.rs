//! Directions that rows are projected on before a model reads them.

use crate::error::LearnError;
use crate::pca::Principal;
use serde::{Deserialize, Serialize};
use whit_core::matrix::{Matrix, wide_product};

/// What is asked of a projection, before there is one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Projecting {
    /// How many directions are kept.
    pub components: usize,
    /// A unit's rows together are shortened to this length before they are looked at.
    pub radius: f64,
    /// Standard deviation of the noise, over the squared radius.
    pub noise: f64,
}

/// Directions that were released, and project for nothing: reading them costs no more than their release did.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    columns: usize,
    kept: usize,
    /// Direction by direction.
    directions: Vec<f32>,
}

impl Projection {
    /// The name of its tensor in the file of a model.
    pub(crate) const TENSOR: &str = "projection";

    /// Of directions that were found.
    pub fn of(principal: &Principal) -> Self {
        let directions = (0..principal.kept()).flat_map(|i| principal.direction(i)).map(|&value| value as f32);
        Self { columns: principal.columns(), kept: principal.kept(), directions: directions.collect() }
    }

    /// As a file has it.
    pub(crate) fn of_numbers(sides: &[usize], directions: Vec<f32>) -> Result<Self, LearnError> {
        match *sides {
            [kept, columns] if kept * columns == directions.len() && kept > 0 => Ok(Self { columns, kept, directions }),
            _ => Err(LearnError::file(
                "the projection in this file is no matrix",
                "`Session::train` writes the file again",
            )),
        }
    }

    /// How many numbers a row has before.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How many it has afterwards.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Direction by direction.
    pub(crate) fn directions(&self) -> &[f32] {
        &self.directions
    }

    /// Rows, each in the directions that are kept. What comes out is as private as the rows.
    pub fn apply(&self, rows: &[f32]) -> Result<Vec<f32>, LearnError> {
        if !rows.len().is_multiple_of(self.columns) {
            return Err(LearnError::Data(format!("{} numbers do not make rows of {}", rows.len(), self.columns)));
        }
        let many = rows.len() / self.columns;
        let mut projected = vec![0.0; many * self.kept];
        let directions = Matrix::new(&self.directions, self.kept, self.columns);
        wide_product(Matrix::new(rows, many, self.columns), directions.turned(), &mut projected);
        Ok(projected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scatter::Scatter;

    #[test]
    fn rows_are_projected_as_one_by_one() {
        let scatter = Scatter::new(3, 1.0, "0.001".parse().unwrap()).unwrap();
        let noisy = [5_000_000, 1_000_000, 0, 9_000_000, 2_000_000, 4_000_000];
        let principal = Principal::of(&scatter, &noisy, 2).unwrap();
        let projection = Projection::of(&principal);
        assert_eq!((projection.columns(), projection.kept()), (3, 2));
        let rows = [0.5_f32, -1.0, 2.0, 3.0, 0.0, 1.0];
        let projected = projection.apply(&rows).unwrap();
        for (row, projected) in rows.chunks(3).zip(projected.chunks(2)) {
            for (a, b) in principal.project(row).unwrap().iter().zip(projected) {
                assert!((a - f64::from(*b)).abs() < 1e-6, "{a} and {b}");
            }
        }
        assert!(projection.apply(&rows[..4]).is_err());
        let again = Projection::of_numbers(&[2, 3], projection.directions().to_vec()).unwrap();
        assert_eq!(again, projection);
        assert!(Projection::of_numbers(&[3, 3], projection.directions().to_vec()).is_err());
    }
}
