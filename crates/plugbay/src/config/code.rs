//! `code`: whether models may write scripts, and under which terms.

use std::borrow::Cow;

use jsonc_parser::ast::Value;
use plugbay_core::surface::{CodeSettings, Effect};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{
    read::{Read, mismatch, object},
    report::Report,
    units::Limit,
    word::{Choice, Word},
};

object! {
    /// How scripts of models are run.
    pub(super) struct Code {
        /// `false`: only servers in mode `code` have it. Default `true`.
        "offer" => offer: bool,
        /// Before which calls of a script the user is asked: `never`, `destructive` for those that may change or delete something, `writes` also for those that add something. Default `never`: hosts show the script, and ask as they do for other tools.
        "ask" => ask: Word<Ask>,
        /// After how long a run is stopped; it goes on with `resume`. Default `"50s"`.
        "time" => time: Limit,
    }
    ignored: []
}

/// Whether `run_code` is offered, and how it works.
#[derive(Debug, Clone)]
pub(super) enum CodeChoice {
    Off,
    On(Code),
}

/// Which calls of scripts the user is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Never,
    Destructive,
    Writes,
}

impl Choice for Ask {
    const WORDS: &'static [(&'static str, Self)] =
        &[("never", Self::Never), ("destructive", Self::Destructive), ("writes", Self::Writes)];
}

impl Ask {
    /// The strongest effect of calls that the user is not asked about.
    fn unasked(self) -> Effect {
        match self {
            Self::Never => Effect::Destroys,
            Self::Destructive => Effect::Writes,
            Self::Writes => Effect::Reads,
        }
    }
}

impl CodeChoice {
    /// The settings of this file, laid over those of an earlier one.
    pub(super) fn over(&self, earlier: CodeSettings) -> CodeSettings {
        let Self::On(code) = self else { return CodeSettings { offered: false, ..earlier } };
        // A project's file may make plugbay ask the user more often, never less.
        let unasked = code.ask.map_or(earlier.unasked, |Word(ask)| ask.unasked().min(earlier.unasked));
        let patience = code.time.map_or(earlier.patience, |time| time.0);
        CodeSettings { offered: code.offer.unwrap_or(true), unasked, patience }
    }
}

impl Read for CodeChoice {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        match value {
            Value::BooleanLit(on) if on.value => Some(Self::On(Code::default())),
            Value::BooleanLit(_) => Some(Self::Off),
            Value::Object(_) => Code::read(value, report).map(Self::On),
            _ => {
                mismatch(value, "true, false or an object", report);
                None
            }
        }
    }
}

impl JsonSchema for CodeChoice {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "CodeChoice".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let settings = generator.subschema_for::<Code>();
        json_schema!({ "anyOf": [{ "type": "boolean" }, settings] })
    }
}
