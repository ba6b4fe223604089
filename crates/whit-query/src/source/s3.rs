//! Files on S3-compatible storage, `s3://bucket/folder/`.
//!
//! What a bucket has is listed whenever a source is opened. What the source names of it is copied to a private folder of this machine, once for each content, and is then
//! read like any file: all formats, options, globs, folders that are named after values, and Delta tables. So network and rights are asked for before anything is
//! charged, and what is read after the charge is what was fingerprinted.
//!
//! Who asks and whom is in the environment, as for other tools, and never in a declaration. What goes wrong is the operator's: it is said of bucket and prefix, and never
//! of an object, since names and numbers of objects may tell of rows.

mod cache;
mod http;
mod list;
mod sha256;
mod sign;

use super::files::{Found, LOG, shown};
use crate::error::QueryError;
use cache::{BucketView, ObjectCache, no_room};
use http::Get;
use list::{Object, Page};
use sign::{BareRequest, Credentials, escaped};
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How addresses of such files begin.
const SCHEME: &str = "s3://";
/// How many objects are fetched at once.
const AT_ONCE: usize = 8;
/// How often something is asked for that fails for a moment.
const TRIES: u32 = 3;

/// Whether a source is on S3-compatible storage.
pub(super) fn is_remote(source: &str) -> bool {
    source.starts_with(SCHEME)
}

/// Where things are said that no declaration has.
pub(super) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Finds the files of sources that are all on S3: `search` looks for them as if the bucket were a folder, and is told what the sources are called there.
pub(super) fn found(
    sources: &[String],
    told_apart: &str,
    variables: Variables<'_>,
    search: impl Fn(&Path, &[String]) -> Result<Found, QueryError>,
) -> Result<Found, QueryError> {
    let addresses = sources.iter().map(|source| Address::parse(source)).collect::<Result<Vec<_>, _>>()?;
    let Some(bucket) = addresses.first().map(|address| address.bucket) else {
        return Err(QueryError::failed("a source names nothing"));
    };
    if let Some(other) = addresses.iter().find(|address| address.bucket != bucket) {
        return Err(QueryError::asked(
            format!("one source names the buckets `{bucket}` and `{}`", other.bucket),
            "make two data sets of them, and ask about both with UNION ALL",
        ));
    }
    let store = ObjectStorage::open(bucket, variables)?;
    let cache = ObjectCache::of(format!("{}\n{sources:?}\n{told_apart}", store.host).as_bytes(), variables)?;
    let mut objects = BTreeMap::new();
    for address in &addresses {
        let before = objects.len();
        for object in store.below(address, &cache)? {
            objects.insert(object.key.clone(), object);
        }
        if objects.len() == before {
            return Err(QueryError::asked(
                format!("there is nothing at `{}`", shown(address.source)),
                "check bucket and prefix, and AWS_ENDPOINT_URL where the storage is not that of AWS",
            ));
        }
    }
    let view = cache.view().map_err(|error| no_room(&error))?;
    let whole = addresses.iter().map(|address| shown(address.source)).collect::<Vec<_>>().join("`, `");
    let fetch = |wanted: &[&Object]| store.fetch(wanted, &cache, &whole);
    mirror(&objects, &view, &cache, fetch)?;
    let inside: Vec<String> = addresses.iter().map(|address| address.key.to_owned()).collect();
    let mut found = search(view.path(), &inside)?;
    // What was found are places in the view. Their objects are fetched, and it is their copies that are read.
    let object_at = |path: &PathBuf| {
        let key = path.strip_prefix(view.path()).ok()?.to_str()?;
        objects.get(key).ok_or_else(|| QueryError::failed("a file that was found is no object")).ok()
    };
    let wanted: Vec<&Object> = found.files.values().filter_map(object_at).collect();
    if wanted.len() != found.files.len() {
        return Err(QueryError::failed("a file that was found is no object"));
    }
    fetch(&wanted)?;
    let mut places = BTreeMap::new();
    for (name, path) in &found.files {
        if let Some(object) = object_at(path) {
            let place = cache.place(object).canonicalize().map_err(|error| no_room(&error))?;
            places.insert(format!("{SCHEME}{bucket}/{name}"), place);
        }
    }
    let logs = objects.values().filter(|object| is_log(&object.key));
    cache.keep(&wanted.iter().copied().chain(logs).map(|object| cache.place(object)).collect());
    if let Some(logged) = &mut found.logged {
        // Nobody here can write into the table, and its copies are files of their own.
        logged.folder = None;
        let values = std::mem::take(&mut logged.values).into_iter();
        logged.values = values.map(|(name, values)| (format!("{SCHEME}{bucket}/{name}"), values)).collect();
    }
    found.files = places;
    Ok(found)
}

fn is_log(key: &str) -> bool {
    key.split('/').any(|part| part == LOG)
}

/// Makes a folder look like the bucket: what is in logs is there as it is, and everything else as an empty file.
fn mirror(
    objects: &BTreeMap<String, Object>,
    view: &BucketView,
    cache: &ObjectCache,
    fetch: impl Fn(&[&Object]) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    let logs: Vec<&Object> = objects.values().filter(|object| is_log(&object.key)).collect();
    fetch(&logs)?;
    for object in objects.values() {
        let path = view.path().join(&object.key);
        let plain = Path::new(&object.key).components().all(|part| matches!(part, Component::Normal(_)));
        let same = path.strip_prefix(view.path()).is_ok_and(|inside| inside.to_str() == Some(object.key.as_str()));
        let made = || {
            std::fs::create_dir_all(path.parent().unwrap_or(view.path()))?;
            if is_log(&object.key) {
                std::fs::copy(cache.place(object), &path).map(drop)
            } else {
                std::fs::File::create_new(&path).map(drop)
            }
        };
        if !plain || !same {
            return Err(no_folder());
        }
        made().map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists | io::ErrorKind::IsADirectory => no_folder(),
            _ => no_room(&error),
        })?;
    }
    Ok(())
}

fn no_folder() -> QueryError {
    QueryError::asked(
        "an object of the source has a name that no file can have: one that is also a folder, or with `//` or `..` in it",
        "rename it, or name the others by a glob",
    )
}

/// What a source names.
struct Address<'a> {
    source: &'a str,
    bucket: &'a str,
    key: &'a str,
}

impl<'a> Address<'a> {
    fn parse(source: &'a str) -> Result<Self, QueryError> {
        let odd = || {
            QueryError::asked(
                format!(
                    "`{}` names no folder of a bucket, or is one of several sources of which others are files",
                    shown(source)
                ),
                "write bucket and folder, as in source = \"s3://bucket/visits/\", and files and buckets as two data sets",
            )
        };
        let (bucket, key) = source.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/')).ok_or_else(odd)?;
        let letters = bucket.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        let parts = key.trim_end_matches('/').split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        (letters && !bucket.is_empty() && parts)
            .then_some(Self { source, bucket, key: key.trim_end_matches('/') })
            .ok_or_else(odd)
    }

    /// What all keys begin with that it may name; a second, where the first may be a folder or an object.
    fn prefixes(&self) -> (String, Option<&'a str>) {
        match self.key.find(['*', '?', '[']) {
            Some(at) => (self.key[..at].to_owned(), None),
            None if self.source.ends_with('/') => (format!("{}/", self.key), None),
            None => (format!("{}/", self.key), Some(self.key)),
        }
    }
}

/// A bucket, and who asks it.
struct ObjectStorage {
    who: Credentials,
    encrypted: bool,
    host: String,
    /// What stands before keys in a path.
    before: String,
    bucket: String,
    certificates: Option<String>,
}

/// What went wrong with one request.
enum Trouble {
    Answer(u16, Option<String>),
    Network(io::Error),
    Disk(io::Error),
}

impl ObjectStorage {
    fn open(bucket: &str, variables: Variables<'_>) -> Result<Self, QueryError> {
        let set = |name: &str| variables(name).filter(|text| !text.is_empty());
        let (Some(id), Some(secret)) = (set("AWS_ACCESS_KEY_ID"), set("AWS_SECRET_ACCESS_KEY")) else {
            return Err(QueryError::asked(
                format!("nothing says who asks for the bucket `{bucket}`"),
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN where they are for a while) in the environment",
            ));
        };
        let region = set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION")).unwrap_or_else(|| "us-east-1".to_owned());
        let who = Credentials { id, secret, token: set("AWS_SESSION_TOKEN"), region };
        let certificates = set("AWS_CA_BUNDLE");
        let endpoint = set("AWS_ENDPOINT_URL_S3").or_else(|| set("AWS_ENDPOINT_URL"));
        let (encrypted, host, before) = match endpoint {
            // Buckets with dots have no certificate of their own.
            None if bucket.contains('.') => (true, format!("s3.{}.amazonaws.com", who.region), format!("/{bucket}")),
            None => (true, format!("{bucket}.s3.{}.amazonaws.com", who.region), String::new()),
            Some(endpoint) => {
                let encrypted = endpoint.strip_prefix("https://").map(|rest| (true, rest));
                let rest = encrypted.or_else(|| endpoint.strip_prefix("http://").map(|rest| (false, rest)));
                let parts = rest.map(|(encrypted, rest)| (encrypted, rest.trim_end_matches('/')));
                let host = |text: &str| {
                    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
                    !text.is_empty() && text.bytes().all(plain)
                };
                let Some((encrypted, host)) = parts.filter(|(_, text)| host(text)) else {
                    return Err(QueryError::asked(
                        "AWS_ENDPOINT_URL is no address of a host",
                        "write it as in https://storage.example.org or http://localhost:9000",
                    ));
                };
                (encrypted, host.to_owned(), format!("/{bucket}"))
            }
        };
        Ok(Self { who, encrypted, host, before, bucket: bucket.to_owned(), certificates })
    }

    /// All objects that an address may name. Names that end with a slash stand for folders, and are none.
    fn below(&self, address: &Address<'_>, cache: &ObjectCache) -> Result<Vec<Object>, QueryError> {
        let (prefix, exact) = address.prefixes();
        let whole = shown(address.source);
        let mut objects = self.listed(&prefix, cache, &whole)?;
        if let Some(key) = exact.filter(|_| objects.is_empty()) {
            objects = self.listed(key, cache, &whole)?;
            objects.retain(|object| object.key == key);
        }
        objects.retain(|object| !object.key.ends_with('/'));
        Ok(objects)
    }

    fn listed(&self, prefix: &str, cache: &ObjectCache, whole: &str) -> Result<Vec<Object>, QueryError> {
        let (mut objects, mut next) = (Vec::new(), None::<String>);
        loop {
            let mut query =
                vec![("list-type", "2".to_owned()), ("encoding-type", "url".to_owned()), ("prefix", prefix.to_owned())];
            query.extend(next.take().map(|token| ("continuation-token", token)));
            let path = if self.before.is_empty() { "/" } else { &self.before };
            let asked = BareRequest { host: self.host.clone(), path: path.to_owned(), query, headers: Vec::new() };
            let answer = self.get(&asked, cache).and_then(|file| {
                let text = std::fs::read_to_string(&file);
                let _ = std::fs::remove_file(&file);
                text.map_err(Trouble::Disk)
            });
            let text = answer.map_err(|trouble| self.said(&trouble, whole))?;
            let Some(Page { objects: more, next: token }) = list::page(&text) else {
                return Err(QueryError::asked(
                    format!("`{}` does not list `{whole}` as S3 has it", self.host),
                    "check that AWS_ENDPOINT_URL is the address of S3-compatible storage, and not of its console",
                ));
            };
            objects.extend(more);
            match token {
                Some(token) => next = Some(token),
                None => return Ok(objects),
            }
        }
    }

    /// Copies objects of which there is no copy yet.
    fn fetch(&self, wanted: &[&Object], cache: &ObjectCache, whole: &str) -> Result<(), QueryError> {
        let missing: Vec<&&Object> = wanted.iter().filter(|object| !cache.place(object).is_file()).collect();
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let fail = |trouble: Trouble| {
            failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(trouble);
            next.store(missing.len(), Ordering::Relaxed); // the others need not go on
        };
        let work = || {
            while let Some(object) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(trouble) = self.copy(object, cache) {
                    return fail(trouble);
                }
            }
        };
        std::thread::scope(|scope| (0..AT_ONCE.min(missing.len())).for_each(|_| drop(scope.spawn(work))));
        let failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        failed.map_or(Ok(()), |trouble| Err(self.said(&trouble, whole)))
    }

    fn copy(&self, object: &Object, cache: &ObjectCache) -> Result<(), Trouble> {
        // What was listed, and nothing that has taken its place meanwhile.
        let headers = if object.etag.is_empty() { Vec::new() } else { vec![("if-match", object.etag.clone())] };
        let path = format!("{}/{}", self.before, escaped(&object.key, true));
        let asked = BareRequest { host: self.host.clone(), path, query: Vec::new(), headers };
        let file = self.get(&asked, cache)?;
        let whole = std::fs::metadata(&file).is_ok_and(|about| about.len() == object.size);
        let kept = if whole { std::fs::rename(&file, cache.place(object)) } else { Ok(()) };
        if !whole || kept.is_err() {
            let _ = std::fs::remove_file(&file);
        }
        kept.map_err(Trouble::Disk)?;
        if whole { Ok(()) } else { Err(Trouble::Answer(412, None)) }
    }

    /// The answer to a request, in a file of its own; asked for again where it failed for a moment.
    fn get(&self, asked: &BareRequest, cache: &ObjectCache) -> Result<PathBuf, Trouble> {
        let file = cache.part().map_err(Trouble::Disk)?;
        let mut tried = 0;
        let trouble = loop {
            let request = Get {
                encrypted: self.encrypted,
                host: &self.host,
                target: asked.target(),
                headers: asked.signed(&self.who, now()),
                certificates: self.certificates.as_deref(),
            };
            let (trouble, again) = match request.write_to(&file) {
                Ok(200) => return Ok(file),
                Ok(status) => {
                    let code = std::fs::read_to_string(&file).ok().and_then(|text| list::code(&text));
                    (Trouble::Answer(status, code), status >= 500 || status == 429)
                }
                Err(error) => {
                    let again = !matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::NotFound);
                    (Trouble::Network(error), again)
                }
            };
            tried += 1;
            if !again || tried == TRIES {
                break trouble;
            }
            std::thread::sleep(Duration::from_millis(200 << tried));
        };
        let _ = std::fs::remove_file(&file);
        Err(trouble)
    }

    /// What went wrong, of bucket and prefix alone.
    fn said(&self, trouble: &Trouble, whole: &str) -> QueryError {
        let (bucket, host) = (&self.bucket, &self.host);
        match trouble {
            Trouble::Disk(error) => no_room(error),
            Trouble::Network(error) => QueryError::asked(
                format!("`{whole}` cannot be read: `{host}` cannot be asked: {error}"),
                "check the network, and AWS_ENDPOINT_URL and AWS_REGION",
            ),
            Trouble::Answer(_, Some(code)) if code == "NoSuchBucket" => QueryError::asked(
                format!("there is no bucket `{bucket}` at `{host}`"),
                "check its name, and AWS_ENDPOINT_URL and AWS_REGION",
            ),
            Trouble::Answer(401 | 403, _) => QueryError::asked(
                format!("`{whole}` may not be read by whoever AWS_ACCESS_KEY_ID names, or the key is wrong"),
                "ask for the rights to list the bucket and to get its objects (s3:ListBucket, s3:GetObject), and check the machine's clock",
            ),
            Trouble::Answer(301 | 307 | 308, _) => QueryError::asked(
                format!("the bucket `{bucket}` is not at `{host}`"),
                "name its region in AWS_REGION, or its storage in AWS_ENDPOINT_URL",
            ),
            Trouble::Answer(404 | 412, _) => QueryError::asked(
                format!("`{whole}` changed while it was copied"),
                "wait until whoever writes it is done, and ask again",
            ),
            Trouble::Answer(status, _) => QueryError::asked(
                format!("`{whole}` cannot be read: `{host}` answers with {status}"),
                "try it again later, or ask whoever runs the storage",
            ),
        }
    }
}

/// Seconds since 1970, for signatures, which hold for a quarter of an hour.
#[expect(
    clippy::disallowed_methods,
    reason = "signatures of requests say when they were made; nothing that is released hangs on it"
)]
fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
