//! The demo's pictures, and the page that holds the whole story.

use super::figures::{Compared, ComparedTable, DemoFigures, LevelView};
use super::folder::declaration;
use super::story::{self, DRAWN, smallest};
use whit::core::unit::Kind;
use whit_view::number::{brief, grouped};
use whit_view::page::Report;
use whit_view::plot::{BLUE, BarChart, BarSeries, ExactMarks, GREEN, ORANGE, Picture};

/// The colours of the levels, from fine to coarse.
const COLOURS: [&str; 3] = [BLUE, ORANGE, GREEN];

/// The demo's pictures.
pub(crate) struct Pictures {
    pub(crate) counts: Picture,
    pub(crate) hitters: Picture,
}

impl Pictures {
    pub(crate) fn of(figures: &DemoFigures) -> Self {
        let epsilon = brief(figures.epsilon);
        let users = grouped(&figures.users.to_string());
        let subjects = figures.levels.first().map_or(0, |level| level.counts.rows.len());
        let counts = chart(
            figures,
            |level| &level.counts,
            smallest,
            ChartWords {
                title: format!("One question, one ε = {epsilon}, three things to protect"),
                subtitle: format!(
                    "Visits of {users} users of www.microsoft.com by subject, in one week of 1998: the {DRAWN} smallest \
                     of {subjects} subjects, where noise shows most. Error bars hold with 95 % each."
                ),
                axis: "visits",
            },
        );
        let hitters = chart(
            figures,
            |level| &level.hitters,
            largest,
            ChartWords {
                title: format!("Heavy hitters at ε = {epsilon}"),
                subtitle: format!(
                    "Users who visited each of the {DRAWN} most visited areas. Error bars hold with 95 % each."
                ),
                axis: "users",
            },
        );
        Self { counts, hitters }
    }
}

struct ChartWords {
    title: String,
    subtitle: String,
    axis: &'static str,
}

/// The first rows, which are the largest.
pub(super) fn largest(rows: &[Compared]) -> &[Compared] {
    &rows[..rows.len().min(DRAWN)]
}

fn chart(
    figures: &DemoFigures,
    table: fn(&LevelView) -> &ComparedTable,
    part: fn(&[Compared]) -> &[Compared],
    words: ChartWords,
) -> Picture {
    let first = figures.levels.first().map_or(&[][..], |level| part(&table(level).rows));
    let series = figures.levels.iter().zip(COLOURS).map(|(level, colour)| BarSeries {
        name: format!("{} level, ± {}", level.unit, table(level).within.ceil()),
        note: level.protects.to_owned(),
        colour,
        values: part(&table(level).rows).iter().map(|row| Some(row.measure)).collect(),
    });
    BarChart {
        title: words.title,
        subtitle: words.subtitle,
        axis: words.axis.to_owned(),
        groups: first.iter().map(|row| row.name.clone()).collect(),
        series: series.collect(),
        exact: Some(ExactMarks {
            name: "exact count".to_owned(),
            note: "known because the data are public".to_owned(),
            values: first.iter().map(|row| row.exact).collect(),
        }),
        note: String::new(),
    }
    .draw()
}

/// The page.
pub(crate) fn of(figures: &DemoFigures, pictures: &Pictures, ledger: &str, epsilon: f64) -> String {
    let scenes = &figures.scenes;
    let shell = |scene: &super::figures::Scene| format!("$ {}\n\n{}", scene.command, scene.said);
    let mut report = Report::new("whit demo: one ε, three things to protect")
        .lead(&story::about(figures))
        .section("1. Say what one whit is", story::DECLARE)
        .code(&declaration(Kind::Element, epsilon))
        .code(&shell(&scenes.check))
        .section("2. See what a question costs before it is asked", story::PREVIEW)
        .code(&shell(&scenes.preview))
        .section("3. Ask, and compare with the truth", &story::compare(figures))
        .figure(&pictures.counts, "The exact counts are marked.")
        .table(&story::counts(figures, |rows| rows))
        .prose("What the three promises come to, over all subjects and areas:")
        .table(&story::summary(figures))
        .prose("What the question costs, rung by rung:")
        .table(&story::prices(figures))
        .section("4. Heavy hitters", &story::hitters_words(figures))
        .figure(&pictures.hitters, "The exact counts are marked.")
        .table(&story::hitters(figures, 20))
        .section("5. A histogram in clusters", story::HISTOGRAM)
        .table(&story::histogram(figures, 20));
    if let Some(element) = figures.levels.iter().find(|level| level.unit == "element") {
        report = report
            .section("6. One answer in full", "This is what `whit query` shows of the first question at element level.")
            .answer(&element.counts.answer);
    }
    report
        .section("7. Asking again is free, and a budget says no", story::AGAIN)
        .code(&shell(&scenes.refused))
        .section("8. The ledger", story::LEDGER)
        .figure(ledger, "What the element level has spent.")
        .code(&shell(&scenes.ledger))
        .code(&shell(&scenes.verify))
        .note(story::SOURCE)
        .finish()
}
