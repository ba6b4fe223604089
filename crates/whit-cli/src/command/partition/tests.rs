use crate::command::main;
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
    assert!(talk.contains("1 item stands there twice") && talk.contains("wrote "), "{talk}");
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
