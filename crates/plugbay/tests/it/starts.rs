//! Many servers that need the processor to start: all of them list, and none is started twice.

use plugbay_testkit::{Script, Workspace};
use serde_json::json;

use crate::open_with;

#[test]
fn many_servers_that_start_slowly_all_list_in_one_start_each() {
    let workspace = Workspace::new();
    let names: Vec<String> = (0..24).map(|number| format!("s{number}")).collect();
    let script = || Script::friendly().set("start_work", 20);
    let servers: Vec<(&str, Script)> = names.iter().map(|name| (name.as_str(), script())).collect();
    // Far less time than they all need together.
    let config = workspace.config(&servers).top("defaults", json!({ "start": "500ms" }));
    let tools: Vec<String> = names.iter().map(|name| format!("{name}__echo")).collect();
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    let host = open_with(&workspace, &config.top("starts", json!(4)), &tools);
    for name in &names {
        assert_eq!(workspace.starts(name).len(), 1, "{name} was started again: {}", host.stderr());
    }
    host.finish();
}
