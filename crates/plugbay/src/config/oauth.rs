//! The keys with which a login at a server is configured, in plugbay's spelling and in those of hosts.
//!
//! The doc comments of keys are the descriptions in the JSON Schema: users read them.

use std::borrow::Cow;

use jsonc_parser::{ast::Value, common::Ranged};
use plugbay_core::credentials::Placement;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value as Json, json};

use super::{
    diagnostic::quote,
    read::{At, Read, mismatch, object},
    report::Report,
    units::Port,
    word::{Choice, Word},
};

object! {
    /// The login at a server behind a URL, by OAuth.
    pub(super) struct OAuth {
        /// `false`: plugbay does not log in. Better: `"oauth": false`.
        "enabled" => enabled: bool,
        /// The id of a client that is registered at the authorization server, with `${VAR}` expanded. Without it plugbay registers itself.
        "clientId" | "client_id" | "CLIENT_ID" => client_id: At<String>,
        /// The secret of that client, with `${VAR}` expanded.
        "clientSecret" | "client_secret" | "CLIENT_SECRET" => client_secret: At<String>,
        /// A file with the secret of that client, relative to this file's folder or with `~/`. plugbay reads it when it loads this file.
        "clientSecretFile" => client_secret_file: At<String>,
        /// The address of a client id metadata document, which is the id of plugbay's client at authorization servers that read such documents.
        "clientMetadataUrl" => client_metadata_url: At<String>,
        /// The issuer of the authorization server that knows the client. Default: the one that the server names.
        "issuer" => issuer: At<String>,
        /// The address of the authorization server's metadata, from which plugbay takes the issuer. Better: `issuer`.
        "authServerMetadataUrl" => metadata_url: At<String>,
        /// The scopes to ask for, as a list or separated by spaces, instead of those that the server names.
        "scopes" | "scope" => scopes: Scopes,
        /// The port of the redirect URI on this machine. Default: any free port.
        "callbackPort" | "callback_port" => callback_port: Port,
        /// `true`: the authorization server may have an address in a private network. Default `false`, unless the server itself has one.
        "privateNetwork" => private_network: bool,
        /// The redirect URI of the client, of which only the port counts. Better: `callbackPort`.
        "redirectUri" | "redirect_uri" | "redirectUrl" | "callbackUrl" => redirect_uri: At<String>,
        /// How plugbay gets a token: `authorization_code` (the default) after a login of the user, `client_credentials` for itself, `workload_identity` for an assertion, `enterprise_managed` through the identity provider of an enterprise.
        "grant" => grant: At<Word<GrantKind>>,
        /// The private key in PEM of a client that signs assertions, with `${VAR}` expanded.
        "privateKey" => private_key: At<String>,
        /// A file with that private key, relative to this file's folder or with `~/`.
        "privateKeyFile" => private_key_file: At<String>,
        /// The algorithm of the private key. Default `ES256`.
        "algorithm" => algorithm: At<Word<Algorithm>>,
        /// The id of the private key, if the authorization server wants one.
        "keyId" => key_id: At<String>,
        /// The assertion of a workload identity, with `${VAR}` expanded.
        "assertion" => assertion: At<String>,
        /// A file with that assertion, relative to this file's folder or with `~/`. plugbay reads it for each token.
        "assertionFile" => assertion_file: At<String>,
        /// The identity provider, for the grant `enterprise_managed`.
        "idp" => idp: At<IdentityProvider>,
    }
    ignored: [
        "authorizationUrl", "authorization_url", "authUrl", "tokenUrl", "token_url", "registrationUrl", "audiences",
        "tokenParamName", "clientName", "clientUri", "clientRegistration",
    ]
}

object! {
    /// The identity provider of an enterprise.
    pub(super) struct IdentityProvider {
        /// Its issuer.
        "issuer" => issuer: At<String>,
        /// Its token endpoint, if its metadata do not tell.
        "tokenEndpoint" => token_endpoint: At<String>,
        /// The id of plugbay's client there.
        "clientId" => client_id: At<String>,
        /// The secret of that client, with `${VAR}` expanded.
        "clientSecret" => client_secret: At<String>,
        /// The ID token of the user, with `${VAR}` expanded.
        "idToken" => id_token: At<String>,
        /// A file with that ID token, relative to this file's folder or with `~/`. plugbay reads it for each token.
        "idTokenFile" => id_token_file: At<String>,
    }
    ignored: []
}

object! {
    /// What holds for the logins at all servers. A project's file cannot set it.
    pub(super) struct Logins {
        /// The address of a client id metadata document for plugbay, for servers without a `clientMetadataUrl` of their own.
        "clientMetadataUrl" => client_metadata_url: At<String>,
        /// Where plugbay keeps tokens: `keychain` of the system, `file` for a file that only you can read. Default `auto`: the keychain if there is one.
        "store" => store: At<Word<Placement>>,
    }
    ignored: []
}

/// Whether to log in, and how.
#[derive(Debug, Clone)]
pub(super) enum OAuthChoice {
    Off,
    On(Box<OAuth>),
}

impl OAuthChoice {
    /// The settings of the login, if there may be one.
    pub(super) fn settings(&self) -> Option<&OAuth> {
        match self {
            Self::On(oauth) if oauth.enabled != Some(false) => Some(oauth),
            _ => None,
        }
    }
}

/// The kind of a text in the login's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Plain,
    Secret,
    File,
    Address,
}

impl OAuthChoice {
    /// The value of the key as plugbay writes it, with each text changed by `write`.
    pub(super) fn value(&self, write: &dyn Fn(Part, &str) -> String) -> Json {
        match self {
            Self::On(oauth) if oauth.enabled != Some(false) => oauth.value(write),
            _ => Json::Bool(false),
        }
    }
}

impl OAuth {
    fn value(&self, write: &dyn Fn(Part, &str) -> String) -> Json {
        let mut members = texts(
            &[
                ("clientId", &self.client_id, Part::Plain),
                ("clientSecret", &self.client_secret, Part::Secret),
                ("clientSecretFile", &self.client_secret_file, Part::File),
                ("clientMetadataUrl", &self.client_metadata_url, Part::Address),
                ("issuer", &self.issuer, Part::Address),
                ("authServerMetadataUrl", &self.metadata_url, Part::Address),
                ("redirectUri", &self.redirect_uri, Part::Address),
                ("privateKey", &self.private_key, Part::Secret),
                ("privateKeyFile", &self.private_key_file, Part::File),
                ("keyId", &self.key_id, Part::Plain),
                ("assertion", &self.assertion, Part::Secret),
                ("assertionFile", &self.assertion_file, Part::File),
            ],
            write,
        );
        let mut add = |key: &str, value: Option<Json>| {
            members.extend(value.map(|value| (key.to_owned(), value)));
        };
        add("scopes", self.scopes.as_ref().map(|Scopes(scopes)| json!(scopes)));
        add("callbackPort", self.callback_port.map(|Port(port)| json!(port)));
        add("privateNetwork", self.private_network.map(|private| json!(private)));
        add("grant", self.grant.as_ref().map(|grant| json!(written(grant.value))));
        add("algorithm", self.algorithm.as_ref().map(|algorithm| json!(written(algorithm.value))));
        add("idp", self.idp.as_ref().map(|idp| idp.value.value(write)));
        Json::Object(members)
    }
}

impl IdentityProvider {
    fn value(&self, write: &dyn Fn(Part, &str) -> String) -> Json {
        let members = texts(
            &[
                ("issuer", &self.issuer, Part::Address),
                ("tokenEndpoint", &self.token_endpoint, Part::Address),
                ("clientId", &self.client_id, Part::Plain),
                ("clientSecret", &self.client_secret, Part::Secret),
                ("idToken", &self.id_token, Part::Secret),
                ("idTokenFile", &self.id_token_file, Part::File),
            ],
            write,
        );
        Json::Object(members)
    }
}

fn texts(
    texts: &[(&str, &Option<At<String>>, Part)],
    write: &dyn Fn(Part, &str) -> String,
) -> Map<String, Json> {
    let given = texts.iter().filter_map(|(key, text, part)| Some((key, text.as_ref()?, *part)));
    given.map(|(key, text, part)| ((*key).to_owned(), write(part, &text.value).into())).collect()
}

/// The configuration's word for a choice.
fn written<T: Choice + PartialEq>(Word(choice): Word<T>) -> &'static str {
    T::WORDS.iter().find(|(_, other)| *other == choice).map_or("", |(word, _)| word)
}

impl Read for OAuthChoice {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        match value {
            Value::BooleanLit(on) if !on.value => Some(Self::Off),
            Value::BooleanLit(_) => Some(Self::On(Box::default())),
            // FastMCP's form.
            Value::StringLit(text) if text.value == "oauth" => Some(Self::On(Box::default())),
            Value::Object(_) => OAuth::read(value, report).map(Box::new).map(Self::On),
            _ => {
                mismatch(value, "an object or false", report);
                None
            }
        }
    }
}

impl JsonSchema for OAuthChoice {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OAuthChoice".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let settings = generator.subschema_for::<OAuth>();
        json_schema!({ "anyOf": [{ "type": "boolean" }, { "type": "string", "enum": ["oauth"] }, settings] })
    }
}

/// Scopes, as a list or as one string.
#[derive(Debug, Clone)]
pub(super) struct Scopes(pub(super) Vec<String>);

impl Read for Scopes {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let texts = match value {
            Value::StringLit(_) => vec![At::<String>::read(value, report)?],
            Value::Array(_) => Vec::<At<String>>::read(value, report)?,
            _ => {
                mismatch(value, "a list", report);
                return None;
            }
        };
        for At { value, at } in &texts {
            if let Some(odd) = value.split_whitespace().find(|scope| !is_scope(scope)) {
                let help = "write scopes as the server names them, separated by spaces";
                report.invalid(*at, &format!("{} is not a scope", quote(odd)), help);
                return None;
            }
        }
        let scopes = texts.iter().flat_map(|text| text.value.split_whitespace()).map(str::to_owned);
        Some(Self(scopes.collect()))
    }
}

/// Whether the text is a scope as in RFC 6749, section 3.3.
fn is_scope(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

impl JsonSchema for Scopes {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Scopes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
    }
}

/// The way in which plugbay gets a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum GrantKind {
    #[default]
    AuthorizationCode,
    ClientCredentials,
    WorkloadIdentity,
    EnterpriseManaged,
}

impl Choice for GrantKind {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("authorization_code", Self::AuthorizationCode),
        ("client_credentials", Self::ClientCredentials),
        ("workload_identity", Self::WorkloadIdentity),
        ("enterprise_managed", Self::EnterpriseManaged),
    ];
}

/// The name of a signature algorithm, as in RFC 7518 and RFC 8037.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Algorithm(pub(super) &'static str);

impl Choice for Algorithm {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("ES256", Self("ES256")),
        ("ES384", Self("ES384")),
        ("RS256", Self("RS256")),
        ("RS384", Self("RS384")),
        ("RS512", Self("RS512")),
        ("PS256", Self("PS256")),
        ("PS384", Self("PS384")),
        ("PS512", Self("PS512")),
        ("EdDSA", Self("EdDSA")),
    ];
}

impl Choice for Placement {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("keychain", Self::Keychain), ("file", Self::File)];
}

/// The command that prints headers: a list of words, or one line that needs no shell.
#[derive(Debug, Clone)]
pub(super) struct CommandLine(pub(super) Vec<At<String>>);

impl Read for CommandLine {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let at = value.range();
        let words = match value {
            Value::StringLit(line) => match split(&line.value) {
                Ok(words) => words.into_iter().map(|value| At { value, at }).collect(),
                Err(sign) => {
                    let help = "plugbay uses no shell: write a list of the program and its arguments, such as [\"sh\", \"-c\", \"…\"]";
                    report.invalid(at, &format!("{} needs a shell", quote(&sign)), help);
                    return None;
                }
            },
            Value::Array(_) => Vec::<At<String>>::read(value, report)?,
            _ => {
                mismatch(value, "a list", report);
                return None;
            }
        };
        if words.first().is_none_or(|program| program.value.trim().is_empty()) {
            report.invalid(at, "names no program", "write [\"PROGRAM\", \"ARGUMENT\", …]");
            return None;
        }
        Some(Self(words))
    }
}

impl JsonSchema for CommandLine {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "CommandLine".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Scopes::json_schema(generator)
    }
}

/// Splits a command line into words. `Err` is the first character that only a shell understands. `${VAR}`
/// stays unchanged.
fn split(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut quoted = None;
    let mut rest = line.chars().peekable();
    while let Some(next) = rest.next() {
        match (quoted, next) {
            (Some(mark), next) if next == mark => quoted = None,
            (Some('\''), next) => word.get_or_insert_default().push(next),
            (None, '"' | '\'') => {
                quoted = Some(next);
                word.get_or_insert_default();
            }
            (_, '$') if rest.peek() != Some(&'{') => return Err(next.into()),
            (_, '`' | '\\') | (None, '|' | '&' | ';' | '<' | '>' | '*' | '?' | '(' | ')' | '\n' | '#') => {
                return Err(next.into());
            }
            (None, '~') if word.is_none() => return Err(next.into()),
            (None, space) if space.is_whitespace() => words.extend(word.take()),
            (_, next) => word.get_or_insert_default().push(next),
        }
    }
    if let Some(mark) = quoted {
        return Err(mark.into());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_for_headers_is_split_unless_it_needs_a_shell() {
        let words = |line: &str| split(line).map(|words| words.join("|"));
        for (line, expected) in [
            ("/opt/bin/headers.sh --for 'my server' \"a b\"", "/opt/bin/headers.sh|--for|my server|a b"),
            ("op read op://vault/${ITEM}/key", "op|read|op://vault/${ITEM}/key"),
            ("a '' b=\"\" '$x|`'", "a||b=|$x|`"),
            ("  a\t b ", "a|b"),
            ("a C:/x~1", "a|C:/x~1"),
        ] {
            assert_eq!(words(line), Ok(expected.to_owned()), "{line}");
        }
        for (line, sign) in [
            ("a | b", "|"),
            ("echo $TOKEN", "$"),
            ("echo \"$(date)\"", "$"),
            ("~/bin/headers", "~"),
            ("a 'b", "'"),
            ("a \\ b", "\\"),
            ("a; b", ";"),
        ] {
            assert_eq!(words(line), Err(sign.to_owned()), "{line}");
        }
    }

    #[test]
    fn a_scope_has_no_quotes_and_no_odd_characters() {
        assert!(["mcp:tools", "https://h.example/auth/x.readonly", "a"].into_iter().all(is_scope));
        assert!(!["a\"b", "a\\b", "ä"].into_iter().any(is_scope));
    }
}
