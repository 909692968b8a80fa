//! A language model as the rest of the program sees it: what it is asked, what it answers, and why it
//! does not.

use std::{fmt, pin::Pin, time::Duration};

use serde_json::value::RawValue;

/// A model that can be asked. Dropping the future ends the request.
pub trait Model: Send + Sync + fmt::Debug {
    /// With `heard` the answer is streamed, if the model can: `heard` gets the text piece by piece as it
    /// comes. The reply still holds the whole text.
    fn ask(&self, prompt: Prompt, heard: Option<TextListener>) -> ReplyFuture<'_>;
}

pub type ReplyFuture<'a> = Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;
pub type TextListener = Box<dyn FnMut(&str) + Send>;

/// Everything that a model is told.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    /// The system prompt, apart from the conversation.
    pub system: Option<String>,
    pub turns: Vec<Turn>,
    pub tools: Vec<ToolSpec>,
    /// The most that it may answer, in tokens.
    pub limit: u32,
}

#[derive(Debug, Clone)]
pub enum Turn {
    User(String),
    /// What the model has said before.
    Model {
        text: String,
        calls: Vec<ToolCall>,
    },
    /// The results of all calls of the turn before.
    Results(Vec<ToolResult>),
}

/// A tool that the model may call.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Box<RawValue>,
}

/// A call that the model wants made.
#[derive(Debug, Clone)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// An object, as the model wrote it.
    pub arguments: Box<RawValue>,
    /// The provider's own signature, to be returned unchanged with the call.
    pub signature: Option<String>,
}

#[derive(Debug, Clone)]
pub struct ToolResult {
    /// The id and the name of the call.
    pub call: String,
    pub name: String,
    pub text: String,
    pub failed: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub usage: Usage,
    pub stop: Stop,
}

/// The cost in tokens, as far as the provider reported it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stop {
    /// It has said everything.
    #[default]
    End,
    /// It wants to call tools.
    Tools,
    /// The limit was reached: there would be more.
    Limit,
}

/// Why there is no answer, with what the user can do about it. Never holds a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("it did not answer within {after:?}; give it a longer \"timeout\", or choose a faster model")]
    Timeout { after: Duration },
    #[error("it is asked too often, or overloaded{}: {message}", wait(*.retry_after))]
    RateLimited { retry_after: Option<Duration>, message: String },
    #[error("it refuses to answer: {0}")]
    Refused(String),
    /// `key` tells where the key comes from.
    #[error("the key in {key} is not accepted: {message}")]
    Unauthorised { key: String, message: String },
    /// `from` is the program that should have printed the key.
    #[error("there is no key for it: {from}: {why}")]
    NoKey { from: String, why: String },
    #[error("its answer cannot be read: {0}")]
    Malformed(String),
    #[error("its answer breaks off in the middle")]
    BrokenOff,
    /// The provider's own words; a status if the whole answer was an error.
    #[error("it failed{}: {message}", status.map(|status| format!(" (HTTP {status})")).unwrap_or_default())]
    Failed { status: Option<u16>, message: String },
    #[error("it cannot be reached: {0}; check \"baseUrl\" and the network")]
    Unreachable(String),
    /// The host's own model is not available to us.
    #[error("the host's model cannot be used: {0}")]
    Unaskable(String),
}

impl ModelError {
    /// Whether the cause is independent of the prompt: a moment later the same may well be answered.
    pub fn is_passing(&self) -> bool {
        let by_the_way = matches!(self, Self::Failed { status: Some(502 | 504), .. });
        by_the_way || matches!(self, Self::RateLimited { .. } | Self::BrokenOff)
    }
}

fn wait(retry_after: Option<Duration>) -> String {
    retry_after.map(|pause| format!(" (again in {} s)", pause.as_secs())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_in_one_line() {
        let limited = |retry_after| ModelError::RateLimited { retry_after, message: "slow down".to_owned() };
        assert_eq!(limited(None).to_string(), "it is asked too often, or overloaded: slow down");
        let pause = Some(Duration::from_secs(7));
        assert_eq!(
            limited(pause).to_string(),
            "it is asked too often, or overloaded (again in 7 s): slow down"
        );
        let failed = |status| ModelError::Failed { status, message: "oops".to_owned() };
        assert_eq!(failed(Some(500)).to_string(), "it failed (HTTP 500): oops");
        assert_eq!(failed(None).to_string(), "it failed: oops");
    }

    #[test]
    fn what_passes_is_told_from_what_stays() {
        let failed = |status| ModelError::Failed { status, message: String::new() };
        let passing = [failed(Some(502)), failed(Some(504)), ModelError::BrokenOff];
        assert!(passing.iter().all(ModelError::is_passing));
        let staying = [failed(Some(500)), failed(None), ModelError::Refused(String::new())];
        assert!(!staying.iter().any(ModelError::is_passing));
    }
}
