//! Keys that are fetched, rotated, kept and dropped, with a scripted issuer and on a paused clock.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use jsonwebtoken::{Algorithm, EncodingKey, jwk::Jwk};
use plugbay_core::{
    access_token::{TokenError, TokenVerifier},
    credentials::Later,
};
use serde_json::{Value, json};
use tokio::time::{advance, sleep};
use url::Url;

use super::{
    Fetch, FetchError, ResourceServer, ResourceServerSettings, SignatureAlgorithm,
    key_cache::{LONGEST, OLD, UNKNOWN_EVERY},
};

const ISSUER: &str = "https://idp.example/realm";
const METADATA: &str = "https://idp.example/realm/.well-known/openid-configuration";
const KEYS: &str = "https://keys.example/jwks";
/// Private keys in PKCS #8, for these tests only.
const PRIVATE: [&str; 2] = [
    "MC4CAQAwBQYDK2VwBCIEIAhz+Tuu/nzhFwa+jmivr7gWC2EznSKqSv3sKXW/t+St",
    "MC4CAQAwBQYDK2VwBCIEILLgYvZiXcQVFC0rr4bBAfE5LILqxMNyCZPEvSjbVwrB",
];

/// An issuer with scripted documents by address; any other address is a 404.
#[derive(Debug, Clone, Default)]
struct Issuer {
    documents: Arc<Mutex<Vec<(String, Value)>>>,
    asked: Arc<Mutex<Vec<String>>>,
    fetches: Arc<AtomicUsize>,
    slow: Duration,
}

impl Issuer {
    /// An issuer with metadata at the place of OpenID Connect, and these keys.
    fn with(keys: &[usize]) -> Self {
        let issuer = Self::default();
        issuer.set(METADATA, json!({ "issuer": ISSUER, "jwks_uri": KEYS }));
        issuer.publish(keys);
        issuer
    }

    fn set(&self, address: &str, document: Value) {
        let mut documents = self.documents.lock().unwrap();
        documents.retain(|(known, _)| known != address);
        documents.push((address.to_owned(), document));
    }

    fn publish(&self, keys: &[usize]) {
        self.set(KEYS, json!({ "keys": keys.iter().map(|&number| public(number)).collect::<Vec<_>>() }));
    }

    fn fails(&self) {
        self.documents.lock().unwrap().clear();
    }

    /// How often the keys were fetched.
    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::Relaxed)
    }
}

impl Fetch for Issuer {
    fn get<'a>(&'a self, url: &'a Url) -> Later<'a, Result<Bytes, FetchError>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(url.to_string());
            if url.as_str() == KEYS {
                self.fetches.fetch_add(1, Ordering::Relaxed);
            }
            sleep(self.slow).await;
            let documents = self.documents.lock().unwrap();
            let found = documents.iter().find(|(address, _)| address == url.as_str());
            found.map(|(_, document)| document.to_string().into()).ok_or(FetchError::Status(404))
        })
    }
}

fn signing_key(number: usize) -> EncodingKey {
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", PRIVATE[number]);
    EncodingKey::from_ed_pem(pem.as_bytes()).unwrap()
}

fn public(number: usize) -> Value {
    let mut key = json!(Jwk::from_encoding_key(&signing_key(number), Algorithm::EdDSA).unwrap());
    key["kid"] = json!(format!("key-{number}"));
    key
}

fn token(number: usize) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut header = jsonwebtoken::Header::new(Algorithm::EdDSA);
    header.kid = Some(format!("key-{number}"));
    let claims = json!({
        "iss": ISSUER, "aud": "https://gw.example/mcp", "sub": "ada", "exp": now + 3600, "scope": "b a",
    });
    jsonwebtoken::encode(&header, &claims, &signing_key(number)).unwrap()
}

fn server(issuer: &Issuer, jwks_uri: Option<&str>) -> ResourceServer {
    let settings = ResourceServerSettings {
        issuer: ISSUER.to_owned(),
        audiences: vec!["https://gw.example/mcp".to_owned()],
        jwks_uri: jwks_uri.map(str::to_owned),
        algorithms: SignatureAlgorithm::USUAL.to_vec(),
        caller_claim: "sub".to_owned(),
    };
    ResourceServer::new(settings, issuer.clone())
}

const UNKNOWN: TokenError = TokenError::Invalid("the issuer has no such key");

async fn outcome(server: &ResourceServer, number: usize) -> Result<(), TokenError> {
    server.verify(&token(number)).await.map(drop)
}

#[tokio::test(start_paused = true)]
async fn a_token_is_proven_with_the_keys_of_its_issuer() {
    let issuer = Issuer::with(&[0]);
    let server = server(&issuer, None);
    let token = server.verify(&token(0)).await.unwrap();
    assert_eq!((&*token.issuer, &*token.subject, token.scopes.concat()), (ISSUER, "ada", "ab".to_owned()));
    let asked = issuer.asked.lock().unwrap().clone();
    assert_eq!(asked.last().map(String::as_str), Some(KEYS));
    assert_eq!(asked.len(), 4, "three places for the metadata, then the keys: {asked:?}");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_key_is_fetched_at_once_and_then_every_30_seconds() {
    let issuer = Issuer::with(&[0]);
    let server = server(&issuer, Some(KEYS));
    outcome(&server, 0).await.unwrap();
    issuer.publish(&[1]);
    assert_eq!(outcome(&server, 0).await, Ok(()), "the old key counts until the new ones are fetched");
    outcome(&server, 1).await.unwrap();
    assert_eq!(outcome(&server, 0).await, Err(UNKNOWN), "the old key is gone, the token known or not");
    assert_eq!(issuer.fetches(), 2);
    issuer.publish(&[0, 1]);
    advance(UNKNOWN_EVERY.saturating_sub(Duration::from_secs(1))).await;
    assert_eq!((outcome(&server, 0).await, issuer.fetches()), (Err(UNKNOWN), 2));
    advance(Duration::from_secs(1)).await;
    assert_eq!((outcome(&server, 0).await, issuer.fetches()), (Ok(()), 3));
}

#[tokio::test(start_paused = true)]
async fn many_tokens_with_unknown_keys_cause_one_fetch() {
    let issuer = Issuer { slow: Duration::from_secs(1), ..Issuer::with(&[0]) };
    let server = server(&issuer, Some(KEYS));
    outcome(&server, 0).await.unwrap();
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let server = server.clone();
        asking.spawn(async move { outcome(&server, 1).await });
    }
    let told: VecDeque<_> = asking.join_all().await.into();
    assert!(told.iter().all(|outcome| *outcome == Err(UNKNOWN)), "{told:?}");
    assert_eq!(issuer.fetches(), 2);
}

#[tokio::test(start_paused = true)]
async fn keys_stay_when_a_fetch_fails_and_are_forgotten_after_a_day() {
    let issuer = Issuer::with(&[0]);
    let server = server(&issuer, Some(KEYS));
    outcome(&server, 0).await.unwrap();
    issuer.fails();
    assert_eq!(outcome(&server, 1).await, Err(TokenError::Unavailable), "nobody can tell");
    advance(LONGEST.saturating_sub(Duration::from_secs(1))).await;
    outcome(&server, 0).await.unwrap();
    sleep(Duration::from_millis(1)).await; // the refresh fails meanwhile
    advance(Duration::from_secs(10)).await;
    assert_eq!(outcome(&server, 0).await, Err(TokenError::Unavailable));
    issuer.publish(&[0]);
    advance(Duration::from_secs(5)).await;
    outcome(&server, 0).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn old_keys_are_fetched_again_while_they_are_used() {
    let issuer = Issuer::with(&[0, 1]);
    let server = server(&issuer, Some(KEYS));
    outcome(&server, 0).await.unwrap();
    issuer.publish(&[0]);
    advance(OLD).await;
    outcome(&server, 0).await.unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(issuer.fetches(), 2);
    assert_eq!(outcome(&server, 1).await, Err(UNKNOWN), "a withdrawn key does not count any more");
}

#[tokio::test(start_paused = true)]
async fn metadata_of_another_issuer_or_with_a_bad_address_gives_no_keys() {
    for (metadata, jwks_uri) in [
        (json!({ "issuer": "https://idp.example/realm/", "jwks_uri": KEYS }), None),
        (json!({ "issuer": "https://evil.example", "jwks_uri": KEYS }), None),
        (json!({ "issuer": ISSUER }), None),
        (json!({ "issuer": ISSUER, "jwks_uri": "http://keys.example/jwks" }), None),
        (json!({ "issuer": ISSUER, "jwks_uri": "http://127.0.0.1/jwks" }), None),
        (json!({ "issuer": ISSUER, "jwks_uri": "file:///etc/passwd" }), None),
        (json!({}), Some("http://keys.example/jwks")),
    ] {
        let issuer = Issuer::with(&[0]);
        issuer.set(METADATA, metadata.clone());
        issuer.set("http://keys.example/jwks", json!({ "keys": [public(0)] }));
        issuer.set("http://127.0.0.1/jwks", json!({ "keys": [public(0)] }));
        let told = outcome(&server(&issuer, jwks_uri), 0).await;
        assert_eq!(told, Err(TokenError::Unavailable), "{metadata}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_proven_token_ends_with_its_time() {
    let issuer = Issuer::with(&[0]);
    let server = server(&issuer, Some(KEYS));
    let token = token(0);
    server.verify(&token).await.unwrap();
    let at = |seconds| SystemTime::now() + Duration::from_secs(seconds);
    assert!(server.check(&token, at(3600 + 50)).await.is_ok());
    let ended = server.check(&token, at(3600 + 70)).await;
    assert_eq!(ended, Err(TokenError::Invalid("the token has expired")));
}
