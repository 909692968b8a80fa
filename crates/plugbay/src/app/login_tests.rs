//! A login in the middle of a call, through the whole gateway: host, session, actor and a server behind a URL.
//! Only the credentials are scripted.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use plugbay_core::{
    credentials::{Credentials, Generation, Headers, Later, LoginOffer, Rejection, Target, Verdict},
    failure::{Cause, Failure},
    secret::Secret,
};
use plugbay_testkit::{Asked, Endpoint, Play};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    sync::watch,
};

use super::*;
use crate::config::{Paths, load};

/// Credentials of a user who logs in once.
#[derive(Debug, Default)]
struct Login {
    logged_in: watch::Sender<bool>,
    logins: AtomicUsize,
}

impl Credentials for Login {
    fn headers<'a>(&'a self, _: Target<'a>) -> Later<'a, Result<Headers, Arc<Failure>>> {
        let token = self.logged_in.borrow().then(|| ("Authorization".to_owned(), Secret::new("Bearer new")));
        let headers = Headers { values: token.into_iter().collect(), generation: self.generation() };
        Box::pin(async move { Ok(headers) })
    }

    fn rejected<'a>(&'a self, _: Rejection<'a>) -> Later<'a, Verdict> {
        let failure = Failure::new("needs a login at https://auth.example", Vec::new());
        let failure = failure.because(Cause::NeedsLogin).with_remedy("run `plugbay auth login s`");
        Box::pin(async move { Verdict::NeedsLogin(Arc::new(failure)) })
    }

    fn login(&self) -> Later<'_, Result<LoginOffer, Arc<Failure>>> {
        self.logins.fetch_add(1, Ordering::Relaxed);
        let (url, id) = ("https://auth.example/authorize".to_owned(), "l1".to_owned());
        Box::pin(async move { Ok(LoginOffer { url, id, message: "Log in".to_owned() }) })
    }

    fn changed(&self, since: Generation) -> Later<'_, ()> {
        let mut logged_in = self.logged_in.subscribe();
        Box::pin(async move {
            let _ = logged_in.wait_for(|logged_in| Generation(u64::from(*logged_in)) != since).await;
        })
    }

    fn generation(&self) -> Generation {
        Generation(u64::from(*self.logged_in.borrow()))
    }
}

/// A server that rejects every request without a login, in either era.
fn answer(asked: &Asked, modern: bool) -> Play {
    let reply = |status, body: Value| Play::Answer {
        status,
        headers: vec![("content-type", "application/json")],
        body: body.to_string(),
    };
    if asked.header("authorization") != Some("Bearer new") {
        return reply(401, json!({ "error": "invalid_token" }));
    }
    let result = match asked.body["method"].as_str() {
        Some("server/discover") if modern => {
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "resultType": "complete" })
        }
        Some("initialize") if !modern => {
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "x", "version": "1" } })
        }
        Some("tools/list") => json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] }),
        Some("tools/call") => json!({ "content": [], "done": 1 }),
        Some("notifications/initialized") => return reply(202, json!(null)),
        Some("subscriptions/listen") => return Play::Silence(vec![": \n\n".to_owned()]),
        Some(_) => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            return reply(200, json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error }));
        }
        None => return reply(405, json!(null)),
    };
    reply(200, json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result }))
}

/// A gateway with one server, and a host connected to it.
struct Gate {
    login: Arc<Login>,
    endpoint: Endpoint,
    app: App,
    input: DuplexStream,
    output: tokio::io::Lines<BufReader<DuplexStream>>,
    _folder: TempDir,
}

impl Gate {
    fn new(modern: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = Endpoint::answering(move |asked| answer(asked, modern));
        let file = folder.path().join("c.json");
        let entry = json!({ "url": format!("{}/mcp", endpoint.url()) });
        fs::write(&file, json!({ "mode": "all", "mcpServers": { "s": entry } }).to_string()).unwrap();
        let (home, start) = (Some(folder.path().to_owned()), folder.path().to_owned());
        let paths = Paths { user_file: None, state_folder: None, home, start };
        let settings = load(Some(&file), &paths, &|_| None);
        let environment = Environment {
            cache_folder: None,
            project: folder.path().to_owned(),
            folder: folder.path().to_owned(),
            program: "plugbay".into(),
            logs: None,
            logins: None,
            telemetry: None,
        };
        let login = Arc::<Login>::default();
        let (launcher, credentials) =
            (Arc::new(|_: &_, _: &_| Err(Failure::new("none", Vec::new()))), login.clone());
        let instances =
            Instances::with_credentials(launcher, Arc::new(move |_, _| Some(credentials.clone() as Arc<_>)));
        let app = App::new(&settings, environment, instances, false);
        let (input, their_input) = tokio::io::duplex(100_000);
        let (their_output, output) = tokio::io::duplex(100_000);
        let gateway = app.gateway();
        tokio::spawn(plugbay_downstream::stdio::serve(
            gateway,
            their_input,
            their_output,
            std::future::pending(),
        ));
        let output = BufReader::new(output).lines();
        Self { login, endpoint, app, input, output, _folder: folder }
    }

    async fn say(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// The next message that has this member.
    async fn hear_with(&mut self, key: &str) -> Value {
        let mut others = Vec::new();
        loop {
            let heard = tokio::time::timeout(Duration::from_secs(60), self.output.next_line()).await;
            let line =
                heard.unwrap_or_else(|_| panic!("no {key} in {others:?}")).unwrap().expect("a message");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get(key).is_some() {
                return message;
            }
            others.push(line);
        }
    }

    async fn until_needs_login(&self) {
        self.app.refresh();
        let needs = |snapshot: &Snapshot| {
            let mut failures = snapshot.catalog.failed().filter_map(|name| snapshot.catalog.failure(name));
            failures.any(|failure| failure.needs_login())
        };
        self.app.snapshots().wait_for(needs).await.unwrap();
    }

    /// How many calls the server has carried out.
    fn calls(&self) -> usize {
        let carried_out = |asked: &Asked| {
            asked.body["method"] == "tools/call" && asked.header("authorization") == Some("Bearer new")
        };
        self.endpoint.untaken().iter().filter(|asked| carried_out(asked)).count()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "callers write it in place")]
fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn modern_params(members: Value) -> Value {
    let mut params = members;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "h", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "url": {} } },
    });
    params
}

#[tokio::test]
async fn a_legacy_host_logs_in_by_url_elicitation_and_gets_the_tools() {
    for modern_server in [false, true] {
        let mut gate = Gate::new(modern_server);
        let capabilities = json!({ "elicitation": { "url": {} } });
        let info = json!({ "name": "h", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info });
        gate.say(&request(1, "initialize", params)).await;
        gate.hear_with("result").await;
        gate.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        gate.until_needs_login().await;
        gate.say(&request(2, "tools/list", json!({}))).await;
        let listed = gate.hear_with("result").await.to_string();
        assert!(
            listed.contains("s needs a login at https://auth.example; try: run `plugbay auth login s`"),
            "{listed}"
        );
        gate.say(&request(3, "tools/call", json!({ "name": "gateway_status", "arguments": {} }))).await;
        let status = gate.hear_with("result").await.to_string();
        assert!(status.contains("s: needs login: needs a login at https://auth.example"), "{status}");

        gate.login.logged_in.send_replace(true);
        let changed = gate.hear_with("method").await;
        assert_eq!(changed["method"], "notifications/tools/list_changed");
        gate.say(&request(4, "tools/call", json!({ "name": "s__echo", "arguments": {} }))).await;
        assert_eq!(gate.hear_with("result").await["result"]["done"], 1);

        // The login expires in the middle of the session.
        gate.login.logged_in.send_replace(false);
        gate.say(&request(5, "tools/call", json!({ "name": "s__echo", "arguments": {} }))).await;
        let asked = gate.hear_with("method").await;
        assert_eq!(
            (&asked["method"], &asked["params"]["mode"]),
            (&json!("elicitation/create"), &json!("url"))
        );
        gate.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept" } })).await;
        gate.login.logged_in.send_replace(true);
        let complete = gate.hear_with("method").await;
        assert_eq!(complete["method"], "notifications/elicitation/complete");
        assert_eq!(complete["params"], json!({ "elicitationId": "l1" }));
        let answer = gate.hear_with("result").await;
        assert_eq!((&answer["id"], &answer["result"]["done"]), (&json!(5), &json!(1)));
        assert_eq!((gate.calls(), gate.login.logins.load(Ordering::Relaxed)), (2, 1));
    }
}

#[tokio::test]
async fn a_modern_host_logs_in_by_input_required() {
    for modern_server in [false, true] {
        let mut gate = Gate::new(modern_server);
        gate.login.logged_in.send_replace(true);
        gate.app.refresh();
        gate.app.snapshots().wait_for(|snapshot| snapshot.names.iter().count() == 1).await.unwrap();
        gate.login.logged_in.send_replace(false);
        let params = json!({ "name": "s__echo", "arguments": {} });
        gate.say(&request(1, "tools/call", modern_params(params.clone()))).await;
        let answer = gate.hear_with("result").await;
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        let asked = answer["result"]["inputRequests"].as_object().unwrap();
        let (key, login) = asked.iter().next().unwrap();
        assert_eq!(
            (&login["method"], &login["params"]["mode"]),
            (&json!("elicitation/create"), &json!("url"))
        );
        let mut params = params;
        params["requestState"] = answer["result"]["requestState"].clone();
        params["inputResponses"] = json!({ key: { "action": "accept" } });
        gate.say(&request(2, "tools/call", modern_params(params))).await;
        gate.login.logged_in.send_replace(true);
        let answer = gate.hear_with("result").await;
        assert_eq!((&answer["id"], &answer["result"]["done"]), (&json!(2), &json!(1)), "{answer}");
        assert_eq!(gate.calls(), 1);
    }
}

#[tokio::test]
async fn a_host_that_cannot_open_urls_is_told_the_command_of_the_login() {
    let mut gate = Gate::new(false);
    let info = json!({ "name": "h", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    gate.login.logged_in.send_replace(true);
    gate.say(&request(1, "initialize", params)).await;
    gate.hear_with("result").await;
    gate.app.refresh();
    gate.app.snapshots().wait_for(|snapshot| snapshot.names.iter().count() == 1).await.unwrap();
    gate.login.logged_in.send_replace(false);
    gate.say(&request(2, "tools/call", json!({ "name": "s__echo", "arguments": {} }))).await;
    let error = gate.hear_with("error").await;
    let told = "server 's' needs a login at https://auth.example; try: run `plugbay auth login s`";
    assert_eq!(error["error"]["message"], told);
    assert_eq!(gate.login.logins.load(Ordering::Relaxed), 0);
}
