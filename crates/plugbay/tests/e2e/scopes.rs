//! The real memory server behind HTTP: sessions are separate in scope `session`, and share in scope `shared`.

use plugbay_testkit::{DEADLINE, HttpGateway, MODERN_META, Workspace, gateway_path, wait_until};
use serde_json::{Value, json};

use crate::{check::only, installed::installed, world::World};

/// What the second session reads of the graph after the first one has written to it.
fn read_by_another(scope: &str) -> Option<[String; 2]> {
    let workspace = Workspace::new();
    let world = World::new(&workspace);
    world.reset();
    let memory = only(&world.servers(installed()?), "memory");
    workspace.write_config(&World::config(&memory).options("memory", json!({ "scope": scope })));
    let gateway = HttpGateway::start(&mut workspace.command(&gateway_path(env!("CARGO_BIN_EXE_plugbay"))));
    let post = |session: &str, method: &str, tool: &str, members: &str| {
        let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        headers.extend((!tool.is_empty()).then_some(("mcp-name", tool)));
        headers.push(("x-session-id", session));
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{{{MODERN_META}}}{members}}}}}"#
        );
        gateway.post(&headers, &body).body
    };
    let call = |session: &str, tool: &str, arguments: &Value| {
        post(session, "tools/call", tool, &format!(r#","name":"{tool}","arguments":{arguments}"#))
    };
    wait_until("the memory", DEADLINE, || {
        post("x", "tools/list", "", "").contains("memory__read_graph").then_some(())
    });
    for (session, canary) in [("a", "pelican"), ("b", "ibis")] {
        let entity = json!({ "name": canary, "entityType": "bird", "observations": ["seen"] });
        let made = call(session, "memory__create_entities", &json!({ "entities": [entity] }));
        assert!(made.contains(canary), "{made}");
    }
    Some(["a", "b"].map(|session| call(session, "memory__read_graph", &json!({}))))
}

pub(crate) fn check_memory_of_sessions() {
    let Some([a, b]) = read_by_another("session") else { return };
    assert!(a.contains("pelican") && !a.contains("ibis"), "{a}");
    assert!(b.contains("ibis") && !b.contains("pelican"), "{b}");
    let Some([a, b]) = read_by_another("shared") else { return };
    assert!([&a, &b].iter().all(|graph| graph.contains("pelican") && graph.contains("ibis")), "{a} {b}");
}
