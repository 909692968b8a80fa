//! Tasks and the lifetimes of processes: the gateway's, and those of its servers.

use plugbay_testkit::{Host, Script, Workspace};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::open;

/// A server whose tool `begin` answers with a task; all its tasks have the same id.
fn server(name: &str) -> Script {
    let tasks = json!({"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}});
    let told = json!({"taskId": "1", "status": "working", "statusMessage": name});
    let methods = json!({
        "tasks/get": {"result": told},
        "tasks/list": {"result": {"tasks": [told]}},
        "tasks/result": {"hang": true},
    });
    // Written before the answer, so that it is there when the answer arrives.
    let begun = json!({"result": {"task": told}, "stderr": ["last words of the task"]});
    let tools = json!([
        {"name": "begin", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}},
    ]);
    Script::new().set("capabilities", tasks).set("methods", methods).set("tools", tools).tool("begin", begun)
}

fn ask(host: &Host, method: &str, params: &Value) -> Value {
    let id = host.request(method, &params.to_string());
    host.expect_response(id).value()
}

fn begin(host: &Host, server: &str) -> Value {
    let begun = ask(host, "tools/call", &json!({"name": format!("{server}__begin"), "task": {}}));
    begun["result"]["task"]["taskId"].clone()
}

#[test]
fn a_task_is_found_again_by_another_gateway() {
    let workspace = Workspace::new();
    let servers = || [("a", server("a")), ("b", server("b"))];
    let host = open(&workspace, &servers(), &["a__begin", "b__begin"]);
    let ids = ["a", "b"].map(|name| begin(&host, name));
    assert_ne!(ids[0], ids[1]);
    host.finish();
    let host = open(&workspace, &servers(), &["a__begin", "b__begin"]);
    for (id, name) in ids.iter().zip(["a", "b"]) {
        let told = ask(&host, "tasks/get", &json!({"taskId": id}))["result"].clone();
        assert_eq!(told, json!({"taskId": id, "status": "working", "statusMessage": name}));
    }
    let (mut listed, mut page) = (Vec::new(), json!({}));
    while !page["cursor"].is_null() || listed.is_empty() {
        let result = ask(&host, "tasks/list", &page)["result"].clone();
        listed.extend(result["tasks"].as_array().expect("tasks").iter().map(|task| task["taskId"].clone()));
        page["cursor"] = result["nextCursor"].clone();
    }
    assert_eq!(listed, ids);
    host.finish();
}

#[test]
fn tasks_result_reports_how_its_server_died() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", server("s"))], &["s__begin"]);
    let id = begin(&host, "s");
    let waiting = host.request("tasks/result", &json!({"taskId": id}).to_string());
    workspace.await_log("s", r#""tasks/result""#, 1);
    workspace.server_process("s").signal(Signal::KILL);
    let failure = host.expect_response(waiting).failure();
    assert!(failure.contains("SIGKILL") && failure.contains("last words of the task"), "{failure}");
    // A server that keeps its tasks elsewhere still knows it.
    let told = ask(&host, "tasks/get", &json!({"taskId": id}));
    assert_eq!(told["result"]["status"], "working", "{told}");
    // A server that refuses has lost the task for a reason, whichever of the two servers is asked.
    workspace.server_process("s").signal(Signal::KILL);
    let lost = ask(&host, "tasks/cancel", &json!({"taskId": id}))["error"]["message"].clone();
    let lost = lost.as_str().expect("words");
    assert!(lost.contains("SIGKILL"), "{lost}");
    host.finish();
}
