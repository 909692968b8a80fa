//! The settings of a gateway as a protected resource of an authorization server.
//!
//! They keep callers out, so a mistake in them must not let anybody in. Broken settings are therefore kept as
//! broken.

use std::{borrow::Cow, sync::Arc};

use jsonc_parser::{ast::Value, common::Ranged};
use plugbay_auth::resource_server::{ResourceServerSettings, SignatureAlgorithm, is_trustworthy};
use plugbay_core::{
    access_token::{ScopeRule, ScopeRules},
    policy::ToolGrant,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{
    Env,
    diagnostic::quote,
    document::Document,
    entry::fill,
    files::Origin,
    raw::Filter,
    read::{At, Read, as_object, given_twice, key_range, object},
    report::Report,
};

const SUBJECT: &str = "sub";

object! {
    /// The authorization server whose access tokens `plugbay serve --http` takes.
    pub(super) struct Authorization {
        /// The issuer, exactly as it stands in its tokens, with `${VAR}` expanded. plugbay finds its keys by its metadata.
        "issuer" => issuer: At<String>,
        /// The URL by which hosts reach the gateway, with `${VAR}` expanded: `https://gateway.example/mcp`.
        "resource" => resource: At<String>,
        /// The audience that tokens must have, or a list of which they need one, with `${VAR}` expanded. Default: `resource`.
        "audience" => audience: Texts,
        /// Where the keys of the issuer are, if not where its metadata says, with `${VAR}` expanded.
        "jwksUri" => jwks_uri: At<String>,
        /// The signature algorithms that tokens may have. Default: `RS256`, `PS256`, `ES256` and `EdDSA`.
        "algorithms" => algorithms: Vec<Algorithm>,
        /// Scopes and the tools that each allows, the narrowest first. Without it every token is for all tools.
        "scopes" => scopes: Scopes,
        /// Scopes that every token needs.
        "requiredScopes" => required_scopes: Vec<ScopeName>,
        /// The claim that names the caller. Default: `sub`.
        "callerClaim" => caller_claim: String,
    }
    ignored: []
}

object! {
    /// What a scope allows.
    pub(super) struct AuthorizationScope {
        /// Patterns of the names that hosts see, such as `git__get_*`. Default: all tools.
        "tools" => tools: Filter,
    }
    ignored: []
}

/// The issuers whose access tokens a gateway accepts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AuthorizationSettings {
    #[default]
    Off,
    On(Arc<ProtectedResource>),
    /// Broken settings: it is unclear whom the user wanted to keep out.
    Broken,
}

/// The gateway as a protected resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedResource {
    pub server: ResourceServerSettings,
    /// The URL under which hosts reach the gateway.
    pub resource: String,
    pub scopes: Arc<ScopeRules>,
}

/// The settings as written; `None` if something in them is wrong.
#[derive(Debug, Clone)]
pub(super) struct Guard(Option<Authorization>);

/// The settings of the last file, as a whole. A project's file is ignored: a repository must not choose who
/// may connect.
pub(super) fn settings(
    used: &[(Document, Origin)],
    env: Env<'_>,
    reports: &mut [Report<'_>],
) -> AuthorizationSettings {
    let mut settings = AuthorizationSettings::Off;
    for (index, (document, origin)) in used.iter().enumerate() {
        let Some(At { value: guard, at }) = &document.config.authorization else { continue };
        let report = &mut reports[index];
        if *origin != Origin::Machine {
            let help = "set it in your own configuration file";
            report.warning(*at, "a project cannot set the authorization", help);
            continue;
        }
        let (resource, problem) = report.watch(|report| {
            let written = guard.0.as_ref()?;
            for (key, given) in [("issuer", &written.issuer), ("resource", &written.resource)] {
                if given.is_none() {
                    let message = format!("the authorization has no {}", quote(key));
                    report.error(*at, message, "give it; until then nobody is let in");
                }
            }
            resource(written, env, report)
        });
        settings = match resource.filter(|_| problem.is_none()) {
            Some(resource) => AuthorizationSettings::On(Arc::new(resource)),
            None => AuthorizationSettings::Broken,
        };
    }
    settings
}

fn resource(written: &Authorization, env: Env<'_>, report: &mut Report<'_>) -> Option<ProtectedResource> {
    let issuer = address(written.issuer.as_ref()?, env, report)?;
    let resource = address(written.resource.as_ref()?, env, report)?;
    let jwks_uri = match &written.jwks_uri {
        Some(written) => Some(address(written, env, report)?),
        None => None,
    };
    let audiences = match &written.audience {
        Some(Texts(all)) => all.iter().map(|text| fill(text, env, report)).collect::<Option<Vec<_>>>()?,
        None => vec![resource.clone()],
    };
    let algorithms = written.algorithms.as_ref().map(|all| all.iter().map(|one| one.0).collect());
    let server = ResourceServerSettings {
        issuer,
        audiences,
        jwks_uri,
        algorithms: algorithms.unwrap_or_else(|| SignatureAlgorithm::USUAL.to_vec()),
        caller_claim: written.caller_claim.clone().unwrap_or_else(|| SUBJECT.to_owned()),
    };
    let required = written.required_scopes.iter().flatten().map(|scope| scope.0.clone()).collect();
    let rules = written.scopes.as_ref().map(|scopes| scopes.0.clone()).unwrap_or_default();
    Some(ProtectedResource { server, resource, scopes: Arc::new(ScopeRules { required, rules }) })
}

/// An address that is trustworthy and can be quoted in a header.
fn address(text: &At<String>, env: Env<'_>, report: &mut Report<'_>) -> Option<String> {
    let address = fill(text, env, report)?;
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '#');
    if is_trustworthy(&address) && address.chars().all(is_plain) {
        return Some(address);
    }
    let help = "write it as https://HOST/PATH; http:// is for this machine only";
    report.error(text.at, "not an address that tokens can be checked with", help);
    None
}

impl Read for Guard {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let (read, problem) = report.watch(|report| {
            for property in &as_object(value, report)?.properties {
                // An unknown key may be a mistyped one that keeps callers out.
                if !Authorization::KEYS.contains(&property.name.as_str()) {
                    let message =
                        format!("unknown key {} in the authorization", quote(property.name.as_str()));
                    report.error(key_range(property), message, "mend it; until then nobody is let in");
                }
            }
            Authorization::read(value, report)
        });
        Some(Self(read.filter(|_| problem.is_none())))
    }
}

/// A text or a list of texts.
#[derive(Debug, Clone)]
pub(super) struct Texts(Vec<At<String>>);

impl Read for Texts {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        match value {
            Value::Array(_) => Vec::read(value, report).map(Self),
            _ => At::read(value, report).map(|text| Self(vec![text])),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Algorithm(SignatureAlgorithm);

impl Read for Algorithm {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let name = String::read(value, report)?;
        if let Ok(algorithm) = name.parse() {
            return Some(Self(algorithm));
        }
        let message = format!("{} is no algorithm with a public key", quote(&name));
        let help = format!("available: {}", SignatureAlgorithm::names().join(", "));
        report.invalid(value.range(), &message, help);
        None
    }
}

/// A scope in OAuth's syntax: visible ASCII without quotes.
#[derive(Debug, Clone)]
pub(super) struct ScopeName(String);

impl Read for ScopeName {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let name = String::read(value, report)?;
        if is_scope(&name) {
            return Some(Self(name));
        }
        report.invalid(value.range(), NO_SCOPE, NO_SCOPE_HELP);
        None
    }
}

const NO_SCOPE: &str = "not a scope";
const NO_SCOPE_HELP: &str = "write one scope: visible ASCII without spaces, quotes and backslashes";

fn is_scope(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '\\'))
}

/// Scopes, in the order of the file.
#[derive(Debug, Clone)]
pub(super) struct Scopes(Vec<ScopeRule>);

impl Read for Scopes {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let mut rules: Vec<ScopeRule> = Vec::new();
        for property in &as_object(value, report)?.properties {
            let scope = property.name.as_str();
            if !is_scope(scope) {
                report.error(key_range(property), NO_SCOPE, NO_SCOPE_HELP);
            }
            if rules.iter().any(|rule| rule.scope == scope) {
                given_twice(property, report);
            }
            let read = report.under(scope, |report| AuthorizationScope::read(&property.value, report));
            let unknown = |key: &str| !AuthorizationScope::KEYS.contains(&key);
            if let Value::Object(object) = &property.value
                && object.properties.iter().any(|property| unknown(property.name.as_str()))
            {
                report.error(key_range(property), "unknown key in a scope", "a scope has \"tools\"");
            }
            let tools = match read?.tools {
                // Its error was reported when it was read.
                Some(Filter(patterns)) => Some(ToolGrant::compile(patterns.ok()?).ok()?),
                None => None,
            };
            rules.push(ScopeRule { scope: scope.to_owned(), tools });
        }
        Some(Self(rules))
    }
}

impl JsonSchema for Guard {
    fn schema_name() -> Cow<'static, str> {
        Authorization::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Authorization::json_schema(generator)
    }
}

impl JsonSchema for Texts {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Texts".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
    }
}

impl JsonSchema for Algorithm {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Algorithm".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": SignatureAlgorithm::names() })
    }
}

impl JsonSchema for ScopeName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ScopeName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

impl JsonSchema for Scopes {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Scopes".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let scope = generator.subschema_for::<AuthorizationScope>();
        json_schema!({ "type": "object", "additionalProperties": scope })
    }
}
