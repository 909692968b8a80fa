//! Tokens without a user, and tokens that are bound to a key.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use p256::pkcs8::{EncodePrivateKey as _, LineEnding};
use plugbay_core::{
    credentials::{ClientSettings, EnterpriseSettings, Grant, OAuthSettings, SecretSource, SigningKey},
    secret::Secret,
};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, Outcome, log_in},
    scripted::{Answer, SECRET, Site},
};

fn client(secret: Option<&str>, key: Option<SigningKey>) -> ClientSettings {
    ClientSettings { id: "robot".into(), secret: secret.map(Secret::new), key, issuer: None }
}

fn machine(client: ClientSettings, grant: Grant) -> OAuthSettings {
    OAuthSettings { client: Some(client), grant, ..OAuthSettings::default() }
}

#[tokio::test]
async fn client_credentials_are_sent_as_the_token_endpoint_wants_them() {
    for method in ["client_secret_basic", "client_secret_post"] {
        let site = Site::start().await;
        let secret = format!("{SECRET}-of-robot");
        site.script().server = json!({"token_endpoint_auth_methods_supported": [method]});
        site.script().grants.clients.insert("robot".into(), Some(secret.clone()));
        let bench = Bench::new(&site);
        let login = bench.login_with(machine(client(Some(&secret), None), Grant::ClientCredentials));
        for _ in 0..3 {
            assert!(bench.call(&login).await.is_done());
            site.pass(700);
        }
        let bodies = site.bodies("/token");
        assert_eq!(bodies.len(), 3, "one token for each life");
        assert_eq!(bodies[0].contains("client_secret="), method == "client_secret_post", "{bodies:?}");
        assert!(bodies[0].contains("resource="), "{bodies:?}");
    }
}

#[tokio::test]
async fn client_credentials_can_be_a_signed_assertion() {
    let site = Site::start().await;
    site.script().grants.clients.insert("robot".into(), None);
    let bench = Bench::new(&site);
    let pem = p256::SecretKey::from_slice(&[7; 32]).unwrap().to_pkcs8_pem(LineEnding::LF).unwrap();
    let pem = SecretSource::Value(Secret::new(pem.as_str()));
    let key = SigningKey { pem, algorithm: "ES256".into(), id: None };
    let login = bench.login_with(machine(client(None, Some(key)), Grant::ClientCredentials));
    assert!(bench.call(&login).await.is_done());
    let body = site.bodies("/token").remove(0);
    let assertion = url::form_urlencoded::parse(body.as_bytes()).find(|(name, _)| name == "client_assertion");
    let assertion = assertion.unwrap().1.into_owned();
    let claims = URL_SAFE_NO_PAD.decode(assertion.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!("robot"), &json!(site.origin)));
}

#[tokio::test]
async fn a_workload_identity_is_read_anew_for_each_token() {
    let site = Site::start().await;
    site.script().grants.clients.insert("robot".into(), None);
    let bench = Bench::new(&site);
    let file = bench.folder.path().join("identity");
    let grant = Grant::WorkloadIdentity { assertion: SecretSource::File(file.clone()) };
    let login = bench.login_with(machine(client(None, None), grant));
    assert!(matches!(bench.call(&login).await, Outcome::Failed(_)), "there is no file");
    site.pass(61);
    for text in ["first", "second"] {
        std::fs::write(&file, text).unwrap();
        assert!(bench.call(&login).await.is_done());
        assert!(site.bodies("/token").last().unwrap().contains(&format!("assertion={text}")));
        site.pass(700);
    }
}

#[tokio::test]
async fn an_identity_provider_vouches_for_the_user() {
    let (site, provider) = (Site::start().await, Site::start().await);
    site.script().grants.clients.insert("robot".into(), None);
    provider.script().grants.clients.insert("plugbay".into(), Some("idp".into()));
    let grant = Grant::EnterpriseManaged(Box::new(EnterpriseSettings {
        issuer: Some(provider.origin.clone()),
        token_endpoint: None,
        client_id: "plugbay".into(),
        client_secret: Some(Secret::new("idp")),
        id_token: SecretSource::Value(Secret::new(format!("{SECRET}-id-token"))),
    }));
    let bench = Bench::new(&site);
    let login = bench.login_with(machine(client(None, None), grant));
    assert!(bench.call(&login).await.is_done());
    let (asked, used) = (provider.bodies("/token").remove(0), site.bodies("/token").remove(0));
    assert!(asked.contains("id-jag") && asked.contains("subject_token"), "{asked}");
    assert!(used.contains("jwt-bearer") && used.contains(&format!("assertion={SECRET}-access")), "{used}");
    assert!(!site.everything().contains("id-token"), "the ID token is for the identity provider alone");
}

#[tokio::test]
async fn dpop_tokens_are_proved_with_nonces() {
    let site = Site::start().await;
    site.script().server = json!({"dpop_signing_alg_values_supported": ["ES256"]});
    site.script().resource = json!({"dpop_bound_access_tokens_required": true});
    site.script().grants.nonce = Some("first".into());
    let bench = Bench::new(&site);
    let login = bench.login();
    log_in(&login).await.unwrap();
    assert!(bench.call(&login).await.is_done());
    site.script().grants.nonce = Some("second".into());
    assert!(bench.call(&login).await.is_done());
    // The key survives a refresh, even one by another process.
    site.pass(700);
    assert!(bench.call(&bench.login()).await.is_done());
    assert!(bench.call(&login).await.is_done());
    let grants = &site.script().grants;
    assert_eq!((grants.refreshed.len(), grants.logins), (1, 1));
}

#[tokio::test]
async fn a_dpop_nonce_that_always_changes_ends_the_request() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let login = bench.logged_in().await;
    for number in 0..40 {
        let mut answer = Answer::json(401, &json!({}));
        answer.headers.push(("www-authenticate", "DPoP error=\"use_dpop_nonce\"".into()));
        answer.headers.push(("dpop-nonce", format!("n{number}")));
        site.once("/mcp", answer);
    }
    assert!(!bench.call(&login).await.is_done());
    assert!(site.paths().iter().filter(|path| *path == "/mcp").count() < 12);
}

#[tokio::test]
async fn a_machine_whose_tokens_are_rejected_does_not_ask_for_ever_more() {
    let site = Site::start().await;
    site.script().grants.clients.insert("robot".into(), Some("s".into()));
    site.script().rejects_all = true;
    let bench = Bench::new(&site);
    let login = bench.login_with(machine(client(Some("s"), None), Grant::ClientCredentials));
    for _ in 0..10 {
        assert!(matches!(bench.call(&login).await, Outcome::Failed(_)));
    }
    assert!(site.bodies("/token").len() <= 4, "{}", site.bodies("/token").len());
}
