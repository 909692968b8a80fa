//! Resources, templates, prompts and completions of a real server: requested directly, then through a gateway
//! with two such servers, so that prompts and URIs need their server's name.

use plugbay_testkit::Workspace;
use serde_json::{Value, json};

use crate::{
    check::{only, usable},
    clients::{Client, Era, Seen},
    gateway::{Gateway, Transport},
    peers::Peers,
    world::Server,
};

const READ: &str = "demo://resource/static/document/features.md";
const MISSING: &str = "nowhere://at/all";

pub(crate) fn check_shelf(client: Client, era: Era, host: Transport) {
    let Some(installed) = usable(client) else { return };
    let workspace = Workspace::new();
    let peers = Peers::start(&workspace, installed);
    let [one, two] = ["everything-http", "everything-sse"].map(|name| only(&peers.servers, name).remove(0));

    let own = |text: &str| text.to_owned();
    let direct = client.look(&workspace, installed, Era::Legacy, &one.entry, resources(own, own));
    let servers = [one.clone(), two];
    let gateway = Gateway::new(host, &workspace, &servers);
    let wanted = resources(|uri| mapped(&one, uri), |prompt| format!("{}__{prompt}", one.name));
    let through = client.look(&workspace, installed, era, &gateway.entry, wanted);
    gateway.close();

    let (direct, through) = (asked(&direct), asked(&through));
    // A resource that was read has the requested URI.
    let shown = |value: &Value| -> Value {
        let quoted = |uri: &str| format!("\"uri\":\"{uri}\"");
        let text = value.to_string().replace(&quoted(READ), &quoted(&mapped(&one, READ)));
        serde_json::from_str(&text).expect("JSON")
    };
    for (number, (expected, got)) in direct.iter().map(shown).zip(&through).enumerate() {
        let (expected, bridged) = (&expected, era == Era::Modern);
        assert_eq!(
            comparable(got, bridged),
            comparable(expected, bridged),
            "{number} by {client:?}, {era:?}"
        );
    }
    assert_eq!(through.len(), 5);
    assert!(through[0].to_string().contains("\"text\":"), "{}", through[0]);
    assert!(through[1]["error"]["message"].is_string(), "{}", through[1]);
    assert!(through[3].to_string().contains("Rome"), "{}", through[3]);
    assert!(through[4].to_string().contains("Engineering"), "{}", through[4]);
}

/// The definitions of both servers, each under its own key.
pub(crate) fn check_definitions(client: Client, era: Era) {
    let Some(installed) = usable(client) else { return };
    let workspace = Workspace::new();
    let peers = Peers::start(&workspace, installed);
    let servers = ["everything-http", "everything-sse"].map(|name| only(&peers.servers, name).remove(0));
    let own = |text: &str| text.to_owned();
    let direct = client.look(&workspace, installed, Era::Legacy, &servers[0].entry, resources(own, own));
    let gateway = Gateway::new(Transport::Stdio, &workspace, &servers);
    Gateway::meet(&workspace);
    let through = client.look(&workspace, installed, era, &gateway.entry, resources(own, own));
    gateway.close();

    for (list, key) in [("resources", "uri"), ("templates", "uriTemplate"), ("prompts", "name")] {
        let listed = |seen: &Seen| seen.resources[list].as_array().cloned().unwrap_or_default();
        let (direct, through) = (listed(&direct), listed(&through));
        assert!(!direct.is_empty(), "no {list}");
        assert_eq!(through.len(), 2 * direct.len(), "{list}: {through:#?}");
        for server in &servers {
            for definition in &direct {
                let mut expected = definition.clone();
                let own = definition[key].as_str().expect("key");
                let shown =
                    if list == "prompts" { format!("{}__{own}", server.name) } else { mapped(server, own) };
                expected[key] = json!(shown);
                assert!(through.contains(&expected), "{expected:#} is not among {through:#?}");
            }
        }
    }
}

fn resources(uri: impl Fn(&str) -> String, prompt: impl Fn(&str) -> String) -> Value {
    let completable = json!({"type": "ref/prompt", "name": prompt("completable-prompt")});
    json!({
        "reads": [uri(READ), uri(MISSING)],
        "prompts": [
            {"name": prompt("simple-prompt"), "arguments": {}},
            {"name": prompt("args-prompt"), "arguments": {"city": "Rome"}},
        ],
        "completions": [{"ref": completable, "argument": {"name": "department", "value": "E"}}],
    })
}

fn mapped(server: &Server, uri: &str) -> String {
    format!("plugbay://{}/{uri}", server.name)
}

fn asked(seen: &Seen) -> Vec<Value> {
    seen.resources["asked"].as_array().cloned().unwrap_or_default()
}

/// The outcome without members that only the modern era has.
fn comparable(outcome: &Value, bridged: bool) -> Value {
    let mut outcome = outcome.clone();
    if let (true, Some(result)) = (bridged, outcome["result"].as_object_mut()) {
        for key in ["resultType", "ttlMs", "cacheScope", "_meta"] {
            result.remove(key);
        }
    }
    outcome
}
