//! Memory that others can spend: each scenario states its bound, and another caller is served meanwhile.

use plugbay_testkit::{DEADLINE, Script, Workspace, wait_until};
use serde_json::{Value, json};

use crate::{
    http,
    measure::{mebibytes, peak, use_of},
    neighbour::{Neighbour, beside},
    scenario::{Outcome, Scenario},
    trial::{self, Trial},
};

const MEBIBYTE: u64 = 1 << 20;
const LOG_ALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}"#;

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "unheard-logs",
        rule: "64 sessions without a listener of a server that logs 380 KB 20 times after each of two calls (short: 40 sessions): at most 256 MiB more, nobody else is refused",
        run: unheard_logs,
    },
    Scenario {
        name: "many-questions",
        rule: "A modern server's `input_required` with 5,000 questions: at most 128 MiB more, other calls are served",
        run: many_questions,
    },
    Scenario {
        name: "endless-list",
        rule: "Pages of large tools without an end (150 pages of 10 MB; short: 12 of 4 MB): at most 256 MiB more, and a cache file of at most 64 MiB",
        run: endless_list,
    },
    Scenario {
        name: "notification-flood",
        rule: "100,000 log messages of a server to a host that is slow: at most 64 MiB more, other calls are served",
        run: notification_flood,
    },
];

fn unheard_logs(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"level\":\"error\",\"data\":\"{}\"}}}}\n",
        "x".repeat(380_000)
    );
    let entry = trial::stub(&workspace, "s", &[("raw.after", &line), ("after_times", "20")]);
    let config = trial::config(&workspace, &[])
        .entry("s", entry)
        .options("s", json!({ "scope": "session", "instances": 100 }));
    let gateway = trial.serve_http(&workspace, &config, &[]);
    let before = use_of(gateway.pid()).memory;
    let count = trial.times(40, 64);
    let (waits, refused) = beside(Neighbour::over_http(&gateway, None), || {
        let mut host = gateway.connect();
        let mut refused = 0;
        for _ in 0..count {
            let session = http::open_session(&gateway, &[]).unwrap_or_default();
            host.post(&[("mcp-session-id", &session)], LOG_ALL);
            host.reply();
            // The answer of the second call comes behind all messages of the first.
            for call in [2, 3] {
                host.post(&[("mcp-session-id", &session)], &http::legacy_call(call, "s__raw", "{}"));
                refused += usize::from(host.reply().status != 200);
            }
        }
        refused
    });
    let grown = peak(gateway.pid()).saturating_sub(before);
    let mut outcome = Outcome::default();
    outcome.check(grown <= 256 * MEBIBYTE, || format!("memory grew by {}", mebibytes(grown)));
    outcome.check(waits.failed + refused == 0, || {
        format!("{refused} calls and {} of another caller were refused", waits.failed)
    });
    outcome.figure(format!("{count} sessions: {} more", mebibytes(grown)))
}

fn many_questions(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let question = json!({ "method": "elicitation/create", "params": { "message": "x".repeat(2000), "requestedSchema": { "type": "object", "properties": {} } } });
    let questions: serde_json::Map<String, Value> =
        (0..5000).map(|n| (format!("q{n}"), question.clone())).collect();
    let result = json!({ "resultType": "input_required", "inputRequests": questions });
    let script = Script::friendly().set("era", r#""modern""#).result("ask", &result.to_string());
    workspace.write_config(&trial::config(&workspace, &[("s", script)]));
    let host = workspace.serve(&trial.gateway);
    host.declare(r#"{"elicitation":{}}"#);
    host.initialize();
    host.await_tools(&["s__ask", "fast__echo"]);
    let before = use_of(host.pid()).memory;
    let call = host.start_call("s__ask", "{}");
    let mut asked = 0;
    for _ in 0..40 {
        host.call("fast__echo", "{}").content_text();
        while let Some(request) = host.take_now(|m| m.method().as_deref() == Some("elicitation/create")) {
            asked += 1;
            host.reply(&request, r#"{"action":"accept","content":{}}"#);
        }
        let id = call.to_string();
        if host.take_now(|m| m.is_response() && m.id() == Some(&id)).is_some() {
            break;
        }
    }
    host.cancel(call);
    host.call("fast__echo", "{}").content_text();
    let grown = peak(host.pid()).saturating_sub(before);
    let mut outcome = Outcome::default();
    outcome.check(grown <= 128 * MEBIBYTE, || format!("memory grew by {}", mebibytes(grown)));
    outcome.figure(format!("{asked} questions reached the host: {} more", mebibytes(grown)))
}

fn endless_list(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let (pages, size) = if trial.quick { (12, 4 << 20) } else { (150, 10 << 20) };
    let tools = format!(
        r#"[{{"name":"t%PAGE%","description":"{}","inputSchema":{{"type":"object"}}}}]"#,
        "word ".repeat(size / 5)
    );
    let entry = trial::stub(&workspace, "s", &[("tools.json", &tools), ("pages", &pages.to_string())]);
    let gateway = trial.serve_http(&workspace, &trial::config(&workspace, &[]), &[]);
    let before = use_of(gateway.pid()).memory;
    let config = trial::config(&workspace, &[]).entry("s", entry).top("mode", json!("search"));
    let (waits, ()) = beside(Neighbour::over_http(&gateway, None), || {
        workspace.write_config(&config);
        wait_until("the end of the list", DEADLINE, || {
            let status = http::call(&mut gateway.connect(), "gateway_status", "{}", &[]).body;
            let told = status.contains("ready") || status.contains("error");
            (told && status.contains('s') && !status.contains("warming")).then_some(())
        });
    });
    let grown = peak(gateway.pid()).saturating_sub(before);
    let files = workspace.files("cache");
    let largest =
        files.iter().filter_map(|path| path.metadata().ok()).map(|about| about.len()).max().unwrap_or(0);
    let mut outcome = Outcome::default();
    outcome.check(waits.failed == 0, || format!("{} calls of another caller failed", waits.failed));
    outcome.check(grown <= 256 * MEBIBYTE, || format!("memory grew by {}", mebibytes(grown)));
    outcome.check(largest <= 64 * MEBIBYTE, || format!("a cache file of {}", mebibytes(largest)));
    outcome.figure(format!("{pages} pages: {} more, cache file of {}", mebibytes(grown), mebibytes(largest)))
}

fn notification_flood(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let flood =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"flood"}}"#;
    let times = trial.times(20_000, 100_000).to_string();
    let entry = trial::stub(&workspace, "s", &[("flood", flood), ("flood_times", &times)]);
    let config = trial::config(&workspace, &[]).entry("s", entry);
    let host = trial.open(&workspace, &config, &["fast__echo"]);
    let before = use_of(host.pid()).memory;
    host.call("s__raw", "{}");
    host.call("fast__echo", "{}").content_text();
    let grown = peak(host.pid()).saturating_sub(before);
    let mut outcome = Outcome::default();
    outcome.check(grown <= 64 * MEBIBYTE, || format!("memory grew by {}", mebibytes(grown)));
    outcome.figure(format!("{times} messages: {} more", mebibytes(grown)))
}
