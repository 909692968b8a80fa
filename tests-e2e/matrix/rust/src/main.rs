//! A host or a server made of the official Rust SDK, in either era: what is beside it in other languages.
//!
//! Usage: plugbay-matrix-peer host PLAN.json
//!        plugbay-matrix-peer server NAME legacy|modern
//!
//! The plan and what the host prints are those of `host.mjs`.
#![expect(deprecated, reason = "sampling, roots and logging are, and are here on purpose")]

mod host;
mod server;

use std::{env, error::Error};

use serde::Deserialize;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Era {
    Legacy,
    Modern,
}

/// Whatever goes wrong, for somebody to read.
type Trouble = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Trouble> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["host", plan] => host::run(plan).await,
        ["server", name, "legacy"] => server::run(name, Era::Legacy).await,
        ["server", name, "modern"] => server::run(name, Era::Modern).await,
        _ => Err("usage: plugbay-matrix-peer host PLAN.json | server NAME legacy|modern".into()),
    }
}
