//! Settings that a session reads anew whenever it needs them, so that a reload takes effect at once.

use std::time::Duration;

use super::Effect;
use crate::{arguments, limit::CallLimits};

/// The longest message accepted, in bytes, unless the configuration says otherwise.
pub const DEFAULT_MESSAGE_LIMIT: usize = 16 * 1024 * 1024;
/// How long a run may take before it is stopped: many hosts give up after a minute.
pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(50);
/// How many tools a search shows, unless the configuration says otherwise.
pub const DEFAULT_SEARCH_LIMIT: usize = 5;

/// The part of the configuration that decides how requests of hosts are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSettings {
    /// How many tools a search shows, unless the request names another number.
    pub search_limit: usize,
    /// Whether arguments of tools are repaired, or checked only.
    pub repair: arguments::Mode,
    /// The longest message accepted from a host, in bytes.
    pub message_limit: usize,
    /// How many of the most used tools every mode lists; with 0 no use is counted.
    pub learn: usize,
    /// How many calls each caller and each session may make.
    pub call_limits: CallLimits,
    /// How long a first list may wait for servers.
    pub list_wait: Duration,
    /// How long calls in flight may go on when a gateway ends; `None`: the transport decides.
    pub drain: Option<Duration>,
    pub code: CodeSettings,
}

/// How scripts of models are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeSettings {
    /// `run_code` is offered in every mode, to hosts that run no code themselves.
    pub offered: bool,
    /// The strongest effect of calls that need no consent.
    pub unasked: Effect,
    /// How long a run may take before it is stopped and goes on in another request: hosts give up.
    pub patience: Duration,
}

impl Default for CodeSettings {
    /// Hosts show the script to their users, and ask as they do for other calls.
    fn default() -> Self {
        Self { offered: false, unasked: Effect::Destroys, patience: DEFAULT_PATIENCE }
    }
}

impl Default for LiveSettings {
    fn default() -> Self {
        Self {
            search_limit: DEFAULT_SEARCH_LIMIT,
            repair: arguments::Mode::Repair,
            message_limit: DEFAULT_MESSAGE_LIMIT,
            learn: 0,
            call_limits: CallLimits::default(),
            list_wait: Duration::ZERO,
            drain: None,
            code: CodeSettings::default(),
        }
    }
}
