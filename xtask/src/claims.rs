//! `docs/claims.md` is made from the mechanisms' own documentation, so that the two cannot drift apart.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The four headings, in their order.
const HEADINGS: [&str; 4] = ["Neighbours", "Claim", "Why", "Tried by"];

/// What one mechanism says of itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) summary: String,
    /// The text under each of the four headings.
    pub(crate) parts: [String; 4],
}

impl Claim {
    /// The tests that are named under the last heading.
    fn tests(&self) -> impl Iterator<Item = &str> {
        self.parts[3].split('`').skip(1).step_by(2).filter(|name| {
            name.contains('_') && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        })
    }
}

/// All claims of the workspace, by file and in the order in which they stand there.
pub(crate) fn collect(root: &Path) -> Result<Vec<Claim>, String> {
    let mut claims = Vec::new();
    let crates = root.join("crates");
    for folder in
        ["whit-noise", "whit-core", "whit-account", "whit-query", "whit-learn", "whit-view", "whit", "whit-cli"]
    {
        for file in sources(&crates.join(folder).join("src"))? {
            let name = file.strip_prefix(&crates).unwrap_or(&file).to_string_lossy().into_owned();
            claims.extend(read(&name, &text(&file)?));
        }
    }
    Ok(claims)
}

/// Whether every claim names tests, and every test that one names is there.
pub(crate) fn verify(claims: &[Claim], root: &Path) -> Result<(), String> {
    let functions = functions(root)?;
    for claim in claims {
        if claim.tests().next().is_none() {
            return Err(format!("{} ({}) names no test that tried to break it", claim.name, claim.file));
        }
        if let Some(test) = claim.tests().find(|test| !functions.iter().any(|name| name == test)) {
            return Err(format!("{} ({}) names the test `{test}`, which does not exist", claim.name, claim.file));
        }
    }
    Ok(())
}

/// Every function in the workspace's sources whose name might be a test's.
fn functions(root: &Path) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for file in sources(&root.join("crates"))? {
        for line in text(&file)?.lines() {
            let named = line
                .trim_start()
                .trim_start_matches("async ")
                .strip_prefix("fn ")
                .and_then(|rest| rest.split(['(', '<']).next());
            names.extend(named.map(str::to_owned));
        }
    }
    Ok(names)
}

/// The claims as a page.
pub(crate) fn page(claims: &[Claim]) -> String {
    let mut page = String::from(
        "# Claims\n\n\
         What each mechanism claims, why that is so, and which tests tried to break it. This page is made from the\n\
         documentation of what sanitises, file by file under `crates/`, by `cargo xtask claims`; change it there.\n",
    );
    let mut file = "";
    for claim in claims {
        if claim.file != file {
            file = &claim.file;
            let _ = write!(page, "\n## `{file}`\n");
        }
        let _ = write!(page, "\n### {}\n\n{}\n", claim.name, claim.summary);
        for (heading, part) in HEADINGS.iter().zip(&claim.parts) {
            let _ = write!(page, "\n**{heading}.** {part}\n");
        }
    }
    page
}

/// The name of what a line declares: a type or a function, whoever may see it.
fn named(line: &str) -> Option<&str> {
    let (seen_by, rest) = line.split_once(' ')?;
    let rest = if seen_by.starts_with("pub") { rest } else { line };
    let (what, rest) = rest.split_once(' ')?;
    ["struct", "enum", "trait", "fn"].contains(&what).then(|| rest.split([' ', '<', '(', ';']).next())?
}

/// The claims in one file: documentation with all four headings, and what is declared under it.
fn read(file: &str, source: &str) -> Vec<Claim> {
    let (mut claims, mut block) = (Vec::new(), Vec::new());
    for line in source.lines() {
        if let Some(doc) = line.strip_prefix("///") {
            block.push(doc.strip_prefix(' ').unwrap_or(doc));
        } else if line.starts_with("#[") {
            // Attributes stand between documentation and type.
        } else {
            claims.extend(named(line).and_then(|name| claim(file, name, &block)));
            block.clear();
        }
    }
    claims
}

fn claim(file: &str, name: &str, block: &[&str]) -> Option<Claim> {
    let start = block.iter().position(|line| line.starts_with("# "))?;
    let mut parts: [String; 4] = Default::default();
    for (part, heading) in parts.iter_mut().zip(HEADINGS) {
        let at = block.iter().position(|line| line.strip_prefix("# ") == Some(heading))?;
        let body = block[at + 1..].iter().take_while(|line| !line.starts_with("# ") && !line.starts_with("```"));
        *part = plain(&body.copied().collect::<Vec<_>>().join("\n"));
    }
    let summary = plain(
        &block[..start].iter().take_while(|line| !line.starts_with("```")).copied().collect::<Vec<_>>().join("\n"),
    );
    Some(Claim { file: file.to_owned(), name: name.to_owned(), summary, parts })
}

/// Text without links into the documentation: of a name in brackets and back-ticks only the back-ticks stay.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.trim();
    while let Some(at) = rest.find("[`") {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let Some(end) = after.find("`]") else {
            rest = &rest[at..];
            break;
        };
        out.push_str(&after[..=end]);
        rest = &after[end + 2..];
        if rest.starts_with('(') {
            rest = rest.find(')').map_or(rest, |close| &rest[close + 1..]);
        }
    }
    out.push_str(rest);
    out
}

/// What stands in a file.
pub(crate) fn text(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("`{}` could not be read: {error}", file.display()))
}

/// All Rust files under a folder, sorted.
pub(crate) fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let fail = |error: std::io::Error| format!("`{}` could not be read: {error}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
            files.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
/// Adds noise to [`Cost`](crate::Cost).\n\
///\n\
/// # Neighbours\n\
/// Counts.\n\
///\n\
/// # Claim\n\
/// It is so, see [`Bound`].\n\
///\n\
/// # Why\n\
/// Because.\n\
///\n\
/// # Tried by\n\
/// `loss_bounds_every_output` at ε = `2`, exactly.\n\
///\n\
/// ```\n\
/// let example = not_a_test();\n\
/// ```\n\
#[derive(Debug)]\n\
pub struct Noise<T>(T);\n\
\n\
/// Says nothing.\n\
pub struct Silent;\n";

    #[test]
    fn the_four_headings_become_one_claim() {
        let claims = read("noise.rs", SOURCE);
        assert_eq!(claims.len(), 1);
        assert_eq!((claims[0].name.as_str(), claims[0].summary.as_str()), ("Noise", "Adds noise to `Cost`."));
        assert_eq!(claims[0].parts[1], "It is so, see `Bound`.");
        assert_eq!(claims[0].tests().collect::<Vec<_>>(), ["loss_bounds_every_output"]);
        assert!(page(&claims).contains("**Why.** Because."));
    }

    #[test]
    fn every_test_that_a_claim_names_exists() {
        let root = crate::root();
        let mut claims = collect(&root).unwrap();
        assert!(claims.len() > 8, "mechanisms have claims");
        assert_eq!(verify(&claims, &root), Ok(()));
        claims[0].parts[3] = "`a_test_that_nobody_wrote`".into();
        assert!(verify(&claims, &root).unwrap_err().contains("which does not exist"));
        claims[0].parts[3] = "Not at all.".into();
        assert!(verify(&claims, &root).unwrap_err().contains("names no test"));
    }
}
