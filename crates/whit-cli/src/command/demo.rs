//! `whit demo`: the whole road on a small real data set, from the declaration to the ledger.

use crate::demo::{DemoFigures, DemoFolder, page, story};
use crate::error::Error;
use crate::number::Wrong;
use crate::output::{ProgressLine, write_file, write_json};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Walk the whole road on a small real data set: declare, preview, ask, ask again, be refused, read the ledger.
///
/// The data are built in: which areas of www.microsoft.com 32,711 anonymous users visited in one week of 1998. The same questions are
/// asked three times with the same ε, protecting one visit, then all that one user did within one subject, then all that one
/// user did. The data are public, so the demo can show how far off each answer truly is.
#[derive(clap::Args)]
pub(super) struct Demo {
    /// The ε of each question, for the unit that is protected.
    #[arg(long, default_value = "1", allow_negative_numbers = true, value_parser = promised)]
    epsilon: f64,
    /// The folder for the picture, `demo.svg`, and for the working folder, `demo`.
    #[arg(long, value_name = "FOLDER", default_value = "out")]
    out: PathBuf,
    /// Print JSON for programs instead of a story for people.
    #[arg(long)]
    json: bool,
}

/// ε of one question. The budget is three times as much, and a question that asks for all of it must still be a question.
fn promised(text: &str) -> Result<f64, Wrong> {
    let wrong = Wrong {
        range: "a number from 0.01 to 100",
        hint: "ε is the logarithm of the factor by which an output may become more likely; 1 is strong, 10 is weak",
    };
    text.trim().parse().ok().filter(|epsilon| (0.01..=100.0).contains(epsilon)).ok_or(wrong)
}

impl Demo {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let progress = ProgressLine::new(self.json);
        progress.start("laying out the data");
        let mut room = DemoFolder::furnish(&self.out.join("demo"), self.epsilon)?;
        let figures = DemoFigures::gather(&mut room, self.epsilon, &command_line, &|words| progress.start(words))?;
        progress.finish();
        if self.json {
            write_json(&figures, out)?;
        } else {
            story::write(&figures, &room, out)?;
        }
        out.flush()?;
        let pictures = page::Pictures::of(&figures);
        let ledger = std::fs::read_to_string(room.folder.join("ledger.svg")).unwrap_or_default();
        write_file(self.out.join("demo.svg"), pictures.counts.svg(), talk)?;
        write_file(room.folder.join("hitters.svg"), pictures.hitters.svg(), talk)?;
        write_file(room.folder.join("report.html"), page::of(&figures, &pictures, &ledger, self.epsilon), talk)?;
        Ok(())
    }
}

/// Runs a command as it would run by itself, and keeps what it says.
fn command_line(words: &[&str]) -> (ExitCode, String) {
    let (mut out, mut talk) = (Vec::new(), Vec::new());
    let code = super::main(words.iter().map(OsString::from), &mut out, &mut talk);
    out.extend(talk);
    (code, String::from_utf8_lossy(&out).into_owned())
}
