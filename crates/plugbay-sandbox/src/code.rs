//! Scripts from the gateway's side: their inputs, their calls, and how they end.

mod failure;

use std::time::Duration;

use bytes::Bytes;

pub use self::failure::CodeFailure;

/// The longest script, in bytes.
pub const CODE: usize = 256 * 1024;

/// A model's script, with all its inputs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// JavaScript, or TypeScript whose types are ignored.
    pub code: String,
    /// The value of `input` as JSON; empty for `undefined`.
    pub input: Bytes,
    /// The seed of `Math.random`.
    pub seed: u64,
    /// The time that `Date` returns during the whole run, in milliseconds since 1970.
    pub now: i64,
}

/// The limits of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// How long the script may compute. Waiting for answers does not count.
    pub compute: Duration,
    /// Limit of memory in bytes, including answers.
    pub memory: u64,
    /// Limit of bytes for text and returned value together.
    pub output: usize,
    /// Limit of calls of any kind.
    pub calls: u32,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            compute: Duration::from_secs(5),
            memory: 256 * 1024 * 1024,
            output: 16 * 1024 * 1024,
            calls: 1000,
        }
    }
}

/// The tools that a script names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach {
    /// Server and tool as written, each pair once. For `tools.name(…)`, where the script names no server, the
    /// server is empty.
    pub tools: Vec<(String, String)>,
    /// False if the script also uses `tools` in a way that hides names: a computed member, an alias.
    pub is_complete: bool,
}

/// The next action of a script. Sizes and numbers are checked; whether JSON is valid is the child's claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It makes a call. More calls may follow before this one is answered.
    Call(Call),
    /// A piece of its text (`console.log`, `text()`). Pieces end with complete characters.
    Text(Bytes),
    /// It waits: nothing more comes until an answer.
    Waiting,
    /// It has ended with this value as JSON; empty for `undefined`. All its calls were answered: a script
    /// that has returned still waits for calls that it did not await.
    Done(Bytes),
    Failed(CodeFailure),
}

/// A call of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The number of the call, from 0, in the order in which the script makes its calls.
    pub number: u32,
    pub kind: CallKind,
    /// A JSON object. In a dry run, unknown values are texts (`‹result of call 0›`): as members, keys, or the
    /// whole.
    pub arguments: Bytes,
}

/// The kinds of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallKind {
    /// `tools[server][tool](arguments)`; without a server: `tools[tool](arguments)`.
    Tool { server: Option<String>, tool: String },
    /// `search(query, options?)`: `{"query": …, …options}`.
    Search,
    /// `describe(names…)`: `{"names": […]}`.
    Describe,
    /// `help(about?)`: `{"about": …}`, or `{}`.
    Help,
    /// `results[handle]`: `{"result": handle}`.
    Result,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A `CallToolResult` as JSON; `read` says which part of it is the value of the call.
    Result { raw: Bytes, read: Reading },
    /// Any other value as JSON.
    Value(Bytes),
    /// The call failed: its promise is rejected with a `ToolError`.
    Error {
        message: String,
        /// The `code` of the `ToolError`.
        code: String,
        /// The `CallToolResult` with `isError`, if there was one.
        result: Option<Bytes>,
    },
    /// Dry run: the value is unknown. The script goes on with a placeholder, which has every member, can be
    /// called, and iterates once. A loop that ends only with a certain value ends at [`RunLimits::calls`].
    Unknown,
}

/// The part of a `CallToolResult` that is the value of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// `structuredContent`.
    Structured,
    /// The JSON in its one text block.
    Json,
    /// Its texts, joined with newlines.
    Text,
    /// Its `content`, an array.
    Content,
    /// The JSON in each of its text blocks, as an array.
    JsonEach,
}
