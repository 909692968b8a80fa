//! Logins and renewals, step by step.

use plugbay_core::{
    credentials::{ClientSettings, Credentials as _, Generation, OAuthSettings, Rejection, Target, Verdict},
    secret::Secret,
};
use serde_json::json;

use crate::{
    bench::{Bench, Outcome, consent, log_in},
    scripted::{Answer, Site, Trouble},
};

#[tokio::test]
async fn discovery_asks_in_the_specified_order() {
    let site = Site::start().await;
    let login = Bench::new(&site).login();
    // The challenge names no metadata, so all well-known places are requested.
    let missing = Answer::text(404, "text/plain", "no");
    site.script().challenge = Some("Bearer".to_owned());
    site.always("/.well-known/oauth-protected-resource/mcp", missing.clone());
    site.always("/.well-known/oauth-authorization-server", missing);
    let flow = login.begin(&[]).await.unwrap();
    let expected = [
        "/mcp",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/register",
    ];
    assert_eq!(site.paths(), expected, "a server of 2025-03-26 has its endpoints at the root");
    assert!(flow.url.as_str().starts_with(&format!("{}/authorize?", site.origin)));
}

#[tokio::test]
async fn a_client_is_configured_then_a_document_then_registered() {
    let site = Site::start().await;
    site.script().server = json!({"client_id_metadata_document_supported": true});
    let document = "https://plugbay.example/client.json";
    let client =
        ClientSettings { id: "mine".into(), secret: Some(Secret::new("s")), key: None, issuer: None };
    let all = OAuthSettings {
        client: Some(client),
        client_metadata_url: Some(document.to_owned()),
        ..OAuthSettings::default()
    };
    let id = async |oauth: OAuthSettings| {
        let flow = Bench::new(&site).login_with(oauth).begin(&[]).await.unwrap();
        flow.url.query_pairs().find(|(name, _)| name == "client_id").unwrap().1.into_owned()
    };
    assert_eq!(id(all.clone()).await, "mine");
    assert_eq!(id(OAuthSettings { client: None, ..all.clone() }).await, document);
    assert_eq!(id(OAuthSettings::default()).await, "client-1");
    site.script().server = json!({});
    assert_eq!(id(OAuthSettings { client: None, ..all }).await, "client-2", "it reads no documents");
}

#[tokio::test]
async fn a_login_gives_a_token_that_the_next_process_uses_too() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let login = bench.login();
    assert!(matches!(bench.call(&login).await, Outcome::NeedsLogin(_)));
    let before = login.generation();
    let other = bench.login();
    let flow = login.begin(&[]).await.unwrap();
    let waiting = tokio::spawn({
        let other = other.clone();
        async move { other.changed(Generation::default()).await }
    });
    let (status, page) = consent(&flow).await;
    assert_eq!(status, 200);
    assert!(page.contains("Logged in to site"), "{page}");
    flow.finished().await.unwrap();
    assert_ne!(login.generation(), before);
    waiting.await.unwrap();
    assert!(bench.call(&other).await.is_done());
    assert!(bench.call(&bench.login()).await.is_done());
    let grants = &site.script().grants;
    assert_eq!((grants.logins, grants.refreshed.len()), (1, 0));
}

#[tokio::test]
async fn a_step_up_asks_for_the_union_of_scopes() {
    let site = Site::start().await;
    site.script().challenge = Some("Bearer scope=\"read\"".to_owned());
    let bench = Bench::new(&site);
    let login = bench.logged_in().await;
    site.script().needs = vec!["write".to_owned()];
    let Outcome::NeedsLogin(failure) = bench.call(&login).await else { panic!("it needs a login") };
    assert!(failure.to_string().contains("write"), "{failure}");
    // Another process knows the missing scopes.
    let flow = bench.login().begin(&[]).await.unwrap();
    let scope = flow.url.query_pairs().find(|(name, _)| name == "scope").unwrap().1.into_owned();
    assert_eq!(scope, "read write");
    consent(&flow).await;
    flow.finished().await.unwrap();
    assert!(bench.call(&login).await.is_done());
    assert_eq!(bench.record()["logins"][&site.origin]["missing"], serde_json::Value::Null);
}

#[tokio::test]
async fn a_token_that_has_the_scopes_and_is_rejected_for_them_needs_no_login() {
    let site = Site::start().await;
    site.script().challenge = Some("Bearer scope=\"read\"".to_owned());
    let bench = Bench::new(&site);
    let login = bench.logged_in().await;
    for (scope, says) in [("read", "which it has"), ("", "does not say which")] {
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
        let rejection = Rejection {
            status: 403,
            challenges: vec![challenge],
            dpop_nonce: None,
            request: Target { method: "POST", url: &bench.url },
            generation: login.generation(),
            attempts: 1,
        };
        let verdict = login.rejected(rejection).await;
        assert!(matches!(&verdict, Verdict::Final(why) if why.to_string().contains(says)), "{verdict:?}");
    }
}

#[tokio::test]
async fn a_rejected_token_is_refreshed_once_for_all_requests() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let (one, two) = (bench.logged_in().await, bench.login());
    for _ in 0..3 {
        site.script().grants.expire_all();
        let calls = (0..8).map(|n| {
            let (login, url) = (if n % 2 == 0 { one.clone() } else { two.clone() }, bench.url.clone());
            tokio::spawn(async move { crate::bench::call(&login, &url).await })
        });
        for call in calls.collect::<Vec<_>>() {
            assert!(call.await.unwrap().is_done());
        }
    }
    let grants = &site.script().grants;
    assert_eq!((grants.refreshed.len(), grants.reused), (3, 0));
}

#[tokio::test]
async fn the_token_of_another_process_is_adopted_without_a_refresh() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let (one, two) = (bench.logged_in().await, bench.login());
    assert!(bench.call(&two).await.is_done());
    site.pass(700);
    assert!(bench.call(&one).await.is_done());
    assert!(bench.call(&two).await.is_done());
    assert_eq!(site.script().grants.refreshed.len(), 1);
}

#[tokio::test]
async fn a_refresh_that_fails_keeps_the_login() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let login = bench.logged_in().await;
    let record = bench.record();
    site.pass(700);
    let broken = [
        Answer::json(503, &json!({})),
        Answer::json(500, &json!({"error": "invalid_grant"})),
        Answer::json(429, &json!({})),
        Answer::json(400, &json!({"error": "temporarily_unavailable"})),
        Answer::text(200, "text/html", "<html>"),
        Answer::json(200, &json!({})),
        Answer::json(200, &json!({"access_token": "a\r\nb"})),
        Answer::redirect(307, "/elsewhere"),
    ];
    for answer in broken {
        site.once("/token", answer);
        let outcome = bench.call(&login).await;
        assert!(matches!(outcome, Outcome::Failed(_)), "{}", outcome.text());
        // During the pause nothing is sent.
        assert!(matches!(bench.call(&login).await, Outcome::Failed(_)));
        assert_eq!(bench.record(), record);
        site.pass(61);
    }
    assert_eq!(site.bodies("/token").len(), 1 + 8);
    assert!(bench.call(&login).await.is_done());
}

#[tokio::test]
async fn invalid_grant_needs_a_login_and_keeps_the_record() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let (login, other) = (bench.logged_in().await, bench.login());
    site.script().grants.revoke_all();
    let outcome = bench.call(&login).await;
    assert!(matches!(outcome, Outcome::NeedsLogin(_)), "{}", outcome.text());
    assert!(outcome.text().contains("plugbay auth login site"), "{}", outcome.text());
    let record = &bench.record()["logins"][&site.origin];
    assert!(record["tokens"]["refresh"].is_string() && record["rejected"].is_string());
    let asked = site.bodies("/token").len();
    for login in [&login, &other] {
        assert!(matches!(bench.call(login).await, Outcome::NeedsLogin(_)));
    }
    assert_eq!(site.bodies("/token").len(), asked, "nobody asks again");
    log_in(&other).await.unwrap();
    assert!(bench.call(&login).await.is_done());
}

#[tokio::test]
async fn a_client_that_the_authorization_server_forgot_is_registered_anew() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let login = bench.logged_in().await;
    site.script().grants.clients.clear();
    site.pass(700);
    assert!(matches!(bench.call(&login).await, Outcome::NeedsLogin(_)));
    log_in(&login).await.unwrap();
    assert!(bench.call(&login).await.is_done());
    assert_eq!(site.script().grants.registered, 2);
}

#[tokio::test]
async fn a_cancelled_call_does_not_lose_the_rotated_token() {
    let site = Site::start().await;
    site.script().grants.grace = 0;
    let bench = Bench::new(&site);
    let login = bench.logged_in().await;
    site.pass(700);
    site.trouble(Trouble::HeldAfter);
    let url = bench.url.clone();
    let call = tokio::spawn({
        let login = login.clone();
        async move { login.headers(Target { method: "POST", url: &url }).await.is_ok() }
    });
    site.held(1).await;
    call.abort();
    assert!(call.await.is_err());
    site.pass(30);
    site.trouble(Trouble::None);
    assert!(bench.call(&login).await.is_done());
    assert!(bench.call(&bench.login()).await.is_done());
    let grants = &site.script().grants;
    assert_eq!((grants.refreshed.len(), grants.reused), (1, 0));
}

#[tokio::test]
async fn a_refresh_token_that_does_not_rotate_is_kept() {
    let site = Site::start().await;
    site.script().grants.rotates = false;
    let bench = Bench::new(&site);
    let login = bench.logged_in().await;
    for _ in 0..3 {
        site.pass(700);
        assert!(bench.call(&login).await.is_done());
    }
    assert_eq!(site.script().grants.refreshed.len(), 3);
}

#[tokio::test]
async fn a_due_token_is_refreshed_while_requests_go_on() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let login = bench.logged_in().await;
    site.pass(500);
    site.trouble(Trouble::Held);
    for _ in 0..3 {
        assert!(bench.call(&login).await.is_done(), "nobody waits for the refresh");
    }
    site.held(1).await;
    site.trouble(Trouble::None);
    login.changed(login.generation()).await;
    assert!(bench.call(&login).await.is_done());
    assert_eq!(site.script().grants.refreshed.len(), 1);
}

#[tokio::test]
async fn a_login_that_is_offered_twice_is_the_same() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let login = bench.login();
    let (one, two) = (login.login().await.unwrap(), login.login().await.unwrap());
    assert_eq!((&one.url, &one.id), (&two.url, &two.id));
    let arrived = crate::bench::browser().get(&one.url).send().await.unwrap();
    let location = arrived.headers()["location"].to_str().unwrap().to_owned();
    crate::bench::browser().get(location).send().await.unwrap();
    login.changed(Generation::default()).await;
    assert!(bench.call(&login).await.is_done());
    let three = login.login().await.unwrap();
    assert_ne!(one.id, three.id, "the first one is over");
}

#[tokio::test]
async fn a_logout_revokes_and_forgets() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let (login, other) = (bench.logged_in().await, bench.login());
    assert!(bench.call(&other).await.is_done());
    let out = login.logout().await.unwrap();
    assert!(out.was_logged_in && out.problem.is_none());
    assert!(site.bodies("/revoke")[0].contains("refresh_token"));
    for login in [&login, &other] {
        assert!(matches!(bench.call(login).await, Outcome::NeedsLogin(_)));
    }
    assert!(!login.logout().await.unwrap().was_logged_in);
}

#[tokio::test]
async fn a_server_that_rejects_every_token_is_not_asked_forever() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let login = bench.logged_in().await;
    site.script().rejects_all = true;
    let outcome = bench.call(&login).await;
    assert!(!outcome.is_done());
    assert!(site.script().grants.refreshed.len() <= 2);
    for _ in 0..20 {
        assert!(!bench.call(&login).await.is_done());
    }
    let refreshed = site.script().grants.refreshed.len();
    assert!(refreshed <= 2, "{refreshed} refreshes although the new token is rejected as well");
}
