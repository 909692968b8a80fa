//! Exceptions for the author of the script: in words, with places in the author's own lines.

use std::fmt::Write as _;

use super::source::{FILE, Source};
use crate::protocol::Failed;

/// Limit of a message, in characters.
const MESSAGE: usize = 8000;

/// Limit of stack lines.
const FRAMES: usize = 5;

/// An exception, as the prelude describes it.
#[derive(Debug)]
pub(super) struct Explained {
    /// Its name and message.
    pub(super) message: String,
    pub(super) stack: String,
    /// The call that has failed.
    pub(super) call: Option<u32>,
    /// Whether the script had placeholder values.
    pub(super) is_dry: bool,
}

/// Names that scripts expect but that do not exist, each with a hint for the author.
const ABSENT: [(&str, &str); 21] = [
    ("fetch", NO_NETWORK),
    ("XMLHttpRequest", NO_NETWORK),
    ("WebSocket", NO_NETWORK),
    ("axios", NO_NETWORK),
    ("require", NO_MODULES),
    ("module", "write `return value` at the end"),
    ("exports", "write `return value` at the end"),
    ("process", NO_PROCESS),
    ("Deno", NO_PROCESS),
    ("Bun", NO_PROCESS),
    ("fs", NO_MODULES),
    ("performance", "there is no clock here"),
    ("WebAssembly", "there is only JavaScript here"),
    ("Buffer", "use atob() and btoa(), or Uint8Array"),
    ("structuredClone", "write JSON.parse(JSON.stringify(value))"),
    ("crypto", "there is no chance here but Math.random()"),
    ("URL", NO_URL),
    ("URLSearchParams", NO_URL),
    ("TextEncoder", "use atob() and btoa(), or charCodeAt()"),
    ("TextDecoder", "use atob() and btoa(), or String.fromCharCode()"),
    ("Intl", "format numbers and dates by hand: toFixed(), toISOString()"),
];

const NO_NETWORK: &str = "there is no network here: call tools, and find them with await search(\"…\")";
const NO_MODULES: &str =
    "there are no modules and no files here: call tools, and find them with await search(\"…\")";
const NO_URL: &str = "put addresses together as text, with encodeURIComponent()";
const NO_PROCESS: &str = "there is no process here: the script sees `input`, `tools` and `results`";

/// The failure of a script that parsed but does not compile.
pub(super) fn of_compiling(explained: Option<&Explained>, source: &Source) -> Failed {
    let Some(Explained { message, stack, .. }) = explained else { return Failed::OutOfMemory };
    match message.as_str() {
        OUT_OF_MEMORY => return Failed::OutOfMemory,
        STACK_OVERFLOW => return Failed::TooDeep,
        _ => {}
    }
    let message = message.strip_prefix("SyntaxError: ").unwrap_or(message);
    let place = frames(stack, source).next();
    Failed::Syntax(match place {
        Some((_, line, column)) => source.complaint(message, line, column),
        None => message.to_owned(),
    })
}

const OUT_OF_MEMORY: &str = "InternalError: out of memory";
const STACK_OVERFLOW: &str = "RangeError: Maximum call stack size exceeded";

/// The failure of a script that ended with an exception.
pub(super) fn of_running(explained: Option<Explained>, source: &Source) -> Failed {
    let Some(Explained { mut message, stack, call, is_dry }) = explained else {
        // The engine itself ran out of a resource, or the exception cannot be inspected.
        let message = "it threw an exception that cannot be shown".to_owned();
        return Failed::Thrown { message, call: None };
    };
    match message.as_str() {
        OUT_OF_MEMORY => return Failed::OutOfMemory,
        STACK_OVERFLOW => return Failed::TooDeep,
        _ => {}
    }
    if let Some(hint) = hint(&message) {
        message = format!("{message}: {hint}");
    }
    if is_dry {
        message = format!("the dry run cannot go on without the results of the calls: {message}");
    }
    message = shortened(message);
    for (index, (name, line, column)) in frames(&stack, source).take(FRAMES).enumerate() {
        let name = name.map(|name| format!("{name}, ")).unwrap_or_default();
        _ = write!(message, "\n  at {name}line {line}, column {column}");
        if index == 0 {
            let code: String = source.line(line).trim().chars().take(120).collect();
            _ = write!(message, ": {code}");
        }
    }
    Failed::Thrown { message, call }
}

/// The failure of a value that is not JSON. Its path may be long.
pub(super) fn of_value(what: String) -> Failed {
    Failed::NotJson(shortened(what))
}

fn shortened(message: String) -> String {
    if message.chars().count() <= MESSAGE {
        return message;
    }
    message.chars().take(MESSAGE).chain(['…']).collect()
}

/// The failure of a promise that the script did not await.
pub(super) fn of_nobody(failed: Failed) -> Failed {
    match failed {
        Failed::Thrown { message, call } => {
            Failed::Thrown { message: format!("a promise that it never awaited failed: {message}"), call }
        }
        failed => failed,
    }
}

fn hint(message: &str) -> Option<&'static str> {
    let name = message.strip_prefix("ReferenceError: ")?.strip_suffix(" is not defined")?;
    ABSENT.iter().find(|(absent, _)| *absent == name).map(|(_, hint)| *hint)
}

/// The author's lines in a stack: function, line, column.
fn frames<'s>(
    stack: &'s str,
    source: &'s Source,
) -> impl Iterator<Item = (Option<&'s str>, usize, usize)> + 's {
    stack.lines().filter_map(move |frame| {
        let (before, place) = frame.rsplit_once(FILE)?;
        let (line, column) = place.strip_prefix(':')?.trim_end_matches(')').split_once(':')?;
        let (line, column) = source.place(line.parse().ok()?, column.parse().ok()?)?;
        let name = before.trim().strip_prefix("at ").and_then(|name| name.strip_suffix(" ("));
        Some((name.filter(|name| !name.starts_with('<')), line, column))
    })
}
