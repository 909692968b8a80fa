//! Repairs of single values: the right value in the wrong form.

use serde_json::Value;

use super::{
    Fault,
    keywords::same,
    raw::{self, Kind},
};
use crate::name::only_match;

/// The value in the wanted type, if there is only one way to read it so.
pub(super) fn convert(wanted: &str, json: &[u8]) -> Option<(Vec<u8>, Fault)> {
    let text = raw::text(json);
    let text = text.as_deref().map(str::trim);
    match (wanted, Kind::of(json)) {
        ("integer" | "number", Kind::String) => {
            let digits = text.filter(|text| is_number(text))?;
            Some((digits.into(), Fault::NumberInString))
        }
        ("boolean", Kind::String) => {
            let word = text?.to_ascii_lowercase();
            matches!(word.as_str(), "true" | "false").then(|| (word.into_bytes(), Fault::BooleanInString))
        }
        ("boolean", Kind::Number) => match json {
            b"1" => Some((b"true".to_vec(), Fault::NumberForBoolean)),
            b"0" => Some((b"false".to_vec(), Fault::NumberForBoolean)),
            _ => None,
        },
        ("string", Kind::Number | Kind::Boolean) => {
            Some((raw::quote(std::str::from_utf8(json).ok()?), Fault::BareText))
        }
        ("null", Kind::String) => {
            text.filter(|text| *text == "null").map(|text| (text.into(), Fault::NullInString))
        }
        _ => None,
    }
}

/// The allowed value that is meant.
pub(super) fn choose(choices: &[&Value], json: &[u8]) -> Option<(Vec<u8>, Fault)> {
    for wanted in ["string", "number", "boolean", "null"] {
        if let Some((converted, fault)) = convert(wanted, json)
            && choices.iter().any(|choice| same(&converted, choice))
        {
            return Some((converted, fault));
        }
    }
    let text = raw::text(json)?;
    let known = choices.iter().filter_map(|choice| choice.as_str());
    let meant = only_match(&text, known)?;
    Some((raw::quote(meant), Fault::ValueSpelling))
}

fn is_number(text: &str) -> bool {
    Kind::of(text.as_bytes()) == Kind::Number && raw::is_json(text.as_bytes())
}
