//! Scripts of models as the rest of the program sees them: their calls, the answers, and how a script ends.

use std::{fmt, pin::Pin};

use bytes::Bytes;

/// Runs scripts.
pub trait Scripts: Send + Sync + fmt::Debug {
    /// Starts a script.
    fn start(&self, script: Script) -> ScriptFuture<'_, Result<Box<dyn RunningScript>, ScriptError>>;

    /// Reads which tools a script names, without running it.
    fn reach(&self, code: String) -> ScriptFuture<'_, Result<Reach, ScriptError>>;
}

pub type ScriptFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A script that runs. Dropping it ends it.
pub trait RunningScript: Send {
    /// What it does next. Nothing is lost if the future is dropped.
    fn next(&mut self) -> ScriptFuture<'_, ScriptEvent>;

    /// Answers the call of this number.
    fn answer(&mut self, call: u32, answer: ScriptAnswer);
}

/// A script. The same one, with the same answers in the same order, makes the same calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// JavaScript or TypeScript.
    pub code: String,
    /// A JSON text, or nothing.
    pub input: Bytes,
    /// The seed of its random numbers.
    pub seed: u64,
    /// The constant time of its clock: milliseconds since 1970.
    pub now: i64,
}

/// What a script does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptEvent {
    Call(ScriptCall),
    /// It has printed this piece of UTF-8.
    Text(Bytes),
    /// It waits for an answer.
    Waits,
    /// It has returned this JSON text, or nothing.
    Returned(Bytes),
    Failed(ScriptError),
}

/// A call of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptCall {
    /// Calls are counted from 0, in the order in which the script makes them.
    pub number: u32,
    pub function: Function,
    /// A JSON object.
    pub arguments: Bytes,
}

/// The functions that a script can call outside of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Function {
    /// A tool of this server, or of this exposed name.
    Tool { server: Option<String>, tool: String },
    /// `search(query)`.
    Search,
    /// `describe(names)`.
    Describe,
    /// `help(about)`.
    Help,
    /// `results[handle]`.
    Result,
}

/// The answer of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptAnswer {
    /// A result of `tools/call`, as raw JSON.
    Result { raw: Bytes, reading: Reading },
    /// Another value, as JSON text.
    Value(Bytes),
    /// The call throws.
    Error {
        /// The kind of error, in one word.
        code: &'static str,
        message: String,
        /// The result that reports the error, as raw JSON.
        result: Option<Bytes>,
    },
    /// The call was not made, so its value is not known.
    Unknown,
}

/// Where the value of a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// In `structuredContent`.
    Structured,
    /// In its only text, which is JSON.
    Json,
    /// In its texts, each of which is JSON: an array of their values.
    JsonEach,
    /// The texts themselves.
    Text,
    /// In `content`, which has no text.
    Content,
}

/// The tools that a script names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Server, if it is named separately, and tool.
    pub tools: Vec<(Option<String>, String)>,
    /// It may call no others.
    pub is_complete: bool,
}

/// Why a script has no value. The texts are for its author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The script is wrong, or takes too long or too much: its author can correct it.
    #[error("{message}")]
    Wrong {
        message: String,
        /// The call whose error nobody caught.
        call: Option<u32>,
    },
    /// Its process has ended, as far as is known through no fault of the script.
    #[error("{0}")]
    Died(String),
    /// Scripts cannot be run here, or not now.
    #[error("{0}")]
    Unavailable(String),
}

/// Runs no scripts.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoScripts;

impl NoScripts {
    fn refusal<T>() -> ScriptFuture<'static, Result<T, ScriptError>>
    where
        T: Send + 'static,
    {
        let why = ScriptError::Unavailable("scripts cannot run here".to_owned());
        Box::pin(std::future::ready(Err(why)))
    }
}

impl Scripts for NoScripts {
    fn start(&self, _: Script) -> ScriptFuture<'_, Result<Box<dyn RunningScript>, ScriptError>> {
        Self::refusal()
    }

    fn reach(&self, _: String) -> ScriptFuture<'_, Result<Reach, ScriptError>> {
        Self::refusal()
    }
}
