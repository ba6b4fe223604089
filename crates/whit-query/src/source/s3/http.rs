//! Getting something over HTTP: by a connection of our own where the address is plain, and by the system's `curl` where it is encrypted.
//!
//! A library for TLS would make the command 1.4 MB larger for those who have their files on a disk; `curl` is there wherever people talk to S3, knows the system's
//! certificates and proxies, and is told all it needs on its standard input, so that nothing shows in a list of processes.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long to wait for a connection, and for a sign of life on it.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest line of an answer's head.
const LINE: u64 = 1 << 16;

/// What to get from where.
pub(super) struct Get<'a> {
    pub(super) encrypted: bool,
    /// With its port, where that is not the usual one.
    pub(super) host: &'a str,
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    /// A file of certificates to trust.
    pub(super) certificates: Option<&'a str>,
}

impl Get<'_> {
    /// Writes the body of the answer to a file that is there and empty, and says the answer's number.
    pub(super) fn write_to(&self, file: &Path) -> io::Result<u16> {
        if self.encrypted { self.by_curl(file) } else { self.plainly(file) }
    }

    fn plainly(&self, file: &Path) -> io::Result<u16> {
        let address = if self.host.rsplit(']').next().is_some_and(|end| end.contains(':')) {
            self.host.to_owned()
        } else {
            format!("{}:80", self.host)
        };
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        let mut connection = None;
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    connection = Some(stream);
                    break;
                }
                Err(error) => last = error,
            }
        }
        let mut stream = connection.ok_or(last)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let headers: Vec<String> = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let headers = headers.concat();
        let head = format!("GET {} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}\r\n", self.target, self.host);
        stream.write_all(head.as_bytes())?;
        let mut answer = BufReader::new(stream);
        let first = line(&mut answer)?;
        let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok()).ok_or_else(odd)?;
        let (mut length, mut chunked) = (None, false);
        loop {
            let line = line(&mut answer)?;
            let Some((name, value)) = line.split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = Some(value.trim().parse::<u64>().map_err(|_| odd())?),
                "transfer-encoding" => chunked = value.trim().eq_ignore_ascii_case("chunked"),
                _ => {}
            }
        }
        let mut out = BufWriter::new(File::options().write(true).truncate(true).open(file)?);
        match length {
            _ if chunked => loop {
                let size = line(&mut answer)?;
                let size = size.split(';').next().and_then(|size| u64::from_str_radix(size.trim(), 16).ok());
                let size = size.ok_or_else(odd)?;
                exactly(&mut answer, size, &mut out)?;
                line(&mut answer)?;
                if size == 0 {
                    break;
                }
            },
            Some(length) => exactly(&mut answer, length, &mut out)?,
            None => drop(io::copy(&mut answer, &mut out)?),
        }
        out.flush()?;
        Ok(status)
    }

    fn by_curl(&self, file: &Path) -> io::Result<u16> {
        let mut told = String::from("silent\ngloboff\npath-as-is\n");
        told.push_str("proto = \"=https\"\nconnect-timeout = 30\nspeed-limit = 1\nspeed-time = 60\n");
        let mut say = |name: &str, value: &str| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(told, "{name} = \"{value}\""); // writing to a text never fails
        };
        say("url", &format!("https://{}{}", self.host, self.target));
        for (name, value) in &self.headers {
            say("header", &format!("{name}: {value}"));
        }
        say("output", file.to_str().ok_or_else(|| io::Error::other("the name of a temporary file is no text"))?);
        say("write-out", "%{http_code}");
        if let Some(certificates) = self.certificates {
            say("cacert", certificates);
        }
        let command = Command::new("curl")
            .args(["-q", "-K", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut running = command.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::new(io::ErrorKind::Unsupported, NO_CURL),
            _ => error,
        })?;
        // Closed when written, so that it is not waited for more.
        if let Some(mut input) = running.stdin.take() {
            input.write_all(told.as_bytes())?;
        }
        let done = running.wait_with_output()?;
        match done.status.code() {
            Some(0) => String::from_utf8_lossy(&done.stdout).trim().parse().map_err(|_| odd()),
            Some(6) => Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address")),
            Some(7) => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody answers there")),
            Some(28) => Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time")),
            Some(35 | 51 | 58 | 59 | 60 | 77) => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "its certificate is not trusted (AWS_CA_BUNDLE names a file of others)",
            )),
            Some(code) => Err(io::Error::other(format!("curl stopped with {code}"))),
            None => Err(io::Error::other("curl was stopped")),
        }
    }
}

const NO_CURL: &str = "encrypted connections are made by the program `curl`, which is not there";

fn odd() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it does not answer as HTTP has it")
}

/// One line of an answer's head, without its end.
fn line(answer: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    answer.take(LINE).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it breaks off"));
    }
    String::from_utf8(line).map(|line| line.trim_end_matches(['\r', '\n']).to_owned()).map_err(|_| odd())
}

fn exactly(from: &mut impl Read, length: u64, out: &mut impl Write) -> io::Result<()> {
    if io::copy(&mut from.take(length), out)? == length {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it breaks off"))
}
