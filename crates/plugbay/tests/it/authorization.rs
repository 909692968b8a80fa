//! The gateway as a protected resource: access tokens of an authorization server, in the real binary.

mod issuer;
mod table;

use std::{fmt::Write as _, fs};

use jsonwebtoken::Algorithm;
use plugbay_testkit::{DEADLINE, HttpGateway, HttpReply, MODERN_META, Script, Workspace, wait_until};
use serde_json::{Value, json};

pub(crate) use self::issuer::{Issuer, METADATA, Private, RESOURCE};
use crate::{gateway, remote::plain_api};

/// A gateway with the server `s`, which trusts this issuer.
fn start(workspace: &Workspace, issuer: &Issuer, options: &[&str]) -> HttpGateway {
    let config = workspace.config(&[("s", Script::friendly().tool("echo", r#"{"echo":true}"#))]);
    workspace.write_config(&config.top("authorization", issuer.authorization()));
    let gateway = HttpGateway::start(workspace.command(&gateway()).args(options));
    let all = issuer.good().claims(&json!({ "scope": "write" })).token();
    await_tool(&gateway, &all, "s__echo");
    gateway
}

pub(crate) fn await_tool(gateway: &HttpGateway, token: &str, tool: &str) {
    wait_until("the tool", DEADLINE, || list(gateway, token).body.contains(tool).then_some(()));
}

/// A modern request with these `Authorization` headers.
fn ask(
    gateway: &HttpGateway,
    path: &str,
    authorizations: &[String],
    method: &str,
    params: &str,
) -> HttpReply {
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    let body: Value = serde_json::from_str(&format!("{{\"x\":0{params}}}")).unwrap();
    headers.extend(body["name"].as_str().map(|name| ("mcp-name", name)));
    headers.extend(authorizations.iter().map(|value| ("authorization", value.as_str())));
    let meta = format!(r#""_meta":{{{MODERN_META}}}"#);
    let mut host = gateway.connect();
    let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{meta}{params}}}}}"#);
    host.request_at("POST", path, &headers, &request);
    host.reply()
}

pub(crate) fn list(gateway: &HttpGateway, token: &str) -> HttpReply {
    ask(gateway, "/mcp", &[format!("Bearer {token}")], "tools/list", "")
}

fn call(gateway: &HttpGateway, token: &str, tool: &str) -> HttpReply {
    let params = format!(r#","name":"{tool}","arguments":{{"a":1}}"#);
    ask(gateway, "/mcp", &[format!("Bearer {token}")], "tools/call", &params)
}

fn plain_call(gateway: &HttpGateway, token: &str, tool: &str) -> HttpReply {
    let mut host = gateway.connect();
    let (bearer, body) = (format!("Bearer {token}"), json!({ "name": tool, "arguments": { "a": 1 } }));
    host.request_at("POST", "/tools/call", &[("authorization", &bearer)], &body.to_string());
    host.reply()
}

fn challenge(reply: &HttpReply) -> &str {
    reply.header("www-authenticate").unwrap_or_default()
}

#[test]
fn each_access_token_of_the_table_gets_its_answer_and_none_is_told_or_logged() {
    let workspace = Workspace::new();
    let issuer = Issuer::start(table::keys());
    let audit = workspace.path().join("audit.jsonl");
    let gateway = start(&workspace, &issuer, &["-vv", "--metrics", "--audit", audit.to_str().unwrap()]);
    let rows = table::rows(&issuer);
    assert!(rows.len() >= 40);
    let (mut failures, mut told) = (Vec::new(), String::new());
    for row in &rows {
        let reply = ask(&gateway, &format!("/mcp{}", row.query), &row.authorizations, "tools/list", "");
        let (code, why) = row.error;
        let has = |part: &str| challenge(&reply).contains(part);
        let is_right = reply.status == row.status
            && has(&format!("error=\"{code}\"")) != code.is_empty()
            && has("error=") != code.is_empty()
            && has(why)
            && has(&format!("resource_metadata=\"{METADATA}\"")) == (row.status == 401);
        if !is_right {
            failures.push(format!("{}: {} {}", row.name, reply.status, challenge(&reply)));
        }
        let _ = writeln!(told, "{:?} {}", reply.headers, reply.body);
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), rows.len(), failures.join("\n"));
    assert_eq!(issuer.fetches(), 2, "at the first token, and at the first unknown key");
    call(&gateway, &issuer.good().token(), "s__echo");
    wait_until("an audit line", DEADLINE, || {
        (!fs::read(&audit).unwrap_or_default().is_empty()).then_some(())
    });
    gateway.terminate();
    told += &gateway.into_stderr();
    for file in workspace.files("") {
        told += &String::from_utf8_lossy(&fs::read(file).unwrap_or_default());
    }
    let parts =
        rows.iter().flat_map(|row| &row.authorizations).flat_map(|value| value.split(['.', ' ', ',']));
    for secret in parts.filter(|part| part.len() > 40).chain(["CANARY", "eyJ"]) {
        assert!(!told.contains(secret), "{secret} was told");
    }
}

#[test]
fn a_rotated_key_is_fetched_when_a_token_names_it() {
    let workspace = Workspace::new();
    let issuer = Issuer::start(vec![Private::RsaOne.public("rsa-1", &json!({}))]);
    let gateway = start(&workspace, &issuer, &[]);
    let old = issuer.good();
    let new = issuer.good().header(&json!({ "kid": "rsa-2" })).signed(Private::RsaTwo, Algorithm::RS256);
    issuer.publish(vec![Private::RsaTwo.public("rsa-2", &json!({}))]);
    assert_eq!(list(&gateway, &old.token()).status, 200, "nobody has told yet");
    assert_eq!(list(&gateway, &new.token()).status, 200);
    let gone = list(&gateway, &old.token());
    assert_eq!(gone.status, 401);
    assert!(challenge(&gone).contains("no such key"), "{gone:?}");
    for number in 0..20 {
        let unknown = issuer.good().header(&json!({ "kid": format!("unknown-{number}") }));
        assert_eq!(list(&gateway, &unknown.token()).status, 401);
    }
    assert_eq!(issuer.fetches(), 2, "no storm of requests");
}

#[test]
fn a_tool_beyond_the_scopes_of_a_token_steps_up() {
    let workspace = Workspace::new();
    let issuer = Issuer::start(table::keys());
    let audit = workspace.path().join("audit.jsonl");
    let gateway = start(&workspace, &issuer, &["--audit", audit.to_str().unwrap()]);
    let token = |scope: &str| issuer.good().claims(&json!({ "scope": scope })).token();
    let (read, write) = (token("read"), token("read write"));
    assert!(!list(&gateway, &read).body.contains("s__pid"));
    for reply in [call(&gateway, &read, "s__pid"), plain_call(&gateway, &read, "s__pid")] {
        assert_eq!(reply.status, 403, "{reply:?}");
        for part in ["error=\"insufficient_scope\"", "scope=\"read write\"", METADATA] {
            assert!(challenge(&reply).contains(part), "{part}: {reply:?}");
        }
    }
    assert!(call(&gateway, &write, "s__pid").body.contains("\"result\""));
    assert_eq!(plain_call(&gateway, &read, "s__echo").status, 200);
    let line = wait_until("an audit line", DEADLINE, || {
        let text = fs::read_to_string(&audit).unwrap_or_default();
        text.lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok())
    });
    assert_eq!(line["caller"], json!(format!("ada at {}", issuer.url())), "{line}");
    assert_eq!(line["client"], json!("app"), "{line}");
}

#[test]
fn no_access_token_travels_to_a_server() {
    let workspace = Workspace::new();
    let issuer = Issuer::start(table::keys());
    let remote = plain_api(&["web__search"]);
    let config = workspace.config(&[("s", Script::friendly().tool("echo", r#"{"echo":true}"#))]);
    let config = config.top("authorization", issuer.authorization());
    workspace.write_config(&config.top("remotes", json!({ "team": { "url": remote.url() } })));
    let gateway = HttpGateway::start(workspace.command(&gateway()).arg("-vv"));
    let token = issuer.good().claims(&json!({ "scope": "write" })).token();
    for tool in ["s__echo", "web__search"] {
        await_tool(&gateway, &token, tool);
        let replies = [call(&gateway, &token, tool), plain_call(&gateway, &token, tool)];
        assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
        assert!(!format!("{replies:?}").contains(&token));
    }
    let mut received = format!("{:?}", remote.untaken());
    assert!(received.contains("/tools/call"), "{received}");
    gateway.terminate();
    received += &gateway.into_stderr();
    for file in workspace.files("") {
        received += &String::from_utf8_lossy(&fs::read(file).unwrap_or_default());
    }
    assert!(received.contains(r#""name":"echo""#), "the log of the server is in it");
    for part in token.split('.') {
        assert!(!received.contains(part), "a part of the token went on");
    }
}

#[test]
fn a_gateway_that_others_can_reach_is_guarded_by_its_authorization() {
    let workspace = Workspace::new();
    let issuer = Issuer::start(table::keys());
    let config = workspace.config(&[("s", Script::friendly())]);
    workspace.write_config(&config.top("authorization", issuer.authorization()));
    let gateway = HttpGateway::start_at(&mut workspace.command(&gateway()), "0.0.0.0:0");
    let (_, port) = gateway.address().rsplit_once(':').unwrap();
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let request = "GET /tools HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains(METADATA), "{answer}");
}

#[test]
fn a_broken_authorization_stops_the_start() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", Script::friendly())]);
    let with = |key: &str, value: Value| json!({ "issuer": "https://idp.example", "resource": RESOURCE, key: value });
    for (authorization, word) in [
        (json!({}), "issuer"),
        (with("issuer", json!("http://idp.example")), "http:// is for this machine"),
        (with("algorithms", json!(["HS256"])), "public key"),
        (with("requiredScope", json!(["a"])), "unknown key"),
    ] {
        workspace.write_config(&config.clone().top("authorization", authorization.clone()));
        let output = workspace.command(&gateway()).args(["--http", "127.0.0.1:0"]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains(word), "{authorization}: {told}");
    }
}
