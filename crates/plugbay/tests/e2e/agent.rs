//! Natural language, with a real client and a real server. Only the model is ours, behind a chat completions
//! endpoint.

use plugbay_testkit::{Endpoint, Play, Workspace};
use serde_json::{Value, json};

use crate::{
    check::{only, usable},
    clients::{Client, Era},
    gateway::Gateway,
    world::{World, call},
};

/// The model stores an entity, checks that it is there, and says so.
pub(crate) fn check_agent(client: Client, era: Era) {
    let Some(installed) = usable(client) else { return };
    let workspace = Workspace::new();
    let world = World::new(&workspace);
    world.reset();
    let memory = only(&world.servers(installed), "memory").remove(0);
    let entities = json!([{"name": "Grace", "entityType": "person", "observations": ["found a moth"]}]);
    let endpoint = Endpoint::start([
        wants("memory__create_entities", &json!({"entities": entities})),
        wants("memory__read_graph", &json!({})),
        answers(&json!({"role": "assistant", "content": "Grace is remembered."}), "stop"),
    ]);
    let model = json!({"provider": "openai", "model": "m", "baseUrl": endpoint.url()});
    let config = World::config(&[memory]).top("mode", json!("suite"));
    let config = config.top("naturalLanguage", json!({"model": model, "allowDestructive": true}));
    let mut gateway = Gateway::over_stdio(&workspace, &config);
    gateway.entry["env"] = json!({"OPENAI_API_KEY": "none"});
    Gateway::meet(&workspace);

    let query = json!({"query": "Remember that Grace found a moth."});
    let sentence = json!({"action": "call", "subtool": "natural_language", "args": query});
    let through =
        client.run(&workspace, installed, era, &gateway.entry, &[call("memory_suite", sentence)], &[]);
    let content = &through.results[0]["result"]["content"];
    assert_eq!(content[0]["text"], "Grace is remembered.", "{through:?}");
    let record = content[1]["text"].as_str().unwrap_or_default();
    assert!(
        record.contains("1. memory__create_entities ") && record.contains("2. memory__read_graph {}: done"),
        "{record}"
    );
    let (_, _, last) = (endpoint.asked(), endpoint.asked(), endpoint.asked());
    assert!(
        last.text.contains("found a moth"),
        "the model was told what the server remembers: {}",
        last.text
    );
}

fn wants(tool: &str, arguments: &Value) -> Play {
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    let calls = json!([{"id": "call_1", "type": "function", "function": function}]);
    answers(&json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
}

fn answers(message: &Value, finish: &str) -> Play {
    let choice = json!({"index": 0, "message": message, "finish_reason": finish});
    let usage = json!({"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30});
    Play::json(
        200,
        &json!({"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": usage}),
    )
}
