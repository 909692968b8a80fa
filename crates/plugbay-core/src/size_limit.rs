//! Size limits for data from outside: arguments of built-in tools, and definitions of servers.
//!
//! Work on such data must not grow faster than the data, which must be bounded. `docs/modes.md` has a list.

/// The longest name of a tool, server or skill, or pattern of names, in bytes: the arguments `name`, `names`, `server`,
/// `subtool`. A server's tool with a longer name is left out.
pub const NAME: usize = 1 << 10;
/// The longest URI of a resource or skill, in bytes. One of a server that is longer is left out.
pub const URI: usize = 8 << 10;
/// The most names in one call.
pub const NAMES: usize = 100;
/// The longest list of names in one call, in bytes.
pub const ALL_NAMES: usize = 64 << 10;
/// The longest query of a search, in bytes.
pub const QUERY: usize = 8 << 10;
/// The longest request in words to `natural_language`, in bytes.
pub const REQUEST: usize = 64 << 10;

/// The longest script of `run_code`, in bytes.
pub const CODE: usize = 256 << 10;

/// The longest `_meta` of a request, in bytes.
pub const META: usize = 1 << 20;
/// The longest `capabilities` of a host or server, in bytes. Those of a server that are longer are left out.
pub const CAPABILITIES: usize = 256 << 10;
/// The longest `clientInfo`, in bytes.
pub const CLIENT_INFO: usize = 256 << 10;
/// The longest `name`, `uri`, `task`, `taskId` or `level` of a request, or `ref` of a completion, in bytes.
pub const REFERENCE: usize = 64 << 10;
/// The longest `notifications` of a subscription, in bytes.
pub const SUBSCRIPTION: usize = 1 << 20;

/// The longest definition of a tool, resource, prompt or skill, in bytes.
pub const DEFINITION: usize = 1 << 20;
/// The longest `inputSchema` by which arguments are checked, in bytes. Those of a longer one are sent as they are.
pub const SCHEMA: usize = 256 << 10;
/// The most bytes of all definitions of one server.
pub const DEFINITIONS: usize = 64 << 20;
/// The longest answer of a server to `initialize` or `server/discover`, in bytes.
pub const OPENING: usize = 2 << 20;
/// The longest instructions of a server, in bytes. What is longer is cut.
pub const INSTRUCTIONS: usize = 64 << 10;
/// The longest `serverInfo`, in bytes. One that is longer is left out.
pub const SERVER_INFO: usize = 256 << 10;
/// The most items of one kind of one server.
pub const ITEMS: usize = 10_000;
/// The longest cursor of a list, in bytes. One of a server that is longer ends the list.
pub const CURSOR: usize = 64 << 10;
/// The most pages of one list of a server.
pub const PAGES: usize = 1_000;

/// An argument of a built-in tool that is over its limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{argument}` is too long: {size} {unit}, the limit is {limit}")]
pub struct TooLong {
    argument: &'static str,
    size: usize,
    limit: usize,
    unit: &'static str,
}

impl TooLong {
    /// An error for a text of `size` bytes, of which `limit` are allowed.
    pub fn text(argument: &'static str, size: usize, limit: usize) -> Self {
        Self { argument, size, limit, unit: "bytes" }
    }
}

/// Checks the length of a text.
pub fn check_length(argument: &'static str, text: &str, limit: usize) -> Result<(), TooLong> {
    let size = text.len();
    if size <= limit { Ok(()) } else { Err(TooLong::text(argument, size, limit)) }
}

/// Checks the length of raw JSON.
pub fn check_json(argument: &'static str, size: usize, limit: usize) -> Result<(), TooLong> {
    if size <= limit { Ok(()) } else { Err(TooLong::text(argument, size, limit)) }
}

/// Checks the number of names.
pub fn check_names(argument: &'static str, size: usize) -> Result<(), TooLong> {
    if size <= NAMES { Ok(()) } else { Err(TooLong { argument, size, limit: NAMES, unit: "names" }) }
}

#[cfg(test)]
mod generated;
