//! Search mode with real servers and a real client: `execute_tool` gives the same results as direct calls.

use plugbay_testkit::Workspace;
use serde_json::json;

use crate::{
    check::{only, usable},
    clients::{Client, Era},
    gateway::Gateway,
    world::{Call, World, call},
};

pub(crate) fn check_finding(client: Client, era: Era) {
    let Some(installed) = usable(client) else { return };
    let workspace = Workspace::new();
    let world = World::new(&workspace);
    world.reset();
    let all = world.servers(installed);
    let server = only(&all, "everything").remove(0);
    let git = only(&all, "git").remove(0);
    let direct = client.run(&workspace, installed, Era::Legacy, &server.entry, &server.calls, &[]);

    let config = World::config(&[server.clone(), git]).top("mode", json!("search"));
    let gateway = Gateway::over_stdio(&workspace, &config);
    Gateway::meet(&workspace);
    let found = call("search_tools", json!({"query": "what has changed in the working tree"}));
    let nothing = call("search_tools", json!({"query": "book a flight to Paris"}));
    let executed = server.calls.iter().map(|inner| {
        let name = format!("everything__{}", inner.tool);
        call("execute_tool", json!({"name": name, "arguments": inner.arguments}))
    });
    let calls: Vec<Call> = [found, nothing].into_iter().chain(executed).collect();
    let through = client.run(&workspace, installed, era, &gateway.entry, &calls, &[]);

    let names: Vec<&str> = through.tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["search_tools", "describe_tool", "execute_tool"]);
    let text = |at: usize| through.results[at]["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text(0).starts_with("git__git_status"), "{}", text(0));
    assert!(text(1).starts_with("No tool found."), "{}", text(1));
    for (number, inner) in server.calls.iter().enumerate() {
        let (got, expected) = (&through.results[number + 2]["result"], &direct.results[number]["result"]);
        if inner.arguments["a"].is_string() {
            // An argument without a plausible meaning is not sent at all.
            let words = got["content"][0]["text"].as_str().unwrap_or_default();
            assert!(got["isError"] == true && words.starts_with("`a` does not fit"), "{got}");
            continue;
        }
        assert_eq!(got["content"], expected["content"], "{} by {client:?}, {era:?}", inner.tool);
        assert_eq!(got["structuredContent"], expected["structuredContent"], "{}", inner.tool);
    }
}
