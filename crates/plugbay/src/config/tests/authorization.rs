//! Which files may set the authorization of callers, and the effect of mistakes.

use super::{Place, settings};
use crate::config::AuthorizationSettings;

const GOOD: &str =
    r#"{ "authorization": { "issuer": "https://idp.example", "resource": "https://gw.example/mcp" } }"#;

#[test]
fn an_authorization_has_safe_defaults() {
    let AuthorizationSettings::On(resource) = settings(GOOD, &[]).authorization else { panic!("it is good") };
    assert_eq!(resource.server.audiences, ["https://gw.example/mcp"]);
    assert_eq!(resource.server.algorithms.len(), 4);
    assert_eq!((&*resource.server.caller_claim, &resource.server.jwks_uri), ("sub", &None));
    assert_eq!(settings("{}", &[]).authorization, AuthorizationSettings::Off);
}

#[test]
fn scopes_of_an_authorization_keep_the_order_of_the_file() {
    let text = r#"{ "authorization": {
        "issuer": "${ISSUER}", "resource": "http://127.0.0.1:8080/mcp", "audience": ["one", "${TWO}"],
        "scopes": { "z": { "tools": ["s__get_*"] }, "a": {} }, "requiredScopes": ["base"]
    } }"#;
    let loaded = settings(text, &[("ISSUER", "https://idp.example/realm"), ("TWO", "two")]);
    let AuthorizationSettings::On(resource) = loaded.authorization else {
        panic!("{:?}", loaded.diagnostics)
    };
    assert_eq!(resource.server.issuer, "https://idp.example/realm");
    assert_eq!(resource.server.audiences, ["one", "two"]);
    assert_eq!(resource.scopes.supported(), ["base", "z", "a"]);
    assert_eq!(resource.scopes.rules[1].tools, None, "a scope without tools is for all of them");
}

#[test]
fn a_mistake_in_an_authorization_breaks_it_as_a_whole() {
    let good = r#""issuer": "https://idp.example", "resource": "https://gw.example/mcp""#;
    for mistake in [
        String::new(),
        r#""issuer": "https://idp.example""#.to_owned(),
        r#""issuer": "http://idp.example", "resource": "https://gw.example/mcp""#.to_owned(),
        r#""issuer": "https://idp.example", "resource": "https://gw.example/\"mcp""#.to_owned(),
        r#""issuer": "https://ada:secret@idp.example", "resource": "https://gw.example/mcp""#.to_owned(),
        format!(r#"{good}, "jwksUri": "http://idp.example/keys""#),
        format!(r#"{good}, "algorithms": ["HS256"]"#),
        format!(r#"{good}, "algorithms": ["none"]"#),
        format!(r#"{good}, "requiredScope": ["a"]"#),
        format!(r#"{good}, "requiredScopes": ["a b"]"#),
        format!(r#"{good}, "requiredScopes": "a""#),
        format!(r#"{good}, "scopes": {{ "a": {{ "tool": ["x"] }} }}"#),
        format!(r#"{good}, "scopes": {{ "a": {{ "tools": ["["] }} }}"#),
        format!(r#"{good}, "scopes": {{ "\"": {{}} }}"#),
        format!(r#"{good}, "audience": "${{UNSET}}""#),
    ] {
        let loaded = settings(&format!(r#"{{ "authorization": {{ {mistake} }} }}"#), &[]);
        assert_eq!(loaded.authorization, AuthorizationSettings::Broken, "{mistake}");
        assert!(!loaded.diagnostics.is_empty(), "{mistake}");
    }
    assert_eq!(settings(r#"{ "authorization": true }"#, &[]).authorization, AuthorizationSettings::Broken);
}

#[test]
fn a_projects_file_cannot_set_the_authorization() {
    let place = Place::new();
    place.write("project/.plugbay.jsonc", GOOD);
    place.approve(".plugbay.jsonc");
    let loaded = place.load(None);
    assert_eq!(loaded.authorization, AuthorizationSettings::Off);
    place.write("home/config.jsonc", GOOD.replace("idp", "own"));
    let AuthorizationSettings::On(resource) = place.load(None).authorization else {
        panic!("it is the user's")
    };
    assert_eq!(resource.server.issuer, "https://own.example");
    let told = place.summary(&place.load(None));
    assert!(told.contains("a project cannot set the authorization"), "{told}");
}
