//! The hostile corpus: authorization URLs, documents, redirects and answers, each with its expected outcome.
//!
//! A case in `corpus/*.jsonl` programs a site, and the user tries to log in there. `expect` is `ok`, or a
//! part of the error. In all texts `$SITE` and `$CANARY` are the origins of the site and of another one,
//! which must get no credential.

use std::{collections::BTreeMap, io::Write as _, time::Duration};

use plugbay_auth::address::AddressPolicy;
use plugbay_core::credentials::{Credentials as _, Rejection, Target};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{net::TcpListener, time::timeout};
use url::Url;

use crate::{
    bench::{Bench, consent},
    log,
    scripted::{Answer, Reply, SECRET, Site},
};

/// Time limit for a case, even on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest error for a user.
const LONGEST_ERROR: usize = 3000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(rename = "case")]
    name: String,
    expect: String,
    /// Changes of the metadata.
    #[serde(default)]
    resource: Value,
    #[serde(default)]
    server: Value,
    challenge: Option<String>,
    /// Answers by path.
    #[serde(default)]
    answers: BTreeMap<String, Programmed>,
    /// Number of requests that reach the canary; none unless the case says so.
    #[serde(default)]
    canary: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Programmed {
    #[serde(default = "ok")]
    status: u16,
    location: Option<String>,
    json: Option<Value>,
    text: Option<String>,
    /// Replaces `$REPEAT` in the text: by this text, this many times.
    repeat: Option<(String, usize)>,
    kind: Option<String>,
    #[serde(default)]
    endless: bool,
}

fn ok() -> u16 {
    200
}

fn cases(text: &str) -> Vec<Case> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

async fn run(case: Case) {
    let (site, canary) = (Site::start().await, Site::start().await);
    let filled = |text: &str| text.replace("$SITE", &site.origin).replace("$CANARY", &canary.origin);
    let value = |value: &Value| serde_json::from_str::<Value>(&filled(&value.to_string())).unwrap();
    for (patch, target) in [(&case.resource, true), (&case.server, false)] {
        if patch.is_object() {
            let script = &mut *site.script();
            *(if target { &mut script.resource } else { &mut script.server }) = value(patch);
        }
    }
    site.script().challenge = case.challenge.as_deref().map(filled);
    for (path, programmed) in &case.answers {
        site.always(path, answer(programmed, &filled));
    }
    let bench = Bench::new(&site);
    let login = bench.login();
    let outcome = timeout(PATIENCE, async {
        let flow = login.begin(&[]).await?;
        assert_url(&flow.url, &case.name);
        consent(&flow).await;
        flow.finished().await
    });
    let name = &case.name;
    let Ok(outcome) = outcome.await else { panic!("{name} hangs") };
    match &outcome {
        Ok(()) => assert_eq!(case.expect, "ok", "{name}"),
        Err(error) => {
            let text = error.to_string();
            assert!(case.expect != "ok" && text.contains(&filled(&case.expect)), "{name}: {text}");
            assert!(text.len() < LONGEST_ERROR, "{name}: an error of {} bytes", text.len());
            assert!(!text.chars().any(char::is_control), "{name}: {text:?}");
            assert!(!format!("{text}{error:?}").contains(SECRET), "{name}: {text}");
        }
    }
    assert_eq!(canary.received().len(), case.canary, "{name}: {}", canary.everything());
    assert!(
        !canary.everything().contains(SECRET) && !canary.everything().contains("code_verifier"),
        "{name}"
    );
    assert!(!log::text().contains(SECRET), "{name}");
    // The stored logins can be read again.
    let _ = bench.call(&login).await;
    assert!(bench.login().logins().await.is_ok(), "{name}");
}

fn answer(programmed: &Programmed, filled: &dyn Fn(&str) -> String) -> Answer {
    let text = match (&programmed.json, &programmed.text) {
        (Some(json), _) => filled(&json.to_string()),
        (None, text) => filled(text.as_deref().unwrap_or_default()),
    };
    let text = match &programmed.repeat {
        Some((again, times)) => text.replace("$REPEAT", &filled(again).repeat(*times)),
        None => text,
    };
    let mut answer = Answer::text(
        programmed.status,
        programmed.kind.as_deref().unwrap_or("application/json"),
        text.clone(),
    );
    if let Some(location) = &programmed.location {
        answer.headers.push(("location", filled(location)));
    }
    if programmed.endless {
        answer.reply = Reply::Endless(text.into());
    }
    answer
}

/// Checks a URL that the user is sent to.
fn assert_url(url: &Url, case: &str) {
    assert!(matches!(url.scheme(), "http" | "https"), "{case}: {url}");
    assert!(url.has_host() && url.username().is_empty() && url.password().is_none(), "{case}: {url}");
    let is_plain = |c: char| c.is_ascii_graphic() && !"\"<>`\\".contains(c);
    assert!(url.as_str().chars().all(is_plain), "{case}: {url}");
    assert!(url.as_str().len() <= 16 * 1024, "{case}");
    if url.scheme() == "http" {
        assert!(matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]")), "{case}: {url}");
    }
}

async fn run_all(name: &str, text: &str) {
    let cases = cases(text);
    let count = cases.len();
    for case in cases {
        run(case).await;
    }
    let _ = writeln!(std::io::stderr(), "{name}: {count} cases");
}

#[tokio::test]
async fn metadata_documents_that_do_not_fit_are_refused() {
    run_all("documents", include_str!("corpus/documents.jsonl")).await;
}

#[tokio::test]
async fn redirects_of_metadata_lead_to_allowed_addresses_alone() {
    run_all("redirects", include_str!("corpus/redirects.jsonl")).await;
}

#[tokio::test]
async fn odd_registrations_and_tokens_are_refused_or_harmless() {
    run_all("answers", include_str!("corpus/answers.jsonl")).await;
}

/// Each line has two marks and a URL as JSON: `y` if a server on this machine may name it, and if a public
/// one may.
#[tokio::test]
async fn authorization_urls_are_https_and_lead_to_allowed_hosts() {
    let public = AddressPolicy::new(&Url::parse("https://mcp.example/mcp").unwrap(), false);
    let mut count = 0;
    for line in include_str!("corpus/urls.txt").lines().filter(|line| !line.starts_with("//")) {
        let (marks, text) = line.split_at(4);
        let text: String = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {line}"));
        let text = text.replace("$LONG", &"a".repeat(20_000));
        let site = Site::start().await;
        site.script().server = json!({"authorization_endpoint": text});
        let bench = Bench::new(&site);
        let began = bench.login().begin(&[]).await;
        assert_eq!(began.is_ok(), marks.starts_with('y'), "{line}: {began:?}");
        if let Ok(flow) = began {
            assert_url(&flow.url, line);
        }
        let allowed = Url::parse(&text).is_ok_and(|url| public.check(&url).is_ok() && text.len() < 16_000);
        assert_eq!(allowed, marks[2..].starts_with('y'), "{line}");
        count += 1;
    }
    let _ = writeln!(std::io::stderr(), "urls: {count} cases");
}

/// Addresses that metadata must not contain, for each of its URLs.
#[tokio::test]
async fn no_request_reaches_a_forbidden_address() {
    let mut count = 0;
    for address in include_str!("corpus/addresses.txt").lines().filter(|line| !line.starts_with("//")) {
        let site = Site::start().await;
        let login = Bench::new(&site).login();
        let at = |path: &str| format!("https://{address}{path}");
        for kind in [
            "authorization_endpoint",
            "token_endpoint",
            "registration_endpoint",
            "issuer",
            "challenge",
            "redirect",
        ] {
            site.script().server = json!({});
            site.script().resource = json!({});
            match kind {
                "issuer" => site.script().resource = json!({"authorization_servers": [at("")]}),
                "challenge" => {
                    site.script().challenge = Some(format!("Bearer resource_metadata=\"{}\"", at("/x")));
                }
                "redirect" => {
                    let path = "/.well-known/oauth-protected-resource/mcp";
                    site.once(path, Answer::redirect(302, &at("/latest/meta-data")));
                }
                _ => site.script().server = json!({kind: at("/x")}),
            }
            // This login still has the previous challenge; a new one has none.
            let login = if kind == "challenge" { Bench::new(&site).login() } else { login.clone() };
            let error = match login.begin(&[]).await {
                Ok(flow) => panic!("{kind} {address}: {}", flow.url),
                Err(error) => error.to_string(),
            };
            // Rejected before connecting: the error is not "cannot be reached".
            assert!(
                error.contains("not requested")
                    || error.contains("cannot be read")
                    || error.contains("no valid"),
                "{kind} {address}: {error}"
            );
            site.script().challenge = None;
            count += 1;
        }
    }
    let _ = writeln!(std::io::stderr(), "addresses: {count} cases");
}

/// A public server names this machine: a listener here must not even get a connection.
#[tokio::test]
async fn a_public_server_cannot_make_us_dial_this_machine() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let site = Site::start().await;
    let bench = Bench { url: "https://mcp.invalid/mcp".to_owned(), ..Bench::new(&site) };
    let login = bench.login();
    // `vm` and others: names that resolve to this machine.
    let names = [
        "localhost",
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "017700000001",
        "2130706433",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "localhost.",
        "a.localhost",
        "[::]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
    ];
    let own = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    for name in names.into_iter().chain([own.trim()]).filter(|name| !name.is_empty()) {
        for scheme in ["http", "https"] {
            let challenge = format!("Bearer resource_metadata=\"{scheme}://{name}:{port}/x\"");
            let rejection = Rejection {
                status: 401,
                challenges: vec![challenge],
                dpop_nonce: None,
                request: Target { method: "POST", url: &bench.url },
                generation: login.generation(),
                attempts: 1,
            };
            let verdict = timeout(PATIENCE, login.rejected(rejection)).await.expect("it does not hang");
            assert!(!format!("{verdict:?}").contains("SendAgain"), "{name}");
        }
    }
    let heard = timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(heard.is_err(), "somebody has connected: {heard:?}");
}
