//! The registrable domain of a URL or a host name, by the public-suffix list.

use super::text::{map_dictionary, text_type};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, GenericStringArray, OffsetSizeTrait, StringArrayType, StringViewArray, new_null_array,
};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The name of the SQL function.
pub(crate) const REGISTRABLE_DOMAIN: &str = "registrable_domain";

/// The part of a URL or host name that somebody registered: one label more than the public suffix.
///
/// Every text has exactly one: an address, a lone public suffix and a name without dots stand for themselves, and what has
/// no host at all stands for itself as a whole, since a row without an element would be protected by no unit. Names are
/// in lower case and without a last dot; internationalised names stay as they are written.
///
/// ```
/// use whit_query::partition::registrable_domain;
/// assert_eq!(registrable_domain("https://anna@www.Example.co.uk:8443/a?b=c"), "example.co.uk");
/// assert_eq!(registrable_domain("alice.github.io."), "alice.github.io");
/// assert_eq!(registrable_domain("http://192.168.0.1/x"), "192.168.0.1");
/// assert_eq!(registrable_domain("about:blank"), "about:blank");
/// ```
pub fn registrable_domain(text: &str) -> Cow<'_, str> {
    match host(text) {
        None => Cow::Borrowed(text),
        Some(Host::Address(address)) => Cow::Owned(address),
        Some(Host::Name(name)) => {
            if name.chars().any(char::is_uppercase) {
                let name = name.to_lowercase();
                let start = name.len() - registered(&name).len();
                Cow::Owned(name[start..].to_owned())
            } else {
                Cow::Borrowed(registered(name))
            }
        }
    }
}

/// What follows the `//` of a URL and is neither path nor port nor login.
enum Host<'a> {
    Address(String),
    Name(&'a str),
}

/// The end of a host name that was registered; all of it where nothing in it was.
fn registered(name: &str) -> &str {
    psl::domain_str(name).unwrap_or(name)
}

fn host(text: &str) -> Option<Host<'_>> {
    let text = text.trim();
    let rest = match text.find("://") {
        Some(at) if is_scheme(&text[..at]) => &text[at + 3..],
        _ => text.strip_prefix("//").unwrap_or(text),
    };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    if let Some(inside) = place.strip_prefix('[') {
        let (address, after) = inside.split_once(']')?;
        return is_port(after).then(|| Host::Address(six(address)));
    }
    if place.parse::<Ipv6Addr>().is_ok() {
        return Some(Host::Address(six(place)));
    }
    // A colon that no port follows is no host's: `about:`, `urn:`.
    let name = match place.split_once(':') {
        Some((name, port)) => port.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)?,
        None => place,
    };
    let name = name.trim_end_matches('.');
    if name.is_empty() || name.starts_with('.') || name.chars().any(is_forbidden) {
        return None;
    }
    Some(match name.parse::<Ipv4Addr>() {
        Ok(address) => Host::Address(address.to_string()),
        Err(_) => Host::Name(name),
    })
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What no host name holds.
fn is_forbidden(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "<>\"`{}|^[]%,;()'!$&*+=".contains(c)
}

/// An IPv6 address in brackets, in its shortest form; as it stands if it is none.
fn six(address: &str) -> String {
    match address.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => format!("[{}]", address.to_lowercase()),
    }
}

/// [`registrable_domain`] as a SQL function of one text; NULL has none.
pub(crate) fn registrable_domain_udf() -> ScalarUDF {
    ScalarUDF::from(RegistrableDomain { signature: Signature::any(1, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegistrableDomain {
    signature: Signature,
}

impl ScalarUDFImpl for RegistrableDomain {
    fn name(&self) -> &'static str {
        REGISTRABLE_DOMAIN
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        text_type(REGISTRABLE_DOMAIN, types.first())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(array)] => domains(array).map(ColumnarValue::Array),
            [ColumnarValue::Scalar(scalar)] => {
                let found = domains(&scalar.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?))
            }
            other => exec_err!("{REGISTRABLE_DOMAIN} takes one text, and got {} arguments", other.len()),
        }
    }
}

/// The domains of a column of texts, in the text type that it came in.
fn domains(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Utf8 => Arc::new(strings::<i32>(array.as_string::<i32>())),
        DataType::LargeUtf8 => Arc::new(strings::<i64>(array.as_string::<i64>())),
        DataType::Utf8View => {
            let mut memo = Memo::default();
            let found: StringViewArray =
                array.as_string_view().iter().map(|text| text.map(|text| memo.of(text))).collect();
            Arc::new(found)
        }
        DataType::Null => new_null_array(&DataType::Utf8, array.len()),
        DataType::Dictionary(..) => map_dictionary(array, domains)?,
        other => return exec_err!("{REGISTRABLE_DOMAIN} reads text, and this is {other}"),
    })
}

fn strings<'a, T: OffsetSizeTrait>(array: impl StringArrayType<'a> + Copy) -> GenericStringArray<T> {
    let mut memo = Memo::default();
    array.iter().map(|text| text.map(|text| memo.of(text))).collect()
}

/// What the last text gave: logs come sorted, so that one often follows itself.
#[derive(Default)]
struct Memo<'a> {
    last: Option<(&'a str, Cow<'a, str>)>,
}

impl<'a> Memo<'a> {
    fn of(&mut self, text: &'a str) -> Cow<'a, str> {
        match &self.last {
            Some((last, domain)) if *last == text => domain.clone(),
            _ => self.last.insert((text, registrable_domain(text))).1.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::Field;
    use proptest::prelude::*;

    #[test]
    fn hosts_are_found_in_whatever_stands_around_them() {
        for (text, domain) in [
            ("https://www.example.com/path?query#part", "example.com"),
            ("HTTP://User:Pass@WWW.Example.COM:80/", "example.com"),
            ("//cdn.example.org/x.js", "example.org"),
            ("example.com", "example.com"),
            ("a.b.example.co.uk", "example.co.uk"),
            ("www.example.com.", "example.com"),
            ("https://example.com:8080", "example.com"),
            ("https://example.com?x=https://other.org", "example.com"),
            ("https://example.com\\@other.org", "example.com"),
            ("ftp://ftp.example.com", "example.com"),
            ("anna@mail.example.net", "example.net"),
            ("mailto:anna@mail.example.net", "example.net"),
            ("  https://example.com/ ", "example.com"),
            ("https://www.食狮.中国/", "食狮.中国"),
            ("https://www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
            ("https://WWW.BÜCHER.example", "bücher.example"),
            ("https://example.com/a://b", "example.com"),
        ] {
            assert_eq!(registrable_domain(text), domain, "{text}");
        }
    }

    #[test]
    fn addresses_suffixes_and_lone_names_stand_for_themselves() {
        for (text, domain) in [
            ("http://127.0.0.1:8000/", "127.0.0.1"),
            ("10.0.0.1", "10.0.0.1"),
            ("http://[2001:DB8::0:1]:443/", "[2001:db8::1]"),
            ("2001:db8:0::1", "[2001:db8::1]"),
            ("[::1]", "[::1]"),
            ("co.uk", "co.uk"),
            ("https://github.io/", "github.io"),
            ("https://alice.github.io/page", "alice.github.io"),
            ("http://localhost:3000/x", "localhost"),
            ("intranet", "intranet"),
        ] {
            assert_eq!(registrable_domain(text), domain, "{text}");
        }
    }

    #[test]
    fn what_has_no_host_is_an_element_of_its_own() {
        for text in [
            "",
            " ",
            "/relative/path",
            "?q",
            "#top",
            "about:blank",
            "data:text/plain,hi",
            "javascript:void(0)",
            "http://",
            "https:///x",
            "http://[::1",
            "hello world",
            "...",
            "http://a b/",
            "://x",
        ] {
            assert_eq!(registrable_domain(text), text, "`{text}`");
        }
    }

    proptest! {
        /// Whatever the text, it has an element, and that element is in itself.
        #[test]
        fn a_domain_is_its_own_domain(text in r"(https?://|//|)([a-zA-Z0-9ü@:\[\]./?#%-]|\PC){0,40}") {
            let domain = registrable_domain(&text);
            let again = registrable_domain(&domain);
            prop_assert_eq!(&again, &domain);
        }

        #[test]
        fn case_path_login_and_port_do_not_matter(
            host in "[a-z0-9-]{1,8}(\\.[a-z0-9-]{1,8}){0,4}", path in "[/?#][ -~]{0,20}", port in 0_u16..9999,
        ) {
            let plain = registrable_domain(&host).into_owned();
            for text in [
                format!("http://{host}{path}"), format!("https://me:pw@{host}:{port}{path}"), host.to_uppercase(), format!("{host}."),
            ] {
                prop_assert_eq!(registrable_domain(&text), plain.as_str(), "{}", text);
            }
        }
    }

    fn invoke(array: ArrayRef) -> Result<ArrayRef> {
        let udf = registrable_domain_udf();
        let kind = udf.return_type(std::slice::from_ref(array.data_type()))?;
        let args = ScalarFunctionArgs {
            arg_fields: vec![Arc::new(Field::new("x", array.data_type().clone(), true))],
            number_rows: array.len(),
            return_field: Arc::new(Field::new("y", kind.clone(), true)),
            args: vec![ColumnarValue::Array(array)],
            config_options: Arc::default(),
        };
        let found = udf.invoke_with_args(args)?.into_array(1)?;
        assert_eq!(*found.data_type(), kind, "the type that was announced");
        Ok(found)
    }

    #[test]
    fn every_kind_of_text_column_is_read() {
        let texts = [Some("http://a.example.com/1"), Some("http://a.example.com/1"), None, Some("x.org")];
        for array in super::super::text::of_every_kind(&texts) {
            let found = invoke(array).unwrap();
            let found = datafusion::arrow::compute::cast(&found, &DataType::Utf8).unwrap();
            let found: Vec<Option<&str>> = found.as_string::<i32>().iter().collect();
            assert_eq!(found, [Some("example.com"), Some("example.com"), None, Some("x.org")]);
        }
        assert!(invoke(Arc::new(Int64Array::from(vec![1]))).is_err());
        assert_eq!(invoke(new_null_array(&DataType::Null, 3)).unwrap().null_count(), 3);
    }
}
