//! Who calls tools for a sentence, within which limits, and what it may do unasked.

use std::time::Duration;

use plugbay_core::surface::Effect;
use plugbay_downstream::errand::Limits;

use super::{line, settings};
use crate::config::{ModelSource, NaturalLanguage};

#[track_caller]
fn chosen(text: &str) -> Option<NaturalLanguage> {
    let settings = settings(text, &[("GEMINI_API_KEY", "g")]);
    assert_eq!(settings.diagnostics, [], "{text}");
    settings.natural_language
}

#[test]
fn nobody_is_asked_who_is_not_named() {
    assert_eq!(chosen("{}"), None);
    assert_eq!(chosen(r#"{"naturalLanguage": {"calls": 3, "allowWrites": true}}"#), None);
    let ranks = r#"{"search": {"model": "gemini-x"}, "gemini_api_key": "g", "naturalLanguage": {}}"#;
    assert_eq!(chosen(ranks), None, "a model that ranks is not told what tools return");
}

#[test]
fn everything_has_a_default() {
    let limits = Limits { calls: 8, turns: 12, tokens: 100_000, time: Duration::from_secs(120) };
    let host = chosen(r#"{"naturalLanguage": {"model": {"provider": "host"}}}"#).unwrap();
    let expected = NaturalLanguage { model: ModelSource::Host, limits, instructions: None };
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
fn what_is_done_unasked_is_what_is_allowed() {
    for (words, unasked) in [
        ("", Effect::Reads),
        (r#", "allowWrites": false"#, Effect::Reads),
        (r#", "allowWrites": true"#, Effect::Writes),
        (r#", "allowWrites": true, "allowDestructive": false"#, Effect::Writes),
        (r#", "allowDestructive": true"#, Effect::Destroys),
    ] {
        // Whoever says so need not be who names the model.
        for model in ["null", r#"{"provider": "host"}"#] {
            let text = format!(r#"{{"naturalLanguage": {{"model": {model}{words}}}}}"#);
            assert_eq!(settings(&text, &[]).unasked, unasked, "{text}");
        }
    }
}

#[test]
fn a_choice_with_a_mistake_asks_nobody() {
    for model in [r#"{"provider": "openia"}"#, r#"{"provider": "anthropic", "model": "m"}"#] {
        let settings = settings(&format!(r#"{{"naturalLanguage": {{"model": {model}}}}}"#), &[]);
        let told: Vec<String> = settings.diagnostics.iter().map(line).collect();
        assert_eq!((told.len(), settings.natural_language), (1, None), "{told:?}");
    }
}
