//! Errors of commands, with their exit codes, and the reasons why servers fail.

use std::process::ExitCode;

use plugbay_core::failure::{CallError, Failure};
use serde::{Deserialize, Serialize};

#[derive(Debug)]
pub struct CommandError {
    pub kind: Kind,
    pub message: String,
    pub details: Vec<Detail>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Failed,
    /// The command line is wrong.
    Usage,
}

/// The lines below the message.
#[derive(Debug)]
pub enum Detail {
    Hint(String),
    /// Text to copy.
    Example(String),
    StartFailure(StartFailure),
}

/// The reason why a server does not work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartFailure {
    pub reason: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// Lines on stdout that are no MCP messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stdout: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Whether nothing is wrong except that the user must log in.
    #[serde(skip)]
    pub needs_login: bool,
}

impl From<&Failure> for StartFailure {
    fn from(failure: &Failure) -> Self {
        let needs_login = failure.needs_login();
        let Failure { what, stderr, stdout, remedy, .. } = failure.clone();
        Self { reason: what, stderr, stdout, remedy, needs_login }
    }
}

impl CommandError {
    pub fn failed(message: impl Into<String>) -> Self {
        Self { kind: Kind::Failed, message: message.into(), details: Vec::new() }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, ..Self::failed(message) }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.details.push(Detail::Hint(hint.into()));
        self
    }

    #[must_use]
    pub fn example(mut self, example: impl Into<String>) -> Self {
        self.details.push(Detail::Example(example.into()));
        self
    }

    /// The error for a server that does not work.
    pub fn down(server: impl std::fmt::Display, failure: &Failure) -> Self {
        let trouble = if failure.needs_login() { "needs a login" } else { "does not work" };
        let mut error = Self::failed(format!("server {server} {trouble}"));
        error.details.push(Detail::StartFailure(StartFailure::from(failure)));
        if failure.remedy.is_none() {
            error = error.hint(format!("`plugbay doctor {server}` looks for the cause"));
        }
        error
    }

    pub fn exit_code(&self) -> ExitCode {
        match self.kind {
            Kind::Failed => ExitCode::FAILURE,
            Kind::Usage => ExitCode::from(2),
        }
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<CallError> for CommandError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Down { server, failure }
            | CallError::NeedsLogin { server, failure }
            | CallError::Resting { server, failure, .. } => Self::down(server, &failure),
            CallError::TimedOut { .. } => {
                Self::failed(error.to_string()).hint("or give this call more time: --timeout 5m")
            }
            _ => Self::failed(error.to_string()),
        }
    }
}
