//! Parses headers, from a JSON object or from lines. No error shows a value.

use plugbay_core::secret::Secret;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

/// Limit of headers: more than any server wants.
const MOST: usize = 64;
/// Headers that belong to the connection.
const RESERVED: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

type Pairs = Vec<(String, Secret)>;

/// Reads `{"Name": "value"}`.
pub(super) fn of_json(text: &str) -> Result<Pairs, String> {
    // The parser's own error may quote the text, so it is not shown.
    let value: Value =
        serde_json::from_str(text).map_err(|_| "that is no JSON object of headers".to_owned())?;
    let Value::Object(members) = value else { return Err("that is no JSON object of headers".to_owned()) };
    let pairs = members.into_iter().map(|(name, value)| match value {
        Value::String(value) => pair(&name, &value),
        _ => Err(format!("the value of the header {name:?} is no string")),
    });
    checked(pairs.collect::<Result<_, _>>()?)
}

/// Parses a JSON object, or lines `Name: value`. Lines that begin with `#` are comments.
pub(super) fn of_text(text: &str) -> Result<Pairs, String> {
    if text.trim_start().starts_with('{') {
        return of_json(text);
    }
    let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
    let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|(line, number)| match line.split_once(':') {
        Some((name, value)) => pair(name.trim(), value),
        None => Err(format!("line {number} is not of the form `Name: value`")),
    });
    checked(pairs.collect::<Result<_, _>>()?)
}

fn pair(name: &str, value: &str) -> Result<(String, Secret), String> {
    let parsed = HeaderName::from_bytes(name.as_bytes());
    let header = parsed.map_err(|_| format!("{:?} is not the name of a header", short(name)))?;
    if RESERVED.contains(&header.as_str()) {
        return Err(format!("the header {name:?} belongs to the connection"));
    }
    let value = value.trim();
    if value.is_empty() || HeaderValue::from_str(value).is_err() {
        return Err(format!(
            "the value of the header {name:?} is empty or has characters that no header may have"
        ));
    }
    Ok((name.to_owned(), Secret::new(value)))
}

/// The start of an invalid name: the rest may be a secret.
fn short(name: &str) -> String {
    let start: String = name.chars().take(8).collect();
    if start.len() == name.len() { start } else { format!("{start}…") }
}

fn checked(pairs: Pairs) -> Result<Pairs, String> {
    if pairs.is_empty() || pairs.len() > MOST {
        return Err(format!("there are {} headers", if pairs.is_empty() { "no" } else { "too many" }));
    }
    for (place, (name, _)) in pairs.iter().enumerate() {
        if pairs[..place].iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            return Err(format!("the header {name:?} is there twice"));
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(read: Result<Pairs, String>) -> String {
        let line = |(name, value): (String, Secret)| format!("{name}={}", value.expose());
        read.map_or_else(|error| error, |pairs| pairs.into_iter().map(line).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn headers_are_read_from_json_and_lines() {
        for (text, expected) in [
            (r#"{"Authorization": "Bearer t", "X-Team": " a b "}"#, "Authorization=Bearer t X-Team=a b"),
            ("\n {\"A\": \"1\"}\n", "A=1"),
            ("# mine\r\nAuthorization: Bearer a:b\r\n\r\nX-Team:x\r\n", "Authorization=Bearer a:b X-Team=x"),
        ] {
            assert_eq!(shown(of_text(text)), expected);
        }
    }

    #[test]
    fn headers_that_cannot_be_sent_are_rejected_without_their_values() {
        for (text, problem) in [
            ("", "no headers"),
            ("{}", "no headers"),
            ("s3cr3t", "line 1 is not"),
            ("{s3cr3t", "no JSON object"),
            (r#"{"A": 1}"#, "\"A\" is no string"),
            (r#"{"A": "s3cr3t\n"}"#, ""),
            (r#"{"A": "s3cr3t\nB: c"}"#, "the value of the header \"A\""),
            (r#"{"A": ""}"#, "is empty"),
            (r#"{"a b": "s3cr3t"}"#, "\"a b\" is not the name"),
            ("Bearer s3cr3t-s3cr3t: x", "\"Bearer s…\" is not the name"),
            ("Host: s3cr3t", "belongs to the connection"),
            ("A: s3cr3t\na: s3cr3t", "\"a\" is there twice"),
        ] {
            let read = of_text(text);
            if problem.is_empty() {
                assert!(read.is_ok(), "a line break at the end is no part of the value");
                continue;
            }
            let error = read.unwrap_err();
            assert!(error.contains(problem) && !error.contains("s3cr3t"), "{error}");
        }
        let many: String = (0..65).fold(String::new(), |text, n| format!("{text}X-{n}: 1\n"));
        assert_eq!(of_text(&many).unwrap_err(), "there are too many headers");
    }
}
