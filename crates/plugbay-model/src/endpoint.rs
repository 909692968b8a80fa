//! A model and how to reach it: plain data.

use std::time::Duration;

use crate::key::Key;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub provider: Provider,
    /// The provider's name for the model.
    pub model: String,
    /// An address in place of the provider's own.
    pub base_url: Option<String>,
    /// The API key. Models on the user's own machine need none.
    pub key: Option<Key>,
    /// The longest pause between two parts of a response.
    pub patience: Duration,
}

impl Endpoint {
    /// The base address, without a trailing slash.
    pub fn address(&self) -> &str {
        self.base_url.as_deref().unwrap_or(self.provider.base_url()).trim_end_matches('/')
    }

    /// Whether requests go to the provider itself, not to a compatible service.
    pub(crate) fn is_original(&self) -> bool {
        self.address() == self.provider.base_url()
    }
}

/// A provider, named by its wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// The Messages API.
    Anthropic,
    /// Chat completions, which many services are compatible with.
    OpenAi,
    /// `generateContent`.
    Gemini,
}

impl Provider {
    /// The environment variables that may hold its key; the first that is set wins.
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::OpenAi => &["OPENAI_API_KEY"],
            Self::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        }
    }

    /// The provider's base address, without a trailing slash.
    fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }
}
