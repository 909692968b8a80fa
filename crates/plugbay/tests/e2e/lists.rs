//! The real server-everything: its list depends on the host's capabilities, including from the cache and at a
//! daemon.

use plugbay_testkit::{Host, Workspace, gateway_path};
use serde_json::json;

use crate::{check::only, installed::installed, world::World};

const POOR: &str = "{}";
const RICH: &str = r#"{"sampling":{},"elicitation":{},"roots":{"listChanged":true}}"#;
/// The number of its tools for each kind of host.
const TOOLS: [(&str, usize); 2] = [(POOR, 13), (RICH, 16)];

/// A host that lists only once, and its list.
fn first_list(workspace: &Workspace, capabilities: &str) -> (Host, usize) {
    let host = Host::spawn(&mut workspace.command(&gateway_path(env!("CARGO_BIN_EXE_plugbay"))));
    let opening = format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"codex-mcp-client","version":"0"}}}}"#
    );
    let id = host.request("initialize", &opening);
    host.expect_response(id);
    host.notify("notifications/initialized", "{}");
    let count = host.list_tools().len();
    (host, count)
}

pub(crate) fn check_lists_of_hosts() {
    let Some(installed) = installed() else { return };
    for daemon in [false, true] {
        let workspace = if daemon { Workspace::new().with_daemon() } else { Workspace::new() };
        let world = World::new(&workspace);
        world.reset();
        let everything = only(&world.servers(installed), "everything");
        let config = World::config(&everything).options("everything", json!({ "scope": "shared" }));
        workspace.write_config(&config);
        // Each kind of host connects twice: the second time its list is in the cache.
        for (capabilities, _) in TOOLS {
            let (host, _) = first_list(&workspace, capabilities);
            let wanted = TOOLS.iter().find(|(kind, _)| *kind == capabilities).expect("a kind").1;
            host.await_list("the list for its capabilities", |tools| tools.len() == wanted);
            host.finish();
        }
        for (capabilities, wanted) in [TOOLS[0], TOOLS[1], TOOLS[0]] {
            let (host, count) = first_list(&workspace, capabilities);
            assert_eq!(count, wanted, "daemon: {daemon}, {capabilities}");
            host.finish();
        }
    }
}
