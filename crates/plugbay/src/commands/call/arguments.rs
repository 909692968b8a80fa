//! The arguments of a call on the command line: pairs, one JSON object, or one on stdin.

use std::{
    fs,
    io::{self, Read},
};

use plugbay_core::tokens::compact;
use serde_json::value::RawValue;

use super::{CommandError, typing::Schema};

/// Parsed arguments whose values do not have their types yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CliArguments {
    /// A JSON object, as text.
    Object(String),
    Pairs(Vec<(String, Value)>),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Text that gets the type in the tool's schema.
    Text(String),
    /// JSON, marked by the user with `:=`.
    Json(String),
}

pub(super) fn read(arguments: &[String]) -> Result<CliArguments, CommandError> {
    match arguments {
        [only] if only == "-" => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text)?;
            object(&text, "stdin").map(CliArguments::Object)
        }
        [only] if only.trim_start().starts_with('{') => {
            object(only, "the argument").map(CliArguments::Object)
        }
        pairs => {
            let pairs: Vec<_> = pairs.iter().map(|argument| pair(argument)).collect::<Result<_, _>>()?;
            match (1..pairs.len())
                .find(|index| pairs[..*index].iter().any(|(key, _)| *key == pairs[*index].0))
            {
                Some(again) => Err(CommandError::usage(format!("{:?} is given twice", pairs[again].0))),
                None => Ok(CliArguments::Pairs(pairs)),
            }
        }
    }
}

/// Arguments whose values have types.
#[derive(Debug)]
pub(super) struct Typed {
    /// JSON on one line, as it is sent.
    pub(super) json: String,
    /// The first value that does not have the schema's type; it is sent as a string.
    pub(super) mistake: Option<String>,
}

impl CliArguments {
    pub(super) fn into_json(self, schema: Option<&[u8]>) -> Typed {
        let pairs = match self {
            Self::Object(json) => return Typed { json, mistake: None },
            Self::Pairs(pairs) => pairs,
        };
        let schema = Schema::parse(schema);
        let mut members = Vec::new();
        let mut mistake = None;
        for (key, value) in pairs {
            let json = match value {
                Value::Json(json) => json,
                Value::Text(text) => schema.type_text(&key, &text).unwrap_or_else(|wrong| {
                    mistake.get_or_insert(wrong);
                    serde_json::Value::from(text).to_string()
                }),
            };
            members.push(format!("{}:{json}", serde_json::Value::from(key)));
        }
        Typed { json: format!("{{{}}}", members.join(",")), mistake }
    }
}

fn object(text: &str, place: &str) -> Result<String, CommandError> {
    let json = json(text).map_err(|reason| CommandError::usage(format!("{place} is not JSON: {reason}")))?;
    if json.starts_with('{') {
        Ok(json)
    } else {
        Err(CommandError::usage(format!("{place} must be a JSON object")))
    }
}

/// Parses `key=text` or `key:=json`; in both, `@file` may replace the value.
fn pair(argument: &str) -> Result<(String, Value), CommandError> {
    let malformed = || {
        CommandError::usage(format!("{argument:?} is not an argument"))
            .hint("write key=value, key:=json, key=@file, or one JSON object")
    };
    let (key, value) = argument.split_once('=').ok_or_else(malformed)?;
    let (key, forced) = key.strip_suffix(':').map_or((key, false), |key| (key, true));
    if key.is_empty() {
        return Err(malformed());
    }
    let text = match value.strip_prefix('@') {
        Some(path) => fs::read_to_string(path).map_err(|error| {
            CommandError::failed(format!("{path}: {error}"))
                .hint(format!("for the text itself, give it as JSON: {key}:='\"{value}\"'"))
        })?,
        None => value.to_owned(),
    };
    if !forced {
        return Ok((key.to_owned(), Value::Text(text)));
    }
    let json = json(&text).map_err(|reason| CommandError::usage(format!("{key:?} is not JSON: {reason}")))?;
    Ok((key.to_owned(), Value::Json(json)))
}

/// Checks JSON and puts it on one line; numbers keep all their digits.
pub(super) fn json(text: &str) -> Result<String, serde_json::Error> {
    serde_json::from_str::<&RawValue>(text).map(|raw| compact(raw.get().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(arguments: &[&str], schema: &str) -> Result<String, String> {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let typed = read(&arguments).map(|arguments| arguments.into_json(Some(schema.as_bytes())));
        let Typed { json, mistake } = typed.map_err(|error| error.message)?;
        mistake.map_or(Ok(json), Err)
    }

    #[test]
    fn every_form_becomes_one_line_of_json() {
        let schema = r#"{"properties":{"n":{"type":"integer"},"s":{"type":"string"}}}"#;
        assert_eq!(pairs(&[], schema).unwrap(), "{}");
        assert_eq!(pairs(&["s=a=b", "n=5"], schema).unwrap(), r#"{"s":"a=b","n":5}"#);
        assert_eq!(pairs(&["s:=[1, 2]"], schema).unwrap(), r#"{"s":[1,2]}"#);
        let object = "{ \"big\": 123456789012345678901234567890,\n \"s\": \"x\\ny\" }";
        assert_eq!(pairs(&[object], schema).unwrap(), r#"{"big":123456789012345678901234567890,"s":"x\ny"}"#);
    }

    #[test]
    fn files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("note.txt");
        fs::write(&path, "two\nlines").unwrap();
        let argument = format!("s=@{}", path.display());
        assert_eq!(pairs(&[&argument], "{}").unwrap(), r#"{"s":"two\nlines"}"#);
        let missing = format!("s=@{}", folder.path().join("none").display());
        assert!(pairs(&[&missing], "{}").unwrap_err().contains("none: "));
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(pairs(&["word"], "{}").unwrap_err(), "\"word\" is not an argument");
        assert_eq!(pairs(&["=x"], "{}").unwrap_err(), "\"=x\" is not an argument");
        assert_eq!(pairs(&["a=1", "a=2"], "{}").unwrap_err(), "\"a\" is given twice");
        assert!(pairs(&["{\"a\":}"], "{}").unwrap_err().starts_with("the argument is not JSON"));
        assert!(pairs(&["a:=nope"], "{}").unwrap_err().starts_with("\"a\" is not JSON"));
    }
}
