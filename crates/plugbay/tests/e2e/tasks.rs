//! Tasks of real servers, polled by real clients: directly, and through a gateway with two of each server.

use plugbay_testkit::Workspace;
use serde_json::{Value, json};

use crate::{
    check::{only, usable},
    clients::{Client, Era, Seen},
    gateway::{Gateway, Transport},
    installed::Installed,
    peers::{Peers, task_servers},
    world::{Server, call},
};

/// The server, the tool and its arguments, as at the first of two servers.
struct Task {
    peers: Peers,
    servers: Vec<Server>,
    tool: &'static str,
    arguments: Value,
}

impl Task {
    fn of(era: Era, workspace: &Workspace, installed: &Installed) -> Self {
        match era {
            Era::Legacy => {
                let peers = Peers::start(workspace, installed);
                let servers = ["everything-http", "everything-sse"];
                let servers = servers.map(|name| only(&peers.servers, name).remove(0)).into();
                let arguments = json!({"topic": "python", "ambiguous": true});
                Self { peers, servers, tool: "simulate-research-query", arguments }
            }
            Era::Modern => {
                let peers = task_servers(workspace, installed);
                let servers = peers.servers.clone();
                Self { peers, servers, tool: "research", arguments: json!({"topic": "the sky"}) }
            }
        }
    }
}

pub(crate) fn check_tasks(era: Era, host: Transport) {
    let Some(installed) = usable(Client::TypeScript1) else { return };
    let workspace = Workspace::new();
    let Task { peers, servers, tool, arguments } = Task::of(era, &workspace, installed);
    let look_after = |entry: &Value, tool: &str, cancel: bool| {
        let wanted = json!({"tool": tool, "arguments": arguments, "cancel": cancel});
        Client::look_after(&workspace, installed, era, entry, &wanted)
    };
    let direct = look_after(&servers[0].entry, tool, false);
    let gateway = Gateway::new(host, &workspace, &servers);
    for server in &servers {
        let tool = format!("{}__{tool}", server.name);
        let through = look_after(&gateway.entry, &tool, false);
        for same in ["states", "asked"] {
            assert_eq!(through[same], direct[same], "{through}");
        }
        assert_eq!(through["result"]["content"], direct["result"]["content"], "{through}");
        let [id] = &through["tasks"].as_array().expect("ids")[..] else { panic!("{through}") };
        assert!(id.as_str().expect("an id").starts_with(&format!("{}__", server.name)), "{id}");
        // Only if there can be no other host, all tasks are the host's own.
        let listed = if host == Transport::Stdio { json!(true) } else { Value::Null };
        assert_eq!(through["listed"], if era == Era::Legacy { listed } else { Value::Null });

        let cancelled = look_after(&gateway.entry, &tool, true);
        assert!(
            cancelled["error"]["message"].as_str().is_some_and(|why| why.contains("cancelled")),
            "{cancelled}"
        );
    }
    gateway.close();
    drop(peers);
}

/// Clients that cannot poll tasks, or not this kind: for them each task is one long call.
pub(crate) fn check_driven() {
    let Some(installed) = usable(Client::TypeScript1) else { return };
    let workspace = Workspace::new();
    let mut task = Task::of(Era::Modern, &workspace, installed);
    let legacy = Task::of(Era::Legacy, &workspace, installed);
    task.servers.extend(legacy.servers.iter().cloned());
    let gateway = Gateway::new(Transport::Http, &workspace, &task.servers);

    let wanted = json!({"tool": "tasks1__research", "arguments": task.arguments});
    let through = Client::look_after(&workspace, installed, Era::Legacy, &gateway.entry, &wanted);
    assert_eq!(through["result"]["content"][0]["text"], "the sky, anything", "{through}");
    assert_eq!((&through["asked"], &through["tasks"]), (&json!(1), &json!([])));

    let tool = format!("everything-http__{}", legacy.tool);
    for client in [Client::TypeScript2, Client::Python2] {
        let calls = [call(&tool, json!({"topic": "the sea"}))];
        let Seen { results, .. } =
            client.run(&workspace, installed, Era::Modern, &gateway.entry, &calls, &[]);
        assert!(results[0].to_string().contains("Research Report: the sea"), "{client:?}: {}", results[0]);
    }
    gateway.close();
}
