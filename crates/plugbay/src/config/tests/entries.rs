//! The meaning of valid entries.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    time::Duration,
};

use plugbay_upstream::spec::{Framing, Transport};

use super::{Place, check_entry, launch, one_server, settings};
use crate::config::identity;

#[test]
fn server_entries_of_hosts_can_be_pasted() {
    let local = r#""command": "npx", "args": ["-y", "pkg"], "env": {"K": "${TOK}"}"#;
    let argv = r#""command": ["npx", "-y", "pkg"], "environment": {"K": "${TOK}"}"#;
    let headers = r#""headers": {"Authorization": "Bearer ${TOK}"}"#;
    let shapes = [
        ("mcpServers", local.to_owned(), format!(r#""url": "https://h/mcp", {headers}"#)),
        ("mcpServers", local.to_owned(), format!(r#""type": "http", "url": "https://h/mcp", {headers}"#)),
        ("mcpServers", local.to_owned(), format!(r#""serverUrl": "https://h/mcp", {headers}"#)),
        ("mcpServers", local.to_owned(), format!(r#""httpUrl": "https://h/mcp", "trust": true, {headers}"#)),
        (
            "mcpServers",
            format!(r#""type": "stdio", "tools": ["*"], {local}"#),
            format!(r#""type": "sse", "url": "https://h/mcp", "tools": ["*"], {headers}"#),
        ),
        (
            "mcpServers",
            format!(r#""disabled": false, "autoApprove": [], "alwaysAllow": [], {local}"#),
            format!(r#""type": "streamableHttp", "url": "https://h/mcp", "disabled": false, {headers}"#),
        ),
        (
            "mcpServers",
            format!(r#""transport": "stdio", {local}"#),
            format!(r#""transport": "http", "url": "https://h/mcp", {headers}"#),
        ),
        ("servers", local.to_owned(), r#""type": "http", "url": "https://h/mcp""#.to_owned()),
        (
            "context_servers",
            format!(r#""source": "custom", {local}"#),
            format!(r#""source": "custom", "type": "http", "url": "https://h/mcp", {headers}"#),
        ),
        (
            "mcp",
            format!(r#""type": "local", "enabled": true, {argv}"#),
            format!(r#""type": "remote", "url": "https://h/mcp", "enabled": true, {headers}"#),
        ),
        (
            "mcp_servers",
            format!(r#""startup_timeout_sec": 20, "tool_timeout_sec": 60.5, {local}"#),
            r#""url": "https://h/mcp", "bearer_token_env_var": "TOK""#.to_owned(),
        ),
        (
            "servers",
            r#""name": "ev", "description": "", "cmd": "npx", "args": ["-y", "pkg"], "envs": {"K": "${TOK}"}"#
                .to_owned(),
            r#""type": "streamable_http", "uri": "https://h/mcp""#.to_owned(),
        ),
    ];
    let place = Place::new();
    for (key, ev, remote) in shapes {
        place.write("project/c", format!("{{\"{key}\": {{\"ev\": {{{ev}}},\n\"remote\": {{{remote}}}}}}}"));
        let settings = place.load(Some("c"));
        let summary = place.summary(&settings);
        let mut lines = summary.lines();
        assert_eq!(lines.next(), Some("ev: npx -y pkg K=<token>"), "{ev}");
        let flavour = match &remote {
            remote if remote.contains("sse") => "Sse",
            remote if remote.contains("ttp\"") => "Streamable",
            _ => "Auto",
        };
        let token = if remote.contains("TOK") { " Authorization=Bearer <token>" } else { "" };
        let expected = format!("remote: https://h/mcp {flavour}{token}");
        assert_eq!(lines.next(), Some(&*expected), "{remote}");
        assert_eq!(lines.next(), None, "{summary}");
    }
}

#[test]
fn an_entry_says_how_to_start_a_server() {
    check_entry(r#"{"command": ["a", "b"], "args": ["c"]}"#, "s: a b c");
    check_entry(r#"{"command": "a", "args": null, "env": null, "cwd": null}"#, "s: a");
    check_entry(r#"{"command": "a", "disabled": true, "args": ["${UNSET}"]}"#, "s disabled");
    check_entry(r#"{"enabled": false}"#, "s disabled");
    check_entry(r#"{"type": "stdio", "command": "a", "url": "unused"}"#, "s: a");
    check_entry(
        r#"{"url": "https://${HOST:-h}/", "env_http_headers": {"X-Key": "TOK"}}"#,
        "s: https://h/ Auto X-Key=<token>",
    );
    let no_command = "server `s` has no `command`";
    check_entry(
        "{}",
        &format!(
            "s failed: {no_command} (project/c:1:17); name the program to start: \"command\": \"npx\"
error 1:17: {no_command}; name the program to start: \"command\": \"npx\""
        ),
    );
}

#[test]
fn passed_variables_are_part_of_a_launch_and_broken_names_are_reported() {
    let text = r#"{"defaults": {"passEnv": ["D_*"]}, "mcpServers": {
        "a": {"command": "x"},
        "b": {"command": "x", "env_vars": ["ONE", {"name": "TWO", "source": "local"}], "plugbay": {"passEnv": ["AWS_?"]}},
        "c": {"command": "x", "env": {"AWS_1": "own"}, "passEnv": ["*"]}}}"#;
    let passed = |variables: &[(&str, &str)]| {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let settings = settings(text, &[]).with_passed(variables.collect::<Vec<_>>());
        assert_eq!(settings.diagnostics, []);
        settings.servers.iter().map(|server| server.spec.clone().unwrap()).collect::<Vec<_>>()
    };
    let all =
        [("AWS_1", "a"), ("AWS_10", "b"), ("D_X", "d"), ("ONE", "1"), ("PLUGBAY_X", "p"), ("F", "() { :; }")];
    let specs = passed(&all);
    let expected = ["x D_X=d", "x AWS_1=a ONE=1", "x AWS_1=own AWS_10=b D_X=d ONE=1"];
    assert_eq!(specs.iter().map(launch).collect::<Vec<_>>(), expected);
    let changed = passed(&[("ONE", "2")]);
    assert_ne!(identity(&specs[1]), identity(&changed[1]), "another value may show other tools");
    for name in ["A=b", "${A}", ""] {
        let place = Place::new();
        place.write(
            "project/c",
            format!("{{\"mcpServers\": {{\"s\":\n{{\"command\": \"x\",\n\"passEnv\": [\"{name}\"]}}}}}}"),
        );
        let summary = place.summary(&place.load(Some("c")));
        let expected = "s failed: `passEnv`: not the name of a variable (project/c:3:13); write names alone";
        assert!(summary.starts_with(expected), "{summary}");
    }
}

#[test]
fn plugbay_keys_come_before_host_keys_and_those_before_defaults() {
    let server = one_server(
        r#"{
            "mode": "all",
            "limits": { "message": "1MiB" },
            "defaults": { "timeout": "7s", "start": "8s", "idle": "never", "deny": ["x"], "allow": ["y"], "mode": "auto", "prefix": true },
            "mcpServers": { "s": {
                "command": "a", "timeout": 600000, "startup_timeout_sec": 20, "includeTools": ["z"],
                "plugbay": { "timeout": "2h", "shutdown": 0.5, "framing": "content-length", "prefix": false,
                             "rename": { "a": "b" }, "describe": { "c": "d" } },
            } },
        }"#,
    );
    let spec = server.spec.unwrap();
    let seconds = |seconds| Duration::from_secs(seconds);
    assert_eq!(spec.timeouts.call, seconds(7200));
    assert_eq!(spec.timeouts.call_max, seconds(7200), "never less than the timeout");
    assert_eq!(spec.timeouts.start, seconds(20));
    assert_eq!(spec.timeouts.idle, None);
    assert_eq!(spec.timeouts.shutdown, Duration::from_millis(500));
    assert_eq!(spec.message_limit, 1024 * 1024);
    let Transport::Stdio(stdio) = &spec.transport else { panic!("{spec:?}") };
    assert_eq!(stdio.framing, Framing::ContentLength);
    assert_eq!(server.exposure.mode, None, "auto");
    let exposure = server.exposure;
    assert_eq!(["x", "y", "z"].map(|tool| exposure.policy.may(tool)), [false, false, true]);
    assert!(exposure.bare);
    assert_eq!(exposure.rename, BTreeMap::from([("a".into(), "b".into())]));
    assert_eq!(exposure.describe, BTreeMap::from([("c".into(), "d".into())]));
}

#[test]
fn hosts_tool_lists_become_a_policy() {
    let check = |keys: &str, expected: [bool; 3]| {
        let server = one_server(&format!(r#"{{"mcpServers": {{"s": {{"command": "a", {keys}}}}}}}"#));
        assert_eq!(
            ["get_a", "get_b", "put"].map(|tool| server.exposure.policy.may(tool)),
            expected,
            "{keys}"
        );
    };
    check(r#""tools": ["*"]"#, [true, true, true]);
    check(r#""tools": []"#, [false, false, false]);
    check(r#""tools": ["get_a"]"#, [true, false, false]);
    check(r#""includeTools": ["get_*"], "excludeTools": ["get_b"]"#, [true, false, false]);
    check(r#""excludeTools": ["get_a"], "plugbay": {"deny": ["put"]}"#, [false, true, false]);
    check(r#""tools": ["get_a"], "plugbay": {"allow": ["put"]}"#, [false, false, true]);
}

#[test]
fn hosts_timeouts_are_milliseconds_unless_they_cannot_be() {
    for (timeout, seconds) in [("30000", 30), ("1000", 1), ("60", 60), (r#""45s""#, 45)] {
        let server =
            one_server(&format!(r#"{{"mcpServers": {{"s": {{"command": "a", "timeout": {timeout}}}}}}}"#));
        assert_eq!(server.spec.unwrap().timeouts.call, Duration::from_secs(seconds), "{timeout}");
    }
}

#[test]
fn identity_follows_the_launch_and_nothing_else() {
    let of = |name: &str, keys: &str| {
        let text = format!(r#"{{"mcpServers": {{"{name}": {{"command": "a", {keys}}}}}}}"#);
        identity(&one_server(&text).spec.unwrap())
    };
    let plain = of("s", r#""args": ["b", "c"]"#);
    assert_eq!(
        plain, "6cbb65e1f9c0c6b62ef5b108cc601c244f0201c9b019aa4e3ad27a7be33b0bb4",
        "it names files that later versions look for"
    );
    assert_eq!(plain, of("other", r#""args": ["b", "c"], "plugbay": {"timeout": "1s"}"#));
    let different = [
        r#""args": ["b c"]"#,
        r#""args": ["bc"]"#,
        r#""args": ["b", "c", ""]"#,
        r#""args": ["b", "c"], "env": {"X": ""}"#,
        r#""args": ["b", "c"], "env": {"X": "1"}"#,
        r#""args": ["b", "c"], "cwd": "/x""#,
    ];
    let all: BTreeSet<String> = different.iter().map(|keys| of("s", keys)).collect();
    assert_eq!(all.len(), different.len());
    assert!(!all.contains(&plain));
}

#[test]
fn a_passed_environment_variable_that_is_not_text_is_reported() {
    let settings = settings(r#"{"mcpServers": {"a": {"command": "x", "passEnv": ["ODD*"]}}}"#, &[]);
    let odd = || OsString::from_vec(vec![b'a', 0xff]);
    let settings = settings.with_passed([("ODD_KEY".into(), odd()), ("OTHER".into(), odd())]);
    let told: Vec<&str> = settings.diagnostics.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(told, ["the variable `ODD_KEY` is not UTF-8 text, so no server gets it"]);
}

#[test]
fn the_variable_of_a_bearer_token_is_asked_for_without_a_default() {
    let settings = settings(
        r#"{"remotes": {"team": {"url": "https://h.example", "bearer_token_env_var": "TEAM_TOKEN"}}}"#,
        &[],
    );
    let help = settings.diagnostics[0].help.as_deref().unwrap_or_default();
    assert!(help.starts_with("set it where plugbay is started") && !help.contains("default"), "{help}");
}
