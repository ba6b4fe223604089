//! A look at files whose declaration is still to be written: names and types. Where files have no types of their own, values are looked at to
//! draft them, so this is for the owner.

use super::owner::Owner;
use super::text::cell::arrow_of;
use super::text::writing::Writing;
use super::{files, locate, schema, session, text};
use crate::error::QueryError;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::path::Path;
use std::sync::Arc;
use whit_core::declare::{FileLayout, Format};

/// What files say of themselves, and what their column names suggest.
///
/// Of values at most the types are taken, for whoever owns them to confirm. Bounds that were guessed from the data would tell of its largest value,
/// and that belongs to somebody.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// How the files are written.
    pub format: Format,
    /// How many there are.
    pub files: usize,
    /// Their columns.
    pub(crate) schema: SchemaRef,
    /// Whether types were taken from values, because the files have none.
    pub looked: bool,
    /// Columns of which some values are not of the type that is drafted: name, type, how many, and of how many. For the owner's eyes, and not for the draft.
    pub odd: Vec<(String, String, u64, u64)>,
    /// Columns that are drafted as text because their numbers have a comma where a point is expected.
    pub commas: Vec<String>,
    /// Whether values of a CSV file seem to hold line breaks, in quotes.
    pub newlines: bool,
    /// How the files seem to be written, where that is not what their endings say.
    pub layout: FileLayout,
    /// The columns that folders are named after.
    pub partitioned_by: Vec<String>,
    /// The column that probably says whose a row is.
    pub user: Option<String>,
    /// Whether the owner said whose rows are, so that nothing was guessed.
    pub user_said: bool,
    /// The most rows of one user that are to count, where the owner said so. It is never taken from the data.
    pub rows_per_user: Option<u64>,
    /// To how many groups one user is to contribute, where the owner said so.
    pub groups: Option<u64>,
    /// The column that probably says when.
    pub time: Option<String>,
    /// The column that probably holds addresses of pages.
    pub url: Option<String>,
    /// The columns of numbers that somebody may want to add up.
    pub numbers: Vec<String>,
}

impl Inspection {
    /// The names of the columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.schema.fields().iter().map(|field| field.name().as_str())
    }
}

/// Looks at a file, a glob or a folder, relative to the present folder.
pub async fn inspect(_: &Owner, path: &Path) -> Result<Inspection, QueryError> {
    let found = locate::undeclared(path)?;
    let files = found.files.len();
    if let Some(logged) = found.logged {
        return Ok(guess(found.format, files, logged.schema));
    }
    let partitioned_by = files::named_after(found.files.keys());
    let in_folders: Vec<_> = found.files.keys().map(|name| files::folders_of(name, &partitioned_by)).collect();
    let folder = |column: &String| {
        let values = in_folders.iter().filter_map(|folders| folders.get(column)?.as_deref());
        Arc::new(Field::new(column, arrow_of(&text::guess::of_values(values)), true))
    };
    let with_folders = |fields: &[Arc<Field>]| {
        let own = fields.iter().filter(|field| !partitioned_by.contains(field.name())).cloned();
        Arc::new(Schema::new(own.chain(partitioned_by.iter().map(folder)).collect::<Vec<_>>()))
    };
    if found.format == Format::Parquet {
        let schema = schema::parquets(&session(super::Tuning::default())?, &found).await?;
        let schema = if partitioned_by.is_empty() { schema } else { with_folders(schema.fields()) };
        return Ok(Inspection { partitioned_by, ..guess(found.format, files, schema) });
    }
    let layout = text::sniff::layout_of(found.format, &found.files)?;
    let written = |quotes: bool, name: &str| Writing::of(&layout, found.format, quotes, name);
    let plain = found.files.iter().map(|(name, path)| (path, written(false, name)));
    let newlines = found.format == Format::Csv && text::newlines(plain)?;
    let given = found.files.iter().map(|(name, path)| (name, path, written(newlines, name)));
    let suggested = text::guess::suggest(&given.collect::<Vec<_>>())?;
    if suggested.is_empty() {
        return Err(QueryError::asked(
            format!("`{}` has no columns that could be declared", path.display()),
            "a CSV file begins with a line of names, and an NDJSON file has one object a line",
        ));
    }
    let fields = suggested.iter().map(|one| Arc::new(Field::new(&one.name, arrow_of(&one.kind), true)));
    let schema = with_folders(&fields.collect::<Vec<_>>());
    let odd = suggested.iter().filter(|one| one.wrong > 0);
    let odd = odd.map(|one| (one.name.clone(), one.kind.to_string(), one.wrong, one.values)).collect();
    let commas = suggested.iter().filter(|one| one.commas).map(|one| one.name.clone()).collect();
    Ok(Inspection { odd, commas, newlines, layout, partitioned_by, ..guess(found.format, files, schema) })
}

/// Words by which people call the one whose row it is, the surest first.
const USERS: &str = "user_id userid user uid customer_id customer client_id member_id account_id person_id patient_id subject_id \
                     author_id author visitor_id visitor respondent_id participant_id employee_id student_id driver_id rider_id \
                     cab_id device_id household_id";
const TIMES: &str = "at time timestamp ts date day datetime created_at created event_time visited_at when";
const URLS: &str = "url uri page_url link href page referrer";

fn guess(format: Format, files: usize, schema: SchemaRef) -> Inspection {
    let user = best(&schema, USERS, names_somebody).or_else(|| {
        // `owner_id`, `cust_id`: a name that ends so names somebody or something; one such column is worth a guess.
        let mut ids = schema
            .fields()
            .iter()
            .filter(|field| names_somebody(field.data_type()) && plain(field.name()).ends_with("_id"));
        ids.next().filter(|_| ids.next().is_none()).map(|field| field.name().clone())
    });
    let moment = |kind: &DataType| is_moment(kind) || is_text(kind);
    let time = best(&schema, TIMES, moment).or_else(|| {
        let mut moments = schema.fields().iter().filter(|field| is_moment(field.data_type()));
        moments.next().map(|field| field.name().clone())
    });
    let url = best(&schema, URLS, is_text);
    let identifies = |name: &str| {
        let name = plain(name);
        name == "id" || name.ends_with("_id") || name.ends_with("_code") || name.ends_with("_key")
    };
    let numbers = schema.fields().iter().filter(|field| {
        field.data_type().is_numeric() && Some(field.name()) != user.as_ref() && !identifies(field.name())
    });
    let numbers = numbers.map(|field| field.name().clone()).collect();
    let looked = !format.is_parquet();
    let (layout, partitioned_by) = (FileLayout::default(), Vec::new());
    Inspection {
        format,
        files,
        schema,
        looked,
        odd: Vec::new(),
        commas: Vec::new(),
        newlines: false,
        layout,
        partitioned_by,
        user,
        user_said: false,
        rows_per_user: None,
        groups: None,
        time,
        url,
        numbers,
    }
}

/// The column whose name comes first in a list of names, among those of a fitting type.
fn best(schema: &SchemaRef, names: &str, fits: impl Fn(&DataType) -> bool) -> Option<String> {
    let fitting: Vec<&String> =
        schema.fields().iter().filter(|field| fits(field.data_type())).map(|field| field.name()).collect();
    names
        .split_whitespace()
        .find_map(|name| fitting.iter().find(|column| plain(column) == name))
        .map(|&name| name.clone())
}

/// `userId`, `User-ID` and `user id` as `user_id`.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    let mut low = false;
    for c in name.chars() {
        if c.is_uppercase() && low {
            plain.push('_');
        }
        low = c.is_lowercase() || c.is_numeric();
        plain.extend(if c.is_alphanumeric() { c } else { '_' }.to_lowercase());
    }
    plain
}

/// Whether a column holds text, however it is encoded.
pub(crate) fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

pub(super) fn is_moment(kind: &DataType) -> bool {
    matches!(kind, DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _))
}

pub(super) fn names_somebody(kind: &DataType) -> bool {
    kind.is_integer()
        || is_text(kind)
        || matches!(kind, DataType::FixedSizeBinary(_) | DataType::Binary | DataType::BinaryView)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn seen(columns: &[(&str, DataType)]) -> Inspection {
        let fields: Vec<Field> = columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), true)).collect();
        guess(Format::Parquet, 1, Arc::new(Schema::new(fields)))
    }

    #[test]
    fn roles_are_guessed_by_name_and_type() {
        use DataType::{Date32, Float64, Int64, Utf8};
        let visits = seen(&[("visit_id", Int64), ("userId", Int64), ("url", Utf8), ("at", Utf8), ("seconds", Float64)]);
        assert_eq!(visits.user.as_deref(), Some("userId"));
        assert_eq!((visits.url.as_deref(), visits.time.as_deref()), (Some("url"), Some("at")));
        assert_eq!(visits.numbers, ["seconds"]);
        let rides = seen(&[("cab_id", Int64), ("picked_up", Date32), ("fare", Float64), ("zip_code", Int64)]);
        assert_eq!((rides.user.as_deref(), rides.time.as_deref()), (Some("cab_id"), Some("picked_up")));
        assert_eq!(rides.numbers, ["fare"]);
        let floats = seen(&[("user_id", Float64), ("url", Int64)]);
        assert_eq!((floats.user, floats.url), (None, None), "a name alone is not enough");
        assert_eq!(seen(&[("owner_id", Utf8), ("n", Int64)]).user.as_deref(), Some("owner_id"));
        assert_eq!(seen(&[("shop_id", Utf8), ("item_id", Int64)]).user, None, "two are one too many to guess from");
    }

    #[test]
    fn names_are_compared_in_one_spelling() {
        for name in ["userId", "User-ID", "USER_ID", "user id", "UserID"] {
            assert_eq!(plain(name), "user_id", "{name}");
        }
    }
}
