//! Secrets in a configuration must appear in no log and no error.

use std::{
    collections::BTreeMap,
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex},
};

use plugbay_core::credentials::CredentialSource;
use serde_json::json;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::{
    harness::{Harness, Setup},
    peer::Server,
    script::{OnRejection, Script},
};
use crate::{
    http::{Flavour, peer::Peer},
    spec::{HttpFlavour, HttpSpec},
};

const SECRET: &str = "canary-7f3a";

fn setup() -> Setup {
    let headers = BTreeMap::from([
        ("Authorization".to_owned(), format!("Bearer {SECRET}")),
        ("X-Key".to_owned(), SECRET.to_owned()),
    ]);
    Setup { headers, ..Setup::default() }
}

/// All log messages, of every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        attributes.record(&mut Text(&mut self.0.lock().unwrap()));
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut Text(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Text(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = writeln!(self.0, "{field}={value:?}");
    }
}

#[tokio::test]
async fn neither_logs_nor_errors_hold_a_secret_header() {
    // With a single subscriber, a target that other threads log to first would count as disabled everywhere.
    let _second = tracing::Dispatch::new(Log::default());
    let log = Log::default();
    let logging = tracing::subscriber::set_default(log.clone());
    let (harness, mut server) = Harness::legacy(setup()).await;
    let call = harness.call("a");
    let request = server.take_call("a").await;
    assert_eq!(request.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert_eq!(request.header("x-key"), Some(SECRET));
    assert!(request.all_headers().contains(SECRET));
    request.status(401);
    let mut ends = vec![harness.calls.end(call).await];
    harness.cancel({
        let call = harness.call("b");
        let _ = server.take_call("b").await;
        call
    });
    server.take("notifications/cancelled").await.status(500);
    harness.works(&mut server).await;
    let address = server.vanish().await;
    ends.push(harness.calls.end(harness.call("c")).await);
    let status = format!("{:?} {:?}", harness.handle.status(), harness.handle.spec);
    drop(logging);

    let log = log.0.lock().unwrap().clone();
    assert!(log.contains("cannot be reached"), "{log}");
    assert!(status.contains(&address.to_string()));
    for text in [log, status, ends.join("\n")] {
        assert!(!text.contains(SECRET) && !text.contains(BASIC), "{text}");
    }
}

#[tokio::test]
async fn debug_output_holds_no_secret_header() {
    let mut server = Server::start().await;
    let spec = HttpSpec {
        url: format!("http://user:{SECRET}@{}/{SECRET}?key={SECRET}", server.address),
        headers: setup().headers,
        credentials: CredentialSource::Headers,
        flavour: HttpFlavour::Auto,
        ca_file: None,
        remote: false,
        references: plugbay_core::secret::KnownSecrets::default(),
    };
    let peer = Peer::new(&spec, Flavour::Streamable, 1000, None, None).unwrap();
    let posting = peer.post("{}".into(), reqwest::header::HeaderMap::new());
    let (posted, ()) = tokio::join!(posting, async {
        let headers = [("mcp-session-id", SECRET), ("content-type", "application/json")];
        server.take("answer").await.reply(200, &headers, json!({}));
    });
    posted.unwrap();
    let text = format!("{spec:?} {peer:?}");
    assert!(text.contains(&server.address.to_string()), "{text}");
    assert!(!text.contains(SECRET), "{text}");
}

#[tokio::test]
async fn a_url_is_shown_without_its_secrets() {
    let server = Server::start().await;
    let url = format!("http://user:{SECRET}@{}/{SECRET}/mcp?key={SECRET}#{SECRET}", server.address);
    server.vanish().await;
    let harness = Harness::new(Setup::unknown(), &url);
    let end = harness.calls.end(harness.call("a")).await;
    assert!(end.contains("cannot be reached at http://") && !end.contains(SECRET), "{end}");
}

#[tokio::test]
async fn a_header_that_cannot_be_sent_is_named_without_its_value() {
    let headers = BTreeMap::from([("X-Key".to_owned(), format!("{SECRET}\nmore"))]);
    let harness = Harness::new(Setup { headers, ..Setup::default() }, "http://127.0.0.1:9/mcp");
    let end = harness.calls.end(harness.call("a")).await;
    assert!(end.contains("the header \"X-Key\" in its configuration is not valid"), "{end}");
    assert!(!end.contains(SECRET), "{end}");
}

/// The user name and password of [`telling`], as sent.
const BASIC: &str = "Y2FuYXJ5LTdmM2EtdXNlcjpjYW5hcnktN2YzYS13b3Jk";

/// The address, the headers and the secrets of a server that repeats its requests in errors.
fn telling(server: &Server) -> (String, Setup) {
    let places = ["user", "word", "query", "last"].map(|place| format!("{SECRET}-{place}"));
    let [user, word, query, last] = &places;
    let url = format!(
        "http://{user}:{word}@{}/{SECRET}-in-the-path/mcp?key={query}&x=%7B{last}%7D",
        server.address
    );
    (url, setup())
}

/// All parts of a request, as a server could repeat them.
fn repeated(request: &super::peer::Request) -> String {
    let decoded = format!("{{{SECRET}-last}}");
    format!(
        "bad request: {} {} {decoded} {SECRET}-word",
        request.path,
        request.all_headers().replace(['\r', '\n'], " ")
    )
}

#[tokio::test]
async fn a_json_error_that_repeats_the_access_token_is_shown_without_it() {
    let script = Script::new(OnRejection::NotOurs, Some("canary-7f3a-token"));
    let setup = Setup { credentials: Some(script.clone()), ..Setup::default() };
    let (harness, mut server) = Harness::legacy(setup).await;
    for (status, id) in [(200, json!(null)), (400, json!(null)), (403, json!("another"))] {
        let call = harness.call("a");
        let request = server.take_call("a").await;
        let told = format!("bad: {} {}", "x".repeat(270), request.header("authorization").unwrap());
        assert!(told.contains("canary-7f3a-token"), "{told}");
        let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32000, "message": told } });
        let challenge = format!("Bearer error_description=\"{}\"", request.header("authorization").unwrap());
        let headers = [("content-type", "application/json"), ("www-authenticate", &*challenge)];
        request.reply(status, &headers, error);
        let end = harness.calls.end(call).await;
        assert!(end.contains("bad: xxx") && !end.contains("canary"), "{end}");
    }
}

#[tokio::test]
async fn an_error_that_repeats_the_request_is_shown_without_its_secrets() {
    let _second = tracing::Dispatch::new(Log::default());
    let log = Log::default();
    let logging = tracing::subscriber::set_default(log.clone());
    let mut ends = Vec::new();
    for status in [400, 401, 403, 404, 500, 302] {
        let mut server = Server::start().await;
        let (url, setup) = telling(&server);
        let harness = Harness::new(Setup { flavour: HttpFlavour::Streamable, known: None, ..setup }, &url);
        let call = harness.call("a");
        let elsewhere = format!("/login?next={SECRET}-query&path={SECRET}-in-the-path");
        let challenge = format!("Bearer error_description=\"{SECRET}-query\"");
        let end = loop {
            // After some errors, the server gets a different request.
            let request = tokio::select! {
                end = harness.calls.end(call) => break end,
                request = server.next() => request,
            };
            let text = repeated(&request);
            assert!(text.contains(&format!("{SECRET}-query")) && text.contains(BASIC), "{text}");
            request.reply(status, &[("www-authenticate", &challenge), ("location", &elsewhere)], &text);
        };
        assert!(end.contains(&format!("HTTP {status}")), "{end}");
        ends.push(format!("{end} {:?}", harness.handle.status()));
    }
    let mut server = Server::start().await;
    let (url, setup) = telling(&server);
    let harness = Harness::new(Setup { flavour: HttpFlavour::Streamable, known: None, ..setup }, &url);
    let call = harness.call("a");
    let request = server.take("initialize").await;
    let error = json!({ "code": -32000, "message": repeated(&request) });
    let answer = json!({ "jsonrpc": "2.0", "id": request.message["id"], "error": error });
    request.json(200, answer);
    ends.push(harness.calls.end(call).await);
    assert!(ends.last().unwrap().contains("refused to be initialised: bad request"), "{ends:?}");
    drop(logging);
    ends.push(log.0.lock().unwrap().clone());
    for text in ends {
        assert!(!text.contains(SECRET) && !text.contains(BASIC), "{text}");
    }
}
