//! `whit partition`: which element a value falls into, made without the private data.

use super::{Error, inputs, write_json};
use crate::output::Progress;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use whit::query::partition::embeddings::Embeddings;
use whit::query::partition::kmeans::{self, Settings, cluster};
use whit::query::partition::{PartitionFile, PartitionFileError, PartitionKind, registrable_domain};
use whit::query::source::{Input, runtime};
use whit_view::table::{Side, Table};

/// Make a partition: which element a value falls into.
///
/// A partition is made without the private data, or else it would tell of it: from a column's name, an expression, a
/// published list, or published embeddings. It is saved as a small file, whose hash the ledger records with every release that
/// uses it. Name it in whit.toml: unit.element = { column = "word", file = "words.partition" }.
#[derive(clap::Subcommand)]
pub(super) enum Partition {
    /// The value of a column is the element.
    Column(Column),
    /// A SQL expression over a row is the element, such as "date_trunc('day', at)".
    Expression(Expression),
    /// The registrable domain of a column of URLs or host names is the element.
    Domain(Domain),
    /// A list of values and their elements, one to a line.
    Dictionary(Dictionary),
    /// Clusters of published embeddings, by k-means++.
    Kmeans(Kmeans),
    /// Show what a partition file holds.
    Show(Show),
}

/// Where a partition goes.
#[derive(clap::Args)]
struct Saved {
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// What the partition is called; like the file without it.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct Column {
    /// The column.
    column: String,
    #[command(flatten)]
    saved: Saved,
}

#[derive(clap::Args)]
pub(super) struct Expression {
    /// The expression.
    sql: String,
    #[command(flatten)]
    saved: Saved,
}

#[derive(clap::Args)]
pub(super) struct Domain {
    /// The column with URLs or host names.
    column: String,
    /// Show the registrable domain of a URL; may be given several times.
    #[arg(long = "try", value_name = "URL")]
    tried: Vec<String>,
    #[command(flatten)]
    saved: Saved,
}

#[derive(clap::Args)]
pub(super) struct Dictionary {
    /// A text file with a value and its element on each line, and a tab or, where there is none, the last comma between them.
    list: PathBuf,
    /// The element of all other values.
    #[arg(long, value_name = "NAME", default_value = "other")]
    unknown: String,
    #[command(flatten)]
    saved: Saved,
}

#[derive(clap::Args)]
pub(super) struct Kmeans {
    /// The embeddings: Parquet, CSV, or text with an item and its coordinates on each line (as GloVe has it).
    embeddings: PathBuf,
    /// How many clusters.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    clusters: u32,
    /// The column of items, in Parquet and CSV.
    #[arg(long, value_name = "COLUMN", default_value = "word")]
    item: String,
    /// The column of vectors, or several columns of coordinates with commas between them; all columns of numbers without it.
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    vector: Vec<String>,
    /// The most iterations.
    #[arg(long, value_name = "N", default_value_t = 20)]
    iterations: u32,
    /// What seeds the first centres. Embeddings are public, so this is no secret: the same seed makes the same partition.
    #[arg(long, value_name = "NUMBER", default_value_t = 7)]
    seed: u64,
    /// How many threads work; as many as the machine has without it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    saved: Saved,
}

#[derive(clap::Args)]
pub(super) struct Show {
    /// The partition file.
    file: PathBuf,
    /// Print JSON for programs instead of a table for people.
    #[arg(long)]
    json: bool,
}

/// What there is to say of a partition.
#[derive(Serialize)]
struct View {
    file: PathBuf,
    name: String,
    kind: PartitionKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    sql: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    listed: Option<Listed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    objective: Option<f64>,
    hash: String,
}

/// How the items of a list are spread over its elements.
#[derive(Serialize)]
struct Listed {
    items: usize,
    elements: u32,
    singletons: usize,
    empty: usize,
    /// Of the elements that have items: the least, the quartiles, the 99th of a hundred, the largest.
    sizes: [u64; 6],
}

const QUANTILES: [(f64, &str); 6] = [
    (0.0, "smallest"),
    (0.25, "first quarter"),
    (0.5, "half"),
    (0.75, "third quarter"),
    (0.99, "99 %"),
    (1.0, "largest"),
];

impl Partition {
    pub(super) fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        if let Some((saved, read)) = self.saved() {
            let inputs = inputs().may_replace(Input::Partition);
            let inputs = read.into_iter().fold(inputs, |inputs, path| inputs.and(Input::Data, path));
            inputs.check(&saved.output)?;
        }
        match self {
            Self::Column(column) => {
                let kind = PartitionKind::Column { column: column.column.clone() };
                column.saved.symbolic(kind, out, talk)
            }
            Self::Expression(expression) => {
                let kind = PartitionKind::Expression { sql: expression.sql.clone() };
                expression.saved.symbolic(kind, out, talk)
            }
            Self::Domain(domain) => {
                for url in &domain.tried {
                    writeln!(talk, "{url} → {}", registrable_domain(url))?;
                }
                domain.saved.symbolic(PartitionKind::Domain { column: domain.column.clone() }, out, talk)
            }
            Self::Dictionary(dictionary) => dictionary.run(out, talk),
            Self::Kmeans(kmeans) => kmeans.run(out, talk),
            Self::Show(show) => {
                let file = PartitionFile::load(&show.file).map_err(told)?;
                View::of(&file, show.file.clone(), None).write(show.json, out)
            }
        }
    }
}

impl Partition {
    /// Where a partition goes, and what it is made from.
    fn saved(&self) -> Option<(&Saved, Option<&Path>)> {
        match self {
            Self::Column(column) => Some((&column.saved, None)),
            Self::Expression(expression) => Some((&expression.saved, None)),
            Self::Domain(domain) => Some((&domain.saved, None)),
            Self::Dictionary(dictionary) => Some((&dictionary.saved, Some(dictionary.list.as_path()))),
            Self::Kmeans(kmeans) => Some((&kmeans.saved, Some(kmeans.embeddings.as_path()))),
            Self::Show(_) => None,
        }
    }
}

fn told(error: PartitionFileError) -> Error {
    Error::from(whit::query::QueryError::from(error))
}

impl Saved {
    fn name(&self) -> String {
        let stem = || self.output.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        self.name.clone().or_else(stem).unwrap_or_default()
    }

    fn symbolic(&self, kind: PartitionKind, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let file = PartitionFile::symbolic(&self.name(), kind).map_err(told)?;
        self.save(&file, None, out, talk)
    }

    fn save(
        &self,
        file: &PartitionFile,
        objective: Option<f64>,
        out: &mut dyn Write,
        talk: &mut dyn Write,
    ) -> Result<(), Error> {
        file.save(&self.output).map_err(|error| match error {
            PartitionFileError::Io { path, error, .. } => Error::file(&path, &error),
            other => told(other),
        })?;
        writeln!(talk, "wrote {}", self.output.display())?;
        View::of(file, self.output.clone(), objective).write(self.json, out)
    }
}

impl Dictionary {
    fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let text = read(&self.list)?;
        let mut pairs = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let pair = line.rsplit_once('\t').or_else(|| line.rsplit_once(','));
            let (value, element) = pair.ok_or_else(|| {
                Error::asked(
                    format!("line {} of `{}` has no tab and no comma", number + 1, self.list.display()),
                    "write a value, a tab and its element on each line",
                )
            })?;
            pairs.push((value.trim(), element.trim()));
        }
        let file = PartitionFile::dictionary(&self.saved.name(), pairs, &self.unknown).map_err(told)?;
        self.saved.save(&file, None, out, talk)
    }
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path)
        .map_err(|error| Error::asked(format!("`{}` cannot be read: {error}", path.display()), "name a text file"))
}

impl Kmeans {
    fn run(&self, out: &mut dyn Write, talk: &mut dyn Write) -> Result<(), Error> {
        let progress = Progress::new(self.saved.json);
        progress.start("reading embeddings");
        let embeddings = self.read()?;
        let Embeddings { items, points, repeated } = embeddings;
        let (count, dimension) = (points.len(), points.dimension());
        progress.start(&format!("clustering {count} items"));
        let machine = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let settings = Settings {
            clusters: self.clusters,
            iterations: self.iterations,
            seed: self.seed,
            threads: self.threads.unwrap_or_else(machine).max(1),
        };
        // Seeding costs about as much as one iteration.
        let whole = u64::from(self.iterations) + 1;
        let found = cluster(points, settings, &mut |step| match step {
            kmeans::Progress::Seeding { chosen, of } => {
                progress.set(u64::from(chosen) * 100 / u64::from(of), whole * 100);
            }
            kmeans::Progress::Iteration { number, .. } => progress.set((u64::from(number) + 1) * 100, whole * 100),
        });
        progress.finish();
        let found = found.map_err(|why| Error::asked(why.to_string(), "see `whit help partition kmeans`"))?;
        if repeated > 0 {
            writeln!(talk, "note: {repeated} items stand there twice; the first of each was taken")?;
        }
        let file = Embeddings::partition(items, &self.saved.name(), &found, dimension, self.seed).map_err(told)?;
        self.saved.save(&file, Some(found.objective), out, talk)
    }

    fn read(&self) -> Result<Embeddings, Error> {
        let ending = self.embeddings.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        Ok(match ending.as_deref() {
            Some("parquet" | "csv") => {
                let reading = Embeddings::read_table(&self.embeddings, &self.item, &self.vector);
                runtime(self.threads)?.block_on(reading)?
            }
            _ => Embeddings::read_text(&self.embeddings)?,
        })
    }
}

impl View {
    fn of(file: &PartitionFile, path: PathBuf, objective: Option<f64>) -> Self {
        let listed = file.is_listed().then(|| {
            let mut sizes = file.cluster_sizes();
            sizes.sort_unstable();
            let empty = sizes.partition_point(|&size| size == 0);
            let used = &sizes[empty..];
            let at = |share: f64| {
                let last = used.len().saturating_sub(1);
                used.get((share * last as f64).round() as usize).copied().unwrap_or(0)
            };
            Listed {
                items: file.items().len(),
                elements: file.elements(),
                singletons: used.iter().filter(|&&size| size == 1).count(),
                empty,
                sizes: QUANTILES.map(|(share, _)| at(share)),
            }
        });
        let (name, kind, hash) = (file.name().to_owned(), file.kind().clone(), file.hash().to_owned());
        Self { file: path, name, kind, sql: file.sql(), listed, objective, hash }
    }

    fn write(&self, json: bool, out: &mut dyn Write) -> Result<(), Error> {
        if json { write_json(self, out) } else { Ok(self.write_table(out)?) }
    }

    fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new([("partition", Side::Left), (self.name.as_str(), Side::Right)]);
        if let Some(sql) = &self.sql {
            table.row(["element", sql]);
        }
        if let Some(listed) = &self.listed {
            table.row(["items".to_owned(), listed.items.to_string()]);
            table.row(["elements".to_owned(), listed.elements.to_string()]);
            for ((_, name), size) in QUANTILES.iter().zip(listed.sizes) {
                table.row([format!("  items in an element, {name}"), size.to_string()]);
            }
            table.row(["  elements of one item".to_owned(), listed.singletons.to_string()]);
            table.row(["  elements without items".to_owned(), listed.empty.to_string()]);
        }
        if let Some(objective) = self.objective {
            table.row(["sum of squared distances".to_owned(), whit_view::number::brief(objective)]);
        }
        table.write(out)?;
        writeln!(out, "\nblake3 {}", self.hash)?;
        match &self.sql {
            Some(sql) => writeln!(out, "in whit.toml: unit.element = {}", toml_text(sql)),
            None => writeln!(
                out,
                "in whit.toml: unit.element = {{ column = \"…\", file = {} }}",
                toml_text(&self.file.to_string_lossy())
            ),
        }
    }
}

/// A text as TOML has it.
fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::super::main;
    use std::ffi::OsString;
    use std::path::PathBuf;
    use std::process::ExitCode;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("whit-partition-command-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn ask(words: &[&str]) -> (ExitCode, String, String) {
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        let words = ["whit", "partition"].iter().chain(words).map(OsString::from);
        let code = main(words, &mut out, &mut talk);
        (code, String::from_utf8(out).unwrap(), String::from_utf8(talk).unwrap())
    }

    #[test]
    fn embeddings_become_a_file_that_can_be_shown() {
        let folder = Folder::new("kmeans");
        let (source, target) = (folder.0.join("words.txt"), folder.0.join("words.partition"));
        std::fs::write(&source, "tea 0 0.1\nmilk 0.1 0\nrain 9 9\nsnow 9 9.1\ntea 5 5\n").unwrap();
        let (source, target) = (source.to_str().unwrap(), target.to_str().unwrap());
        let (code, out, talk) = ask(&["kmeans", source, "--clusters", "2", "--output", target]);
        assert_eq!(code, ExitCode::SUCCESS, "{talk}");
        assert!(talk.contains("1 items stand there twice") && talk.contains("wrote "), "{talk}");
        assert!(out.contains("items in an element, largest") && out.contains("blake3 "), "{out}");
        let (_, json, _) = ask(&["show", target, "--json"]);
        let view: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&view["listed"]["items"], &view["listed"]["sizes"][5]), (&4.into(), &2.into()));
        assert_eq!((&view["listed"]["elements"], &view["listed"]["empty"]), (&3.into(), &1.into()));
        let (code, _, talk) = ask(&["kmeans", source, "--clusters", "9", "--output", target]);
        assert_eq!(code, ExitCode::from(2));
        assert!(talk.contains("only 4 different vectors"), "{talk}");
    }

    #[test]
    fn lists_expressions_and_domains_become_files() {
        let folder = Folder::new("lists");
        let (list, target) = (folder.0.join("days.csv"), folder.0.join("days.partition"));
        std::fs::write(&list, "sat,weekend\nsun,weekend\nmon\twork\n").unwrap();
        let (list, target) = (list.to_str().unwrap(), target.to_str().unwrap());
        let (code, out, talk) = ask(&["dictionary", list, "--output", target, "--json"]);
        assert_eq!(code, ExitCode::SUCCESS, "{talk}");
        let view: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&view["name"], &view["listed"]["elements"]), (&"days".into(), &3.into()));
        let (_, out, talk) = ask(&["domain", "url", "--try", "http://a.example.co.uk/x", "--output", target]);
        assert!(talk.contains("→ example.co.uk"), "{talk}");
        assert!(out.contains(r#"unit.element = "registrable_domain(\"url\")""#), "{out}");
        std::fs::write(list, "sat,weekend\nsat,work\n").unwrap();
        let (code, _, talk) = ask(&["dictionary", list, "--output", target]);
        assert_eq!(code, ExitCode::from(2));
        assert!(talk.contains("the item `sat` is listed twice"), "{talk}");
        std::fs::write(target, "whit partition 1\n{}\n").unwrap();
        assert!(ask(&["show", target]).2.contains("is damaged"));
        assert!(ask(&["show", list]).2.contains("is not a partition file"));
    }
}
