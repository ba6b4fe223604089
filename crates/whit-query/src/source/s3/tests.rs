//! Against a server that speaks as much of S3 as is needed, in pages of two, and lets nobody in whose signature is not right.

use super::super::locate::in_folders;
use super::super::scratch::Scratch;
use super::list::page;
use super::sha256::{hex, hmac, sha256};
use super::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use whit_core::declare::Format;

const SECRET: &str = "a secret/that+nobody=tells";

/// What is in the bucket `b`, and what was asked for so far.
#[derive(Default)]
struct Bucket {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    got: Mutex<Vec<String>>,
    /// Answers so many requests with 503 first.
    busy: AtomicUsize,
}

struct Server {
    bucket: Arc<Bucket>,
    host: String,
}

impl Server {
    fn start(objects: &[(&str, &str)]) -> Self {
        let bucket = Arc::new(Bucket::default());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let server = Self { bucket: Arc::clone(&bucket), host };
        objects.iter().for_each(|(key, content)| server.put(key, content.as_bytes()));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let bucket = Arc::clone(&bucket);
                std::thread::spawn(move || bucket.answer(&stream));
            }
        });
        server
    }

    fn put(&self, key: &str, content: &[u8]) {
        self.bucket.objects.lock().unwrap().insert(key.to_owned(), content.to_vec());
    }

    /// The objects that were fetched since this was last asked, in order of their names.
    fn got(&self) -> Vec<String> {
        let mut got = std::mem::take(&mut *self.bucket.got.lock().unwrap());
        got.sort();
        got
    }

    fn find(&self, cache: &Scratch, source: &str, with: &[(&str, &str)]) -> Result<Found, QueryError> {
        let set = |name: &str| match with.iter().find(|(own, _)| *own == name) {
            Some((_, value)) => Some((*value).to_owned()),
            None => match name {
                "AWS_ACCESS_KEY_ID" => Some("somebody".to_owned()),
                "AWS_SECRET_ACCESS_KEY" => Some(SECRET.to_owned()),
                "AWS_SESSION_TOKEN" => Some("for a while".to_owned()),
                "AWS_REGION" => Some("eu-central-1".to_owned()),
                "AWS_ENDPOINT_URL" => Some(format!("http://{}/", self.host)),
                "WHIT_CACHE" => Some(cache.path().join("cache").to_str().unwrap().to_owned()),
                _ => None,
            },
        };
        let search = |view: &Path, inside: &[String]| in_folders("t", inside, (None, None), view);
        found(&[source.to_owned()], "", &set, search)
    }

    fn message(&self, cache: &Scratch, source: &str, with: &[(&str, &str)]) -> String {
        let error = self.find(cache, source, with).unwrap_err();
        let text = format!("{} | {}", error.sentence, error.hint.unwrap_or_default());
        assert!(!text.contains(SECRET) && !text.contains("somebody") && !text.contains("hidden"), "{text}");
        text
    }
}

impl Bucket {
    fn answer(&self, stream: &TcpStream) {
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        let first = lines.next().unwrap_or_default();
        let headers: BTreeMap<String, String> = lines
            .take_while(|line| !line.is_empty())
            .filter_map(|line| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned())))
            .collect();
        let target = first.strip_prefix("GET ").and_then(|rest| rest.strip_suffix(" HTTP/1.1")).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let busy = self.busy.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        let (status, body) = if busy {
            (503, b"<Error><Code>SlowDown</Code></Error>".to_vec())
        } else if !is_signed(path, query, &headers) {
            (403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>".to_vec())
        } else if path == "/b" {
            (200, self.list(query).into_bytes())
        } else if let Some(key) = path.strip_prefix("/b/") {
            self.object(&super::super::files::plain(key).unwrap(), headers.get("if-match"))
        } else {
            (404, b"<Error><Code>NoSuchBucket</Code></Error>".to_vec())
        };
        let mut out = Vec::new();
        if body.len().is_multiple_of(2) {
            write!(out, "HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n", body.len()).unwrap();
            out.extend(body);
        } else {
            write!(out, "HTTP/1.1 {status} x\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
            for chunk in body.chunks(7) {
                write!(out, "{:x};more\r\n", chunk.len()).unwrap();
                out.extend(chunk);
                out.extend(b"\r\n");
            }
            out.extend(b"0\r\n\r\n");
        }
        let mut stream = stream;
        let _ = stream.write_all(&out);
    }

    fn list(&self, query: &str) -> String {
        let query: BTreeMap<&str, String> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name, super::super::files::plain(value).unwrap()))
            .collect();
        assert_eq!((query["list-type"].as_str(), query["encoding-type"].as_str()), ("2", "url"));
        let objects = self.objects.lock().unwrap();
        let after = query.get("continuation-token").cloned().unwrap_or_default();
        let below: Vec<_> =
            objects.iter().filter(|(key, _)| key.starts_with(&query["prefix"]) && **key > after).collect();
        let contents = below.iter().take(2).map(|(key, content)| {
            let (key, etag, size) = (escaped(key, true).replace("%20", "+"), etag(content), content.len());
            format!("<Contents><Key>{key}</Key><ETag>&quot;{etag}&quot;</ETag><Size>{size}</Size></Contents>")
        });
        let contents: Vec<String> = contents.collect();
        let more = below.len() > 2;
        let next = if more { below[1].0.as_str() } else { "" };
        let contents = contents.concat();
        format!(
            "<ListBucketResult><IsTruncated>{more}</IsTruncated>{contents}<NextContinuationToken>{next}</NextContinuationToken></ListBucketResult>"
        )
    }

    fn object(&self, key: &str, if_match: Option<&String>) -> (u16, Vec<u8>) {
        self.got.lock().unwrap().push(key.to_owned());
        match self.objects.lock().unwrap().get(key) {
            None => (404, b"<Error><Code>NoSuchKey</Code></Error>".to_vec()),
            Some(content) if if_match.is_some_and(|own| *own != format!("\"{}\"", etag(content))) => (412, Vec::new()),
            Some(content) => (200, content.clone()),
        }
    }
}

fn etag(content: &[u8]) -> String {
    hex(&sha256(content)[..16])
}

/// Whether a request as it came was signed by whoever has the secret, put together from what came alone.
fn is_signed(path: &str, query: &str, headers: &BTreeMap<String, String>) -> bool {
    let Some(proof) = headers.get("authorization") else { return false };
    let part = |name: &str| proof.split([' ', ',']).find_map(|part| part.strip_prefix(name)).unwrap_or_default();
    let (names, scope) = (part("SignedHeaders="), part("Credential=").strip_prefix("somebody/").unwrap_or_default());
    for needed in ["host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"] {
        assert!(names.split(';').any(|name| name == needed), "{needed} is not signed");
    }
    let lines: Vec<String> = names.split(';').map(|name| format!("{name}:{}\n", headers[name])).collect();
    let lines = lines.concat();
    assert!(query.split('&').is_sorted(), "{query}");
    let request = format!("GET\n{path}\n{query}\n{lines}\n{names}\n{}", hex(&sha256(b"")));
    let text = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{}", headers["x-amz-date"], hex(&sha256(request.as_bytes())));
    let key =
        scope.split('/').fold(format!("AWS4{SECRET}").into_bytes(), |key, part| hmac(&key, part.as_bytes()).to_vec());
    part("Signature=") == hex(&hmac(&key, text.as_bytes())) && scope.ends_with("/eu-central-1/s3/aws4_request")
}

fn names(found: &Found) -> Vec<&str> {
    found.files.keys().map(|name| name.strip_prefix("s3://b/").unwrap()).collect()
}

#[test]
fn folders_globs_and_single_objects_are_found_like_files() {
    let server = Server::start(&[
        ("v/day=1/a b.csv", "x\n1\n"),
        ("v/day=2/ü+%.csv", "x\n22\n"),
        ("v/_hidden.csv", "x\n0\n"),
        ("v/empty/", ""),
        ("v/part-1.csv", "x\n333\n"),
        ("v2/other.csv", "x\n9\n"),
        ("one.ndjson", "{}"),
    ]);
    let cache = Scratch::new("s3_found");
    let folder = ["v/day=1/a b.csv", "v/day=2/ü+%.csv", "v/part-1.csv"];
    for (source, expected) in [
        ("s3://b/v/", &folder[..]),
        ("s3://b/v", &folder),
        ("s3://b/v/*/*.csv", &folder[..2]),
        ("s3://b/v/part-?.csv", &folder[2..]),
        ("s3://b/one.ndjson", &["one.ndjson"]),
        ("s3://b/v/day=2/ü+%.csv", &folder[1..2]),
        ("s3://b/**/other.csv", &["v2/other.csv"]),
    ] {
        let found = server.find(&cache, source, &[]).unwrap();
        assert_eq!(names(&found), expected, "{source}");
        assert_eq!(server.got(), expected, "{source}: nothing else is fetched");
        for (name, path) in &found.files {
            let object = server.bucket.objects.lock().unwrap()[&name["s3://b/".len()..]].clone();
            assert_eq!(std::fs::read(path).unwrap(), object, "{name}");
        }
    }
}

#[test]
fn an_object_is_fetched_once_and_again_when_it_is_another() {
    let server = Server::start(&[("v/a.csv", "x\n1\n"), ("v/b.csv", "x\n2\n"), ("v/c.csv", "x\n3\n")]);
    let cache = Scratch::new("s3_cache");
    let first = server.find(&cache, "s3://b/v/", &[]).unwrap();
    assert_eq!(server.got().len(), 3);
    assert_eq!(server.find(&cache, "s3://b/v/", &[]).unwrap(), first);
    assert!(server.got().is_empty());
    server.put("v/b.csv", b"x\n7\n");
    server.bucket.objects.lock().unwrap().remove("v/c.csv");
    server.bucket.busy.store(2, Ordering::SeqCst);
    let second = server.find(&cache, "s3://b/v/", &[]).unwrap();
    assert_eq!((server.got(), names(&second)), (vec!["v/b.csv".to_owned()], vec!["v/a.csv", "v/b.csv"]));
    assert_eq!(std::fs::read(&second.files["s3://b/v/b.csv"]).unwrap(), b"x\n7\n");
    assert!(!first.files["s3://b/v/c.csv"].exists() && !first.files["s3://b/v/b.csv"].exists(), "old copies are gone");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let copy = &second.files["s3://b/v/a.csv"];
        assert_eq!((mode(copy), mode(copy.parent().unwrap())), (0o600, 0o700));
        let beside = std::fs::read_dir(copy.parent().unwrap()).unwrap().count();
        assert_eq!(beside, 2, "nothing but the copies stays");
    }
}

#[test]
fn of_a_delta_table_the_live_files_are_fetched_alone() {
    let server = Server::start(&[]);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/delta/overwritten");
    let mut parquet = 0;
    for folder in ["", "_delta_log"] {
        for entry in
            std::fs::read_dir(data.join(folder)).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file())
        {
            let key = Path::new("lake/t").join(folder).join(entry.file_name());
            parquet += usize::from(key.extension().is_some_and(|ending| ending == "parquet"));
            server.put(key.to_str().unwrap(), &std::fs::read(entry.path()).unwrap());
        }
    }
    let cache = Scratch::new("s3_delta");
    let found = server.find(&cache, "s3://b/lake/t/", &[]).unwrap();
    assert_eq!((parquet, found.format, found.files.len()), (2, Format::Delta, 1));
    let got = server.got();
    assert_eq!(got.iter().filter(|key| key.contains(".parquet")).count(), 1, "{got:?}");
    let logged = found.logged.unwrap();
    assert_eq!(logged.values.keys().collect::<Vec<_>>(), found.files.keys().collect::<Vec<_>>());
    server.find(&cache, "s3://b/lake/t/", &[]).unwrap();
    assert!(server.got().is_empty(), "nor is the log fetched again");
}

#[test]
fn what_goes_wrong_is_said_of_bucket_and_prefix_alone() {
    let server = Server::start(&[("v/hidden-1.csv", "x\n1\n"), ("w/hidden", ""), ("w/hidden/a.csv", "x\n")]);
    let cache = Scratch::new("s3_errors");
    for (source, with, expected) in [
        (
            "s3://b/v/",
            &[("AWS_SECRET_ACCESS_KEY", "wrong")][..],
            "`s3://b/v/` may not be read by whoever AWS_ACCESS_KEY_ID names",
        ),
        ("s3://b/v/", &[("AWS_SECRET_ACCESS_KEY", "")], "nothing says who asks for the bucket `b`"),
        ("s3://b/v/", &[("AWS_ENDPOINT_URL", "localhost")], "AWS_ENDPOINT_URL is no address of a host"),
        (
            "s3://b/v/",
            &[("AWS_ENDPOINT_URL", "http://127.0.0.1:1")],
            "`s3://b/v/` cannot be read: `127.0.0.1:1` cannot be asked",
        ),
        ("s3://b/v/", &[("WHIT_CACHE", "here")], "there is no folder for copies"),
        ("s3://c/v/", &[], "there is no bucket `c`"),
        ("s3://b/u/", &[], "there is nothing at `s3://b/u/`"),
        ("s3://b/v/day=1/", &[], "there is nothing at `s3://b/v/day=…/`"),
        ("s3://b/w/", &[], "has a name that no file can have"),
        ("s3://b", &[], "`s3://b` names no folder of a bucket"),
        ("s3://b/v//x", &[], "names no folder of a bucket"),
        ("v/", &[], "`v/` names no folder of a bucket, or is one of several sources"),
    ] {
        let found = server.message(&cache, source, with);
        assert!(found.contains(expected), "{source} {with:?}\n{found}");
    }
    server.bucket.busy.store(usize::MAX, Ordering::SeqCst);
    let found = server.message(&cache, "s3://b/v/", &[]);
    assert!(found.contains("answers with 503"), "{found}");
}

/// What comes over the network is not taken for more than it is.
#[test]
fn answers_that_break_off_or_are_none_are_no_answers() {
    let cache = Scratch::new("s3_odd");
    for (answer, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n<ListBucketResult>", "it breaks off"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n<List", "it breaks off"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", "does not list `s3://b/v/` as S3 has it"),
        ("SSH-2.0-OpenSSH\r\n", "it does not answer as HTTP has it"),
        ("HTTP/1.1 301 Moved\r\n\r\n", "the bucket `b` is not at"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                if stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
                    let _ = stream.write_all(answer.as_bytes());
                }
            }
        });
        let server = Server { bucket: Arc::default(), host };
        let found = server.message(&cache, "s3://b/v/", &[]);
        assert!(found.contains(expected), "{answer}\n{found}");
    }
    assert_eq!(page("<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>"), None, "no size");
}
