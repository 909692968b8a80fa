//! One message must not stop the world: generated messages of a host and lists of a server, while another caller is measured.

use std::time::{Duration, Instant};

use plugbay_testkit::{DEADLINE, HttpGateway, Workspace, wait_until};
use serde_json::{Value, json};

use super::streams::rest;
use crate::{
    dice::Dice,
    http,
    measure::{milliseconds, spread},
    neighbour::{Neighbour, beside},
    scenario::{Outcome, Scenario},
    trial::{self, Trial},
};

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "generated-requests",
        rule: "No generated request of a host of at most 16 MB holds up another caller for more than 50 ms",
        run: generated_requests,
    },
    Scenario { name: "known-requests", rule: "The same for the requests that once did", run: known_requests },
    Scenario {
        name: "generated-lists",
        rule: "No generated list of a server, and no search after it, holds up another caller for more than 50 ms",
        run: generated_lists,
    },
];

const LIMIT: Duration = Duration::from_millis(50);
/// After such a wait the gateway is started anew.
const RESTART: Duration = Duration::from_secs(5);
const UNITS: [&str; 16] = [
    "y",
    "yay",
    "漢",
    "a*",
    "**",
    "[a-",
    "{a,b}",
    "ab ",
    "__",
    ".",
    "é",
    "a,",
    "ing",
    "fast__echo,",
    "\\",
    "?",
];

/// A generated message, and how to make it again.
struct Attack {
    recipe: String,
    tool: &'static str,
    arguments: String,
}

/// A word repeated up to a length.
fn long(unit: &str, bytes: usize) -> String {
    unit.repeat(bytes / unit.len())
}

fn attack(dice: &mut Dice, most: usize) -> Attack {
    let unit = *dice.pick(&UNITS);
    let bytes = (most >> dice.roll(6)).max(1000);
    let (tool, key) = *dice.pick(&[
        ("search_tools", "query"),
        ("search_tools", "server"),
        ("describe_tool", "name"),
        ("execute_tool", "name"),
        ("gateway_activate", "name"),
        ("execute_tool", "*keys"),
        ("execute_tool", "*near"),
        ("execute_tool", "*deep"),
        ("execute_tool", "*list"),
        ("", "name"),
    ]);
    let recipe = format!("{tool} {key}: {unit:?} up to {bytes} bytes");
    let arguments = match key {
        "*keys" => execute(&members((0..bytes / 16).map(|n| format!("{unit}{n}")))),
        "*near" => execute(&members((0..bytes / 16).map(|n| format!("propert{n}")))),
        "*deep" => execute(&format!(r#"{{"deep":{}{}}}"#, "[".repeat(60), "]".repeat(60))),
        "*list" => execute(&format!(r#"{{"list":[{}1]}}"#, long("1,", bytes))),
        _ => json!({ key: long(unit, bytes) }).to_string(),
    };
    Attack { recipe, tool, arguments }
}

fn execute(arguments: &str) -> String {
    format!(r#"{{"name":"s__wide","arguments":{arguments}}}"#)
}

fn members(keys: impl Iterator<Item = String>) -> String {
    let members: Vec<String> = keys.map(|key| format!("{}:1", Value::from(key))).collect();
    format!("{{{}}}", members.join(","))
}

/// The tools that requests are aimed at: one with very many properties, and many with long names.
fn tools() -> String {
    let properties: serde_json::Map<String, Value> = (0..20_000)
        .map(|n| (format!("property_{n}"), json!({ "type": "string", "pattern": "^(a+)+$" })))
        .collect();
    let wide = json!({ "name": "wide", "inputSchema": { "type": "object", "properties": properties } });
    let mut all = vec![wide, json!({ "name": "next", "inputSchema": { "type": "object" } })];
    all.extend((0..300).map(
        |n| json!({ "name": format!("{}{n}", "long_name_".repeat(8)), "inputSchema": { "type": "object" } }),
    ));
    Value::from(all).to_string()
}

/// A gateway in search mode, with the tools that requests are aimed at.
fn stage(trial: &Trial, workspace: &Workspace) -> HttpGateway {
    let entry = trial::stub(workspace, "s", &[("tools.json", &tools())]);
    let config = trial::config(workspace, &[]).entry("s", entry).top("mode", json!("search"));
    let gateway = trial.serve_http(workspace, &config, &[]);
    wait_until("the tools", DEADLINE, || {
        let found = http::call(&mut gateway.connect(), "describe_tool", r#"{"name":"s__next"}"#, &[]);
        found.body.contains("inputSchema").then_some(())
    });
    gateway
}

/// The longest wait of another caller while nothing happens.
fn calm(gateway: &HttpGateway) -> Duration {
    spread(&beside(Neighbour::over_http(gateway, None), || rest(500)).0.times).1
}

/// Sends a request and measures another caller meanwhile.
fn held_up(gateway: &HttpGateway, attack: &Attack) -> (Duration, Duration) {
    let start = Instant::now();
    let (waits, ()) = beside(Neighbour::over_http(gateway, None), || {
        let mut host = gateway.connect_for(RESTART * 2);
        let tool = if attack.tool.is_empty() { "unknown" } else { attack.tool };
        let reply = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            if attack.tool.is_empty() {
                // The name itself is what is generated, so a header cannot repeat it: a legacy session does without.
                let session = http::open_session(gateway, &[]).unwrap_or_default();
                let value: Value = serde_json::from_str(&attack.arguments).unwrap_or_default();
                let body = http::legacy_call(1, value["name"].as_str().unwrap_or_default(), "{}");
                host.post(&[("mcp-session-id", &session)], &body);
                host.reply()
            } else {
                http::call(&mut host, tool, &attack.arguments, &[])
            }
        }));
        drop(reply);
    });
    (spread(&waits.times).1, start.elapsed())
}

/// Plays all requests; the worst one is the figure.
fn play(trial: &Trial, attacks: impl Iterator<Item = Attack>) -> Outcome {
    let mut workspace = Workspace::new();
    let mut gateway = stage(trial, &workspace);
    let (before, end) =
        (calm(&gateway), Instant::now() + Duration::from_secs(if trial.quick { 60 } else { 900 }));
    let limit = trial.limit(LIMIT) + before;
    let (mut outcome, mut worst, mut count) = (Outcome::default(), (Duration::ZERO, String::new()), 0);
    for attack in attacks.take_while(|_| Instant::now() < end) {
        let (wait, took) = held_up(&gateway, &attack);
        count += 1;
        outcome.check(wait <= limit, || {
            format!("{}: {} (answered after {})", attack.recipe, milliseconds(wait), milliseconds(took))
        });
        if wait > worst.0 {
            worst = (wait, attack.recipe);
        }
        if wait > RESTART {
            // It may work on for minutes, and the next request is to be measured alone.
            drop(gateway);
            workspace = Workspace::new();
            gateway = stage(trial, &workspace);
        }
    }
    outcome.faults.truncate(8);
    outcome.figure(format!(
        "{count} messages, longest wait {} ({}); {} without",
        milliseconds(worst.0),
        worst.1,
        milliseconds(before)
    ))
}

fn generated_requests(trial: &Trial) -> Outcome {
    let (mut dice, count) = (Dice::new(trial.seed), trial.times(24, 400));
    let most = if trial.quick { 1 << 20 } else { 14 << 20 };
    play(trial, (0..count).map(|_| attack(&mut dice, most)))
}

fn known_requests(trial: &Trial) -> Outcome {
    let size = if trial.quick { 1 << 19 } else { 3 << 20 };
    let word = |tool: &'static str, key: &str, unit: &str| Attack {
        recipe: format!("{tool} {key}: {unit:?}"),
        tool,
        arguments: json!({ key: long(unit, size) }).to_string(),
    };
    let names: Vec<String> = (0..20_000).map(|n| format!("s__long_name_{n}")).collect();
    let attacks = [
        word("search_tools", "query", "y"),
        word("search_tools", "query", "漢"),
        word("search_tools", "server", "*a"),
        word("describe_tool", "name", "漢"),
        word("describe_tool", "name", "a"),
        word("execute_tool", "name", "漢"),
        word("execute_tool", "name", "x"),
        word("gateway_activate", "name", "*a"),
        word("gateway_activate", "name", "{a,"),
        word("", "name", "漢"),
        Attack {
            recipe: "describe_tool: 20,000 names".into(),
            tool: "describe_tool",
            arguments: json!({ "name": names.join(",") }).to_string(),
        },
        Attack {
            recipe: "execute_tool: 5,000 keys".into(),
            tool: "execute_tool",
            arguments: execute(&members((0..5000).map(|n| format!("propertx_{n}")))),
        },
        Attack {
            recipe: "execute_tool: 100,000 unknown keys".into(),
            tool: "execute_tool",
            arguments: execute(&members((0..100_000).map(|n| format!("u{n}"))))
                .replace("s__wide", "fast__echo"),
        },
    ];
    play(trial, attacks.into_iter())
}

fn generated_lists(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let gateway = stage(trial, &workspace);
    let file = workspace.path().join("s/tools.json");
    let (mut outcome, mut worst, mut dice) =
        (Outcome::default(), (Duration::ZERO, String::new()), Dice::new(trial.seed));
    let limit = trial.limit(LIMIT) + calm(&gateway);
    let most = if trial.quick { 1 << 20 } else { 8 << 20 };
    let end = Instant::now() + Duration::from_secs(if trial.quick { 25 } else { 300 });
    for round in 0..trial.times(8, 80) {
        if Instant::now() > end {
            break;
        }
        let (recipe, list) = list(&mut dice, most, round);
        std::fs::write(&file, list).expect("a list");
        let marker = format!("marker_{round}");
        let (waits, ()) = beside(Neighbour::over_http(&gateway, None), || {
            let mut host = gateway.connect();
            http::call(&mut host, "execute_tool", r#"{"name":"s__next","arguments":{}}"#, &[]);
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let until = Instant::now() + Duration::from_secs(10);
                while Instant::now() < until {
                    let query = json!({ "query": format!("{marker} yay") }).to_string();
                    if http::call(&mut host, "search_tools", &query, &[]).body.contains(&marker) {
                        return;
                    }
                }
            }));
        });
        let wait = spread(&waits.times).1;
        outcome.check(wait <= limit, || format!("{recipe}: {}", milliseconds(wait)));
        if wait > worst.0 {
            worst = (wait, recipe);
        }
    }
    outcome.faults.truncate(6);
    outcome.figure(format!("longest wait {} ({})", milliseconds(worst.0), worst.1))
}

/// A list that is hostile in one way.
fn list(dice: &mut Dice, most: usize, round: usize) -> (String, String) {
    let unit = *dice.pick(&UNITS);
    let bytes = (most >> dice.roll(4)).max(1000);
    let tool = |name: String, description: String, schema: Value| json!({ "name": name, "description": description, "inputSchema": schema });
    let plain = json!({ "type": "object" });
    let kind = dice.roll(6);
    let hostile: Vec<Value> = match kind {
        0 => vec![tool("a".into(), long(unit, bytes), plain)],
        1 => vec![tool(long(unit, bytes), "d".into(), plain)],
        2 => (0..bytes / 200).map(|n| tool(format!("t{n}"), format!("{unit} {n}"), plain.clone())).collect(),
        3 => {
            let properties: serde_json::Map<String, Value> =
                (0..bytes / 40).map(|n| (format!("{unit}{n}"), json!({ "description": unit }))).collect();
            vec![tool("a".into(), "d".into(), json!({ "type": "object", "properties": properties }))]
        }
        4 => {
            let deep = (0..60).fold(json!({}), |inner, _| json!({ "anyOf": [inner] }));
            vec![tool("a".into(), "d".into(), json!({ "type": "object", "properties": { "a": deep } }))]
        }
        _ => vec![tool(
            "a".into(),
            "d".into(),
            json!({ "type": "object", "properties": { "a": { "pattern": long(unit, bytes.min(100_000)) } } }),
        )],
    };
    let recipe = ["description", "name", "many tools", "many properties", "deep schema", "pattern"][kind];
    let own = [
        tool("next".into(), "d".into(), json!({ "type": "object" })),
        tool(format!("marker_{round}"), format!("marker_{round}"), json!({ "type": "object" })),
    ];
    let all: Vec<Value> = own.into_iter().chain(hostile).collect();
    (format!("{recipe}: {unit:?} up to {bytes} bytes"), Value::from(all).to_string())
}
