//! The results that are answered with an outline, according to the configuration.

use std::borrow::Cow;

use jsonc_parser::{ast::Value, common::Ranged};
use plugbay_core::{
    fit::{ResultRules, Threshold},
    policy::Patterns,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{
    read::{Read, as_object, mismatch, object},
    report::Report,
    units::{number, parse_size},
};

/// About how many bytes a token has.
const BYTES: f64 = 4.0;
/// The smallest and the largest useful threshold, in bytes.
const LEAST: f64 = 2_000.0;
const MOST: f64 = 1024.0 * 1024.0 * 1024.0;

object! {
    /// Large results of a server's tools.
    pub(super) struct Results {
        /// A larger result is answered with an outline and a handle, if the host called the tool through `execute_tool` or a suite: a size such as `"32KB"`, a number of bytes, `"8000 tokens"`, or `false` for never. Default: what the host takes, at most 20000 bytes.
        "threshold" => threshold: Size,
        /// The same for some tools: a tool's own name, or a pattern such as `read_*` → a size or `false`. The first that matches counts.
        "tools" => tools: ToolSizes,
        /// `true`: also for tools that the host lists and calls by name; it then lists `read_result` too. Default `false`.
        "listed" => listed: bool,
    }
    ignored: []
}

impl Results {
    pub(super) fn rules(self) -> ResultRules {
        ResultRules {
            threshold: self.threshold.map(|size| size.0),
            tools: self.tools.map(|tools| tools.0).unwrap_or_default(),
            listed: self.listed.unwrap_or_default(),
        }
    }
}

/// A size threshold, or never.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size(Threshold);

impl Read for Size {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range")]
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let bytes = match value {
            Value::BooleanLit(flag) if !flag.value => return Some(Self(Threshold::Whole)),
            Value::StringLit(text) => size(&text.value),
            Value::NumberLit(_) => number(value),
            _ => {
                mismatch(value, "a size such as \"32KB\", or false", report);
                return None;
            }
        };
        let Some(bytes) = bytes.filter(|bytes| (LEAST..=MOST).contains(bytes)) else {
            let help = "write a size from 2000 bytes to 1GiB, such as \"32KB\" or \"8000 tokens\"";
            report.invalid(value.range(), "not a size for results", help);
            return None;
        };
        Some(Self(Threshold::Above(bytes as usize)))
    }
}

fn size(text: &str) -> Option<f64> {
    match text.trim().strip_suffix("tokens") {
        Some(tokens) => tokens.trim().parse::<f64>().ok().map(|tokens| tokens * BYTES),
        None => parse_size(text),
    }
}

/// Sizes by pattern, in the order of the file.
#[derive(Debug, Clone)]
pub(super) struct ToolSizes(Vec<(Patterns, Threshold)>);

impl Read for ToolSizes {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let mut sizes = Vec::new();
        for property in &as_object(value, report)?.properties {
            let pattern = property.name.as_str();
            let size = report.under(pattern, |report| Size::read(&property.value, report));
            match Patterns::compile([pattern]) {
                Ok(patterns) => sizes.extend(size.map(|size| (patterns, size.0))),
                Err(error) => report.invalid(property.range(), "not a pattern", error.to_string()),
            }
        }
        Some(Self(sizes))
    }
}

fn size_schema() -> Schema {
    json_schema!({ "type": ["string", "integer", "boolean"], "minimum": 2000 })
}

impl JsonSchema for Size {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        size_schema()
    }
}

impl JsonSchema for ToolSizes {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ToolSizes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": size_schema() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_of_results_are_sizes_or_tokens() {
        let read = |text| size(text).filter(|bytes| (LEAST..=MOST).contains(bytes));
        assert_eq!(
            ["32KB", "16KiB", "8000 tokens", "500tokens", "1 B", "many", "-5 tokens"].map(read),
            [Some(32_000.0), Some(16_384.0), Some(32_000.0), Some(2_000.0), None, None, None]
        );
    }
}
