//! What a bucket has below a prefix: one page of an answer to `ListObjectsV2`.

/// One object, as the bucket lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) key: String,
    pub(super) etag: String,
    pub(super) size: u64,
}

/// Some objects, and where to go on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) objects: Vec<Object>,
    pub(super) next: Option<String>,
}

/// Reads a page whose keys were asked for as addresses have them; nothing where it is none.
pub(super) fn page(xml: &str) -> Option<Page> {
    let inside = inner(xml, "ListBucketResult")?;
    let mut objects = Vec::new();
    let mut rest = inside;
    while let Some((content, behind)) = element(rest, "Contents") {
        let key = key(&unescaped(inner(content, "Key")?)?)?;
        let size = inner(content, "Size")?.trim().parse().ok()?;
        let etag = unescaped(inner(content, "ETag").unwrap_or_default())?;
        objects.push(Object { key, etag, size });
        rest = behind;
    }
    let more = inner(inside, "IsTruncated").is_some_and(|text| text.trim() == "true");
    let next = inner(inside, "NextContinuationToken").and_then(unescaped);
    // A page that says there is more and not where is no whole answer.
    (next.is_some() || !more).then(|| Page { objects, next: next.filter(|_| more) })
}

/// The code of an error, which says what is wrong in a word.
pub(super) fn code(xml: &str) -> Option<String> {
    unescaped(inner(xml, "Code")?)
}

fn inner<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    element(xml, name).map(|(inside, _)| inside)
}

/// What is inside of the first element of a name, and what is behind it. Elements of one name are never inside of one another here.
fn element<'a>(xml: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let mut from = 0;
    loop {
        let at = from + xml[from..].find(&format!("<{name}"))?;
        let rest = &xml[at + 1 + name.len()..];
        if !rest.starts_with(['>', ' ', '/', '\n']) {
            from = at + 1;
            continue;
        }
        let (head, rest) = rest.split_once('>')?;
        if head.ends_with('/') {
            return Some(("", rest));
        }
        return rest.split_once(&format!("</{name}>"));
    }
}

/// Text without the escapes of XML.
fn unescaped(text: &str) -> Option<String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('&') {
        let (name, behind) = behind.split_once(';')?;
        out.push_str(before);
        out.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let number = name.strip_prefix('#')?;
                let hexadecimal = number.strip_prefix('x').map(|digits| u32::from_str_radix(digits, 16));
                char::from_u32(hexadecimal.unwrap_or_else(|| number.parse()).ok()?)?
            }
        });
        rest = behind;
    }
    Some(out + rest)
}

/// A key without the escapes of addresses, of which a plus is one.
fn key(text: &str) -> Option<String> {
    super::super::files::plain(&text.replace('+', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read() {
        let xml = r#"<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix>d%2F</Prefix>
<KeyCount>2</KeyCount><IsTruncated>true</IsTruncated><Contents><Key>d/a+b%2B%C3%BC.csv</Key><LastModified>x</LastModified>
<ETag>&quot;0f&#45;2&quot;</ETag><Size>12</Size></Contents><Contents><Key>d/c%3D1/x</Key><ETag>"1"</ETag><Size>0</Size></Contents>
<NextContinuationToken>1&amp;2=</NextContinuationToken></ListBucketResult>"#;
        let object = |key: &str, etag: &str, size| Object { key: key.to_owned(), etag: etag.to_owned(), size };
        let objects = vec![object("d/a b+ü.csv", "\"0f-2\"", 12), object("d/c=1/x", "\"1\"", 0)];
        assert_eq!(page(xml), Some(Page { objects, next: Some("1&2=".to_owned()) }));
        assert_eq!(page("<ListBucketResult/>"), Some(Page::default()));
        assert_eq!(page("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"), None);
        assert_eq!(page("<html>"), None);
        assert_eq!(code("<Error><Code>NoSuchBucket</Code></Error>").as_deref(), Some("NoSuchBucket"));
    }
}
