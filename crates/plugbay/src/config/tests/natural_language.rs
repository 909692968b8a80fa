//! The model for `natural_language`, its limits, and the calls that it may make without asking.

use std::{path::Path, time::Duration};

use plugbay_core::surface::Effect;
use plugbay_downstream::agent::Limits;
use plugbay_model::{Key, Provider};

use super::{Place, line, settings};
use crate::config::{ModelSource, NaturalLanguage, load};

/// The key of the chosen model.
#[track_caller]
fn key(model: &str) -> Key {
    let text = format!(r#"{{"naturalLanguage": {{"model": {{"provider": "gemini", {model}}}}}}}"#);
    match chosen(&text).map(|chosen| chosen.model) {
        Some(ModelSource::Remote(endpoint)) => endpoint.key.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn chosen(text: &str) -> Option<NaturalLanguage> {
    let settings = settings(text, &[("GEMINI_API_KEY", "g")]);
    assert_eq!(settings.diagnostics, [], "{text}");
    settings.natural_language
}

#[test]
fn only_a_named_model_runs_agents() {
    assert_eq!(chosen("{}"), None);
    assert_eq!(chosen(r#"{"naturalLanguage": {"calls": 3, "allowWrites": true}}"#), None);
    let ranks = r#"{"search": {"model": "gemini-x"}, "gemini_api_key": "g", "naturalLanguage": {}}"#;
    assert_eq!(chosen(ranks), None, "a model that ranks is not told what tools return");
}

#[test]
fn every_setting_has_a_default() {
    let limits = Limits { calls: 8, turns: 12, tokens: 100_000, time: Duration::from_secs(120) };
    let host = chosen(r#"{"naturalLanguage": {"model": {"provider": "host"}}}"#).unwrap();
    let expected = NaturalLanguage { model: ModelSource::Host, limits, instructions: None, servers: None };
    assert_eq!(host, expected);
    let said = chosen(
        r#"{"naturalLanguage": {"model": "gemini-x", "calls": 1, "turns": 2, "tokens": 3, "time": "4s", "instructions": "Be kind."}}"#,
    );
    let said = said.unwrap();
    assert_eq!(said.limits, Limits { calls: 1, turns: 2, tokens: 3, time: Duration::from_secs(4) });
    assert_eq!(said.instructions.as_deref(), Some("Be kind."));
    let ModelSource::Remote(endpoint) = said.model else { panic!("{said:?}") };
    assert_eq!(endpoint.model, "gemini-x");
    assert!(endpoint.patience > said.limits.time, "what ends it is the limit");
}

#[test]
fn consent_is_needed_unless_the_effect_is_allowed() {
    for (words, unasked) in [
        ("", Effect::Reads),
        (r#", "allowWrites": false"#, Effect::Reads),
        (r#", "allowWrites": true"#, Effect::Writes),
        (r#", "allowWrites": true, "allowDestructive": false"#, Effect::Writes),
        (r#", "allowDestructive": true"#, Effect::Destroys),
    ] {
        // This setting and the model may come from different files.
        for model in ["null", r#"{"provider": "host"}"#] {
            let text = format!(r#"{{"naturalLanguage": {{"model": {model}{words}}}}}"#);
            assert_eq!(settings(&text, &[]).unasked, unasked, "{text}");
        }
    }
}

#[test]
fn a_model_setting_with_a_mistake_asks_no_model() {
    for model in [r#"{"provider": "openia"}"#, r#"{"provider": "anthropic", "model": "m"}"#] {
        let settings = settings(&format!(r#"{{"naturalLanguage": {{"model": {model}}}}}"#), &[]);
        let told: Vec<String> = settings.diagnostics.iter().map(line).collect();
        assert_eq!((told.len(), settings.natural_language), (1, None), "{told:?}");
    }
}

#[test]
fn the_key_of_a_model_has_one_place() {
    assert_eq!(key(r#""timeout": "1s""#), Key::new("g", "GEMINI_API_KEY"));
    assert_eq!(key(r#""keychain": "plugbay""#), Key::in_keychain("plugbay"));
    // Its description contains no values.
    let written = ["op", "read", "op://${GEMINI_API_KEY}"];
    let told = Key::told_by("op".to_owned(), vec!["read".to_owned(), "op://g".to_owned()], written);
    assert_eq!(told.from(), "`op read op://${GEMINI_API_KEY}`");
    assert_eq!(key(r#""apiKeyCommand": ["op", "read", "op://${GEMINI_API_KEY}"]"#), told);
    for (model, problem) in [
        (r#""keychain": "a", "apiKeyEnv": "GEMINI_API_KEY""#, "given in several places"),
        (r#""apiKeyCommand": []"#, "the list is empty"),
        (r#""apiKeyCommand": ["op", "${NOT_SET}"]"#, "`NOT_SET` is not set"),
        (r#""apiKeyCommand": "op read""#, "expected a list, found a string"),
    ] {
        let text = format!(r#"{{"naturalLanguage": {{"model": {{"provider": "gemini", {model}}}}}}}"#);
        let settings = settings(&text, &[("GEMINI_API_KEY", "g")]);
        let told: Vec<String> = settings.diagnostics.iter().map(line).collect();
        assert!(told.len() == 1 && told[0].contains(problem), "{told:?}");
        assert_eq!(settings.natural_language, None, "{model}");
    }
}

/// Switchboard's own layout with one wrapper, one server without, and this file.
fn wrapped(config: &str) -> Place {
    let place = Place::new();
    place.write("project/switchboard.config.json", config);
    let memory = "project/.switchboard/mcps/memory";
    place.write(
        &format!("{memory}/.mcp.json"),
        r#"{"name": "memory", "command": {"cmd": "node", "args": ["memory-claude-wrapper.mjs"]}}"#,
    );
    place.write(&format!("{memory}/original/.mcp.json"), r#"{"name": "m", "command": {"cmd": "m"}}"#);
    place.write("project/.switchboard/mcps/git/.mcp.json", r#"{"name": "git", "command": {"cmd": "git"}}"#);
    place
}

#[test]
fn a_wrapper_that_is_left_out_chooses_its_model_for_its_own_server() {
    let place = wrapped("{}");
    let file = Some(Path::new("switchboard.config.json"));
    let loaded = |key: &str| load(file, &place.paths(), &|name| (name == key).then(|| "a".to_owned()));
    let settings = loaded("ANTHROPIC_API_KEY");
    assert_eq!(settings.diagnostics, []);
    let chosen = settings.natural_language.unwrap();
    let ModelSource::Remote(endpoint) = chosen.model else { panic!("{chosen:?}") };
    assert_eq!(
        (endpoint.provider, endpoint.key),
        (Provider::Anthropic, Some(Key::new("a", "ANTHROPIC_API_KEY")))
    );
    let servers: Vec<String> = chosen.servers.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(servers, ["memory"], "a wrapper speaks for nobody else");
    // Without the key, the configuration must name another model.
    let settings = loaded("OPENAI_API_KEY");
    assert_eq!(settings.natural_language, None);
    let told: Vec<String> = settings.diagnostics.iter().map(line).collect();
    assert!(
        told.len() == 1 && told[0].starts_with("warning: natural_language has no model for `memory`"),
        "{told:?}"
    );
    assert!(told[0].contains("ANTHROPIC_API_KEY") && told[0].contains("naturalLanguage"), "{told:?}");
}

#[test]
fn switchboards_file_can_choose_a_model_for_all() {
    let model = r#"{"provider": "openai", "model": "m", "baseUrl": "http://localhost:1/v1"}"#;
    let place = wrapped(&format!(r#"{{"naturalLanguage": {{"model": {model}, "calls": 3}}}}"#));
    let settings = place.load(Some("switchboard.config.json"));
    assert_eq!(settings.diagnostics, []);
    let chosen = settings.natural_language.unwrap();
    assert_eq!((chosen.limits.calls, chosen.servers), (3, None));
}
