//! Memory that others can use up: each scenario states its limit, and another caller is served meanwhile.

use std::{fs, time::Duration};

use plugbay_testkit::{DEADLINE, Host, HttpGateway, HttpHost, Script, Workspace, wait_until};
use serde_json::{Value, json};

use crate::{
    callers::{self, ONE},
    http,
    measure::{mebibytes, peak, use_of},
    neighbour::{Neighbour, beside},
    scenario::{Outcome, Scenario},
    trial::{self, Trial, mentions},
};

const MEBIBYTE: u64 = 1 << 20;
const LOG_ALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}"#;

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "unheard-logs",
        rule: "64 sessions without a listener, of servers that log 380 KB 20 times and 60 KB 200 times after a call (short: 6 sessions): at most 256 MiB more (short: 48), nobody is refused, and a listener gets messages",
        run: unheard_logs,
    },
    Scenario {
        name: "many-questions",
        rule: "A modern server's `input_required` with 5,000 questions, or with 64 in each of many rounds: an error that names server and limit, at most 256 questions, at most 128 MiB more, other calls are served",
        run: many_questions,
    },
    Scenario {
        name: "endless-list",
        rule: "1,000 pages of one tool of 900 KB (short: 100): at most 256 MiB more, and a cache file of at most 72 MiB",
        run: endless_list,
    },
    Scenario {
        name: "notification-flood",
        rule: "100,000 log messages of 2 KB (short: 25,000) to a host that does not read its stream: at most 32 MiB more, other calls are served",
        run: notification_flood,
    },
];

/// A line with a log message of about this many bytes.
fn log_line(bytes: usize) -> String {
    let data = "x".repeat(bytes);
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"level\":\"error\",\"data\":\"{data}\"}}}}\n"
    )
}

/// Opens a session of the first caller that wants all log messages.
fn logging_session(gateway: &HttpGateway, host: &mut HttpHost) -> String {
    let session = http::open_session(gateway, &[("authorization", ONE)]).expect("a session");
    host.post(&[("mcp-session-id", &session), ("authorization", ONE)], LOG_ALL);
    assert_eq!(host.reply().status, 200, "logging/setLevel");
    session
}

/// Calls a tool in a session. Returns whether the server has answered.
fn call_in(host: &mut HttpHost, session: &str, tool: &str) -> bool {
    host.post(&[("mcp-session-id", session), ("authorization", ONE)], &http::legacy_call(2, tool, "{}"));
    http::is_result(&host.reply().body)
}

/// How often a stub has finished writing the messages after a call.
fn done(workspace: &Workspace, server: &str) -> usize {
    let file = workspace.path().join(server).join("done");
    fs::read_to_string(file).unwrap_or_default().lines().count()
}

fn unheard_logs(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let sizes = [("large", 380_000, "20"), ("small", 60_000, "200")];
    let config = sizes.iter().fold(trial::config(&workspace, &[]), |config, (name, bytes, times)| {
        let entry =
            trial::stub(&workspace, name, &[("raw.after", &log_line(*bytes)), ("after_times", times)]);
        config.entry(name, entry).options(name, json!({ "scope": "session", "instances": 100 }))
    });
    let gateway = callers::serve(trial, &workspace, &config);
    let before = use_of(gateway.pid()).memory;
    let (count, limit) = if trial.quick { (6, 48 * MEBIBYTE) } else { (64, 256 * MEBIBYTE) };
    let (waits, refused) = beside(Neighbour::second_caller(&gateway), || {
        let (mut host, mut refused) = (gateway.connect(), 0);
        for number in 1..=count {
            let session = logging_session(&gateway, &mut host);
            for (name, ..) in sizes {
                refused += usize::from(!call_in(&mut host, &session, &format!("{name}__raw")));
                wait_until("all log messages", DEADLINE, || (done(&workspace, name) >= number).then_some(()));
            }
        }
        refused
    });
    let grown = peak(gateway.pid()).saturating_sub(before);
    let mut outcome = Outcome::default();
    let heard = sizes.iter().filter(|(name, ..)| is_heard(&gateway, name)).count();
    outcome.check(heard == sizes.len(), || "a session with a listener got no log message".to_owned());
    outcome.check(grown <= limit, || format!("memory grew by {}", mebibytes(grown)));
    outcome.check(waits.failed + refused == 0, || {
        format!("{refused} calls and {} of another caller were refused", waits.failed)
    });
    outcome.figure(format!("{count} sessions, {} MB of messages: {} more", count * 20, mebibytes(grown)))
}

/// Whether a session with a listener gets a log message of this server.
fn is_heard(gateway: &HttpGateway, server: &str) -> bool {
    let mut host = gateway.connect();
    let session = logging_session(gateway, &mut host);
    let mut listener = gateway.connect_for(Duration::from_secs(30));
    listener.request("GET", &[("mcp-session-id", &session), ("authorization", ONE)], "");
    listener.line_with("200").expect("a stream");
    call_in(&mut host, &session, &format!("{server}__raw"))
        && listener.line_with("notifications/message").is_some()
}

fn many_questions(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let question = json!({ "method": "elicitation/create", "params": { "message": "x".repeat(2000), "requestedSchema": { "type": "object", "properties": {} } } });
    let asking = |count: usize| {
        let questions: serde_json::Map<String, Value> =
            (0..count).map(|n| (format!("q{n}"), question.clone())).collect();
        json!({ "resultType": "input_required", "inputRequests": questions, "requestState": "again" })
            .to_string()
    };
    let script = Script::friendly()
        .set("era", r#""modern""#)
        .result("ask", &asking(5000))
        .result("again", &asking(64));
    workspace.write_config(&trial::config(&workspace, &[("curious", script)]));
    let host = workspace.serve(&trial.gateway);
    host.declare(r#"{"elicitation":{}}"#);
    host.initialize();
    host.await_tools(&["curious__ask", "curious__again", "fast__echo"]);
    let before = use_of(host.pid()).memory;
    let mut outcome = Outcome::default();
    let mut figures = Vec::new();
    for (tool, least, most) in [("curious__ask", 0, 0), ("curious__again", 1, 256)] {
        let (asked, answer) = answer_all(&host, tool);
        let told = mentions(&answer, &["curious"]) && mentions(&answer, &["64", "256", "16 rounds", "1 mib"]);
        outcome.check(told, || format!("{tool}: the error names no server or no limit: {answer}"));
        outcome
            .check((least..=most).contains(&asked), || format!("{tool}: {asked} questions reached the host"));
        figures.push(format!("{asked}"));
    }
    let grown = peak(host.pid()).saturating_sub(before);
    outcome.check(grown <= 128 * MEBIBYTE, || format!("memory grew by {}", mebibytes(grown)));
    outcome.figure(format!("{} questions reached the host: {} more", figures.join(" and "), mebibytes(grown)))
}

/// Calls a tool and accepts every question. Returns the number of questions, and how the call failed.
fn answer_all(host: &Host, tool: &str) -> (usize, String) {
    let (call, mut asked) = (host.start_call(tool, "{}").to_string(), 0);
    loop {
        let is_question = |method: Option<String>| method.as_deref() == Some("elicitation/create");
        let next = host.expect("a question or the end", |m| {
            is_question(m.method()) || m.is_response() && m.id() == Some(&call)
        });
        if next.is_response() {
            return (asked, next.failure());
        }
        asked += 1;
        host.reply(&next, r#"{"action":"accept","content":{}}"#);
        if asked % 64 == 1 {
            host.call("fast__echo", "{}").content_text();
        }
    }
}

fn endless_list(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let pages = trial.times(100, 1000);
    // Below the limit of one definition: the total is what is tested.
    let tools = format!(
        r#"[{{"name":"t%PAGE%","description":"{}","inputSchema":{{"type":"object"}}}}]"#,
        "word ".repeat(180_000)
    );
    let entry = trial::stub(&workspace, "s", &[("tools.json", &tools), ("pages", &pages.to_string())]);
    let gateway = trial.serve_http(&workspace, &trial::config(&workspace, &[]), &[]);
    let before = use_of(gateway.pid()).memory;
    let config = trial::config(&workspace, &[]).entry("s", entry).top("mode", json!("search"));
    let (waits, ()) = beside(Neighbour::over_http(&gateway), || {
        workspace.write_config(&config);
        wait_until("the tools", DEADLINE, || {
            let found = http::call(&mut gateway.connect(), "describe_tool", r#"{"name":"s__t0"}"#, &[]);
            found.body.contains("inputSchema").then_some(())
        });
        wait_until("the cache file", DEADLINE, || (largest(&workspace) > MEBIBYTE).then_some(()));
    });
    let (grown, largest) = (peak(gateway.pid()).saturating_sub(before), largest(&workspace));
    let mut outcome = Outcome::default();
    outcome.check(waits.failed == 0, || format!("{} calls of another caller failed", waits.failed));
    outcome.check(grown <= 256 * MEBIBYTE, || format!("memory grew by {}", mebibytes(grown)));
    outcome.check(largest <= 72 * MEBIBYTE, || format!("a cache file of {}", mebibytes(largest)));
    outcome.figure(format!("{pages} pages: {} more, cache file of {}", mebibytes(grown), mebibytes(largest)))
}

/// The size of the largest cache file, without drafts.
fn largest(workspace: &Workspace) -> u64 {
    let files = workspace.files("cache").into_iter().filter(|path| !path.to_string_lossy().contains("/."));
    files.filter_map(|path| path.metadata().ok()).map(|about| about.len()).max().unwrap_or(0)
}

fn notification_flood(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let times = trial.times(25_000, 100_000);
    let entry =
        trial::stub(&workspace, "s", &[("raw.after", &log_line(2000)), ("after_times", &times.to_string())]);
    let config = trial::config(&workspace, &[]).entry("s", entry).options("s", json!({ "scope": "session" }));
    let gateway = callers::serve(trial, &workspace, &config);
    let mut host = gateway.connect();
    let session = logging_session(&gateway, &mut host);
    let mut slow = gateway.connect_slow();
    slow.request("GET", &[("mcp-session-id", &session), ("authorization", ONE)], "");
    slow.line_with("200").expect("a stream");
    let before = use_of(gateway.pid()).memory;
    let (waits, served) = beside(Neighbour::second_caller(&gateway), || {
        let served = call_in(&mut host, &session, "s__raw");
        wait_until("all messages", DEADLINE, || (done(&workspace, "s") == 1).then_some(()));
        served && call_in(&mut host, &session, "fast__echo")
    });
    let grown = peak(gateway.pid()).saturating_sub(before);
    let mut outcome = Outcome::default();
    outcome.check(served && waits.failed == 0, || {
        format!("own calls served: {served}, {} of another caller failed", waits.failed)
    });
    outcome.check(slow.line_with("notifications/message").is_some(), || {
        "the stream holds no message".to_owned()
    });
    outcome.check(grown <= 32 * MEBIBYTE, || format!("memory grew by {}", mebibytes(grown)));
    outcome.figure(format!("{times} messages, {} MB: {} more", times / 500, mebibytes(grown)))
}
