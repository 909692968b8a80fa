//! Handles that are guessed, foreign, gone, or in unusual places: each call ends in time with a clear answer.

use std::{process::Command, time::Instant};

use super::*;

const GUESSED: &str = "r_AAECAwQFBgcICQoLDA0ODw";

/// The outcome of a call.
enum End {
    /// The server gets arguments that contain this.
    Sent(String),
    /// The model reads this error.
    Told(&'static str),
    /// The host gets a JSON-RPC error that contains this.
    Refused(&'static str),
}

fn sent(text: &str) -> End {
    End::Sent(text.to_owned())
}

/// Arguments of this depth, with a value at the bottom.
fn nested(depth: usize, open: &str, value: &str, close: &str) -> String {
    format!(r#"{{"any":{}{value}{}}}"#, open.repeat(depth), close.repeat(depth))
}

/// Raw arguments of calls with their outcomes. `H` is the handle of a result with the value
/// `{"n": 7, "list": [1, 2, 3]}`.
fn corpus() -> Vec<(String, End)> {
    let reference = |rest: &str| format!(r#"{{"any":{{"$result":"H"{rest}}}}}"#);
    let jq = |filter: &str| reference(&format!(",\"jq\":{}", json!(filter)));
    let no_result = "any: there is no result r_";
    let flipped = |from: usize| format!(r#"{{"any":{{"$result":"FLIP{from}"}}}}"#);
    vec![
        (jq(".n"), sent(r#"{"any":7}"#)),
        (jq("[.list[]]"), sent(r#"{"any":[1,2,3]}"#)),
        (jq("del(.page)"), sent(r#"{"any":{"list":[1,2,3],"n":7}}"#)),
        (jq(".missing"), sent(r#"{"any":null}"#)),
        // guessed
        (format!(r#"{{"any":{{"$result":"{GUESSED}"}}}}"#), End::Told(no_result)),
        (flipped(0), End::Told(no_result)),
        (flipped(9), End::Told(no_result)),
        // no handles: sent unchanged
        (r#"{"any":{"$result":"r_"}}"#.into(), sent(r#""$result":"r_""#)),
        (r#"{"any":{"$result":""}}"#.into(), sent(r#""$result":"""#)),
        (r#"{"any":{"$result":"../../etc/passwd"}}"#.into(), sent("etc/passwd")),
        (r#"{"any":{"$result":"H "}}"#.into(), sent(" \"")),
        (r#"{"any":{"$result":5}}"#.into(), sent(r#""$result":5"#)),
        (r#"{"any":{"$result":null}}"#.into(), sent(r#""$result":null"#)),
        (r#"{"any":{"$result":true}}"#.into(), sent(r#""$result":true"#)),
        (r#"{"any":{"$result":["H"]}}"#.into(), sent(r#""$result":["#)),
        (r#"{"any":{"$result":{"x":"H"}}}"#.into(), sent(r#""$result":{"#)),
        (r#"{"any":"$result H"}"#.into(), sent("$result r_")),
        (r#"{"any":"{\"$result\":\"H\"} in words"}"#.into(), sent("in words")),
        // as a key, and with other keys
        (r#"{"any":{"H":1}}"#.into(), sent(r#"":1"#)),
        (r#"{"$result":"H","other":1}"#.into(), sent(r#""other":1"#)),
        (reference(r#","more":1"#), sent(r#""more":1"#)),
        (reference(r#","jq":5"#), sent(r#""jq":5"#)),
        (reference(r#","jq":null"#), sent(r#""jq":null"#)),
        (reference(r#","jq":["."]"#), sent(r#""jq":["."]"#)),
        // an escaped key is the same key
        (
            r#"{"any":{"\u0024result":"H","jq":".n"},"any2":{"$result":"H","jq":".n"}}"#.into(),
            sent(r#""any":7"#),
        ),
        // in arrays, twice, nested
        (r#"{"any":[{"$result":"H","jq":".n"},[{"$result":"H","jq":".n"}]]}"#.into(), sent("[7,[7]]")),
        (nested(50, "[", r#"{"$result":"H","jq":".n"}"#, "]"), sent("[[[7]]]")),
        (nested(50, r#"{"a":"#, r#"{"$result":"H","jq":".n"}"#, "}"), sent(r#"{"a":{"a":7}}"#)),
        (nested(50, "[", &format!(r#"{{"$result":"{GUESSED}"}}"#), "]"), End::Told("there is no result")),
        // deeper than any message may be
        (nested(120, "[", r#"{"$result":"H","jq":".n"}"#, "]"), End::Refused("nest")),
        (nested(120, r#"{"a":"#, r#"{"$result":"H","jq":".n"}"#, "}"), End::Refused("nest")),
        (nested(5000, "[", &format!(r#"{{"$result":"{GUESSED}"}}"#), "]"), End::Refused("nest")),
        // filters
        (jq("empty"), End::Told("jq must give exactly one value here; it gives 0")),
        (jq(".list[]"), End::Told("jq must give exactly one value here; it gives 3")),
        (jq("1, error(\"x\")"), End::Told("jq: ")),
        (jq("[range(1e9)]"), End::Told("jq: ")),
        (jq("range(1e12)"), End::Told("jq")),
        (jq("def f: f; f"), End::Told("jq: ")),
        (jq("def f: [f]; f"), End::Told("jq: ")),
        (jq("\"x\" * 1e9"), End::Told("jq: ")),
        (jq("reduce range(200) as $n (.; [.])"), End::Told("nest")),
        (jq("env"), End::Told("jq: ")),
        (jq("$ENV"), End::Told("jq: ")),
        (jq("$__prog_args"), End::Told("jq: ")),
        (jq("input"), End::Told("jq: ")),
        (jq(".n |"), End::Told("jq: ")),
        (jq(&"x".repeat(70_000)), End::Told("jq: ")),
        (jq("import \"a\" as a; ."), End::Told("jq: ")),
        // too many, and too long in total
        (
            json!({ "any": vec![json!({ "$result": "H" }); 33] }).to_string(),
            End::Told("33 results; the limit of one call is 32"),
        ),
    ]
}

/// A handle with one changed character.
fn flip(handle: &str, at: usize) -> String {
    let place = 2 + at;
    let other = if handle.as_bytes()[place] == b'A' { "B" } else { "A" };
    format!("{}{other}{}", &handle[..place], &handle[place + 1..])
}

#[test]
fn every_odd_handle_ends_in_time_with_a_clear_answer() {
    let workspace = Workspace::new();
    let value = json!({ "n": 7, "list": [1, 2, 3], "page": page() });
    let result = json!({ "content": [{ "type": "text", "text": value.to_string() }] }).to_string();
    let script = script().result("value", &result);
    workspace.write_config(&Config::new().server(&workspace, "s", &script).top("mode", json!("search")));
    let host = opened(workspace.serve(&gateway()));
    let handle = handle(&told(&host, "s__value", &json!({})).0);
    let before = memory(host.pid());
    for (arguments, end) in corpus() {
        let mut arguments =
            arguments.replace("\"H\"", &format!("\"{handle}\"")).replace("H ", &format!("{handle} "));
        arguments = arguments
            .replace(" H\"", &format!(" {handle}\""))
            .replace("\\\"H\\\"", &format!("\\\"{handle}\\\""));
        for at in [0, 9] {
            arguments = arguments.replace(&format!("FLIP{at}"), &flip(&handle, at));
        }
        let begin = Instant::now();
        let call = format!(r#"{{"name":"s__echo","arguments":{arguments}}}"#);
        let answer = host.call("execute_tool", &call);
        if let End::Refused(words) = end {
            let text = answer.error().to_owned();
            assert!(text.contains(words), "{arguments:.300}\n{text}");
            continue;
        }
        let result: Value =
            serde_json::from_str(answer.result()).unwrap_or_else(|_| panic!("{arguments:.300}"));
        let (text, failed) = (text_of(&result), result["isError"] == true);
        let shown = format!("{arguments:.300}\n{text:.600}");
        assert!(begin.elapsed().as_secs() < 30, "{:?}: {shown}", begin.elapsed());
        match end {
            End::Told(words) => assert!(failed && text.contains(words), "{words}: {shown}"),
            End::Sent(part) => assert!(!failed && text.contains(&part), "{part}: {shown}"),
            End::Refused(_) => {}
        }
        assert!(!text.contains("PATH="), "{shown}");
    }
    if cfg!(target_os = "linux") {
        let grown = memory(host.pid()).saturating_sub(before);
        assert!(grown < 64, "{grown} MiB");
    }
}

#[test]
fn callers_over_http_do_not_share_handles() {
    let workspace = Workspace::new();
    workspace.write_config(&config(&workspace).options("s", json!({ "scope": "shared" })));
    let token = |name: &str| {
        let mut create = Command::new(gateway());
        create.args(["token", "create", name]).current_dir(workspace.path());
        let output = create.env_clear().envs(workspace.environment()).output().expect("plugbay token");
        format!("Bearer {}", String::from_utf8(output.stdout).expect("UTF-8").trim())
    };
    let (ada, bob) = (token("ada"), token("bob"));
    let gateway = HttpGateway::start(&mut workspace.command(&gateway()));
    let of = |caller: &str, tool: &str, arguments: &Value| {
        // Both claim to be the same session.
        let headers = [("authorization", caller), ("x-session-id", "same")];
        modern(&gateway, &headers, tool, &arguments.to_string())
    };
    let read_page = json!({ "name": "s__page", "arguments": {} });
    let outline = wait_until("the catalog", DEADLINE, || {
        let (text, failed) = of(&ada, "execute_tool", &read_page);
        (!failed && text.contains("r_")).then_some(text)
    });
    let lines = read(&handle(&outline), "lines", "1");
    assert!(of(&ada, "read_result", &lines).0.contains("line 00000:"));
    let (why, failed) = of(&bob, "read_result", &lines);
    assert!(failed && why.contains("there is no result"), "{why}");
    let copy = json!({ "name": "s__echo", "arguments": { "text": { "$result": handle(&outline) } } });
    let (why, failed) = of(&bob, "execute_tool", &copy);
    assert!(failed && why.contains("arguments.text: there is no result"), "{why}");
    let (_, failed) = of(&ada, "execute_tool", &copy);
    assert!(!failed);
}

#[test]
fn a_daemon_that_takes_over_says_that_a_result_is_gone_and_how_to_get_it_again() {
    let workspace = Workspace::new().with_daemon();
    workspace.write_config(&config(&workspace).options("s", json!({ "scope": "shared" })));
    let built = |nanoseconds: &str| {
        let mut serve = workspace.command(&gateway());
        opened(Host::spawn(serve.env("PLUGBAY_BUILT", nanoseconds)))
    };
    let old = built("1");
    let first = handle(&told(&old, "s__page", &json!({})).0);
    let daemons = workspace.daemons();
    let newer = built("2");
    plugbay_testkit::wait_until_gone(&daemons);
    let (why, failed) = told(&old, "read_result", &read(&first, "lines", "1"));
    assert!(failed && why.contains("there is no result") && why.contains("restarted"), "{why}");
    assert!(why.contains("make the call that gave it again"), "{why}");
    let (why, failed) = told(&old, "s__echo", &json!({ "text": { "$result": first } }));
    assert!(failed && why.contains("arguments.text: there is no result"), "{why}");
    let again = handle(&told(&old, "s__page", &json!({})).0);
    assert!(told(&old, "read_result", &read(&again, "lines", "1")).0.contains("line 00000:"));
    drop(newer);
}

#[test]
#[cfg(target_os = "linux")]
fn a_thousand_live_handles() {
    let workspace = Workspace::new();
    let script = script().tool("mid", r#"{"size":24000}"#);
    workspace.write_config(&Config::new().server(&workspace, "s", &script).top("mode", json!("search")));
    let host = opened(workspace.serve(&gateway()));
    told(&host, "s__mid", &json!({}));
    let before = memory(host.pid());
    let handles: Vec<String> = (0..1000).map(|_| handle(&told(&host, "s__mid", &json!({})).0)).collect();
    let grown = memory(host.pid()) - before;
    assert!((20..40).contains(&grown), "{grown} MiB for 1,000 results of 24 KB");
    for handle in handles.iter().step_by(37) {
        let (part, failed) = told(&host, "read_result", &read(handle, "page", 1));
        assert!(!failed, "{part:.300}");
    }
}

#[test]
fn nothing_is_left_on_disk_at_the_start_after_a_kill() {
    let workspace = Workspace::new();
    workspace.write_config(&config(&workspace));
    let mut host = opened(workspace.serve(&gateway()));
    let handles: Vec<String> = (0..9).map(|_| handle(&told(&host, "s__big", &json!({})).0)).collect();
    host.signal(plugbay_testkit::Signal::KILL);
    host.wait_for_exit();
    let next = opened(workspace.serve(&gateway()));
    let large: Vec<_> =
        all_files(workspace.path()).into_iter().filter(|(_, length)| *length > 1_000_000).collect();
    assert!(large.is_empty(), "{large:?}");
    for handle in &handles {
        let (why, failed) = told(&next, "read_result", &read(handle, "page", 1));
        assert!(failed && why.contains("there is no result"), "{why}");
    }
}
