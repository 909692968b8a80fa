//! The limits that keep one host or caller from using up what others need. `docs/http.md` has them as a table.

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

// --- memory

/// Bytes that all hosts together may leave unread. A caller may hold as much of this as it leaves to others.
pub(crate) const UNREAD_BY_ALL: usize = 512 * MIB;
/// Bytes that each caller may hold, however much others hold. A request alone gets half of them.
pub(crate) const LEAST_OF_CALLER: usize = 4 * MIB;
/// Bytes that each session or request may hold, even if its caller has used up its memory.
pub(crate) const LEAST_OF_SESSION: usize = 64 * KIB;
/// Unread bytes of one session at which its requests are rejected.
pub(crate) const UNREAD: usize = 16 * MIB;
/// Unread bytes of one session at which new answers are replaced by an error. A single answer may be longer.
pub(crate) const UNREAD_ANSWERS: usize = 128 * MIB;
/// Unread bytes at which new answers are replaced by an error, for the only host of a process.
pub(crate) const UNREAD_ALONE: usize = 256 * MIB;
/// Unread bytes at which plugbay stops reading requests of a host on stdio, and sends a host no
/// notifications.
pub(crate) const HIGH: usize = 8 * MIB;
/// Unread bytes at which one of many hosts gets no notifications and no server requests.
pub(crate) const HIGH_AMONG_MANY: usize = 256 * KIB;

// --- notifications that wait to be read: these limits apply to log messages and to all others separately

/// A limit of queued notifications. Above it, the oldest are dropped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lane {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

/// For the only host of a process.
pub(crate) const LANE_ALONE: Lane = Lane { messages: 4096, bytes: 4 * MIB };
/// For one of many hosts.
pub(crate) const LANE_AMONG_MANY: Lane = Lane { messages: 1024, bytes: 256 * KIB };
/// For a host that has no open stream for them.
pub(crate) const LANE_UNHEARD: Lane = Lane { messages: 256, bytes: 64 * KIB };

// --- requests

/// Requests of all callers that wait for their answers. A caller may have as many as it leaves to others.
pub(crate) const CALLS: usize = 8192;
/// Requests that each caller may have in flight, however many others have.
pub(crate) const LEAST_CALLS: usize = 64;
/// Requests of one session over HTTP.
pub(crate) const CALLS_OF_SESSION: usize = 128;
/// Requests of one host on stdio, and their bytes.
pub(crate) const CALLS_OF_HOST: usize = 4096;
pub(crate) const CALL_BYTES_OF_HOST: usize = 256 * MIB;

// --- sessions, connections, views and subscriptions

/// Sessions of all callers. A caller may have as many as it leaves to others.
pub(crate) const SESSIONS: usize = 4096;
/// Sessions that each caller may open, however many others have.
pub(crate) const LEAST_SESSIONS: usize = 16;
/// Connections that each peer and each caller may open, however many others have.
pub(crate) const LEAST_CONNECTIONS: usize = 16;
/// Views of modern hosts.
pub(crate) const HOST_VIEWS: usize = 1024;
/// Resources and tasks that one host can subscribe to: half of what a server keeps.
pub(crate) const ITEM_SUBSCRIPTIONS: usize = 512;
/// `subscriptions/listen` requests of one host.
pub(crate) const SUBSCRIPTIONS: usize = 64;
