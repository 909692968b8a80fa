//! Scripts: JavaScript run by `QuickJS`, in a conversation with the parent.
//!
//! - [`source`]: the text that is compiled instead of the author's, and the way back to its lines.
//! - [`mod@reach`]: the tools that a script names.
//! - [`conversation`]: calls and text out, answers in, and the limits of both.
//! - [`engine`]: the interpreter, which is made before there is a script.
//! - [`script`]: a script in it, with the loop of its answers.
//! - [`complaint`]: exceptions in a form for the author.
//!
//! A run depends only on the script, its input, the seed, the given time and the order of the answers: the
//! gateway repeats a run that was stopped, and it must make the same calls.

mod complaint;
mod conversation;
mod engine;
mod reach;
mod script;
mod source;

use std::io::{self, Write};

pub(super) use self::engine::Engine;
use crate::protocol::{FRAME, Failed, Frame, reached_parts};

/// Writes the tools that a script names.
pub(super) fn reach(code: &str, to: &mut impl Write) -> Result<(), Failed> {
    let reach = source::reach(code).map_err(Failed::Syntax)?;
    let sent = write_parts(&reached_parts(&reach.tools), to)
        .and_then(|()| Frame::Reached { is_complete: reach.is_complete }.write(to));
    sent.map_err(|error| Failed::Internal(error.to_string()))
}

fn write_parts(bytes: &[u8], to: &mut impl Write) -> io::Result<()> {
    bytes.chunks(FRAME).try_for_each(|part| Frame::Part(part.to_vec()).write(to))
}
