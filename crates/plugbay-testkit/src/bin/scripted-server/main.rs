//! A real MCP server process that behaves, or misbehaves, exactly as its script says.
//!
//! Usage: `scripted-server SCRIPT`, where SCRIPT is JSON text or `@file`. Without a script it is a
//! well-behaved server with one tool. See `script.rs` for all keys of a script.
#![expect(clippy::disallowed_methods, reason = "it is told to exit without cleaning up")]

mod ask;
mod call;
mod framing;
mod request;
mod script;
mod server;
mod sleeper;
mod startup;

use std::{
    env,
    process::{self, ExitCode},
};

use crate::{script::Script, server::Server};

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let first = args.next().unwrap_or_else(|| "{}".to_owned());
    if first == sleeper::FLAG {
        return sleeper::run(args.next().as_deref());
    }
    let script = match Script::load(&first) {
        Ok(script) => script,
        Err(error) => {
            startup::say(&format!("scripted-server: {error}"));
            return ExitCode::from(2);
        }
    };
    let server = Server::new(script);
    server.log(&format!("start {}", process::id()));
    if let Some(code) = startup::run(&server.script, &first) {
        return code;
    }
    server.serve()
}
