//! Keys for the credentials of servers behind a URL.
//!
//! A key for a login is observed through an unset variable in its value, or through an invalid value.

use serde_json::{Value, json};

use super::table::{Harness, Row, status, with};

/// The sources of an entry's credentials.
pub(super) fn sources(harness: &Harness) -> Vec<Row> {
    let url = format!("{}/mcp", harness.remote.url());
    let server =
        |more: Value| json!({ "mcpServers": { "r": with(json!({ "url": url, "type": "http" }), more) } });
    let remote =
        |more: Value| json!({ "remotes": { "r": with(json!({ "url": harness.remote.url() }), more) } });
    let row = |key, before, after, shows| Row { key, before, after, look: status, shows };
    let unset = ["UNSET_ONE", "UNSET_TWO"];
    let login = |secret: &str| json!({ "oauth": { "clientId": "me", "clientSecret": secret } });
    let odd = ["\u{e4}one", "\u{e4}two"];
    let command = |word: &str| json!({ "headersCommand": [word] });
    let file = |path: &str| json!({ "headersFile": path });
    let (one, two) = ("${UNSET_ONE}", "${UNSET_TWO}");
    vec![
        row("Server.oauth", server(login(one)), server(json!({ "oauth": false })), ["UNSET_ONE", "404"]),
        row(
            "Server.scopes",
            server(json!({ "scopes": [odd[0]] })),
            server(json!({ "scopes": [odd[1]] })),
            odd,
        ),
        row("Server.headersCommand", server(command(one)), server(command(two)), unset),
        row("Server.headersFile", server(file(one)), server(file(two)), unset),
        row("Remote.oauth", remote(login(one)), remote(login(two)), unset),
        row("Remote.headersCommand", remote(command(one)), remote(command(two)), unset),
        row("Remote.headersFile", remote(file(one)), remote(file(two)), unset),
    ]
}

/// The keys of a login.
pub(super) fn logins(harness: &Harness) -> Vec<Row> {
    let url = format!("{}/mcp", harness.remote.url());
    let entry =
        |oauth: Value| json!({ "mcpServers": { "r": { "url": url, "type": "http", "oauth": oauth } } });
    let seen = |name: &'static str, base: Value, values: [Value; 2], shows: [&'static str; 2]| {
        let key = name.split_once('.').map_or(name, |(_, key)| key);
        let [before, after] = values.map(|value| {
            let member = json!({ key: value });
            let member = if name.starts_with("IdentityProvider") { json!({ "idp": member }) } else { member };
            with(base.clone(), member)
        });
        Row { key: name, before: entry(before), after: entry(after), look: status, shows }
    };
    let unset = |name: &'static str, base: Value| {
        seen(name, base, [json!("${UNSET_ONE}"), json!("${UNSET_TWO}")], ["UNSET_ONE", "UNSET_TWO"])
    };
    let client = || json!({ "clientId": "me" });
    let workload = || json!({ "grant": "workload_identity" });
    let enterprise = || json!({ "grant": "enterprise_managed" });
    let secret = json!({ "clientId": "me", "clientSecret": "${UNSET_ONE}" });
    vec![
        seen("OAuth.enabled", secret, [json!(true), json!(false)], ["UNSET_ONE", "404"]),
        unset("OAuth.clientId", json!({})),
        unset("OAuth.clientSecret", client()),
        unset("OAuth.clientSecretFile", client()),
        unset("OAuth.clientMetadataUrl", json!({})),
        unset("OAuth.issuer", client()),
        unset("OAuth.authServerMetadataUrl", client()),
        seen("OAuth.scopes", json!({}), [json!("\u{e4}one"), json!("\u{e4}two")], ["\u{e4}one", "\u{e4}two"]),
        seen("OAuth.callbackPort", json!({}), [json!(70_001), json!(70_002)], ["70001", "70002"]),
        seen("OAuth.privateNetwork", json!({}), [json!("yes"), json!(7)], ["a string", "a number"]),
        unset("OAuth.redirectUri", json!({})),
        seen("OAuth.grant", json!({}), [json!("word_one"), json!("word_two")], ["word_one", "word_two"]),
        unset("OAuth.privateKey", client()),
        unset("OAuth.privateKeyFile", client()),
        seen("OAuth.algorithm", client(), [json!("word_one"), json!("word_two")], ["word_one", "word_two"]),
        unset("OAuth.keyId", client()),
        unset("OAuth.assertion", workload()),
        unset("OAuth.assertionFile", workload()),
        unset("IdentityProvider.issuer", enterprise()),
        unset("IdentityProvider.tokenEndpoint", enterprise()),
        unset("IdentityProvider.clientId", enterprise()),
        unset("IdentityProvider.clientSecret", enterprise()),
        unset("IdentityProvider.idToken", enterprise()),
        unset("IdentityProvider.idTokenFile", enterprise()),
    ]
}

/// The keys for all logins.
pub(super) fn general() -> Vec<Row> {
    let row = |key, before, after, shows| Row { key, before, after, look: status, shows };
    let document = |url: &str| json!({ "oauth": { "clientMetadataUrl": url } });
    let store = |word: &str| json!({ "oauth": { "store": word } });
    vec![
        row(
            "Logins.clientMetadataUrl",
            document("${UNSET_ONE}"),
            document("${UNSET_TWO}"),
            ["UNSET_ONE", "UNSET_TWO"],
        ),
        row("Logins.store", store("word_one"), store("word_two"), ["word_one", "word_two"]),
    ]
}
