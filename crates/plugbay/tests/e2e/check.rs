//! The comparison: each server asked directly, then all of them through one gateway.

use std::process::Command;

use plugbay_testkit::{Workspace, gateway_path};
use serde_json::{Value, json};

use crate::{
    clients::{Client, Era, Seen},
    installed::{Installed, installed, skipped},
    world::{CONDITIONAL, Call, Server, World},
};

/// Runs the client in the given era against everything; results and definitions must be equal.
pub(crate) fn check(client: Client, era: Era) {
    let Some(installed) = installed() else { return };
    if client == Client::Inspector && installed.inspector_node().is_none() {
        return skipped("no node here is new enough for the inspector");
    }
    let workspace = Workspace::new();
    let world = World::new(&workspace);
    let mut servers = world.servers(installed);
    if client == Client::Inspector {
        // A process for each call, and each starts every server: one call of two servers will do.
        servers.retain(|server| ["everything", "git"].contains(&server.name));
        for server in &mut servers {
            server.calls.truncate(1);
        }
    }
    world.reset();
    let direct: Vec<Seen> =
        servers.iter().map(|server| ask_directly(client, &workspace, installed, era, server)).collect();
    world.reset();
    let through = ask_through_gateway(client, &workspace, installed, era, &servers);
    assert_eq!(through.era, era, "the gateway speaks the era it was asked for");

    let mut results = through.results.iter();
    for (server, direct) in servers.iter().zip(&direct) {
        // Between eras a result gains or loses what only one of them has; within one it must not.
        let bridged = era != server.era || direct.era != server.era;
        for (call, expected) in server.calls.iter().zip(&direct.results) {
            let got = results.next().expect("a result for each call");
            let place = format!("{} {} by {client:?}, {era:?}", server.name, call.tool);
            assert_eq!(comparable(got, bridged), comparable(expected, bridged), "{place}");
        }
        let unconditional = |tool: &&Value| !CONDITIONAL.iter().any(|name| tool["name"] == *name);
        for expected in direct.tools.iter().filter(unconditional) {
            let mut expected = expected.clone();
            expected["name"] =
                json!(format!("{}__{}", server.name, expected["name"].as_str().expect("name")));
            let got = through.tools.iter().find(|tool| tool["name"] == expected["name"]);
            let got = got.unwrap_or_else(|| panic!("{} is not listed", expected["name"]));
            assert_eq!(
                comparable_tool(got, bridged),
                comparable_tool(&expected, bridged),
                "definition by {client:?}, {era:?}"
            );
        }
    }
}

/// In the wanted era, or the one that the server has.
fn ask_directly(
    client: Client,
    workspace: &Workspace,
    installed: &Installed,
    era: Era,
    server: &Server,
) -> Seen {
    let era = if server.era == Era::Legacy { Era::Legacy } else { era };
    client.run(workspace, installed, era, &server.entry, &server.calls)
}

fn ask_through_gateway(
    client: Client,
    workspace: &Workspace,
    installed: &Installed,
    era: Era,
    servers: &[Server],
) -> Seen {
    workspace.write_config(&World::config(servers));
    let gateway = gateway_path(env!("CARGO_BIN_EXE_plugbay"));
    let entry = json!({"command": gateway, "args": ["serve", "--config", workspace.config_path()]});
    if client == Client::Inspector {
        // It lists once and leaves; a server that starts slowly is met beforehand.
        let mut list = Command::new(&gateway);
        list.args(["list", "--config"]).arg(workspace.config_path()).envs(workspace.environment());
        assert!(list.output().expect("plugbay list").status.success(), "plugbay list");
    }
    let calls: Vec<Call> = servers.iter().flat_map(exposed_calls).collect();
    client.run(workspace, installed, era, &entry, &calls)
}

fn exposed_calls(server: &Server) -> impl Iterator<Item = Call> {
    let expose = |call: &Call| Call { tool: format!("{}__{}", server.name, call.tool), ..call.clone() };
    server.calls.iter().map(expose)
}

/// A result as it can be compared: without what only one era has, where two eras met.
fn comparable(result: &Value, bridged: bool) -> Value {
    let mut result = result.clone();
    if let (true, Some(inner)) = (bridged, result["result"].as_object_mut()) {
        inner.remove("resultType");
        inner.remove("_meta");
    }
    result
}

/// Likewise a definition: `execution` belongs to the last legacy version only.
fn comparable_tool(tool: &Value, bridged: bool) -> Value {
    let mut tool = tool.clone();
    if let (true, Some(inner)) = (bridged, tool.as_object_mut()) {
        inner.remove("execution");
    }
    tool
}
