//! One point at which calls to servers are observed: for the audit log, metrics and traces.
//!
//! An observer is notified of a call when it goes to its server, and once when it ends, in whatever way.

mod shape;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

pub use shape::{SHAPE_LIMIT, shape};

use crate::{era::Era, failure::CallError, name::ServerName};

/// Marks one session in what operators read: a digest of its id, which stays secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SessionMark(pub [u8; 8]);

impl fmt::Display for SessionMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SessionMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A request that goes to a server. It borrows from the request, because most observers keep little of it.
#[derive(Debug, Clone, Copy)]
pub struct StartingCall<'a> {
    pub method: &'a str,
    pub server: &'a ServerName,
    /// The tool or prompt, by the server's own name for it.
    pub name: Option<&'a str>,
    /// Whether the server has listed a tool of this name. A host can call any other name as well.
    pub is_listed: bool,
    /// The arguments of a tool or prompt, as raw JSON.
    pub arguments: Option<&'a [u8]>,
    /// The name of the caller, if it has one.
    pub caller: Option<&'a str>,
    /// The OAuth client that acts for the caller, if its token names one.
    pub client: Option<&'a str>,
    pub session: SessionMark,
    /// The name that the host gives itself.
    pub host: Option<&'a str>,
    pub era: Era,
    /// Length of the request, in bytes.
    pub bytes: usize,
    /// The `traceparent` that the host sent with the request, and its `tracestate`.
    pub trace_parent: Option<&'a str>,
    pub trace_state: Option<&'a str>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    Ok,
    /// The tool says that it failed: a result with `isError`.
    ToolError,
    /// A JSON-RPC error of the server or of plugbay.
    Error(i32),
    /// The host cancelled it, or has gone.
    Cancelled,
    TimedOut,
    /// The server needs an answer from a modern host, which then calls again.
    InputRequired,
    /// A limit of the caller or of the session is reached.
    RateLimited,
}

impl CallOutcome {
    /// One word for logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Error(_) => "error",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::InputRequired => "input_required",
            Self::RateLimited => "rate_limited",
        }
    }

    /// The outcome of a call that got no answer from its server.
    pub fn failed(error: &CallError, code: i32) -> Self {
        match error {
            CallError::TimedOut { .. } => Self::TimedOut,
            _ => Self::Error(code),
        }
    }
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEnd {
    pub outcome: CallOutcome,
    /// Length of the answer, in bytes.
    pub bytes: usize,
}

/// Observes calls to servers. It must never block.
pub trait Observer: Send + Sync + fmt::Debug {
    /// Whether calls are observed now. While they are not, each costs no more than this check.
    fn is_on(&self) -> bool;

    fn starts(&self, call: &StartingCall<'_>) -> Box<dyn Observation>;
}

/// One call that is being observed.
pub trait Observation: Send {
    /// The `traceparent` under which the server should work, if the call is part of a trace of ours.
    fn trace_parent(&self) -> Option<String> {
        None
    }

    fn ends(self: Box<Self>, end: CallEnd);
}

/// An observed call that ends exactly once: as cancelled, if it is dropped before another outcome is set.
pub struct ObservedCall(Mutex<Option<Box<dyn Observation>>>);

impl ObservedCall {
    pub fn new(observation: Box<dyn Observation>) -> Self {
        Self(Mutex::new(Some(observation)))
    }

    pub fn end(&self, outcome: CallOutcome, bytes: usize) {
        let observation = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(observation) = observation {
            observation.ends(CallEnd { outcome, bytes });
        }
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        self.end(CallOutcome::Cancelled, 0);
    }
}

impl fmt::Debug for ObservedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObservedCall")
    }
}
