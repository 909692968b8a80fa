//! The gateway as its users run it: `plugbay serve`, real pipes, scripted servers behind it.

mod activate;
mod add;
mod agent;
mod apps;
mod authorization;
mod big;
mod cache;
mod call;
mod cancel;
mod care;
mod catalog;
mod code;
mod concurrency;
mod daemon;
mod dialect;
mod discovery;
mod environment;
mod eras;
mod failure;
mod fidelity;
mod framing;
mod hidden;
mod http;
mod http_api;
mod lists;
mod orphans;
mod pass_through;
mod profiles;
mod protocol;
mod ranking;
mod reload;
mod remote;
mod resources;
mod results;
mod scopes;
mod server_requests;
mod skills;
mod starts;
mod status;
mod suite;
mod tasks;
mod visible;
mod warm_policy;

use std::path::PathBuf;

use plugbay_testkit::{Config, Host, Script, Workspace, gateway_path};

const LIST_CHANGED: &str = "notifications/tools/list_changed";

fn gateway() -> PathBuf {
    gateway_path(env!("CARGO_BIN_EXE_plugbay"))
}

/// Starts the gateway with these servers, opens it as a legacy host, and waits for the named tools.
#[track_caller]
fn open(workspace: &Workspace, servers: &[(&str, Script)], tools: &[&str]) -> Host {
    open_with(workspace, &workspace.config(servers), tools)
}

#[track_caller]
fn open_with(workspace: &Workspace, config: &Config, tools: &[&str]) -> Host {
    workspace.write_config(config);
    let host = workspace.serve(&gateway());
    host.initialize();
    host.await_tools(tools);
    host
}

/// Fills the cache by a whole run in which the named tools are listed.
#[track_caller]
fn warm(workspace: &Workspace, config: &Config, tools: &[&str]) {
    open_with(workspace, config, tools).finish();
}

/// How often a legacy server's instance was opened that serves hosts of every kind. An instance that only
/// lists, for hosts without capabilities, does not count.
fn shared_instances(workspace: &Workspace, server: &str) -> usize {
    let log = workspace.log(server);
    let opened = log.iter().filter(|line| line.contains(r#""initialize""#));
    opened.filter(|line| line.contains(r#""sampling""#)).count()
}

/// Whether `text` contains one of `words`, ignoring case.
fn mentions(text: &str, words: &[&str]) -> bool {
    let text = text.to_lowercase();
    words.iter().any(|word| text.contains(word))
}
