//! Secrets in the configuration, which no command may print.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::Stdio,
};

use plugbay_testkit::{Endpoint, Play};
use serde_json::{Value, json};

use crate::harness::{Harness, Run};

const SECRET: &str = "canary-7f3a";

#[test]
fn values_of_variables_are_in_no_error_of_a_server() {
    let harness = Harness::with(&json!({
        "far": { "url": "http://127.0.0.1:9/${SECRET}/mcp?key=${SECRET}" },
        "near": { "command": "/nonexistent/${SECRET}" },
        "folder": { "command": "true", "cwd": "/nonexistent/${SECRET}" },
    }));
    for arguments in [&["list"][..], &["list", "--json"], &["doctor"], &["tools"], &["call", "near.x"]] {
        let run = Run::of(harness.command(arguments).env("SECRET", SECRET).output().expect("plugbay runs"));
        assert!(!run.out.contains(SECRET) && !run.err.contains(SECRET), "{arguments:?}: {run:?}");
    }
    let run = Run::of(harness.command(&["list"]).env("SECRET", SECRET).output().expect("plugbay runs"));
    for part in ["http://127.0.0.1:9: ", "no file /nonexistent/${SECRET}", "directory /nonexistent/${SECRET}"]
    {
        assert!(run.out.contains(part), "{part}: {}", run.out);
    }
}

#[test]
fn the_excerpt_of_a_file_holds_no_token_and_shows_the_host_of_an_address() {
    let harness = Harness::empty();
    let lines = [
        r#"{ "remotes": { "team": { "#.to_owned(),
        format!(r#""url": "http://127.0.0.1:9/{SECRET}", "tols": [],"#),
        format!(r#""token": "{SECRET}", "tolls": [] }} }} }}"#),
    ];
    harness.configure(&lines.join("\n"));
    let run = harness.run(&["list"]);
    assert!(
        run.err.contains("unknown key `tols`") && run.err.contains("\"http://127.0.0.1:9***"),
        "{}",
        run.err
    );
    assert!(!run.err.contains(SECRET) && !run.out.contains(SECRET), "{run:?}");
    let file = harness.path().join("servers.yaml");
    fs::write(&file, "servers:\n  web:\n    command: web\n    env:\n      KEY: \"${UNSET_KEY}\"\n").unwrap();
    let run = harness.run(&["--config", file.to_str().unwrap(), "list"]);
    assert!(run.err.contains("KEY: \"${UNSET_KEY}\""), "{}", run.err);
}

/// An endpoint that repeats the whole request in its answer, as careless servers do.
fn telling(status: u16) -> Endpoint {
    Endpoint::answering(move |asked| {
        let headers: Vec<String> = asked.headers.iter().map(|(_, value)| value.clone()).collect();
        let mut body = format!("no {} {}", asked.path, headers.join(" "));
        if asked.path.contains("/mcp") {
            body = format!("{SECRET}-pass {body}"); // it has decoded the header
        }
        let location = ("location", "/login?next=canary-7f3a-query");
        let kind = ("content-type", if status == 200 { "application/json" } else { "text/plain" });
        Play::Answer { status, headers: vec![location, kind], body }
    })
}

/// The entry of a server behind this address, with a secret in every place.
fn behind(address: &str) -> Value {
    let (scheme, host) = address.split_once("://").unwrap();
    json!({
        "url": format!("{scheme}://{SECRET}-user:{SECRET}-pass@{host}/${{IN_PATH}}/mcp?key={SECRET}-query&more=${{IN_QUERY}}"),
        "headers": { "X-Literal": format!("{SECRET}-header"), "X-Variable": "Token ${IN_HEADER}" },
    })
}

fn secret_variables() -> Vec<(&'static str, String)> {
    let names = ["IN_PATH", "IN_QUERY", "IN_HEADER", "IN_ARGS", "IN_ENV", "IN_BEARER", "IN_CLIENT"];
    names.map(|name| (name, format!("{SECRET}-{name}"))).to_vec()
}

/// Files below a folder that hold a secret.
fn leaks(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let found = paths.flat_map(|path| match path.is_dir() {
        true => leaks(&path),
        false if String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).contains(SECRET) => vec![path],
        false => Vec::new(),
    });
    found.collect()
}

#[test]
fn no_command_and_no_state_file_holds_a_secret_whatever_fails() {
    let endpoints: Vec<(u16, Endpoint)> =
        [401, 403, 404, 500, 302, 200].map(|status| (status, telling(status))).into();
    let script = "echo \"starting $KEY $OTHER $*\" >&2; echo \"$KEY $1\"; exit 3";
    let env = json!({ "KEY": format!("{SECRET}-env"), "OTHER": "${IN_ENV}" });
    let secret = format!("--api-key={SECRET}-arg");
    let mut servers = json!({
        "refused": behind("http://127.0.0.1:9"),
        "unknown": behind("http://nowhere.invalid"),
        "tls": behind(&endpoints[0].1.url().replace("http:", "https:")),
        "bearer": { "url": endpoints[0].1.url(), "bearer_token_env_var": "IN_BEARER" },
        "client": { "url": endpoints[0].1.url(), "oauth": { "clientId": "me", "clientSecret": "${IN_CLIENT}" } },
        "crash": { "command": "sh", "args": ["-c", script, "sh", secret, "${IN_ARGS}"], "env": env },
        "absent": { "command": "/nonexistent/${IN_ARGS}", "args": ["--token", format!("{SECRET}-arg")], "env": env },
    });
    for (status, endpoint) in &endpoints {
        servers[format!("s{status}")] = behind(&endpoint.url());
    }
    let harness = Harness::with(&servers);
    let command = |arguments: &[&str]| {
        let mut command = harness.command(arguments);
        command.envs(secret_variables()).stdin(Stdio::null());
        command
    };
    let check = |what: &str, text: &str| {
        let line = text.lines().find(|line| line.contains(SECRET));
        assert!(line.is_none(), "{what}: {}", line.unwrap_or_default());
    };

    let mut gateway = command(&["-vv", "serve"]);
    gateway.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut gateway = gateway.spawn().unwrap();
    let mut input = gateway.stdin.take().unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    writeln!(input, "{hello}\n{ready}").unwrap();
    let names: Vec<String> = servers.as_object().unwrap().keys().cloned().collect();
    for (id, name) in names.iter().enumerate() {
        let call = json!({ "jsonrpc": "2.0", "id": id + 1, "method": "tools/call", "params": { "name": format!("{name}__x"), "arguments": {} } });
        writeln!(input, "{call}").unwrap();
    }
    writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": { "name": "gateway_status", "arguments": {} } })).unwrap();
    let mut answers = BufReader::new(gateway.stdout.take().unwrap()).lines();
    let answered: Vec<String> = answers
        .by_ref()
        .map(Result::unwrap)
        .filter(|line| line.contains("\"id\":"))
        .take(names.len() + 2)
        .collect();
    check("an answer to the host", &answered.join("\n"));

    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["list", "s404"],
        &["list", "crash", "--json"],
        &["get", "s404"],
        &["get", "crash"],
        &["get", "crash", "--json"],
        &["get", "client", "--json"],
        &["status"],
        &["status", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["tools"],
        &["logs"],
        &["logs", "crash"],
        &["logs", "--json"],
        &["call", "s500.x"],
        &["call", "crash.x"],
        &["search", "x"],
        &["tokens"],
        &["tokens", "--json"],
    ] {
        let run = Run::of(command(arguments).output().unwrap());
        check(&format!("{arguments:?}"), &format!("{}\n{}", run.out, run.err));
    }
    for folder in ["state", "cache"] {
        let found = leaks(&harness.path().join(folder));
        assert!(found.is_empty(), "{found:?}");
    }
    drop(input);
    let ended = gateway.wait_with_output().unwrap();
    check("the log of the gateway", &String::from_utf8_lossy(&ended.stderr));
    let logged = Run::of(command(&["logs", "crash"]).output().unwrap()).out;
    assert!(logged.contains("starting ${KEY} ${IN_ENV}"), "{logged}");
}
