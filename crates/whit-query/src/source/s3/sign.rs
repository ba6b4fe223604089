//! Requests to S3, signed as "AWS Signature Version 4" has it.

use super::sha256::{hex, hmac, sha256};

/// Who asks. It is never printed, stored or written down, and has no `Debug`.
pub(super) struct Credentials {
    pub(super) id: String,
    pub(super) secret: String,
    pub(super) token: Option<String>,
    pub(super) region: String,
}

/// A request without a body: what is asked of which host.
pub(super) struct BareRequest {
    pub(super) host: String,
    /// The path, escaped.
    pub(super) path: String,
    /// What is behind the question mark: names and values, not escaped.
    pub(super) query: Vec<(&'static str, String)>,
    /// More headers, in lower case, that are signed too.
    pub(super) headers: Vec<(&'static str, String)>,
}

impl BareRequest {
    /// What is asked for, as it stands in the first line.
    pub(super) fn target(&self) -> String {
        let query = self.canonical_query();
        if query.is_empty() { self.path.clone() } else { format!("{}?{query}", self.path) }
    }

    fn canonical_query(&self) -> String {
        let mut pairs: Vec<String> = self
            .query
            .iter()
            .map(|(name, value)| format!("{}={}", escaped(name, false), escaped(value, false)))
            .collect();
        pairs.sort();
        pairs.join("&")
    }

    /// All headers but `host`, with the signature among them. `moment` is in seconds since 1970, in UTC.
    pub(super) fn signed(&self, who: &Credentials, moment: u64) -> Vec<(String, String)> {
        let (day, time) = stamps(moment);
        let empty = hex(&sha256(b""));
        let mut headers: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        headers.push(("host".to_owned(), self.host.clone()));
        headers.push(("x-amz-content-sha256".to_owned(), empty.clone()));
        headers.push(("x-amz-date".to_owned(), time.clone()));
        headers.extend(who.token.clone().map(|token| ("x-amz-security-token".to_owned(), token)));
        headers.sort();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let lines = lines.concat();
        let request = format!("GET\n{}\n{}\n{lines}\n{names}\n{empty}", self.path, self.canonical_query());
        let scope = format!("{day}/{}/s3/aws4_request", who.region);
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&sha256(request.as_bytes())));
        let first = hmac(format!("AWS4{}", who.secret).as_bytes(), day.as_bytes());
        let key =
            [who.region.as_str(), "s3", "aws4_request"].iter().fold(first, |key, part| hmac(&key, part.as_bytes()));
        let signature = hex(&hmac(&key, text.as_bytes()));
        let proof =
            format!("AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}", who.id);
        headers.retain(|(name, _)| name != "host");
        headers.push(("authorization".to_owned(), proof));
        headers
    }
}

/// A text as addresses have it: all but letters, digits and `-._~` escaped, and `/` where it divides nothing.
pub(super) fn escaped(text: &str, path: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (path && byte == b'/');
        if plain {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&hex(&[byte]).to_uppercase());
        }
    }
    out
}

/// The day, and the moment, as signatures write them: `20130524` and `20130524T000000Z`.
fn stamps(moment: u64) -> (String, String) {
    // Days of the proleptic Gregorian calendar, counted from the first of March (Hinnant, chrono-compatible date algorithms).
    let days = moment / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let date = format!("{year:04}{month:02}{day:02}");
    let seconds = moment % 86_400;
    let time = format!("{date}T{:02}{:02}{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60);
    (date, time)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples that AWS publishes under "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk".
    #[test]
    fn signatures_are_those_of_the_published_examples() {
        let who = Credentials {
            id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            token: None,
            region: "us-east-1".to_owned(),
        };
        let moment = 1_369_353_600; // 2013-05-24, 00:00:00
        let asked = |path: &str, query: Vec<(&'static str, &str)>, headers: Vec<(&'static str, &str)>| BareRequest {
            host: "examplebucket.s3.amazonaws.com".to_owned(),
            path: path.to_owned(),
            query: query.into_iter().map(|(name, value)| (name, value.to_owned())).collect(),
            headers: headers.into_iter().map(|(name, value)| (name, value.to_owned())).collect(),
        };
        for (asked, names, expected) in [
            (
                asked("/test.txt", vec![], vec![("range", "bytes=0-9")]),
                "host;range;x-amz-content-sha256;x-amz-date",
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (
                asked("/", vec![("lifecycle", "")], vec![]),
                "host;x-amz-content-sha256;x-amz-date",
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
            (
                asked("/", vec![("prefix", "J"), ("max-keys", "2")], vec![]),
                "host;x-amz-content-sha256;x-amz-date",
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ] {
            let headers = asked.signed(&who, moment);
            let proof = &headers.last().unwrap().1;
            assert_eq!(
                *proof,
                format!(
                    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders={names}, Signature={expected}"
                )
            );
        }
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (moment, expected) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (1_369_353_600, "20130524T000000Z"),
            (4_107_542_399, "21000228T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(stamps(moment).1, expected);
        }
    }

    #[test]
    fn addresses_are_escaped() {
        assert_eq!(escaped("a b/ü=%~", true), "a%20b/%C3%BC%3D%25~");
        assert_eq!(escaped("a/b", false), "a%2Fb");
    }
}
