//! The state of a server: one vocabulary for the lifecycle, every command and every tool that shows it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The state of a server, for people and models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// It is not running, and its next use starts it.
    Idle,
    /// It is being started, or has not listed its tools yet.
    Warming,
    /// It works.
    Ready,
    /// It works, and its tools are in the context of a host.
    Active,
    /// It works only after the user has logged in.
    #[serde(rename = "needs login")]
    NeedsLogin,
    /// It has failed.
    Error,
}

impl ServerState {
    /// The state of a server that has failed like this.
    pub fn of_failure(failure: &Failure) -> Self {
        if failure.needs_login() { Self::NeedsLogin } else { Self::Error }
    }

    /// Whether it cannot be used until somebody does something about it.
    pub fn is_trouble(self) -> bool {
        matches!(self, Self::NeedsLogin | Self::Error)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Warming => "warming",
            Self::Ready => "ready",
            Self::Active => "active",
            Self::NeedsLogin => "needs login",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_state_has_the_same_word_in_text_and_in_json() {
        use ServerState::{Active, Error, Idle, NeedsLogin, Ready, Warming};
        for state in [Idle, Warming, Ready, Active, NeedsLogin, Error] {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{state}\""));
        }
    }
}
