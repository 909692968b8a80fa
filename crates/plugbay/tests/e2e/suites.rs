//! Suite mode with real servers and a real client: list, introspect, call; results equal those of direct
//! calls.

use plugbay_testkit::Workspace;
use serde_json::{Value, json};

use crate::{
    check::{only, usable},
    clients::{Client, Era},
    gateway::Gateway,
    world::{Call, World, call},
};

const NAMES: [&str; 3] = ["filesystem", "git", "memory"];

pub(crate) fn check_suites(client: Client, era: Era) {
    let Some(installed) = usable(client) else { return };
    let workspace = Workspace::new();
    let world = World::new(&workspace);
    let all = world.servers(installed);
    let servers: Vec<_> = NAMES.iter().map(|name| only(&all, name).remove(0)).collect();
    world.reset();
    let direct: Vec<Value> = servers
        .iter()
        .flat_map(|server| {
            client.run(&workspace, installed, Era::Legacy, &server.entry, &server.calls, &[]).results
        })
        .collect();

    world.reset();
    let gateway = Gateway::over_stdio(&workspace, &World::config(&servers).top("mode", json!("suite")));
    Gateway::meet(&workspace);
    let suite = |name: &str| format!("{name}_suite");
    let introspected = NAMES.iter().map(|name| call(&suite(name), json!({"action": "introspect"})));
    let called = servers.iter().flat_map(|server| {
        server.calls.iter().map(move |inner| {
            call(
                &suite(server.name),
                json!({"action": "call", "subtool": inner.tool, "args": inner.arguments}),
            )
        })
    });
    let calls: Vec<Call> = introspected.chain(called).collect();
    let through = client.run(&workspace, installed, era, &gateway.entry, &calls, &[]);

    let names: Vec<&str> = through.tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, NAMES.map(suite));
    for (server, result) in servers.iter().zip(&through.results) {
        let lines = result["result"]["content"][0]["text"].as_str().unwrap_or_default();
        for inner in &server.calls {
            assert!(lines.contains(&format!("{}(", inner.tool)), "{}: {lines}", inner.tool);
        }
    }
    let inner = servers.iter().flat_map(|server| &server.calls);
    for ((inner, got), expected) in inner.zip(&through.results[NAMES.len()..]).zip(&direct) {
        let (got, expected) = (&got["result"], &expected["result"]);
        assert_eq!(got["content"], expected["content"], "{} by {client:?}, {era:?}", inner.tool);
        assert_eq!(got["structuredContent"], expected["structuredContent"], "{}", inner.tool);
    }
}
