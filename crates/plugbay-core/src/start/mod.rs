//! Starts of servers: which is next, how long it may take, its framing, and which start with the gateway.
//!
//! All rules are pure: the time and observations of a process come in, decisions go out.

mod framing;
mod turns;
mod warm;
mod watch;

pub use framing::{AttemptEnd, FramingTrial};
pub use turns::{Priority, TurnId, Turns};
pub use warm::{FRESH_FOR, Remembered, Warm};
pub use watch::{GiveUp, Look, StartWatch, Verdict};
