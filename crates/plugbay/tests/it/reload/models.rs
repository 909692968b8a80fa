//! Keys for language models: those that rank tools, and those that call them.

use serde_json::{Value, json};

use super::table::{Harness, Row, agent_run, call, names, ranking, search_time, with};

/// A model that ranks search hits.
pub(super) fn rankers(harness: &Harness) -> Vec<Row> {
    let keyless = |more: Value| {
        let model = json!({ "provider": "gemini", "model": "m", "baseUrl": harness.ranker.url() });
        json!({ "mode": "search", "search": { "model": with(model, more) } })
    };
    let model = |more: Value| keyless(with(json!({ "apiKeyEnv": "KEY_ONE" }), more));
    let key = |key: &str| with(keyless(json!({})), json!({ "gemini_api_key": key }));
    let silent = |timeout: &str| model(json!({ "baseUrl": harness.silent.url(), "timeout": timeout }));
    let elsewhere = |path: &str| model(json!({ "baseUrl": format!("{}{path}", harness.ranker.url()) }));
    let row = |key, before, after, look, shows| Row { key, before, after, look, shows };
    let keys = ["(\"x-goog-api-key\", \"one\")", "(\"x-goog-api-key\", \"two\")"];
    vec![
        row(
            "Search.model",
            json!({ "mode": "search" }),
            model(json!({})),
            ranking,
            ["[]", "generateContent"],
        ),
        row(
            "LanguageModel.provider",
            model(json!({})),
            model(json!({ "provider": "openai" })),
            ranking,
            ["generateContent", "chat/completions"],
        ),
        row(
            "LanguageModel.model",
            model(json!({})),
            model(json!({ "model": "other" })),
            ranking,
            ["/m:", "/other:"],
        ),
        row("LanguageModel.baseUrl", elsewhere("/one"), elsewhere("/two"), ranking, ["\"/one/", "\"/two/"]),
        row(
            "LanguageModel.apiKeyEnv",
            model(json!({ "apiKeyEnv": "KEY_ONE" })),
            model(json!({ "apiKeyEnv": "KEY_TWO" })),
            ranking,
            keys,
        ),
        row(
            "LanguageModel.keychain",
            keyless(json!({ "keychain": "one" })),
            keyless(json!({ "keychain": "two" })),
            ranking,
            keys,
        ),
        row(
            "LanguageModel.apiKeyCommand",
            keyless(json!({ "apiKeyCommand": ["echo", "one"] })),
            keyless(json!({ "apiKeyCommand": ["echo", "two"] })),
            ranking,
            keys,
        ),
        row("LanguageModel.timeout", silent("1ms"), silent("1500ms"), search_time, ["short", "long"]),
        row("gemini_api_key", key("one"), key("two"), ranking, keys),
    ]
}

/// A model for `natural_language`.
pub(super) fn agents(harness: &Harness) -> Vec<Row> {
    let settings = |more: Value| {
        let model = json!({ "provider": "anthropic", "model": "m", "baseUrl": harness.agent.url() });
        json!({ "naturalLanguage": with(json!({ "model": model, "calls": 9, "turns": 2 }), more) })
    };
    let silent = |time: &str| {
        let model = json!({ "provider": "anthropic", "model": "m", "baseUrl": harness.silent.url() });
        settings(json!({ "model": model, "time": time }))
    };
    let told = |instructions: &str| {
        let options = json!({ "instructions": instructions });
        with(settings(json!({})), json!({ "mcpServers": { "s": { "plugbay": options } } }))
    };
    let row = |key, before, after, look, shows| Row { key, before, after, look, shows };
    vec![
        row(
            "NaturalLanguage.model",
            json!({}),
            settings(json!({})),
            names,
            [" s__echo ", " natural_language "],
        ),
        row(
            "NaturalLanguage.calls",
            settings(json!({ "calls": 3, "turns": 9 })),
            settings(json!({ "calls": 4, "turns": 9 })),
            agent_run,
            ["limit of 3 calls", "limit of 4 calls"],
        ),
        row(
            "NaturalLanguage.turns",
            settings(json!({})),
            settings(json!({ "turns": 3 })),
            agent_run,
            ["asked 2 times", "asked 3 times"],
        ),
        row(
            "NaturalLanguage.tokens",
            settings(json!({ "tokens": 30 })),
            settings(json!({ "tokens": 31 })),
            agent_run,
            ["limit of 30 tokens", "limit of 31 tokens"],
        ),
        row(
            "NaturalLanguage.time",
            silent("300ms"),
            silent("400ms"),
            agent_run,
            ["limit of 0.3 s", "limit of 0.4 s"],
        ),
        row(
            "NaturalLanguage.allowWrites",
            settings(json!({})),
            settings(json!({ "allowWrites": true })),
            added,
            ["not allowed", "done"],
        ),
        row(
            "NaturalLanguage.allowDestructive",
            settings(json!({})),
            settings(json!({ "allowDestructive": true })),
            dropped,
            ["not allowed", "done"],
        ),
        row(
            "NaturalLanguage.instructions",
            settings(json!({ "instructions": "Be brief." })),
            settings(json!({ "instructions": "Be kind." })),
            agent_run,
            ["Be brief.", "Be kind."],
        ),
        row(
            "Plugbay.instructions",
            told("It holds numbers."),
            told("It holds words."),
            agent_run,
            ["It holds numbers.", "It holds words."],
        ),
    ]
}

/// The outcome of the model's call of a tool that adds something.
fn added(harness: &Harness) -> String {
    outcome(harness, "s__add")
}

/// The outcome of the model's call of a tool that may delete something.
fn dropped(harness: &Harness) -> String {
    outcome(harness, "s__drop")
}

fn outcome(harness: &Harness, tool: &str) -> String {
    let record = call(harness, "natural_language", &json!({ "query": "x" }));
    let outcome = record.split(tool).nth(1).unwrap_or_default();
    outcome.split("\\n").next().unwrap_or_default().to_owned()
}
