//! Keys of `authorization`: each change takes effect while the gateway serves over HTTP.

use jsonwebtoken::Algorithm;
use plugbay_testkit::{DEADLINE, HttpGateway, Script, Workspace, wait_until};
use serde_json::{Value, json};

use crate::{
    authorization::{Issuer, Private, await_tool, list},
    gateway,
};

/// `Definition.key`, the changes to a valid authorization, and claims of a token that works only before or
/// only after.
pub(super) type Row = (&'static str, Value, Value, Value);

/// The rows, for an issuer at this address and another one.
pub(super) fn rows(other: &str) -> Vec<Row> {
    let same = json!({});
    vec![
        ("Authorization.issuer", json!({ "issuer": other }), same.clone(), json!({ "iss": other })),
        (
            "Authorization.audience",
            json!({ "audience": ["api://gateway", "x"] }),
            same.clone(),
            json!({ "aud": "api://gateway" }),
        ),
        (
            "Authorization.resource",
            json!({ "resource": "https://new.example/mcp" }),
            same.clone(),
            json!({ "aud": "https://new.example/mcp" }),
        ),
        ("Authorization.requiredScopes", same.clone(), json!({ "requiredScopes": ["base"] }), same.clone()),
        ("Authorization.callerClaim", same.clone(), json!({ "callerClaim": "email" }), same.clone()),
        ("Authorization.algorithms", same.clone(), json!({ "algorithms": ["ES256"] }), same.clone()),
        (
            "Authorization.jwksUri",
            same.clone(),
            json!({ "jwksUri": format!("{other}/nothing") }),
            same.clone(),
        ),
        (
            "Authorization.scopes",
            json!({ "scopes": { "write": { "tools": ["s__*"] } } }),
            json!({ "scopes": { "write": { "tools": ["t__*"] } } }),
            same.clone(),
        ),
        (
            "AuthorizationScope.tools",
            json!({ "scopes": { "write": {} } }),
            json!({ "scopes": { "write": { "tools": ["t__*"] } } }),
            same,
        ),
    ]
}

/// Checks each row: with one configuration the token sees the tool, with the other it does not.
pub(super) fn check() {
    let workspace = Workspace::new();
    let keys = vec![Private::RsaOne.public("rsa-1", &json!({}))];
    let (issuer, other) = (Issuer::start(keys.clone()), Issuer::start(keys));
    let config = workspace.config(&[("s", Script::friendly())]);
    let write = |change: &Value| {
        let mut authorization = issuer.authorization();
        for (key, value) in change.as_object().unwrap() {
            authorization[key] = value.clone();
        }
        workspace.write_config(&config.clone().top("authorization", authorization));
    };
    write(&json!({}));
    let gateway = HttpGateway::start(&mut workspace.command(&gateway()));
    for (key, before, after, claims) in rows(&other.url()) {
        let token = issuer.good().claims(&json!({ "scope": "write" })).claims(&claims);
        let token = token.signed(Private::RsaOne, Algorithm::RS256).token();
        let sees = || list(&gateway, &token).body.contains("s__echo");
        write(&before);
        await_tool(&gateway, &token, "s__echo");
        write(&after);
        wait_until(key, DEADLINE, || (!sees()).then_some(()));
    }
    let token = issuer.good().claims(&json!({ "scope": "write" })).token();
    write(&json!({}));
    await_tool(&gateway, &token, "s__echo");
    workspace.write_config(&config);
    wait_until("the end of the authorization", DEADLINE, || {
        (list(&gateway, &token).status == 401).then_some(())
    });
}
