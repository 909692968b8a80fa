//! Durations ("30s") and sizes ("16MiB") in human-readable form.

use std::{borrow::Cow, ops::RangeInclusive, time::Duration};

use jsonc_parser::{ast::Value, common::Ranged};
use plugbay_core::limit::{Rate, RateError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{
    diagnostic::quote,
    read::{Read, mismatch},
    report::Report,
};

/// Longest duration: longer than anyone waits, short enough to be added to any clock.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A duration that must be longer than zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit(pub(super) Duration);

/// A waiting time, which may be zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait(pub(super) Duration);

/// Like [`Wait`], or "never", which is `None`.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitOrNever(pub(super) Option<Duration>);

/// A time limit in the form of hosts: a number of milliseconds. No host means a limit below a second, but
/// Cline and Goose count in seconds, so a number below 1000 counts as seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostLimit(pub(super) Duration);

/// A time limit that is always in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Milliseconds(pub(super) Duration);

/// A sensible limit for the size of messages, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageSize(pub(super) usize);

/// A sensible limit for the length of exposed names.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameLength(pub(super) usize);

/// A number of calls per period.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallRate(pub(super) Rate);

impl Read for CallRate {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        match String::read(value, report)?.parse() {
            Ok(rate) => Some(Self(rate)),
            Err(error) => {
                let error: RateError = error;
                report.invalid(value.range(), &not_a(value, "limit of calls"), error.to_string());
                None
            }
        }
    }
}

/// A TCP port number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Port(pub(super) u16);

impl Read for Port {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let Some(port) = number(value) else {
            mismatch(value, "a number", report);
            return None;
        };
        let port = whole(value, port, 1..=u16::MAX.into(), "write a port from 1 to 65535", report)?;
        u16::try_from(port).ok().map(Self)
    }
}

/// A count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count(pub(super) usize);

impl Count {
    const MOST: u32 = 1_000_000;
}

/// A sensible number of tools for a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hits(pub(super) usize);

impl Hits {
    const MOST: u32 = 50;
}

/// A number of processes that a machine can run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Processes(pub(super) usize);

impl Processes {
    const MOST: u32 = 1000;
}

impl NameLength {
    /// Below this, a server's name and the mark of a shortened tool name do not fit.
    const LEAST: u32 = 48;
    const MOST: u32 = 128;
}

impl MessageSize {
    const LEAST: u32 = 1024;
    const MOST: u32 = 1024 * 1024 * 1024;
}

impl Read for Wait {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        duration(value, 1.0, report).map(Self)
    }
}

impl Read for Limit {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        more_than_nothing(value, duration(value, 1.0, report)?, report).map(Self)
    }
}

impl Read for WaitOrNever {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        match value {
            Value::StringLit(text) if text.value == "never" => Some(Self(None)),
            value => duration(value, 1.0, report).map(|duration| Self(Some(duration))),
        }
    }
}

impl Read for HostLimit {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let is_seconds = number(value).is_some_and(|number| number < 1000.0);
        let unit = if is_seconds { 1.0 } else { 0.001 };
        more_than_nothing(value, duration(value, unit, report)?, report).map(Self)
    }
}

impl Read for Milliseconds {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        more_than_nothing(value, duration(value, 0.001, report)?, report).map(Self)
    }
}

impl Read for MessageSize {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let bytes = match value {
            Value::StringLit(text) => parse_size(&text.value),
            Value::NumberLit(_) => number(value),
            _ => {
                mismatch(value, "a size such as \"16MiB\"", report);
                return None;
            }
        };
        let Some(bytes) = bytes else {
            report.invalid(value.range(), &not_a(value, "size"), "write it like \"512KiB\" or \"16MiB\"");
            return None;
        };
        whole(value, bytes, Self::LEAST..=Self::MOST, "write a size from 1KiB to 1GiB", report).map(Self)
    }
}

impl Read for NameLength {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let Some(length) = number(value) else {
            mismatch(value, "a number", report);
            return None;
        };
        whole(value, length, Self::LEAST..=Self::MOST, "write a number from 48 to 128", report).map(Self)
    }
}

impl Read for Count {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let Some(count) = number(value) else {
            mismatch(value, "a number", report);
            return None;
        };
        whole(value, count, 0..=Self::MOST, "write a whole number", report).map(Self)
    }
}

impl Read for Hits {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let Some(count) = number(value) else {
            mismatch(value, "a number", report);
            return None;
        };
        whole(value, count, 1..=Self::MOST, "write a number from 1 to 50", report).map(Self)
    }
}

impl Read for Processes {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let Some(count) = number(value) else {
            mismatch(value, "a number", report);
            return None;
        };
        whole(value, count, 1..=Self::MOST, "write a number from 1 to 1000", report).map(Self)
    }
}

fn duration(value: &Value<'_>, unit: f64, report: &mut Report<'_>) -> Option<Duration> {
    let seconds = match value {
        Value::StringLit(text) => parse_seconds(&text.value),
        Value::NumberLit(_) => number(value).map(|number| number * unit),
        _ => {
            mismatch(value, "a duration such as \"30s\"", report);
            return None;
        }
    };
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    if let Some(duration) = duration.filter(|duration| *duration <= LONGEST) {
        return Some(duration);
    }
    let message = if duration.is_some() { "longer than a year".into() } else { not_a(value, "duration") };
    report.invalid(value.range(), &message, "write it like \"500ms\", \"30s\", \"5m\" or \"1h\"");
    None
}

fn more_than_nothing(value: &Value<'_>, duration: Duration, report: &mut Report<'_>) -> Option<Duration> {
    if duration.is_zero() {
        report.invalid(value.range(), "must be longer than zero", "write it like \"30s\"");
        return None;
    }
    Some(duration)
}

/// `number` as a whole number within `range`, whose ends are small enough for exact arithmetic.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(
    value: &Value<'_>,
    number: f64,
    range: RangeInclusive<u32>,
    help: &str,
    report: &mut Report<'_>,
) -> Option<usize> {
    let is_within = (f64::from(*range.start())..=f64::from(*range.end())).contains(&number);
    if number.fract() == 0.0 && is_within {
        return Some(number as usize);
    }
    report.invalid(value.range(), &not_a(value, "whole number in range"), help);
    None
}

fn not_a(value: &Value<'_>, what: &str) -> String {
    match value {
        Value::StringLit(text) => format!("{} is not a {what}", quote(&text.value)),
        Value::NumberLit(number) => format!("{} is not a {what}", quote(number.value)),
        _ => format!("this is not a {what}"),
    }
}

pub(super) fn number(value: &Value<'_>) -> Option<f64> {
    let Value::NumberLit(number) = value else {
        return None;
    };
    number.value.parse().ok()
}

/// Reads a duration on the command line: more than zero, and at most a year.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let seconds = parse_seconds(text).ok_or("write a number and a unit (ms, s, m or h), for example 90s")?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    let is_sensible = !duration.is_zero() && duration <= LONGEST;
    is_sensible.then_some(duration).ok_or_else(|| "must be more than zero and at most a year".to_owned())
}

/// Reads `500ms`, `30s`, `5m` or `1h`; a bare number is seconds.
fn parse_seconds(text: &str) -> Option<f64> {
    let (number, unit) = split_unit(text)?;
    let unit = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(number * unit)
}

pub(super) fn parse_size(text: &str) -> Option<f64> {
    let (number, unit) = split_unit(text)?;
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number * unit)
}

fn split_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim_start()))
}

macro_rules! schema {
    ($($name:ident: $schema:tt)*) => {$(
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

const DURATION: &str = r"^\s*\d+(\.\d+)?\s*(ms|s|m|h)?\s*$";

schema! {
    Limit: { "type": ["string", "number"], "pattern": DURATION, "exclusiveMinimum": 0 }
    Wait: { "type": ["string", "number"], "pattern": DURATION, "minimum": 0 }
    WaitOrNever: { "type": ["string", "number"], "pattern": format!("{DURATION}|^never$"), "minimum": 0 }
    HostLimit: { "type": ["string", "number"], "pattern": DURATION, "exclusiveMinimum": 0 }
    Milliseconds: { "type": ["string", "number"], "pattern": DURATION, "exclusiveMinimum": 0 }
    MessageSize: {
        "type": ["string", "integer"],
        "pattern": r"^\s*\d+(\.\d+)?\s*([kKmMgG]([iI]?[bB])?|[bB])?\s*$",
        "minimum": MessageSize::LEAST,
        "maximum": MessageSize::MOST,
    }
    CallRate: { "type": "string", "pattern": r"^\s*[1-9]\d*\s*/\s*(s|sec|second|m|min|minute|h|hour|d|day)\s*$" }
    Count: { "type": "integer", "minimum": 0, "maximum": Count::MOST }
    Port: { "type": "integer", "minimum": 1, "maximum": u16::MAX }
    Hits: { "type": "integer", "minimum": 1, "maximum": Hits::MOST }
    Processes: { "type": "integer", "minimum": 1, "maximum": Processes::MOST }
    NameLength: { "type": "integer", "minimum": NameLength::LEAST, "maximum": NameLength::MOST }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_durations_are_parsed_with_their_units() {
        let read = |text| parse_duration(text).ok().map(|duration| duration.as_millis());
        assert_eq!(
            ["250ms", "90", "1.5s", "5m", "1h"].map(read),
            [250, 90_000, 1500, 300_000, 3_600_000].map(Some)
        );
        assert_eq!(["", "0s", "soon", "5 years", "-1s", "9999999h"].map(read), [None; 6]);
    }

    #[test]
    fn durations_and_sizes() {
        let seconds = [
            ("500ms", Some(0.5)),
            ("30s", Some(30.0)),
            ("1.5 m", Some(90.0)),
            ("1h", Some(3600.0)),
            ("7", Some(7.0)),
            ("", None),
            ("s", None),
            ("-1s", None),
            ("1d", None),
            ("1e3s", None),
            ("1.2.3s", None),
            ("inf", None),
        ];
        for (text, expected) in seconds {
            assert_eq!(parse_seconds(text), expected, "{text}");
        }
        let sizes = [
            ("16MiB", Some(16_777_216.0)),
            ("1 kb", Some(1000.0)),
            ("64K", Some(65_536.0)),
            ("12", Some(12.0)),
            ("0x10", None),
            ("lots", None),
        ];
        for (text, expected) in sizes {
            assert_eq!(parse_size(text), expected, "{text}");
        }
    }
}
