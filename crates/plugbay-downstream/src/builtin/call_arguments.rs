//! The arguments of a call of a built-in tool.

use std::{borrow::Cow, collections::HashSet};

use plugbay_core::{
    arguments::no_parameters,
    size_limit::{self, TooLong},
    surface::BuiltinTool,
    wire::{Members, Span, elements, string_value},
};

use crate::message::Request;

/// How many keys that a tool does not know are named.
const UNKNOWN: usize = 5;

/// The arguments of a call, looked up by name.
pub(super) struct Arguments<'a>(Option<&'a [u8]>);

impl<'a> Arguments<'a> {
    pub(super) fn of(request: &'a Request) -> Self {
        Self(request.arguments())
    }

    /// The arguments of a call within another one.
    pub(super) fn within(arguments: &'a [u8]) -> Self {
        Self(Some(arguments))
    }

    /// The members of the object at a key; empty if there is no object.
    pub(super) fn object(&self, key: &str) -> Self {
        Self(self.raw(key).filter(|value| value.starts_with(b"{")))
    }

    fn find(&self, key: &str) -> Option<(&'a [u8], Span)> {
        let bytes = self.0?;
        Some((bytes, Members::find(bytes, &(0..bytes.len()), key)?))
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// The raw JSON at a key.
    pub(super) fn raw(&self, key: &str) -> Option<&'a [u8]> {
        self.find(key).map(|(bytes, span)| &bytes[span])
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        string_value(self.raw(key)?).map(Cow::into_owned).filter(|text| !text.trim().is_empty())
    }

    /// The error for a key without a text. `what` says what the text should be.
    pub(super) fn missing(&self, key: &str, what: &str) -> String {
        self.wrong_text(key, what).unwrap_or_else(|| format!("{key:?} is missing: {what}"))
    }

    /// The error for a key whose value is no text; `None` if it is one, or there is no value.
    pub(super) fn wrong_text(&self, key: &str, what: &str) -> Option<String> {
        match self.raw(key)? {
            b"null" => None,
            value if !value.starts_with(b"\"") => Some(format!("{key:?} must be a text: {what}")),
            value if string_value(value).is_none() => {
                Some(format!("{key:?} has half of a surrogate pair, which is no character: {what}"))
            }
            _ => None,
        }
    }

    /// The text at a key; an error if it is longer than `limit`.
    pub(super) fn text_within(&self, key: &'static str, limit: usize) -> Result<Option<String>, TooLong> {
        // Each character takes up to six bytes when it is escaped.
        let raw = self.raw(key).unwrap_or_default();
        if raw.len() > 2 + 6 * limit {
            return Err(TooLong::text(key, raw.len(), limit));
        }
        let text = self.text(key);
        text.as_deref().map_or(Ok(()), |text| size_limit::check_length(key, text, limit))?;
        Ok(text)
    }

    /// An error about missing arguments, and the keys that a built-in tool does not know: one of them may be what was
    /// meant. `also` are keys that it accepts beside its parameters.
    pub(super) fn with_unknown(&self, missing: &str, tool: BuiltinTool, also: &[&str]) -> String {
        let unknown = self.unknown(tool, also);
        if unknown.is_empty() { missing.to_owned() } else { format!("{missing}\n{unknown}") }
    }

    /// The sentences about keys that a built-in tool does not know.
    pub(super) fn unknown(&self, tool: BuiltinTool, also: &[&str]) -> String {
        let known = tool.parameters();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let bytes = self.0.unwrap_or_default();
        let keys = Members::of(bytes, &(0..bytes.len())).flatten().map(|member| member.key);
        let unknown: Vec<_> =
            keys.filter(|key| !known.contains(&&**key) && !also.contains(&&**key)).take(UNKNOWN).collect();
        no_parameters(unknown.iter().map(AsRef::as_ref), &known)
    }

    /// The names at these keys, each once: one text or a list of them, each split by `parts`.
    pub(super) fn names(
        &self,
        keys: &[&'static str],
        parts: impl Fn(&str) -> Vec<String>,
    ) -> Result<Vec<String>, TooLong> {
        let (mut names, mut known, mut count) = (Vec::new(), HashSet::new(), 0);
        for key in keys {
            let length = self.raw(key).map_or(0, <[u8]>::len);
            if length > size_limit::ALL_NAMES {
                return Err(TooLong::text(key, length, size_limit::ALL_NAMES));
            }
            for name in self.texts(key).iter().flat_map(|text| parts(text)) {
                size_limit::check_length(key, &name, size_limit::NAME)?;
                count += 1;
                if known.insert(name.clone()) {
                    names.push(name);
                }
            }
            size_limit::check_names(key, count)?;
        }
        Ok(names)
    }

    pub(super) fn whole(&self, key: &str) -> Option<usize> {
        let number = std::str::from_utf8(self.raw(key)?).ok()?.trim_matches('"');
        number.strip_suffix(".0").unwrap_or(number).parse().ok()
    }

    /// The same for a number that may be left out; an error if the value is no whole number.
    pub(super) fn optional_whole(&self, key: &str) -> Result<Option<usize>, String> {
        match self.raw(key) {
            None | Some(b"null") => Ok(None),
            Some(_) => {
                self.whole(key).map(Some).ok_or_else(|| format!("{key:?} must be a whole number above 0"))
            }
        }
    }

    pub(super) fn is_true(&self, key: &str) -> bool {
        self.raw(key).is_some_and(|value| matches!(value, b"true" | b"\"true\"" | b"\"full\""))
    }

    /// The same for a flag that may be left out; an error if the value is no flag.
    pub(super) fn optional_flag(&self, key: &str) -> Result<bool, String> {
        match self.raw(key) {
            None | Some(b"null" | b"false" | b"\"false\"" | b"\"brief\"") => Ok(false),
            Some(_) if self.is_true(key) => Ok(true),
            Some(_) => Err(format!("{key:?} must be true or false")),
        }
    }

    /// The texts at a key: one, or a list of them.
    pub(super) fn texts(&self, key: &str) -> Vec<String> {
        let one = self.text(key);
        let many = self.find(key).map(|(bytes, span)| {
            elements(bytes, &span)
                .into_iter()
                .filter_map(|span| Some(string_value(&bytes[span])?.into_owned()))
        });
        one.into_iter().chain(many.into_iter().flatten()).collect()
    }
}

/// Splits a text at its commas.
pub(super) fn by_commas(text: &str) -> Vec<String> {
    text.split(',').map(|name| name.trim().to_owned()).collect()
}
