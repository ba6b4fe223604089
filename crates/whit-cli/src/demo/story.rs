//! The demo as people read it on a terminal, and the words that the page shares with it.

use super::figures::{AGAIN as ASKED_AGAIN, COUNTS, Compared, DemoFigures, LevelView, Scene};
use super::folder::{DemoFolder, declaration};
use std::io::{self, Write};
use whit::core::unit::Kind;
use whit_view::measure::{Shown, column};
use whit_view::number::{brief, brief_up, grouped};
use whit_view::table::{Side, Table};

pub(super) const SOURCE: &str = "Data: J. S. Breese, D. Heckerman, C. M. Kadie, Anonymous Microsoft Web Data, UCI Machine Learning Repository, CC BY 4.0; joined into one table and sorted.";
pub(super) const DECLARE: &str = "A row is a visit. An element is all that one user did within one subject, by a public list of subjects (`whit partition dictionary subjects.txt --output subjects.partition` makes it). This file says so once.";
pub(super) const PREVIEW: &str = "Nothing is read and nothing is charged: price and error follow from the declaration.";
pub(super) const AGAIN: &str = "The same question in other words was answered from the ledger, and cost nothing. This one would cost more than is left:";
pub(super) const LEDGER: &str = "Every charge was booked before its noise was drawn.";

/// So many bars stand in one picture, and rows in one table.
pub(super) const DRAWN: usize = 12;

/// The last rows.
pub(super) fn smallest(rows: &[Compared]) -> &[Compared] {
    &rows[rows.len().saturating_sub(DRAWN)..]
}

/// What the demo is about.
pub(super) fn about(figures: &DemoFigures) -> String {
    let (areas, subjects) =
        figures.levels.first().map_or((0, 0), |level| (level.hitters.rows.len(), level.counts.rows.len()));
    format!(
        "{} users of www.microsoft.com made {} visits to {areas} areas in {subjects} subjects, in one week of 1998. The data are public, so the demo may show the truth next to each answer. Nothing here is canned: run it again, and the noise is new.",
        grouped(&figures.users.to_string()),
        grouped(&figures.visits.to_string()),
    )
}

pub(super) fn compare(figures: &DemoFigures) -> String {
    format!(
        "The question was asked under three declarations, each with ε = {} at δ = {}. They differ in what they protect.",
        brief(figures.epsilon),
        brief(figures.delta)
    )
}

pub(super) fn hitters_words(figures: &DemoFigures) -> String {
    let areas = figures.levels.first().map_or(0, |level| level.hitters.rows.len());
    format!("How many users visited each of {areas} areas, released all at once, and in which order they stand.")
}

pub(super) const HISTOGRAM: &str = "How many visits each area had. What one user did within one subject is one block, scaled to a length that is found privately first.";

/// Writes the story.
pub(crate) fn write(figures: &DemoFigures, room: &DemoFolder, out: &mut dyn Write) -> io::Result<()> {
    let scenes = &figures.scenes;
    writeln!(out, "whit demo: one ε, three things to protect\n")?;
    prose(&about(figures), out)?;

    heading("1  Say what one whit is", DECLARE, out)?;
    let file = room.folder.join("whit.toml");
    writeln!(out, "   {}\n", file.display())?;
    indented(&declaration(Kind::Element, figures.epsilon), out)?;
    writeln!(out)?;
    // Of what it says, the ladder: the report has all of it.
    let ladder = scenes.check.said.split("\n\n").find(|block| block.starts_with("rung")).unwrap_or_default();
    writeln!(out, "   $ {}\n", scenes.check.command)?;
    indented(ladder, out)?;

    heading("2  See what a question costs before it is asked", PREVIEW, out)?;
    shell(&scenes.preview, out)?;

    heading("3  Ask, and compare with the truth", &compare(figures), out)?;
    let config = room.folder.join("whit.toml").display().to_string();
    writeln!(out, "   $ whit query \"{COUNTS}\" --config {config}\n")?;
    table(&counts(figures, smallest), out)?;
    let (all, shown) =
        figures.levels.first().map_or((0, 0), |level| (level.counts.rows.len(), smallest(&level.counts.rows).len()));
    writeln!(
        out,
        "\n   … the {shown} smallest of {all} subjects; the report has all. What each promise costs, rung by rung (ε):\n"
    )?;
    table(&prices(figures), out)?;

    heading("4  Heavy hitters", &hitters_words(figures), out)?;
    writeln!(
        out,
        "   $ whit hitters visits --item title --items-per-user {} --config {config}\n",
        figures.items_per_user()
    )?;
    table(&hitters(figures, 8), out)?;

    heading("5  A histogram in clusters", HISTOGRAM, out)?;
    let partition = room.folder.join("subjects.partition");
    writeln!(out, "   $ whit histogram visits --item title --partition {} --config {config}\n", partition.display())?;
    table(&histogram(figures, 5), out)?;
    writeln!(out, "\n   How far off the truth the three answers are, in the mean (what the caps cut off included):\n")?;
    table(&summary(figures), out)?;

    heading("6  Asking again is free, and a budget says no", AGAIN, out)?;
    writeln!(out, "   $ whit query \"{ASKED_AGAIN}\" --config {config}\n")?;
    writeln!(
        out,
        "     {}\n",
        if figures.again_was_free { "read again from the ledger: nothing was charged" } else { "charged again" }
    )?;
    shell(&scenes.refused, out)?;

    heading("7  The ledger", LEDGER, out)?;
    shell(&scenes.ledger, out)?;
    writeln!(out)?;
    writeln!(out, "   $ {}\n", scenes.verify.command)?;
    indented(scenes.verify.said.lines().next().unwrap_or_default(), out)?;
    writeln!(out)?;
    prose(SOURCE, out)
}

impl DemoFigures {
    fn items_per_user(&self) -> u64 {
        self.subjects_per_user * self.visits_per_subject
    }
}

fn heading(title: &str, words: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{title}\n")?;
    prose(words, out)?;
    writeln!(out)
}

/// Words in lines of at most 100 letters.
fn prose(words: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut line = String::new();
    for word in words.split_whitespace() {
        if line.chars().count() + word.chars().count() >= 97 {
            writeln!(out, "   {line}")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "   {line}")
}

fn indented(text: &str, out: &mut dyn Write) -> io::Result<()> {
    text.trim_end().lines().try_for_each(|line| writeln!(out, "{}", format!("     {line}").trim_end()))
}

fn shell(scene: &Scene, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "   $ {}\n", scene.command)?;
    indented(&scene.said, out)
}

fn table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::new();
    table.write(&mut text)?;
    indented(&String::from_utf8_lossy(&text), out)
}

/// Rows next to their truth, one column a level.
fn next_to_truth<'a>(figures: &'a DemoFigures, what: &str, rows: impl Fn(&'a LevelView) -> &'a [Compared]) -> Table {
    // A level that was not asked has no column.
    let asked: Vec<&LevelView> = figures.levels.iter().filter(|level| !rows(level).is_empty()).collect();
    let levels = asked.iter().map(|level| (format!("{} level", level.unit), Side::Right));
    let fixed = [(what.to_owned(), Side::Left), ("exact".to_owned(), Side::Right)];
    let mut table = Table::new(fixed.into_iter().chain(levels));
    let columns: Vec<Vec<String>> = asked
        .iter()
        .map(|level| column(&rows(level).iter().map(|row| row.measure.shown()).collect::<Vec<Shown>>()))
        .collect();
    let first = asked.first().map_or(&[][..], |level| rows(level));
    for (i, row) in first.iter().enumerate() {
        let fixed = [row.name.clone(), grouped(&row.exact.to_string())];
        table.row(fixed.into_iter().chain(columns.iter().map(|column| column.get(i).cloned().unwrap_or_default())));
    }
    table
}

/// Visits by subject.
pub(super) fn counts(figures: &DemoFigures, part: fn(&[Compared]) -> &[Compared]) -> Table {
    next_to_truth(figures, "subject", |level| part(&level.counts.rows))
}

/// Users by area, the first few.
pub(super) fn hitters(figures: &DemoFigures, few: usize) -> Table {
    next_to_truth(figures, "area, by users", |level| &level.hitters.rows[..few.min(level.hitters.rows.len())])
}

/// Visits by area, the first few.
pub(super) fn histogram(figures: &DemoFigures, few: usize) -> Table {
    next_to_truth(figures, "area, by visits", |level| {
        level.histogram.as_ref().map_or(&[][..], |table| &table.rows[..few.min(table.rows.len())])
    })
}

/// What one question costs at each rung, level by level.
pub(super) fn prices(figures: &DemoFigures) -> Table {
    let heading = [("promise".to_owned(), Side::Left), ("protects".to_owned(), Side::Left)];
    let units = figures.levels.iter().map(|level| (format!("per {}", level.unit), Side::Right));
    let mut table = Table::new(heading.into_iter().chain(units));
    for (i, level) in figures.levels.iter().enumerate() {
        // Of finer units nothing is promised: a visit that is replaced by another user's touches two elements, and two users.
        let finer = std::iter::repeat_n("–".to_owned(), i);
        let costs = level.prices.iter().map(|price| brief_up(price.epsilon));
        let fixed = [format!("{} level", level.unit), level.protects.to_owned()];
        table.row(fixed.into_iter().chain(finer).chain(costs));
    }
    table
}

/// How far off the answers are, level by level.
pub(super) fn summary(figures: &DemoFigures) -> Table {
    let mut table = Table::new([
        ("promise", Side::Left),
        ("visits by subject", Side::Right),
        ("users by area", Side::Right),
        ("visits by area", Side::Right),
        ("wrong pairs of areas", Side::Right),
        ("of the top 20", Side::Right),
    ]);
    for level in &figures.levels {
        let (error, order) = (|error: f64| format!("{error:.1}"), &level.order);
        let share = |wrong: u64, pairs: u64| format!("{:.1} %", 100.0 * wrong as f64 / pairs.max(1) as f64);
        let top = order.top as u64;
        table.row([
            format!("{} level", level.unit),
            error(level.counts.mean_error),
            error(level.hitters.mean_error),
            level.histogram.as_ref().map_or_else(|| "–".to_owned(), |table| error(table.mean_error)),
            share(order.wrong, order.pairs),
            share(order.wrong_at_the_top, top * top.saturating_sub(1) / 2),
        ]);
    }
    table
}
