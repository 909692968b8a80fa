//! The parameters of a calling tool itself: how long a call may take, and which part of its result is wanted.

use std::time::Duration;

use super::{FILTER, Kind, Mode, NoCall, Opened, Problem, TIMEOUT, scalar, shown, string_value};

/// The calling tool's own parameters.
pub(super) struct Own {
    pub(super) timeout: Option<Duration>,
    pub(super) filter: Option<String>,
}

impl Opened<'_> {
    pub(super) fn timeout(&mut self) -> Result<Option<Duration>, NoCall> {
        let Some(entry) = self.take(TIMEOUT) else { return Ok(None) };
        let kind = Kind::of(&entry.value);
        if kind == Kind::Null {
            return Ok(None);
        }
        if let Some(timeout) = seconds(&entry.value) {
            return Ok(Some(timeout));
        }
        let converted = scalar::convert("number", &entry.value).filter(|_| self.mode == Mode::Repair);
        if let Some((timeout, fault)) = converted.and_then(|(json, fault)| Some((seconds(&json)?, fault))) {
            self.note(TIMEOUT, fault);
            return Ok(Some(timeout));
        }
        let message = format!("`{TIMEOUT}` must be a number of seconds; it is {}", shown(&entry.value));
        Err(Problem { example: Some("30".to_owned()), ..Problem::root(&message) }.into())
    }

    pub(super) fn filter(&mut self) -> Result<Option<String>, NoCall> {
        let Some(entry) = self.take(FILTER) else { return Ok(None) };
        if matches!(&*entry.value, b"null" | b"\"\"") {
            return Ok(None);
        }
        let message = || format!("`{FILTER}` must be a jq filter in a string; it is {}", shown(&entry.value));
        let wrong = || Problem { example: Some("\".items[:5]\"".to_owned()), ..Problem::root(&message()) };
        filter_in(&entry.value).map(Some).ok_or_else(|| wrong().into())
    }
}

pub(super) fn seconds(json: &[u8]) -> Option<Duration> {
    let seconds: f64 = std::str::from_utf8(json).ok()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero())
}

pub(super) fn filter_in(json: &[u8]) -> Option<String> {
    let filter = string_value(json)?;
    (!filter.trim().is_empty()).then(|| filter.into_owned())
}
