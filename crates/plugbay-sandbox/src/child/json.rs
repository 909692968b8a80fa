//! Writes values of jaq as JSON text.
//!
//! jaq prints a superset of JSON. Our readers accept only JSON, so values that JSON lacks are replaced as in
//! jq: `null` for NaN, the largest number for infinity, U+FFFD for bytes that are not text.

use std::io::Write;

use jaq_json::{Num, Val};

use super::output::{Output, Stop};
use crate::protocol::Failed;

/// Limit of nesting in written values, as in jq.
const DEPTH: usize = 10_000;

/// The reason why a value was not written completely.
#[derive(Debug)]
pub(super) enum Unwritten {
    Stop(Stop),
    Failed(Failed),
}

impl From<Stop> for Unwritten {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

pub(super) fn write<W: Write>(value: &Val, output: &mut Output<W>) -> Result<(), Unwritten> {
    write_at(value, output, DEPTH)?;
    Ok(output.end_value()?)
}

fn write_at<W: Write>(value: &Val, output: &mut Output<W>, depth: usize) -> Result<(), Unwritten> {
    let Some(depth) = depth.checked_sub(1) else { return Err(Unwritten::Failed(Failed::TooDeep)) };
    match value {
        Val::Null => output.write(b"null")?,
        Val::Bool(true) => output.write(b"true")?,
        Val::Bool(false) => output.write(b"false")?,
        Val::Num(number) => output.write(number_text(number).as_bytes())?,
        Val::TStr(bytes) | Val::BStr(bytes) => string(bytes, output)?,
        Val::Arr(items) => {
            output.write(b"[")?;
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    output.write(b",")?;
                }
                write_at(item, output, depth)?;
            }
            output.write(b"]")?;
        }
        Val::Obj(members) => {
            output.write(b"{")?;
            for (index, (key, value)) in members.iter().enumerate() {
                if index > 0 {
                    output.write(b",")?;
                }
                let Val::TStr(key) = key else { return Err(Unwritten::Failed(bad_key(key))) };
                string(key, output)?;
                output.write(b":")?;
                write_at(value, output, depth)?;
            }
            output.write(b"}")?;
        }
    }
    Ok(())
}

fn bad_key(key: &Val) -> Failed {
    let kind = match key {
        Val::Null => "null",
        Val::Bool(_) => "a boolean",
        Val::Num(_) => "a number",
        Val::BStr(_) | Val::TStr(_) => "bytes",
        Val::Arr(_) => "an array",
        Val::Obj(_) => "an object",
    };
    Failed::Runtime(format!("the keys of an object must be strings, not {kind}: write (… | tostring)"))
}

/// The text of a number. Integers, and numbers that the filter did not compute with, keep their digits.
fn number_text(number: &Num) -> String {
    match number {
        Num::Dec(text) if is_json(text) => text.to_string(),
        Num::Dec(text) => text.parse().map_or_else(|_| "null".to_owned(), float_text),
        Num::Float(float) => float_text(*float),
        Num::Int(_) | Num::BigInt(_) => number.to_string(),
    }
}

/// Up to this number, jq writes whole numbers without an exponent.
const PLAIN: f64 = 1e17;

fn float_text(float: f64) -> String {
    if float.is_nan() {
        "null".to_owned()
    } else if float.is_infinite() {
        Num::Float(f64::MAX.copysign(float)).to_string()
    } else if float.fract() == 0.0 && float.abs() < PLAIN {
        format!("{float:.0}")
    } else {
        Num::Float(float).to_string()
    }
}

/// Whether the text is a number in JSON's syntax; jaq also reads `.5`, `+1.0` and `007.5`.
fn is_json(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let whole = digits.split(['.', 'e', 'E']).next().unwrap_or_default();
    let rest = &digits[whole.len()..];
    let is_whole = whole == "0" || !whole.is_empty() && !whole.starts_with('0');
    is_whole
        && whole.bytes().all(|byte| byte.is_ascii_digit())
        && digits.ends_with(|last: char| last.is_ascii_digit())
        && !rest.starts_with(".e")
        && !rest.starts_with(".E")
}

fn string<W: Write>(bytes: &[u8], output: &mut Output<W>) -> Result<(), Stop> {
    let text = String::from_utf8_lossy(bytes);
    output.write(b"\"")?;
    let special = |byte: &u8| matches!(byte, 0..=0x1f | b'"' | b'\\' | 0x7f);
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(special) {
        output.write(&rest[..at])?;
        output.write(escaped(rest[at]).as_bytes())?;
        rest = &rest[at + 1..];
    }
    output.write(rest)?;
    output.write(b"\"")
}

fn escaped(byte: u8) -> String {
    match byte {
        b'"' => r#"\""#.to_owned(),
        b'\\' => r"\\".to_owned(),
        b'\n' => r"\n".to_owned(),
        b'\r' => r"\r".to_owned(),
        b'\t' => r"\t".to_owned(),
        0x08 => r"\b".to_owned(),
        0x0c => r"\f".to_owned(),
        other => format!("\\u{other:04x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &Val, expected: &str) {
        let mut sent = Vec::new();
        let mut output = Output::new(&mut sent, u64::MAX);
        write(value, &mut output).unwrap();
        output.finish().unwrap();
        assert_eq!(std::str::from_utf8(&sent[crate::protocol::FRAME_HEAD..]), Ok(&*format!("{expected}\n")));
    }

    #[test]
    fn json_comes_back_as_it_was_but_for_spaces() {
        for text in [
            "null",
            r#"{"z":[1,true],"a":{"":false}}"#,
            "123456789012345678901234567890",
            "1.10",
            "-1E400",
            "0.1e-7",
            r#""\"\\\n\t\b\f\u0001\u007fä😀""#,
        ] {
            check(&jaq_json::read::parse_single(text.as_bytes()).unwrap(), text);
        }
    }

    #[test]
    fn values_that_json_lacks_are_written_as_in_jq() {
        check(&Val::from(f64::NAN), "null");
        check(&Val::from(f64::NEG_INFINITY), "-1.7976931348623157e308");
        check(&Val::from(2.0), "2");
        check(&Val::from(2.5), "2.5");
        check(&Val::utf8_str(&b"a\xff"[..]), "\"a\u{fffd}\"");
        for (text, expected) in [("+1.5", "1.5"), ("007.5", "7.5")] {
            check(&jaq_json::read::parse_single(text.as_bytes()).unwrap(), expected);
        }
    }

    #[test]
    fn numbers_are_told_from_other_words() {
        for number in ["0", "-0.5", "1e5", "1.5E-7", "10.0"] {
            assert!(is_json(number), "{number}");
        }
        for other in ["", "-", ".5", "1.", "+1", "01", "1.e5", "1e", "x1", "--1"] {
            assert!(!is_json(other), "{other}");
        }
    }
}
