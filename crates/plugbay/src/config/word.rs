//! Settings whose value is one of a few words.

use std::borrow::Cow;

use jsonc_parser::{ast::Value, common::Ranged};
use plugbay_core::{era::Era, exposure::Mode, profile::Shows, scope::Scope, start::Warm};
use plugbay_upstream::spec::{Framing, HttpFlavour};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{
    diagnostic::quote,
    read::{Read, nearest},
    report::Report,
};

/// A value that is written as one of a few words.
pub(super) trait Choice: Copy + 'static {
    const WORDS: &'static [(&'static str, Self)];
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Word<T>(pub(super) T);

/// The transport of a server, in the words of various hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Process,
    Http(HttpFlavour),
}

/// Whose model is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    Remote(plugbay_model::Provider),
    Host,
}

/// How much of its tools a server's overview shows, in Switchboard's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    Summary,
    Full,
}

impl Choice for Detail {
    const WORDS: &'static [(&'static str, Self)] = &[("summary", Self::Summary), ("full", Self::Full)];
}

impl Choice for Provider {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("anthropic", Self::Remote(plugbay_model::Provider::Anthropic)),
        ("gemini", Self::Remote(plugbay_model::Provider::Gemini)),
        ("openai", Self::Remote(plugbay_model::Provider::OpenAi)),
        ("host", Self::Host),
    ];
}

/// `auto` means `None`: the mode that fits each host.
impl Choice for Option<Mode> {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", None),
        ("all", Some(Mode::All)),
        ("search", Some(Mode::Search)),
        ("activate", Some(Mode::Activate)),
        ("suite", Some(Mode::Suite)),
        ("code", Some(Mode::Code)),
    ];
}

impl Choice for Option<Scope> {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", None),
        ("shared", Some(Scope::Shared)),
        ("project", Some(Scope::Project)),
        ("session", Some(Scope::Session)),
    ];
}

impl Choice for Shows {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("text", Self::Text),
        ("structured", Self::Structured),
        ("both", Self::Both),
        ("unknown", Self::Unknown),
    ];
}

impl Choice for Era {
    const WORDS: &'static [(&'static str, Self)] = &[("legacy", Self::Legacy), ("modern", Self::Modern)];
}

impl Choice for Warm {
    const WORDS: &'static [(&'static str, Self)] =
        &[("always", Self::Always), ("fresh", Self::Fresh), ("never", Self::Never)];
}

impl Choice for Framing {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("newline", Self::Newline), ("content-length", Self::ContentLength)];
}

impl Choice for Reach {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("stdio", Self::Process),
        ("local", Self::Process),
        ("http", Self::Http(HttpFlavour::Streamable)),
        ("sse", Self::Http(HttpFlavour::Sse)),
        ("streamable-http", Self::Http(HttpFlavour::Streamable)),
        ("streamable_http", Self::Http(HttpFlavour::Streamable)),
        ("streamableHttp", Self::Http(HttpFlavour::Streamable)),
        ("remote", Self::Http(HttpFlavour::Auto)),
    ];
}

impl<T: Choice> Read for Word<T> {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let text = String::read(value, report)?;
        if let Some((_, choice)) = T::WORDS.iter().find(|(word, _)| *word == text) {
            return Some(Self(*choice));
        }
        let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        let available = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(", ");
        let help = match nearest(&text, &words) {
            Some(near) => format!("did you mean {}?", quote(near)),
            None => format!("available: {available}"),
        };
        report.invalid(value.range(), &format!("unknown value {}", quote(&text)), help);
        None
    }
}

impl<T: Choice> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}
