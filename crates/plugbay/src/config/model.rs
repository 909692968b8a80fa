//! The model that ranks search hits, the model for `natural_language`, and the sources of their keys.
//!
//! A key in the environment alone turns nothing on: it may be there for another program. The user's tools
//! must not be shown to anybody who is not named in the configuration.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use jsonc_parser::common::Range;
use plugbay_core::{name::ServerName, surface::Effect};
use plugbay_downstream::agent;
use plugbay_model::{Endpoint, Key, Provider};

use super::{
    Env, ModelSource, NaturalLanguage, SearchModel, SearchSettings,
    diagnostic::{Diagnostic, Severity, quote},
    entry::{fill, variable_value},
    raw::{self, ConfigFile},
    read::{At, Overlay},
    report::Report,
    word::{self, Word},
};

const HITS: usize = 5;
/// How long a search waits for a model.
const SEARCHING: Patience = Patience { remote: Duration::from_secs(5), host: Duration::from_secs(30) };
const AGENT_LIMITS: agent::Limits =
    agent::Limits { calls: 8, turns: 12, tokens: 100_000, time: Duration::from_secs(120) };
/// The model that Google recommends for quick answers.
const GEMINI_MODEL: &str = "gemini-flash-latest";
/// A quick and cheap model, because a wrapper's requests are short.
const WRAPPERS_MODEL: &str = "claude-haiku-4-5";

/// The timeout of a model that has none of its own.
#[derive(Clone, Copy)]
struct Patience {
    remote: Duration,
    /// For a host's model, where a person may have to agree first.
    host: Duration,
}

/// The model for search. A later file has precedence; key and model may be in different files.
pub(super) fn search<'a>(
    configs: impl Iterator<Item = &'a ConfigFile>,
    env: Env<'_>,
    reports: &mut [Report<'_>],
) -> SearchSettings {
    let (mut hits, mut remember, mut model, mut key) = (HITS, true, None, None);
    for (index, config) in configs.enumerate() {
        if let Some(search) = &config.search {
            hits = search.limit.map_or(hits, |limit| limit.0);
            remember = search.remember.unwrap_or(remember);
            model = search.model.as_ref().map(|model| (index, model)).or(model);
        }
        key = config.gemini_api_key.as_ref().map(|key| (index, key)).or(key);
    }
    let written = key.and_then(|(index, key)| written_key(key, env, &mut reports[index]));
    let model = match (model, key) {
        (Some((index, At { value, at })), _) => value
            .0
            .as_ref()
            .and_then(|model| resolve(model, *at, written, SEARCHING, env, &mut reports[index])),
        (None, Some((index, key))) => {
            resolve(&gemini(), key.at, written, SEARCHING, env, &mut reports[index])
        }
        (None, None) => None,
    };
    SearchSettings { hits, model, remember }
}

/// The model for `natural_language`. It must be named here, because a model that ranks tools does not get
/// their results. But a wrapper that is left out names one for its own server.
pub(super) fn natural_language<'a>(
    configs: impl Iterator<Item = &'a ConfigFile>,
    unwrapped: &BTreeMap<String, PathBuf>,
    env: Env<'_>,
    reports: &mut [Report<'_>],
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<NaturalLanguage> {
    let (mut said, mut place) = (raw::NaturalLanguage::default(), 0);
    for (index, config) in configs.enumerate() {
        if let Some(natural_language) = &config.natural_language {
            place = natural_language.model.as_ref().map_or(place, |_| index);
            said = natural_language.clone().over(said);
        }
    }
    let time = said.time.map_or(AGENT_LIMITS.time, |limit| limit.0);
    // Longer than the time of a whole run, so that there is only one reason when time runs out.
    let patience = Patience { remote: time * 2, host: time * 2 };
    let (model, servers) = match said.model {
        Some(At { value, at }) => {
            (resolve(&value.0?, at, None, patience, env, &mut reports[place])?.source, None)
        }
        None => (wrappers_model(unwrapped, patience, env, diagnostics)?, Some(names(unwrapped))),
    };
    Some(NaturalLanguage {
        model,
        limits: agent::Limits {
            calls: said.calls.map_or(AGENT_LIMITS.calls, |count| count.0),
            turns: said.turns.map_or(AGENT_LIMITS.turns, |count| count.0),
            tokens: said.tokens.map_or(AGENT_LIMITS.tokens, |count| count.0 as u64),
            time,
        },
        instructions: said.instructions,
        servers,
    })
}

/// The model that Switchboard's wrappers would have used, with the same key.
fn wrappers_model(
    unwrapped: &BTreeMap<String, PathBuf>,
    patience: Patience,
    env: Env<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<ModelSource> {
    let (_, file) = unwrapped.first_key_value()?;
    let provider = Provider::Anthropic;
    let Some(key) = from_environment(provider, env) else {
        let names = unwrapped.keys().map(|name| quote(name)).collect::<Vec<_>>().join(", ");
        let message =
            format!("natural_language has no model for {names}; plugbay does not start the wrapper");
        let help = "set ANTHROPIC_API_KEY where plugbay is started, as the wrapper needs it, or choose a model: \"naturalLanguage\": { \"model\": … }";
        diagnostics.push(Diagnostic::of_file(Severity::Warning, file, message, help));
        return None;
    };
    let (model, patience) = (WRAPPERS_MODEL.to_owned(), patience.remote);
    Some(ModelSource::Remote(Endpoint { provider, model, base_url: None, key: Some(key), patience }))
}

fn names(unwrapped: &BTreeMap<String, PathBuf>) -> BTreeSet<ServerName> {
    unwrapped.keys().filter_map(|name| ServerName::parse(name).ok()).collect()
}

/// The strongest effect that is allowed without asking.
pub(super) fn unasked<'a>(configs: impl Iterator<Item = &'a ConfigFile>) -> Effect {
    let said = configs.filter_map(|config| config.natural_language.clone());
    let said = said.fold(raw::NaturalLanguage::default(), |before, later| later.over(before));
    match (said.allow_destructive, said.allow_writes) {
        (Some(true), _) => Effect::Destroys,
        (_, Some(true)) => Effect::Writes,
        _ => Effect::Reads,
    }
}

/// The model for a file that has only a Gemini key.
fn gemini() -> raw::LanguageModel {
    let provider = Some(Word(word::Provider::Remote(Provider::Gemini)));
    raw::LanguageModel { provider, ..raw::LanguageModel::default() }
}

/// A key that is in a file, or named there.
fn written_key(key: &At<String>, env: Env<'_>, report: &mut Report<'_>) -> Option<Key> {
    let secret = fill(key, env, report)?;
    (!secret.trim().is_empty()).then(|| Key::new(&secret, "gemini_api_key"))
}

fn resolve(
    model: &raw::LanguageModel,
    at: Range,
    written: Option<Key>,
    patience: Patience,
    env: Env<'_>,
    report: &mut Report<'_>,
) -> Option<SearchModel> {
    let provider = match model.provider {
        Some(Word(word::Provider::Host)) => {
            let deadline = model.timeout.map_or(patience.host, |limit| limit.0);
            return Some(SearchModel { source: ModelSource::Host, deadline });
        }
        Some(Word(word::Provider::Remote(provider))) => provider,
        None => {
            let help = "write \"provider\": \"anthropic\", \"gemini\", \"openai\" or \"host\"";
            report.error(at, "the model has no \"provider\"", help);
            return None;
        }
    };
    let deadline = model.timeout.map_or(patience.remote, |limit| limit.0);
    let standard = (provider == Provider::Gemini).then(|| GEMINI_MODEL.to_owned());
    let Some(name) = model.model.clone().filter(|name| !name.trim().is_empty()).or(standard) else {
        let help = "give the name that the provider uses: \"model\": \"…\"";
        report.error(at, "the model has no name", help);
        return None;
    };
    let base_url = match &model.base_url {
        Some(url) => Some(address(url, env, report)?),
        None => None,
    };
    let key = match (&model.api_key_env, &model.keychain, &model.api_key_command) {
        (Some(variable), None, None) => {
            Some(Key::new(&variable_value(variable, env, report)?, &variable.value))
        }
        (None, Some(name), None) => Some(Key::in_keychain(&name.value)),
        (None, None, Some(command)) => Some(told_by(command, env, report)?),
        (None, None, None) => {
            from_environment(provider, env).or(written.filter(|_| provider == Provider::Gemini))
        }
        _ => {
            let help = "keep one of \"apiKeyEnv\", \"keychain\" and \"apiKeyCommand\"";
            report.error(at, "the key is given in several places", help);
            return None;
        }
    };
    // A model on this machine needs no key.
    if key.is_none() && base_url.is_none() {
        let variables = provider.key_variables().iter().map(|name| quote(name)).collect::<Vec<_>>();
        let message = format!("there is no key for the model: {} is not set", variables.join(" or "));
        let help = "set it where plugbay is started (by a host: in the host's `env` for plugbay), or give one of \"apiKeyEnv\", \"keychain\" or \"apiKeyCommand\"";
        report.error(at, message, help);
        return None;
    }
    let endpoint = Endpoint { provider, model: name, base_url, key, patience: deadline };
    Some(SearchModel { source: ModelSource::Remote(endpoint), deadline })
}

fn told_by(command: &At<Vec<At<String>>>, env: Env<'_>, report: &mut Report<'_>) -> Option<Key> {
    let words: Option<Vec<String>> = command.value.iter().map(|word| fill(word, env, report)).collect();
    let mut words = words?.into_iter();
    let Some(program) = words.next() else {
        report.error(command.at, "the list is empty", "write [\"PROGRAM\", \"ARGUMENT\", …]");
        return None;
    };
    Some(Key::told_by(program, words.collect(), command.value.iter().map(|word| word.value.as_str())))
}

fn from_environment(provider: Provider, env: Env<'_>) -> Option<Key> {
    provider.key_variables().iter().find_map(|name| {
        let secret = env(name).filter(|secret| !secret.trim().is_empty())?;
        Some(Key::new(&secret, name))
    })
}

fn address(url: &At<String>, env: Env<'_>, report: &mut Report<'_>) -> Option<String> {
    let address = fill(url, env, report)?;
    if !["http://", "https://"].iter().any(|start| address.starts_with(start)) {
        report.error(url.at, "not the address of an HTTP server", "write it as https://HOST/PATH");
        return None;
    }
    if address.strip_prefix("http://").is_some_and(|rest| !is_here(rest)) {
        let message = "requests to this address, with the key, are not encrypted";
        report.warning(url.at, message, "write https:// if the server supports it");
    }
    Some(address)
}

/// Whether the rest of an `http://` address points to this machine.
pub(super) fn is_here(rest: &str) -> bool {
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name == "localhost" || name.starts_with("127.") || name == "[::1]"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_here() {
        let here = ["localhost:11434/v1", "127.0.0.1/v1", "[::1]:8080/v1", "localhost"].map(is_here);
        let there = ["model.example/v1", "localhost.example", "10.0.0.1:1/v1"].map(is_here);
        assert_eq!((here, there), ([true; 4], [false; 3]));
    }
}
