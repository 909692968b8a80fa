//! The arguments of a tool call: checked against the tool's schema, and repaired where only one thing can be meant.
//!
//! Arguments that fit are not touched. A repair keeps every right value byte for byte and is reported. Arguments
//! that cannot be repaired are refused with the place, the part of the schema, and an example. Unknown keywords are
//! left to the server, which checks again. So are checks that would take too long: the arguments are sent as
//! they are. A key that is nearly one of the schema's does not fit, unless the schema allows others.

mod compiled;
mod decimal;
mod envelope;
mod example;
mod explain;
mod keywords;
mod literal;
mod pattern;
mod quick;
mod raw;
mod refusal;
mod repair;
mod scalar;
mod schema;
mod shape;
mod spelling;
mod validate;

use std::{borrow::Cow, fmt, sync::Arc};

use serde::Serialize;
use serde_json::Value;

pub use compiled::CompiledSchema;
pub use envelope::{Call, Envelope, NoCall, ResolveTool, ResolvedTool, unwrap_call};
pub use explain::no_parameters;
pub use refusal::{Problem, Refusal};

use self::{repair::Repairer, schema::Schema};
use crate::text::quoted;

/// Whether arguments may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    Repair,
    /// Arguments that do not fit are refused.
    CheckOnly,
}

/// Arguments that fit their schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedArguments<'a> {
    /// The arguments as they came, if they were right.
    pub arguments: Cow<'a, [u8]>,
    pub repairs: Vec<Repair>,
}

/// One repair of arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The place, such as `filter.tags[0]`; empty for the arguments as a whole.
    #[serde(rename = "at")]
    pub place: String,
    #[serde(rename = "was")]
    pub fault: Fault,
}

/// What was wrong with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// JSON, written into a string.
    JsonInString,
    /// The same as Python or JavaScript write it.
    LiteralInString,
    /// One object too many around it: `{"arguments": …}`.
    Nested,
    /// One object too few: the members of the only parameter that is needed, without its name.
    Shallow,
    /// Parameters beside the tool's name instead of below `arguments`.
    Flattened,
    /// A remark beside the call that is no parameter of anything; it is not sent.
    Remark,
    /// The server's name apart from the tool's.
    ServerApart,
    /// No arguments at all, for a tool that needs none.
    Missing,
    NumberInString,
    BooleanInString,
    /// A number or a boolean where text belongs.
    BareText,
    /// 0 or 1 for a boolean.
    NumberForBoolean,
    /// `"null"` for null.
    NullInString,
    /// A key in another case or with other separators.
    KeySpelling,
    /// One of the allowed values in another case or with other separators.
    ValueSpelling,
    /// One value where a list belongs.
    SingleForList,
    /// A list of one where a value belongs.
    ListForSingle,
    /// Null for something that could have been left out.
    NullForAbsent,
    /// The value of the only parameter, without its name.
    BareParameter,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() { "arguments" } else { &self.place };
        write!(f, "{place}: {}", self.fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::JsonInString => "JSON in a string",
            Self::LiteralInString => "a literal of another language in a string",
            Self::Nested => "nested too deep",
            Self::Shallow => "not nested deep enough",
            Self::Flattened => "not below arguments",
            Self::Remark => "a remark, left out",
            Self::ServerApart => "without its server",
            Self::Missing => "missing",
            Self::NumberInString => "a number in a string",
            Self::BooleanInString => "a boolean in a string",
            Self::BareText => "text without quotes",
            Self::NumberForBoolean => "a number for a boolean",
            Self::NullInString => "null in a string",
            Self::KeySpelling => "key spelt differently",
            Self::ValueSpelling => "value spelt differently",
            Self::SingleForList => "a single value for a list",
            Self::ListForSingle => "a list for a single value",
            Self::NullForAbsent => "null for an absent value",
            Self::BareParameter => "a value without its name",
        })
    }
}

/// The call in outer arguments if one quick pass shows that it is right. `None`: only [`unwrap_call`] and
/// [`Call::checked`] can tell, which may take long.
pub fn quick_call<'a, T>(
    outer: &'a [u8],
    envelope: Envelope,
    resolve: ResolveTool<'_, T>,
) -> Option<Call<'a, T>> {
    envelope::plain_call(outer, envelope, resolve).filter(|call| {
        call.tool.schema.as_ref().is_some_and(|schema| quick::accepts(schema, &call.arguments))
    })
}

/// Arguments with more values than this are not examined closely.
const MOST_VALUES: usize = 20_000;

/// Checks arguments against a tool's schema, and repairs them if the mode allows it. What would take too long
/// is not checked: then only the server can refuse it.
pub fn check<'a>(
    schema: &CompiledSchema,
    arguments: &'a [u8],
    mode: Mode,
) -> Result<CheckedArguments<'a>, Refusal> {
    if quick::accepts(schema, arguments) || raw::has_more_values(arguments, MOST_VALUES) {
        return Ok(CheckedArguments { arguments: Cow::Borrowed(arguments), repairs: Vec::new() });
    }
    check_fully(schema, arguments, mode)
}

fn check_fully<'a>(
    schema: &CompiledSchema,
    arguments: &'a [u8],
    mode: Mode,
) -> Result<CheckedArguments<'a>, Refusal> {
    if !raw::is_json(arguments) {
        return Err(Refusal::new(vec![Problem::root("the arguments are not JSON, or nested too deep")]));
    }
    if let Some(key) = raw::doubled(arguments) {
        return Err(Refusal::new(vec![Problem::root(&format!(
            "{} stands twice in the arguments",
            quoted(&key)
        ))]));
    }
    let schema = Schema::new(Arc::clone(&schema.parsed));
    schema.look_at(arguments.len());
    if is_right(&schema, schema.root(), arguments) && !shape::is_hidden(&schema, arguments) {
        return Ok(CheckedArguments { arguments: Cow::Borrowed(arguments), repairs: Vec::new() });
    }
    let mut repairer = Repairer::new(&schema, mode);
    let fitting = repairer.arguments(arguments).map_err(Refusal::new)?;
    // The check has the last word: nothing that it does not accept is ever sent.
    schema.look_at(fitting.len());
    if mode == Mode::CheckOnly
        || raw::doubled(&fitting).is_some()
        || !is_right(&schema, schema.root(), &fitting)
    {
        return Err(Refusal::new(vec![Problem::of(&schema, schema.root(), "", "the arguments do not fit")]));
    }
    Ok(CheckedArguments { arguments: fitting, repairs: repairer.repairs })
}

/// Whether a value fits, and no key in it is spelt so that it would be lost.
fn is_right(schema: &Schema, at: &Value, json: &[u8]) -> bool {
    validate::fits(schema, at, json) && spelling::is_clean(schema, &[at], json)
}

#[cfg(test)]
mod differential;
#[cfg(test)]
mod tests;
