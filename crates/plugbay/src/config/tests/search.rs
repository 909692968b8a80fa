//! The model that ranks search hits; its key must reach nobody else.

use std::time::Duration;

use plugbay_model::{Endpoint, Key, Provider};

use super::{line, settings};
use crate::config::{ModelSource, SearchModel, SearchSettings};

#[track_caller]
fn search(text: &str, environment: &[(&str, &str)]) -> SearchSettings {
    let settings = settings(text, environment);
    assert_eq!(settings.diagnostics, [], "{text}");
    settings.search
}

#[track_caller]
fn endpoint(text: &str, environment: &[(&str, &str)]) -> Endpoint {
    match search(text, environment).model {
        Some(SearchModel { source: ModelSource::Remote(endpoint), .. }) => endpoint,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn no_model_is_asked_unless_the_configuration_names_one() {
    let keys = [("GEMINI_API_KEY", "g"), ("OPENAI_API_KEY", "o"), ("ANTHROPIC_API_KEY", "a")];
    assert_eq!(search("{}", &keys), SearchSettings { hits: 5, model: None, remember: true });
    assert_eq!(
        search(r#"{"search": {"limit": 9}}"#, &keys),
        SearchSettings { hits: 9, model: None, remember: true }
    );
    assert!(!search(r#"{"search": {"remember": false}}"#, &keys).remember);
}

#[test]
fn each_provider_has_its_key_in_its_own_variable() {
    let model =
        |provider: &str| format!(r#"{{"search": {{"model": {{"provider": "{provider}", "model": "m"}}}}}}"#);
    for (word, provider, variable) in [
        ("anthropic", Provider::Anthropic, "ANTHROPIC_API_KEY"),
        ("openai", Provider::OpenAi, "OPENAI_API_KEY"),
        ("gemini", Provider::Gemini, "GEMINI_API_KEY"),
        ("gemini", Provider::Gemini, "GOOGLE_API_KEY"),
    ] {
        let expected = Endpoint {
            provider,
            model: "m".to_owned(),
            base_url: None,
            key: Some(Key::new("k", variable)),
            patience: Duration::from_secs(5),
        };
        assert_eq!(endpoint(&model(word), &[(variable, " k\n")]), expected);
    }
    let text = r#"{"search": {"model": {
        "provider": "openai", "model": "m", "baseUrl": "${WHERE}/v1", "apiKeyEnv": "MINE", "timeout": "2s"}}}"#;
    let environment = [("OPENAI_API_KEY", "not this"), ("MINE", "k"), ("WHERE", "https://router")];
    let expected = Endpoint {
        provider: Provider::OpenAi,
        model: "m".to_owned(),
        base_url: Some("https://router/v1".to_owned()),
        key: Some(Key::new("k", "MINE")),
        patience: Duration::from_secs(2),
    };
    assert_eq!(endpoint(text, &environment), expected);
}

#[test]
fn a_local_model_and_the_hosts_own_need_no_key() {
    let ollama =
        r#"{"search": {"model": {"provider": "openai", "model": "m", "baseUrl": "http://localhost:1/v1"}}}"#;
    assert_eq!(endpoint(ollama, &[]).key, None);
    let host = search(r#"{"search": {"model": {"provider": "host"}}}"#, &[]).model;
    let deadline = Duration::from_secs(30);
    assert_eq!(host, Some(SearchModel { source: ModelSource::Host, deadline }));
}

#[test]
fn the_keys_of_mcpzip_are_understood() {
    let text =
        r#"{"gemini_api_key": "written", "search": {"model": "gemini-2.0-flash", "default_limit": 3}}"#;
    assert_eq!(search(text, &[]).hits, 3);
    let written = endpoint(text, &[]);
    assert_eq!((written.provider, written.model.as_str()), (Provider::Gemini, "gemini-2.0-flash"));
    assert_eq!(written.key, Some(Key::new("written", "gemini_api_key")));
    // The key in the environment has precedence.
    assert_eq!(endpoint(text, &[("GEMINI_API_KEY", "g")]).key, Some(Key::new("g", "GEMINI_API_KEY")));
    let alone = endpoint(r#"{"gemini_api_key": "${K}"}"#, &[("K", "k")]);
    assert_eq!(
        (alone.model.as_str(), alone.key),
        ("gemini-flash-latest", Some(Key::new("k", "gemini_api_key")))
    );
}

#[test]
fn a_wrong_search_model_is_reported_and_search_goes_on() {
    for (model, expected) in [
        (
            r#"{"provider": "anthropic", "model": "m"}"#,
            "error 2:10: there is no key for the model: `ANTHROPIC_API_KEY` is not set; set it where plugbay is started \
             (by a host: in the host's `env` for plugbay), or give one of \"apiKeyEnv\", \"keychain\" or \"apiKeyCommand\"",
        ),
        (
            r#"{"provider": "openai"}"#,
            "error 2:10: the model has no name; give the name that the provider uses: \
             \"model\": \"…\"",
        ),
        (
            r#"{"provider": "openia", "model": "m"}"#,
            "error 2:23: `provider`: unknown value `openia`; did you mean `openai`?",
        ),
        (
            r#"{"model": "m"}"#,
            "error 2:10: the model has no \"provider\"; write \"provider\": \"anthropic\", \"gemini\", \
             \"openai\" or \"host\"",
        ),
        (
            r#"{"provider": "gemini", "baseUrl": 7}"#,
            "error 2:44: `baseUrl`: expected a string, found a number; put the value in quotes",
        ),
        (
            r#"{"provider": "openai", "model": "m", "baseUrl": "localhost:1"}"#,
            "error 2:58: not the address of an HTTP server; write it as https://HOST/PATH",
        ),
        (
            r#"{"provider": "openai", "model": "m", "apiKeyEnv": "NONE"}"#,
            "error 2:60: the variable `NONE` is not set; set it where plugbay is started (by a host: in the host's \
             `env` for plugbay)",
        ),
    ] {
        // No other model is asked instead, whatever keys there are.
        let text = format!("{{\"gemini_api_key\": \"g\", \"search\": {{\n\"model\": {model}}}}}");
        let settings = settings(&text, &[("GEMINI_API_KEY", "g")]);
        let told: Vec<String> = settings.diagnostics.iter().map(line).collect();
        assert_eq!(told.first().map(String::as_str), Some(expected), "{told:?}");
        assert_eq!(settings.search.model, None);
    }
}

#[test]
fn model_keys_are_not_printed() {
    let text = r#"{"gemini_api_key": "hunter2"}"#;
    let told = format!("{:?}", settings(text, &[("GEMINI_API_KEY", "hunter2")]));
    assert!(told.contains("Key(from GEMINI_API_KEY)") && !told.contains("hunter2"), "{told}");
}
