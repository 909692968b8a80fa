//! Conditions for a variant of a host: its version, or environment variables that it passes on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::version::numbers;

/// A condition; all parts of it must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Condition {
    /// For each variable, the values that count; without any, it must be set to something. A `*` at the end of a value
    /// stands for anything, a `!` at its beginning for everything else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Vec<String>>,
    /// The host's version is older than this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<String>,
}

impl Condition {
    pub(super) fn holds(&self, version: Option<&str>, environment: &BTreeMap<String, String>) -> bool {
        let is_set = |(name, wanted): (&String, &Vec<String>)| {
            let value = environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
            value.is_some_and(|value| wanted.is_empty() || wanted.iter().any(|one| fits(one, value)))
        };
        let version = version.map(numbers).filter(|version| !version.is_empty());
        let is_older = |below: &String| version.as_ref().is_some_and(|version| *version < numbers(below));
        self.env.iter().all(is_set) && self.below.as_ref().is_none_or(is_older)
    }
}

fn fits(wanted: &str, value: &str) -> bool {
    match wanted.strip_prefix('!') {
        Some(other) => !matches(other, value),
        None => matches(wanted, value),
    }
}

/// Whether a text matches, in any case of letters; a `*` at the end stands for anything.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)),
        None => text.eq_ignore_ascii_case(pattern),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_condition_must_hold() {
        let condition = |json: &str| serde_json::from_str::<Condition>(json).unwrap();
        let environment = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let off = condition(r#"{"env":{"SEARCH":["false","0","auto*"]}}"#);
        for (value, holds) in [("False", true), ("0", true), ("auto:5", true), ("true", false), ("", false)] {
            assert_eq!(off.holds(None, &environment(&[("SEARCH", value)])), holds, "{value}");
        }
        assert!(!off.holds(None, &BTreeMap::new()));
        let elsewhere = condition(r#"{"env":{"URL":["!https://api.example*"]},"below":"2.1.325"}"#);
        let url = |url| environment(&[("URL", url)]);
        assert!(elsewhere.holds(Some("2.1.197"), &url("http://127.0.0.1:9")));
        assert!(!elsewhere.holds(Some("2.1.197"), &url("https://API.example/v1")));
        assert!(!elsewhere.holds(Some("2.1.325"), &url("http://127.0.0.1:9")));
        for unknown in [None, Some(""), Some("abc")] {
            assert!(!elsewhere.holds(unknown, &url("http://127.0.0.1:9")), "an unknown version is not old");
        }
        assert!(condition(r#"{"env":{"ANY":[]}}"#).holds(None, &environment(&[("ANY", "x")])));
    }
}
