//! The comparison: each server called directly, then all of them through one gateway.

use plugbay_testkit::Workspace;
use serde_json::{Value, json};

use crate::{
    clients::{Client, Era, Seen},
    gateway::{Gateway, Transport},
    installed::{Installed, installed, skipped},
    peers::Peers,
    world::{CONDITIONAL, Call, Server, World, call},
};

/// The transports between the client and the gateway, and between the gateway and its servers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    pub(crate) host: Transport,
    pub(crate) servers: Transport,
}

/// Runs the client in the given era against all servers; results and definitions must be equal.
pub(crate) fn check(client: Client, era: Era, route: Route) {
    let Some(installed) = usable(client) else { return };
    let workspace = Workspace::new();
    let world = World::new(&workspace);
    let peers = (route.servers == Transport::Http).then(|| Peers::start(&workspace, installed));
    let servers = match &peers {
        Some(peers) => &peers.servers,
        None => &world.servers(installed),
    };
    let servers = suited(servers, client);

    world.reset();
    let direct: Vec<Seen> =
        servers.iter().map(|server| ask_directly(client, &workspace, installed, era, server)).collect();
    world.reset();
    let through = ask_through_gateway(client, &workspace, installed, era, route.host, &servers);
    assert_eq!(through.era, era, "the gateway speaks the era it was asked for");

    let mut results = through.results.iter();
    for (server, direct) in servers.iter().zip(&direct) {
        // Between eras a result may gain or lose members that only one of them has; within one era it must
        // not.
        let bridged = era != server.era || direct.era != server.era;
        for (call, expected) in server.calls.iter().zip(&direct.results) {
            let got = results.next().expect("a result for each call");
            let place = format!("{} {} by {client:?}, {era:?}", server.name, call.tool);
            assert_eq!(comparable(got, bridged), comparable(expected, bridged), "{place}");
            let (got, expected) = common_progress(client, got, expected);
            assert_eq!(got, expected, "progress of {place}");
        }
        let unconditional = |tool: &&Value| !CONDITIONAL.iter().any(|name| tool["name"] == *name);
        for expected in direct.tools.iter().filter(unconditional) {
            let mut expected = expected.clone();
            expected["name"] = json!(exposed(server, expected["name"].as_str().expect("name")));
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

/// Runs the clients and the servers without a gateway. `check` relies on what they make of each other.
pub(crate) fn check_peers(client: Client, era: Era) {
    let Some(installed) = usable(client) else { return };
    let workspace = Workspace::new();
    let peers = Peers::start(&workspace, installed);
    for server in suited(&peers.servers, client) {
        let seen = ask_directly(client, &workspace, installed, era, &server);
        let expected = if server.era == Era::Legacy { Era::Legacy } else { era };
        assert_eq!(seen.era, expected, "{} by {client:?}", server.name);
        assert_eq!(seen.results.len(), server.calls.len(), "{} by {client:?}", server.name);
        let first = &seen.results[0]["result"]["content"][0]["text"];
        let first = first.as_str().unwrap_or_else(|| panic!("{}: {:#?}", server.name, seen.results[0]));
        assert!(first.contains("héllo \"world\" 😀"), "{}: {first}", server.name);
    }
}

/// A tool that is added while the gateway runs is listed soon, without being asked for.
pub(crate) fn check_growth(client: Client, era: Era, host: Transport) {
    let Some(installed) = usable(client) else { return };
    let workspace = Workspace::new();
    let peers = Peers::start(&workspace, installed);
    let servers = only(&peers.servers, "modern");
    let gateway = Gateway::new(host, &workspace, &servers);
    let grow = call(&exposed(&servers[0], "grow"), json!({}));
    let grown = exposed(&servers[0], "grown_1");
    let seen = client.run(&workspace, installed, era, &gateway.entry, &[grow], &[grown]);
    assert_eq!(seen.results[0]["result"]["content"][0]["text"], "grown_1");
    gateway.close();
}

/// The installation, if this client can run with it.
pub(crate) fn usable(client: Client) -> Option<&'static Installed> {
    let installed = installed()?;
    if client == Client::Inspector && installed.newer_node().is_none() {
        skipped("no node here is new enough for the inspector");
        return None;
    }
    Some(installed)
}

/// The servers for a client. The inspector needs a process for each call, and over stdio each process starts
/// every server, so it makes one call to two servers.
fn suited(servers: &[Server], client: Client) -> Vec<Server> {
    let mut servers = servers.to_vec();
    if client == Client::Inspector {
        servers.retain(|server| ["everything", "git", "everything-sse", "modern"].contains(&server.name));
        for server in &mut servers {
            server.calls.truncate(1);
        }
    }
    servers
}

pub(crate) fn only(servers: &[Server], name: &str) -> Vec<Server> {
    servers.iter().filter(|server| server.name == name).cloned().collect()
}

/// Uses the wanted era, or the one that the server has.
fn ask_directly(
    client: Client,
    workspace: &Workspace,
    installed: &Installed,
    era: Era,
    server: &Server,
) -> Seen {
    let era = if server.era == Era::Legacy { Era::Legacy } else { era };
    client.run(workspace, installed, era, &server.entry, &server.calls, &[])
}

fn ask_through_gateway(
    client: Client,
    workspace: &Workspace,
    installed: &Installed,
    era: Era,
    host: Transport,
    servers: &[Server],
) -> Seen {
    let gateway = Gateway::new(host, workspace, servers);
    if client == Client::Inspector && host == Transport::Stdio {
        // It lists once and leaves, and the gateway ends with it. So servers that start slowly are started
        // beforehand.
        Gateway::meet(workspace);
    }
    let calls: Vec<Call> = servers.iter().flat_map(exposed_calls).collect();
    let seen = client.run(workspace, installed, era, &gateway.entry, &calls, &[]);
    gateway.close();
    seen
}

fn exposed_calls(server: &Server) -> impl Iterator<Item = Call> {
    server.calls.iter().map(|call| Call { tool: exposed(server, &call.tool), ..call.clone() })
}

fn exposed(server: &Server, tool: &str) -> String {
    format!("{}__{tool}", server.name)
}

/// The progress that both runs must have received: all of it, except with the TypeScript SDKs. They stop
/// listening when the result comes, so they miss notifications in the same piece, with or without a gateway.
fn common_progress<'a>(client: Client, one: &'a Value, two: &'a Value) -> (&'a [Value], &'a [Value]) {
    let steps = |result: &'a Value| result["progress"].as_array().map_or(&[][..], Vec::as_slice);
    let (one, two) = (steps(one), steps(two));
    let forgetful = matches!(client, Client::TypeScript1 | Client::TypeScript2);
    let common = if forgetful { one.len().min(two.len()) } else { usize::MAX };
    (&one[..one.len().min(common)], &two[..two.len().min(common)])
}

/// A comparable result: if two eras met, without members that only one of them has.
fn comparable(result: &Value, bridged: bool) -> Value {
    let mut result = result.clone();
    if let Some(outer) = result.as_object_mut() {
        outer.remove("progress");
    }
    if let (true, Some(inner)) = (bridged, result["result"].as_object_mut()) {
        inner.remove("resultType");
        inner.remove("_meta");
    }
    result
}

/// The same for a definition: only the last legacy version has `execution`.
fn comparable_tool(tool: &Value, bridged: bool) -> Value {
    let mut tool = tool.clone();
    if let (true, Some(inner)) = (bridged, tool.as_object_mut()) {
        inner.remove("execution");
    }
    tool
}
