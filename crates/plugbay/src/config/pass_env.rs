//! `passEnv`: the variables of plugbay's own environment that a server gets in addition to the usual ones.

use std::{borrow::Cow, collections::BTreeSet, ffi::OsString};

use jsonc_parser::{ast::Value, common::Ranged};
use plugbay_core::policy::Patterns;
use plugbay_upstream::spec::Transport;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{
    Diagnostic, Settings, Severity,
    diagnostic::quote,
    read::{Read, mismatch},
    report::Report,
};

/// The prefix of plugbay's own variables, which are passed on only by their full names.
const OWN: &str = "PLUGBAY_";

/// Names of variables, and patterns such as `AWS_*`.
#[derive(Debug, Clone, Default)]
pub(super) struct PassEnv(pub(super) Vec<String>);

impl PassEnv {
    /// The variables of both.
    pub(super) fn and(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(Self([one.0, other.0].concat())),
            (one, other) => one.or(other),
        }
    }

    /// Sorts the variables, so that their order in the file does not matter.
    pub(super) fn sorted(mut self) -> Vec<String> {
        self.0.sort();
        self.0.dedup();
        self.0
    }
}

impl Read for PassEnv {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        Some(Self(Vec::<Variable>::read(value, report)?.into_iter().map(|variable| variable.0).collect()))
    }
}

impl JsonSchema for PassEnv {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PassEnv".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<String>::json_schema(generator)
    }
}

/// A name or a pattern.
struct Variable(String);

impl Read for Variable {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let name = match value {
            // Codex also accepts { "name": "X", "source": "local" }.
            Value::Object(object) => object.get_string("name").map(|name| name.value.clone().into_owned()),
            Value::StringLit(text) => Some(text.value.clone().into_owned()),
            _ => None,
        };
        let Some(name) = name else {
            mismatch(value, "a string", report);
            return None;
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_*?".contains(c);
        if name.is_empty() || !name.chars().all(is_plain) {
            let help = "write names alone, with `*` for any characters: \"AWS_*\"; values belong into `env`";
            report.invalid(value.range(), "not the name of a variable", help);
            return None;
        }
        Some(Self(name))
    }
}

impl Settings {
    /// Gives each server those of `variables` that its `passEnv` names. Variables in its entry have
    /// precedence.
    ///
    /// A value becomes part of the server's launch. With another token a server may offer other tools, so the
    /// cache for the former one must not be used.
    #[must_use]
    pub fn with_passed(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let (mut text, mut odd): (Vec<(String, String)>, Vec<String>) = (Vec::new(), Vec::new());
        for (name, value) in variables {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => text.push((name, value)),
                Err(_) => odd.push(name),
            }
        }
        let mut lost: BTreeSet<&String> = BTreeSet::new();
        for spec in self.servers.iter_mut().filter_map(|server| server.spec.as_mut().ok()) {
            let Transport::Stdio(stdio) = &mut spec.transport else { continue };
            let Ok(patterns) = Patterns::compile(&stdio.pass_env) else { continue };
            lost.extend(odd.iter().filter(|name| patterns.matches(name)));
            for (name, value) in &text {
                let own = name.starts_with(OWN) && !stdio.pass_env.contains(name);
                // Some shells execute such values as code.
                if patterns.matches(name) && !own && !value.starts_with("()") {
                    stdio.env.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
        }
        let place = self.sources.first().cloned().unwrap_or_default();
        self.diagnostics.extend(lost.into_iter().map(|name| {
            let message = format!("the variable {} is not UTF-8 text, so no server gets it", quote(name));
            Diagnostic::of_file(
                Severity::Warning,
                &place,
                message,
                "give it another value, or write it in `env`",
            )
        }));
        self
    }

    /// The names of the variables that a server may have got through a pattern.
    pub fn passed(&self) -> impl Iterator<Item = String> {
        let specs = self.servers.iter().filter_map(|server| server.spec.as_ref().ok());
        let stdio = specs.filter_map(|spec| match &spec.transport {
            Transport::Stdio(stdio) if !stdio.pass_env.is_empty() => Some(stdio),
            _ => None,
        });
        stdio.flat_map(|stdio| stdio.env.keys().cloned())
    }
}
