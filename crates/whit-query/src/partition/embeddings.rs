//! Published embeddings: a vector for each item, from a text file in GloVe's manner, or from a table.

use super::file::{PartitionFile, PartitionFileError, PartitionKind};
use super::kmeans::{Clustering, KmeansError, Points};
use crate::error::QueryError;
use crate::translate::in_our_words;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float32Type};
use datafusion::common::{Column, HashSet};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::{CsvReadOptions, ParquetReadOptions, SessionConfig};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use whit_core::declare::nearest;

/// Items and their vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// The items, each once.
    pub items: Vec<String>,
    /// A vector for each.
    pub points: Points,
    /// How many items were left out because they stood there before.
    pub repeated: usize,
}

/// Collects vectors, and leaves out items that were there before.
#[derive(Default)]
struct Collector {
    items: Vec<String>,
    seen: HashSet<String>,
    coordinates: Vec<f32>,
    dimension: Option<usize>,
    repeated: usize,
}

impl Collector {
    /// Whether the item is new.
    fn take(&mut self, item: &str) -> bool {
        let new = self.seen.insert(item.to_owned());
        if new {
            self.items.push(item.to_owned());
        } else {
            self.repeated += 1;
        }
        new
    }

    fn done(self) -> Result<Embeddings, KmeansError> {
        let points = Points::new(self.coordinates, self.dimension.unwrap_or(0))?;
        Ok(Embeddings { items: self.items, points, repeated: self.repeated })
    }
}

/// That a file is there.
fn there(path: &Path) -> Result<(), QueryError> {
    if path.is_file() {
        return Ok(());
    }
    Err(QueryError::asked(
        format!("`{}` could not be read: there is no such file", path.display()),
        "embeddings are a Parquet or CSV file, or text with an item and its coordinates on each line",
    ))
}

impl Embeddings {
    /// Reads a text file with an item and its coordinates on each line, blanks between them. A first line that holds two
    /// whole numbers only (so many items, so many coordinates) is passed over.
    pub fn read_text(path: &Path) -> Result<Self, QueryError> {
        there(path)?;
        let failed = |why: std::io::Error| QueryError::failed(format!("`{}` could not be read: {why}", path.display()));
        let mut reader = BufReader::with_capacity(1 << 20, File::open(path).map_err(failed)?);
        let (mut line, mut number, mut found) = (Vec::new(), 0_usize, Collector::default());
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line).map_err(failed)? == 0 {
                break;
            }
            number += 1;
            let wrong = |why: &str| {
                let hint = "expected an item and its coordinates on each line, with blanks between them";
                QueryError::asked(format!("line {number} of `{}` {why}", path.display()), hint)
            };
            let text = std::str::from_utf8(&line).map_err(|_| wrong("is not UTF-8 text"))?.trim_end();
            if text.is_empty() || (number == 1 && is_count(text)) {
                continue;
            }
            let dimension = *found.dimension.get_or_insert(text.split(' ').count() - 1);
            if dimension == 0 {
                return Err(wrong("has no coordinates"));
            }
            // From the right, since items may hold blanks themselves.
            let mut item = text;
            let start = found.coordinates.len();
            for _ in 0..dimension {
                let (rest, last) = item.rsplit_once(' ').ok_or_else(|| wrong("has too few coordinates"))?;
                let value = last.parse::<f32>().map_err(|_| wrong("has a coordinate that is no number"))?;
                found.coordinates.push(value);
                item = rest;
            }
            found.coordinates[start..].reverse();
            if !found.take(item) {
                found.coordinates.truncate(start);
            }
        }
        found.done().map_err(|why| asked(path, &why))
    }

    /// Reads a Parquet or CSV file: the items from one column, and their vectors from a column of lists, or from several
    /// columns of numbers. Without `vector`, all columns of numbers but the item's are coordinates, in their order.
    pub async fn read_table(path: &Path, item: &str, vector: &[String]) -> Result<Self, QueryError> {
        there(path)?;
        let failed = |why: datafusion::error::DataFusionError| {
            let why = in_our_words(&why.strip_backtrace()).sentence;
            QueryError::failed(format!("`{}` could not be read: {why}", path.display()))
        };
        let context = crate::registry::engine(SessionConfig::new(), Arc::new(RuntimeEnv::default()));
        let name = path.to_string_lossy();
        let extension = path.extension().map_or_else(String::new, |e| e.to_string_lossy().into_owned());
        let is_parquet = extension.eq_ignore_ascii_case("parquet");
        let table = if is_parquet {
            let options = ParquetReadOptions { file_extension: &extension, ..ParquetReadOptions::default() };
            context.read_parquet(name.as_ref(), options).await
        } else {
            context.read_csv(name.as_ref(), CsvReadOptions::new().file_extension(&extension)).await
        };
        let table = table.map_err(failed)?;
        let fields: Vec<Arc<Field>> = table.schema().fields().iter().cloned().collect();
        let columns = coordinates(path, &fields, item, vector)?;
        let wanted = std::iter::once(item).chain(columns.iter().map(String::as_str));
        let wanted: Vec<datafusion::prelude::Expr> =
            wanted.map(|name| datafusion::prelude::Expr::Column(Column::new_unqualified(name))).collect();
        let batches = table.select(wanted).map_err(failed)?.collect().await.map_err(failed)?;
        let mut found = Collector::default();
        for batch in &batches {
            found.rows(path, batch)?;
        }
        found.done().map_err(|why| asked(path, &why))
    }

    /// The partition that a clustering of the points makes. Values without an embedding have an element of their own.
    pub fn partition(
        items: Vec<String>,
        name: &str,
        found: &Clustering,
        dimension: usize,
        seed: u64,
    ) -> Result<PartitionFile, PartitionFileError> {
        let clusters = (found.centroids.len() / dimension) as u32;
        let kind = PartitionKind::Kmeans { dimension: dimension as u32, seed, iterations: found.iterations };
        PartitionFile::listed(name, kind, items, found.cluster_of.clone(), clusters + 1, clusters)
    }
}

fn asked(path: &Path, why: &KmeansError) -> QueryError {
    QueryError::asked(format!("`{}`: {why}", path.display()), "check the file, the item column and the vector columns")
}

/// Whether a line is "so many items, so many coordinates".
fn is_count(line: &str) -> bool {
    let mut parts = line.split(' ');
    let whole = |part: Option<&str>| part.is_some_and(|part| part.parse::<u64>().is_ok());
    whole(parts.next()) && whole(parts.next()) && parts.next().is_none()
}

/// The columns that hold coordinates.
fn coordinates(path: &Path, fields: &[Arc<Field>], item: &str, vector: &[String]) -> Result<Vec<String>, QueryError> {
    let names = || fields.iter().map(|field| field.name().as_str());
    for wanted in std::iter::once(item).chain(vector.iter().map(String::as_str)) {
        if !names().any(|name| name == wanted) {
            let hint = match nearest(wanted, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has: {}", names().collect::<Vec<_>>().join(", ")),
            };
            return Err(QueryError::asked(format!("`{}` has no column `{wanted}`", path.display()), hint));
        }
    }
    if !vector.is_empty() {
        return Ok(vector.to_vec());
    }
    let numbers = fields.iter().filter(|field| field.name() != item && is_coordinate(field.data_type()));
    let found: Vec<String> = numbers.map(|field| field.name().clone()).collect();
    if found.is_empty() {
        let sentence = format!("`{}` has no column of numbers besides `{item}`", path.display());
        return Err(QueryError::asked(sentence, "name the column of vectors"));
    }
    Ok(found)
}

fn is_coordinate(kind: &DataType) -> bool {
    match kind {
        DataType::List(inner) | DataType::LargeList(inner) | DataType::FixedSizeList(inner, _) => {
            inner.data_type().is_numeric()
        }
        other => other.is_numeric(),
    }
}

impl Collector {
    /// Takes rows of an item and coordinates; those without an item are left out.
    fn rows(&mut self, path: &Path, batch: &RecordBatch) -> Result<(), QueryError> {
        let failed = |why: datafusion::arrow::error::ArrowError| {
            QueryError::asked(
                format!("`{}`: {why}", path.display()),
                "items are text and coordinates numbers, or lists of them",
            )
        };
        let items = cast(batch.column(0), &DataType::Utf8).map_err(failed)?;
        let lists = DataType::new_list(DataType::Float32, true);
        let columns: Vec<ArrayRef> = batch.columns()[1..]
            .iter()
            .map(|column| {
                let to = if column.data_type().is_numeric() { &DataType::Float32 } else { &lists };
                cast(column, to)
            })
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        for (row, item) in items.as_string::<i32>().iter().enumerate() {
            let Some(item) = item else { continue };
            if !self.take(item) {
                continue;
            }
            let start = self.coordinates.len();
            for column in &columns {
                let value = |array: &dyn Array, at: usize| {
                    if array.is_null(at) { f32::NAN } else { array.as_primitive::<Float32Type>().value(at) }
                };
                match column.data_type() {
                    DataType::Float32 => self.coordinates.push(value(column, row)),
                    _ if column.is_null(row) => {}
                    _ => {
                        let list = column.as_list::<i32>().value(row);
                        self.coordinates.extend((0..list.len()).map(|at| value(&list, at)));
                    }
                }
            }
            let found = self.coordinates.len() - start;
            let expected = *self.dimension.get_or_insert(found);
            if found != expected || expected == 0 {
                return Err(asked(path, &KmeansError::Dimension { number: self.items.len(), found, expected }));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{FixedSizeListArray, StringArray};
    use datafusion::arrow::datatypes::Schema;
    use datafusion::parquet::arrow::ArrowWriter;
    use std::path::PathBuf;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("whit-embeddings-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, text).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn points(values: &[f32]) -> Points {
        Points::new(values.to_vec(), 2).unwrap()
    }

    fn wait<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap().block_on(future)
    }

    #[test]
    fn lines_of_an_item_and_its_coordinates_are_read() {
        let folder = Folder::new("text");
        let path = folder.file("glove.txt", "tea 0.5 -1e-1\n. . 1 2\nrain 3 4\r\ntea 7 7\n");
        let found = Embeddings::read_text(&path).unwrap();
        assert_eq!(found.items, ["tea", ". .", "rain"]);
        assert_eq!((found.points, found.repeated), (points(&[0.5, -0.1, 1.0, 2.0, 3.0, 4.0]), 1));
        let path = folder.file("word2vec.txt", "2 2\na 1 2\nb 3 4\n");
        assert_eq!(Embeddings::read_text(&path).unwrap().items, ["a", "b"]);
        for (text, words) in [
            ("a 1 2\nb x 2\n", "line 2 of"),
            ("a 1 2\nb 2\n", "too few coordinates"),
            ("a\n", "has no coordinates"),
            ("", "no points"),
            ("a 1 nan\n", "no finite number"),
        ] {
            let why = Embeddings::read_text(&folder.file("bad.txt", text)).unwrap_err().sentence;
            assert!(why.contains(words), "{why}");
        }
        assert!(Embeddings::read_text(&folder.0.join("none.txt")).unwrap_err().sentence.contains("could not be read"));
    }

    #[test]
    fn tables_are_read_by_columns_or_by_lists() {
        let folder = Folder::new("table");
        let path = folder.file("words.csv", "word,x,note,y\ntea,1,n,2\nrain,3,n,4\n,5,n,6\n");
        let found = wait(Embeddings::read_table(&path, "word", &[])).unwrap();
        assert_eq!(
            (found.items.as_slice(), &found.points),
            (&["tea".to_owned(), "rain".to_owned()][..], &points(&[1.0, 2.0, 3.0, 4.0]))
        );
        let found = wait(Embeddings::read_table(&path, "word", &["y".to_owned(), "x".to_owned()])).unwrap();
        assert_eq!(found.points, points(&[2.0, 1.0, 4.0, 3.0]));
        let why = wait(Embeddings::read_table(&path, "wrod", &[])).unwrap_err();
        assert_eq!(why.hint.as_deref(), Some("did you mean `word`?"));
        let vectors = [Some(vec![Some(1.0), Some(2.0)]), Some(vec![Some(3.0), Some(4.0)])];
        let lists = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2);
        let words = StringArray::from(vec!["tea", "rain"]);
        let schema = Arc::new(Schema::new(vec![
            Field::new("word", DataType::Utf8, false),
            Field::new("vector", lists.data_type().clone(), true),
        ]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(words), Arc::new(lists)]).unwrap();
        let path = folder.0.join("words.parquet");
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), schema, None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        for vector in [vec![], vec!["vector".to_owned()]] {
            let found = wait(Embeddings::read_table(&path, "word", &vector)).unwrap();
            assert_eq!(found.points, points(&[1.0, 2.0, 3.0, 4.0]));
        }
    }
}
