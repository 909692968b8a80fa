//! The output of setup, wire and unwire, as text in 80 columns and as JSON.

use serde_json::json;

use super::home::Home;
use crate::{
    harness::Harness,
    snapshot::{snapshot, snapshots},
};

/// A home with two hosts, whose servers have the same commands on every machine.
fn two_hosts() -> Home {
    let home = Home { harness: Harness::empty() };
    let sample = |name: &str| json!({ "command": "plugbay", "args": ["__sample", name] });
    let secret = json!({ "command": "plugbay", "args": ["__sample", "clock"], "env": { "KEY": "sesame" } });
    let waiting = json!({ "command": "plugbay", "args": ["__sample", "notes"], "env": { "TOKEN": "${NO_SUCH_TOKEN}" } });
    let servers =
        json!({ "calc": sample("calc"), "clock": secret, "hub": waiting, "shop": sample("broken") });
    home.put(".cursor/mcp.json", &format!("{:#}\n", json!({ "mcpServers": servers })));
    let notes = "[mcp_servers.notes] # mine\ncommand = \"plugbay\"\nargs = [\"__sample\", \"notes\"]\n";
    home.put(".codex/config.toml", &format!("model = \"x\"\n\n{notes}"));
    home
}

#[test]
fn setup_and_undo() {
    let home = two_hosts();
    snapshots(&home.harness, "setup-without-a-terminal", &["setup"]);
    snapshots(&home.harness, "setup-dry-run", &["setup", "--dry-run"]);
    snapshot(&home.harness, "setup", &["setup", "--yes"]);
    snapshots(&home.harness, "setup-with-nothing-to-do", &["setup", "--yes"]);
    snapshot(&home.harness, "setup-show", &["setup", "--show"]);
    snapshot(&home.harness, "setup-undo", &["setup", "--undo"]);
    snapshots(&home.harness, "setup-undo-again", &["setup", "--undo"]);
    snapshots(&home.harness, "setup-show-nothing", &["setup", "--show"]);
    snapshot(&home.harness, "setup-json", &["setup", "--yes", "--json"]);
    snapshot(&home.harness, "setup-undo-json", &["setup", "--undo", "--json"]);
}

#[test]
fn setup_that_fails() {
    let home = two_hosts();
    snapshots(&home.harness, "setup-of-an-unknown-host", &["setup", "--yes", "--hosts", "emacs"]);
    snapshots(&Harness::empty(), "setup-without-hosts", &["setup", "--yes"]);
    home.put(".cursor/mcp.json", "{ broken");
    snapshots(&home.harness, "setup-of-a-broken-file", &["setup", "--dry-run"]);
}

#[test]
fn wire_and_unwire() {
    let home = two_hosts();
    snapshot(&home.harness, "wire", &["wire", "codex"]);
    snapshots(&home.harness, "wire-again", &["wire", "codex"]);
    snapshot(&home.harness, "unwire", &["unwire", "codex"]);
    snapshots(&home.harness, "unwire-again", &["unwire", "codex"]);
}
