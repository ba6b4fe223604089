//! How answers leave: tables for people, JSON, CSV and Parquet for programs, pictures and pages for both.
//!
//! People get the digits that mean something; programs get all of them. The answer itself leaves before any picture of
//! it is drawn, so that a full disk costs a picture and not what was paid for.

mod file;
mod progress;
#[cfg(test)]
#[path = "../../../whit-view/src/samples.rs"]
mod samples;

pub(crate) use file::{Readers, inputs, write_file, write_for, write_json};
pub(crate) use progress::ProgressLine;

use crate::error::Error;
use crate::number::Wrong;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use whit::Session;
use whit::query::{Answer, export};
use whit_view::picture::ChartKind;
use whit_view::text::Excerpt;
use whit_view::{csv, page, picture, raster, text};

/// How an answer is printed and drawn.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct OutputOptions {
    /// Print JSON for programs instead of a table for people.
    #[arg(long, group = "form")]
    pub(crate) json: bool,
    /// Print CSV: what is noisy also has the columns `name_low` and `name_high`.
    #[arg(long, group = "form")]
    pub(crate) csv: bool,
    /// Write a Parquet file, with the statement in its metadata, instead of printing.
    #[arg(long, group = "form", value_name = "FILE")]
    pub(crate) parquet: Option<PathBuf>,
    /// Draw the answer into a file that ends in .svg, .png or .html; may be given several times.
    #[arg(long, value_name = "FILE", value_parser = drawing)]
    pub(crate) plot: Vec<Drawing>,
    /// Draw bars, lines or a heat map (heat); without it whatever fits the answer.
    #[arg(long, value_name = "KIND", value_parser = chart_kind, requires = "plot")]
    pub(crate) kind: Option<ChartKind>,
    /// Show all rows and whole keys, also on a terminal.
    #[arg(long)]
    pub(crate) all: bool,
}

impl OutputOptions {
    /// A display of progress that keeps quiet where a program reads the output.
    pub(crate) fn progress(&self) -> ProgressLine {
        ProgressLine::new(self.json || self.csv)
    }

    /// Refuses files that no output may replace. It is asked before anything is charged.
    pub(crate) fn check(&self, session: &Session) -> Result<(), Error> {
        let inputs = session.inputs();
        let mut files = self.parquet.iter().map(PathBuf::as_path).chain(self.plot.iter().map(Drawing::path));
        Ok(files.try_for_each(|file| inputs.check(file))?)
    }

    pub(crate) fn excerpt(&self) -> Excerpt {
        let all = if self.all || !io::stdout().is_terminal() { Excerpt::ALL } else { Excerpt::TERMINAL };
        match terminal_size::terminal_size_of(io::stdout()) {
            Some((terminal_size::Width(columns), _)) => Excerpt { columns: usize::from(columns), ..all },
            None => all,
        }
    }
}

/// A file to draw into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Drawing {
    path: PathBuf,
    kind: DrawingKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DrawingKind {
    Svg,
    Png,
    Html,
}

/// Reads what an answer is to be drawn as.
fn chart_kind(text: &str) -> Result<ChartKind, Wrong> {
    match text.to_ascii_lowercase().as_str() {
        "bars" => Ok(ChartKind::Bars),
        "lines" => Ok(ChartKind::Lines),
        "heat" => Ok(ChartKind::Heat),
        _ => Err(Wrong { range: "bars, lines or heat", hint: "without --kind, whatever fits the answer is drawn" }),
    }
}

/// Reads the name of a file to draw into; its ending says how.
pub(crate) fn drawing(text: &str) -> Result<Drawing, Wrong> {
    let wrong = Wrong {
        range: "a file that ends in .svg, .png or .html",
        hint: "the ending says how to draw: --plot out.svg for print, out.png for slides, out.html for the whole answer",
    };
    let ending = Path::new(text).extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    let kind = match ending.as_deref() {
        Some("svg") => DrawingKind::Svg,
        Some("png") => DrawingKind::Png,
        Some("html" | "htm") => DrawingKind::Html,
        _ => return Err(wrong),
    };
    Ok(Drawing { path: text.into(), kind })
}

impl Drawing {
    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a page, which has room for more than one picture.
    pub(crate) fn is_page(&self) -> bool {
        self.kind == DrawingKind::Html
    }

    /// Writes a picture, or a page made of it, into the file.
    pub(crate) fn write(&self, svg: &str, page: impl FnOnce() -> String, talk: &mut dyn Write) -> Result<(), Error> {
        self.write_to(Readers::Everybody, svg, page, talk)
    }

    /// The same of what tells of rows without noise: a file that only its owner may open.
    pub(crate) fn write_for_owner(
        &self,
        svg: &str,
        page: impl FnOnce() -> String,
        talk: &mut dyn Write,
    ) -> Result<(), Error> {
        self.write_to(Readers::Owner, svg, page, talk)
    }

    fn write_to(
        &self,
        readers: Readers,
        svg: &str,
        page: impl FnOnce() -> String,
        talk: &mut dyn Write,
    ) -> Result<(), Error> {
        let (inputs, path) = (inputs(), self.path.clone());
        match self.kind {
            DrawingKind::Svg => write_for(readers, &inputs, path, svg, talk)?,
            DrawingKind::Html => write_for(readers, &inputs, path, page(), talk)?,
            DrawingKind::Png => {
                let png = raster::png(svg)
                    .map_err(|why| Error::failed(format!("`{}` could not be drawn: {why}", self.path.display())))?;
                let unknown = raster::unknown_letters(svg);
                if !unknown.is_empty() {
                    writeln!(talk, "note: the built-in font has no {unknown}; an .svg or .html shows these letters")?;
                }
                write_for(readers, &inputs, path, &png, talk)?
            }
        };
        Ok(())
    }
}

/// Writes the answer the way the options ask for, and then the pictures.
pub(crate) fn write_answer(
    answer: &Answer,
    options: &OutputOptions,
    out: &mut dyn Write,
    talk: &mut dyn Write,
) -> Result<(), Error> {
    if options.json {
        write_json(answer, out)?;
    } else if options.csv {
        csv::write(answer, out)?;
        text::write_statement(answer, talk)?;
    } else if let Some(path) = &options.parquet {
        export::write_parquet(answer, path).map_err(|why| Error::failed(format!("{why}{}", again(answer))))?;
        writeln!(talk, "wrote {}", path.display())?;
        text::write_statement(answer, talk)?;
    } else {
        text::write(answer, options.excerpt(), out)?;
    }
    out.flush()?;
    for drawing in &options.plot {
        let picture = picture::of(answer, options.kind);
        if picture.is_none() && drawing.kind != DrawingKind::Html {
            return Err(Error::failed(format!(
                "`{}` was not drawn: the answer has no number to draw{}",
                drawing.path.display(),
                again(answer)
            )));
        }
        let svg = picture.as_ref().map_or("", AsRef::as_ref);
        drawing.write(svg, || page::of(answer, options.kind), talk)?;
    }
    Ok(())
}

/// What to do when an answer that was paid for did not arrive.
fn again(answer: &Answer) -> &'static str {
    match answer.statement.entry {
        Some(_) => "; the answer is in the ledger, so asking again costs nothing",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{answer, cell, key, priced};
    use super::*;
    use clap::Parser;
    use whit::query::{Role, Value};

    #[derive(Debug, Parser)]
    struct Ask {
        #[command(flatten)]
        output: OutputOptions,
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("whit-output-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    fn sample() -> Answer {
        let rows = ["a", "b", "c"].map(|name| vec![key(name), cell(Value::Int(40), 30.0, 50.0)]);
        priced(answer(&[("site", Role::Key), ("visits", Role::Noisy)], rows.to_vec()))
    }

    fn written(answer: &Answer, options: &OutputOptions) -> (String, String) {
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        write_answer(answer, options, &mut out, &mut talk).unwrap();
        (String::from_utf8(out).unwrap(), String::from_utf8(talk).unwrap())
    }

    #[test]
    fn one_form_at_a_time_and_pictures_besides() {
        let asked = |line: &str| Ask::try_parse_from(line.split_whitespace());
        let options = asked("ask --csv --plot a.svg --plot B.PNG --plot c.html").unwrap().output;
        assert_eq!(
            options.plot.iter().map(|plot| plot.kind).collect::<Vec<_>>(),
            [DrawingKind::Svg, DrawingKind::Png, DrawingKind::Html]
        );
        assert!(asked("ask --csv --json").is_err() && asked("ask --json --parquet a").is_err());
        assert!(asked("ask --plot a.gif").is_err() && asked("ask --plot svg").is_err());
        assert_eq!(asked("ask --plot a.svg --kind heat").unwrap().output.kind, Some(ChartKind::Heat));
        assert!(asked("ask --plot a.svg --kind pie").is_err() && asked("ask --kind bars").is_err());
    }

    #[test]
    fn json_is_the_answer_itself() {
        let (out, talk) = written(&sample(), &OutputOptions { json: true, ..OutputOptions::default() });
        assert_eq!(serde_json::from_str::<Answer>(&out).unwrap(), sample());
        assert_eq!(talk, "");
    }

    #[test]
    fn csv_keeps_the_statement_out_of_the_data() {
        let (out, talk) = written(&sample(), &OutputOptions { csv: true, ..OutputOptions::default() });
        assert_eq!(out, "site,visits,visits_low,visits_high\na,40,30.0,50.0\nb,40,30.0,50.0\nc,40,30.0,50.0\n");
        assert!(talk.contains("protected  element (user_id, domain), replace"), "{talk}");
    }

    #[test]
    fn every_kind_of_file_is_written_and_named() {
        let folder = folder("files");
        let plot = ["a.svg", "a.png", "a.html"].map(|name| drawing(folder.join(name).to_str().unwrap()).unwrap());
        let options =
            OutputOptions { parquet: Some(folder.join("a.parquet")), plot: plot.to_vec(), ..OutputOptions::default() };
        let (out, talk) = written(&sample(), &options);
        assert_eq!((out.as_str(), talk.matches("wrote ").count()), ("", 4));
        let starts = |name: &str, with: &[u8]| std::fs::read(folder.join(name)).unwrap().starts_with(with);
        assert!(starts("a.svg", b"<svg") && starts("a.png", b"\x89PNG") && starts("a.html", b"<!doctype html>"));
        assert!(starts("a.parquet", b"PAR1"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_answer_without_numbers_is_printed_although_it_cannot_be_drawn() {
        let words = priced(answer(&[("site", Role::Key)], vec![vec![key("a")]]));
        let options = OutputOptions { plot: vec![drawing("never.svg").unwrap()], ..OutputOptions::default() };
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        let error = write_answer(&words, &options, &mut out, &mut talk).unwrap_err().to_string();
        assert!(String::from_utf8(out).unwrap().starts_with("site\n"));
        assert!(error.contains("no number to draw") && error.contains("asking again costs nothing"), "{error}");
    }
}
