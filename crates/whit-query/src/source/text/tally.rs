//! What is wrong with lines, counted for the owner of the data.

use super::cell::{Column, Taken};
use super::lines::Lines;
use super::{Notice, Rows, Shape, TextTable};
use std::collections::BTreeMap;
use std::io;

/// How often something was found, and where first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::source) struct Found {
    pub(in crate::source) rows: u64,
    /// The number of a file among those of the table, and of a line in it, from 1.
    pub(in crate::source) first: Option<(usize, u64)>,
}

impl Found {
    /// Finds it once more, in a file and at a line of it.
    pub(in crate::source) fn at(&mut self, place: (usize, u64)) {
        self.rows += 1;
        self.first.get_or_insert(place);
    }
}

/// All that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::source) struct Tally {
    /// Lines that are not written as they should be.
    pub(in crate::source) shapes: BTreeMap<Shape, Found>,
    /// Cells that are not of their column's type, column by column.
    pub(in crate::source) wrong: Vec<Found>,
}

/// A tally at one place.
struct At<'a> {
    tally: &'a mut Tally,
    place: (usize, u64),
}

impl Notice for At<'_> {
    const COUNTS: bool = true;

    fn cell(&mut self, column: usize, taken: Taken) {
        if taken == Taken::Wrong {
            self.tally.wrong[column].at(self.place);
        }
    }

    fn shape(&mut self, shape: Shape) {
        self.tally.shapes.entry(shape).or_default().at(self.place);
    }
}

impl TextTable {
    /// Reads every line, and counts what does not fit.
    pub(in crate::source) fn tally(&self) -> io::Result<Tally> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let mut tally = Tally { wrong: vec![Found::default(); all.len()], ..Tally::default() };
        let mut columns: Vec<Column> = self.columns.iter().map(|(_, kind)| Column::new(kind)).collect();
        for (number, file) in self.files.iter().enumerate() {
            let mut rows = Rows::new(self, file, &all);
            let mut lines = Lines::open(&file.path, file.start, 0..u64::MAX, &file.writing)?;
            let mut line_number = file.lines;
            let mut held = 0;
            while let Some(line) = lines.next()? {
                line_number += 1;
                let mut at = At { tally: &mut tally, place: (number, line_number) };
                held += line.len();
                if std::str::from_utf8(line).is_err() {
                    at.shape(Shape::Foreign);
                }
                rows.row(line, &mut columns, &mut at);
                if held > super::BYTES {
                    // Values are of no interest here, and must not pile up.
                    for column in &mut columns {
                        drop(column.finish());
                    }
                    held = 0;
                }
            }
            if lines.is_broken() {
                At { tally: &mut tally, place: (number, line_number + 1) }.shape(Shape::Cut);
            }
        }
        Ok(tally)
    }
}
