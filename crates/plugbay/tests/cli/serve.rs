//! The surroundings of `plugbay serve`, and commands that need no server.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
};

use crate::harness::{Harness, samples};

#[test]
fn serve_ends_with_its_input_and_says_nothing_to_a_pipe() {
    Harness::with(&samples()).run(&["serve"]).check(0, "", "");
}

#[test]
fn the_schema_is_printed() {
    let schema = Harness::empty().run(&["schema"]).json();
    assert!(schema["properties"]["mcpServers"].is_object());
}

#[test]
fn help_names_every_command() {
    let run = Harness::empty().run(&["--help"]);
    assert_eq!(run.code, Some(0));
    for command in ["serve", "list", "status", "tools", "call", "demo", "approve", "schema"] {
        assert!(run.out.contains(&format!("\n  {command} ")), "{}", run.out);
    }
    assert!(!run.out.contains("__"), "hidden commands stay hidden");
    assert!(Harness::empty().run(&["call", "--help"]).out.contains("\nExamples:\n"));
    assert_eq!(Harness::empty().run(&["frobnicate"]).code, Some(2));
}

#[test]
fn a_signal_right_after_the_address_ends_serve_in_order() {
    let harness = Harness::with(&samples());
    let mut command = harness.command(&["serve", "--http", "127.0.0.1:0"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("plugbay serves");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let said = lines.by_ref().map_while(Result::ok).find(|line| line.contains("serving MCP at"));
    let killed = Command::new("kill").arg(child.id().to_string()).status().expect("kill runs");
    // The rest is read so that the gateway is not blocked.
    lines.for_each(drop);
    assert!(said.is_some() && killed.success());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn metrics_with_an_address_are_served_there_alone() {
    let harness = Harness::with(&samples());
    let mut command = harness.command(&["serve", "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("plugbay serves");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let mut place = |what: &str| {
        let line = lines.by_ref().find(|line| line.contains(what)).expect("an address");
        let (_, place) = line.split_once("http://").expect("an address");
        let (address, path) = place.split_once('/').expect("a path");
        (address.to_owned(), format!("/{path}"))
    };
    let (page, path) = place("serving metrics at");
    let (gateway, _) = place("serving MCP at");
    let found = (get(&page, &path), get(&gateway, "/metrics"));
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!((path.as_str(), found), ("/metrics", (200, 404)));
}

#[test]
fn metrics_are_not_served_to_other_machines_without_a_token() {
    let run = Harness::with(&samples()).run(&["serve", "--metrics", "0.0.0.0:0"]);
    assert_eq!(run.code, Some(2));
    let expected = "error: without a token, everyone who can reach http://0.0.0.0:0/metrics could read";
    assert!(run.err.starts_with(expected), "{}", run.err);
}

fn get(address: &str, path: &str) -> u16 {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .expect("it is sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}
