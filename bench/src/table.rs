//! Aligned columns: words left, numbers right.

use std::io::{self, Write};

/// Writes rows of which the first cell is words and the rest are numbers, the first row being the heading.
pub(crate) fn write(rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |i: usize| rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(wide).collect();
    for row in rows {
        write!(out, "{:<1$}", row[0], widths[0])?;
        for (cell, &width) in row.iter().zip(&widths).skip(1) {
            write!(out, "  {cell:>width$}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}
