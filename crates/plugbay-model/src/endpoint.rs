//! Which model is meant and how it is reached: plain data.

use std::time::Duration;

use crate::key::Key;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub provider: Provider,
    /// The provider's name for it.
    pub model: String,
    /// Instead of the provider's own address.
    pub base_url: Option<String>,
    /// Models on one's own machine need none.
    pub key: Option<Key>,
    /// The longest silence.
    pub patience: Duration,
}

impl Endpoint {
    /// Without a slash at the end.
    pub fn address(&self) -> &str {
        self.base_url.as_deref().unwrap_or(self.provider.base_url()).trim_end_matches('/')
    }

    /// The provider itself is asked, and not somebody who speaks like it.
    pub(crate) fn is_original(&self) -> bool {
        self.address() == self.provider.base_url()
    }
}

/// Whose wire format is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// The Messages API.
    Anthropic,
    /// Chat completions, as many speak them.
    OpenAi,
    /// `generateContent`.
    Gemini,
}

impl Provider {
    /// Where its key is looked for, unless the user says otherwise: the first that is set.
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::OpenAi => &["OPENAI_API_KEY"],
            Self::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        }
    }

    /// Without a slash at the end.
    fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }
}
