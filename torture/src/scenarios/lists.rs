//! One list of a server must not stop everything else: hostile definitions, while another caller is measured.

use std::time::{Duration, Instant};

use plugbay_testkit::{DEADLINE, Workspace, wait_until};
use serde_json::{Map, Value, json};

use super::{
    generator::{UNITS, execute, long},
    work::{Ledger, Stage},
};
use crate::{
    dice::Dice,
    http,
    neighbour::{Neighbour, beside},
    scenario::{Outcome, Scenario},
    trial::{self, Trial},
};

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "generated-lists",
        rule: "No generated list of a server, no search and no call after it holds up another caller for more than 50 ms",
        run: generated_lists,
    },
    Scenario {
        name: "unprefixed-lists",
        rule: "Two servers without a prefix, 9,000 tools each (short: 2,000): no change of their lists holds up another caller for more than 50 ms",
        run: unprefixed_lists,
    },
];

/// Below the limit of one definition.
const DESCRIPTION: usize = 900 << 10;
/// Below the limit of a name.
const NAME: usize = 1000;
/// Below the limit of a word that is indexed.
const WORD: usize = 64;

fn generated_lists(trial: &Trial) -> Outcome {
    let stage = Stage::new(trial, &[]);
    let mut ledger = match Ledger::open(trial, &stage.gateway) {
        Ok(ledger) => ledger,
        Err(outcome) => return outcome,
    };
    let mut dice = Dice::new(trial.seed);
    let file = stage.workspace.path().join("s/tools.json");
    let most = if trial.quick { 1 << 20 } else { 12 << 20 };
    let end = Instant::now() + Duration::from_secs(if trial.quick { 20 } else { 600 });
    for round in 0..trial.times(KINDS.len(), 80) {
        if Instant::now() > end && round >= KINDS.len() {
            break;
        }
        let (recipe, list) = list(&mut dice, most, round);
        std::fs::write(&file, list).expect("a list");
        let (waits, answer) = beside(Neighbour::over_http(&stage.gateway), || {
            let mut host = stage.gateway.connect();
            http::call(&mut host, "execute_tool", &execute("s__next", "{}"), &[]);
            stage.await_tool(&format!("s__marker_{round}"));
            let unit = dice.pick(&UNITS);
            let query = json!({ "query": format!("{} yay", long(unit, WORD)) }).to_string();
            http::call(&mut host, "search_tools", &query, &[]);
            // Calls the tool that is in every list: it was not left out, and its schema is used.
            let arguments = format!(r#"{{"a":{},"x":1}}"#, Value::from(long(unit, 2000)));
            http::call(&mut host, "execute_tool", &execute("s__a", &arguments), &[]).body
        });
        let known = !answer.contains("unknown tool") && !answer.contains("Unknown tool");
        ledger.outcome.check(known, || format!("{recipe}: the tool was left out"));
        ledger.note(trial, recipe, &waits, Ok(if known { "" } else { "too long" }));
    }
    ledger.close()
}

const KINDS: [&str; 8] = [
    "long description",
    "long names",
    "many tools",
    "many properties",
    "deep schema",
    "pattern",
    "large enum",
    "references",
];

/// A list that is hostile in one way. Each has the tool `a`.
fn list(dice: &mut Dice, most: usize, round: usize) -> (String, String) {
    let (unit, kind) = (*dice.pick(&UNITS), round % KINDS.len());
    let bytes = (most >> dice.roll(4)).max(1000);
    let plain = json!({ "type": "object" });
    let words = |bytes: usize| format!("{} ", long(unit, WORD)).repeat(bytes / (WORD + 1));
    let with = |a: Value| json!({ "type": "object", "properties": { "a": a } });
    // Below the size up to which a schema is used.
    let in_schema = bytes.min(200 << 10);
    let schema = match KINDS[kind] {
        "many properties" => {
            let properties: Map<String, Value> =
                (0..in_schema / 40).map(|n| (format!("{unit}{n}"), json!({ "description": unit }))).collect();
            json!({ "type": "object", "properties": properties })
        }
        "deep schema" => {
            with((0..24).fold(json!({}), |inner, _| json!({ "anyOf": [inner, { "type": "null" }] })))
        }
        "pattern" => with(json!({ "pattern": long(unit, in_schema.min(4 << 10)) })),
        "large enum" => {
            with(json!({ "enum": (0..in_schema / 20).map(|n| format!("{unit}{n}")).collect::<Vec<_>>() }))
        }
        "references" => {
            let definitions: Map<String, Value> = (0..in_schema / 100)
                .map(|n| (format!("d{n}"), json!({ "anyOf": [{ "$ref": format!("#/$defs/d{}", n + 1) }, { "$ref": format!("#/$defs/d{}", n + 2) }] })))
                .collect();
            json!({ "type": "object", "$defs": definitions, "properties": { "a": { "$ref": "#/$defs/d0" } } })
        }
        _ => plain.clone(),
    };
    let description =
        if KINDS[kind] == "long description" { words(bytes.min(DESCRIPTION)) } else { "d".to_owned() };
    let mut all = vec![
        tool("next", "d", &plain),
        tool(&format!("marker_{round}"), "d", &plain),
        tool("a", &description, &schema),
    ];
    match KINDS[kind] {
        "long description" => {
            all.extend((1..bytes / DESCRIPTION).map(|n| tool(&format!("t{n}"), &words(DESCRIPTION), &plain)));
        }
        "long names" => {
            all.extend((0..bytes / NAME).map(|n| tool(&format!("{}{n}", long(unit, NAME - 8)), "d", &plain)));
        }
        "many tools" => all.extend(
            (0..(bytes / 200).min(9_000)).map(|n| tool(&format!("t{n}"), &format!("{unit} {n}"), &plain)),
        ),
        _ => {}
    }
    (format!("{}: {unit:?} up to {bytes} bytes", KINDS[kind]), Value::from(all).to_string())
}

fn tool(name: &str, description: &str, schema: &Value) -> Value {
    json!({ "name": name, "description": description, "inputSchema": schema })
}

fn unprefixed_lists(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let count = trial.times(2000, 9000);
    // The other server has half of the names, too.
    let list = |server: &str, round: usize| -> String {
        let plain = json!({ "type": "object" });
        let own = (0..count).map(|n| {
            let name = if n % 2 == 0 { format!("do_something_{n}") } else { format!("{server}_other_{n}") };
            tool(&name, "It does something.", &plain)
        });
        let more = [
            tool(&format!("next_{server}"), "d", &plain),
            tool(&format!("marker_{server}_{round}"), "d", &plain),
        ];
        Value::from(own.chain(more).collect::<Vec<_>>()).to_string()
    };
    let mut config = trial::config(&workspace, &[]).top("mode", json!("search"));
    for server in ["p", "q"] {
        let entry = trial::stub(&workspace, server, &[("tools.json", &list(server, 0))]);
        config = config.entry(server, entry).options(server, json!({ "prefix": false }));
    }
    let gateway = trial.serve_http(&workspace, &config, &[]);
    let mut host = gateway.connect();
    let mut await_marker = |server: &str, round: usize| {
        let name = json!({ "name": format!("marker_{server}_{round}") }).to_string();
        wait_until(&format!("the list {round} of {server}"), DEADLINE, || {
            http::call(&mut host, "describe_tool", &name, &[]).body.contains("inputSchema").then_some(())
        });
    };
    await_marker("p", 0);
    await_marker("q", 0);
    let mut ledger = match Ledger::open(trial, &gateway) {
        Ok(ledger) => ledger,
        Err(outcome) => return outcome,
    };
    for round in 1..=trial.times(2, 10) {
        for server in ["p", "q"] {
            std::fs::write(workspace.path().join(server).join("tools.json"), list(server, round))
                .expect("a list");
            let (waits, ()) = beside(Neighbour::over_http(&gateway), || {
                let next = execute(&format!("next_{server}"), "{}");
                http::call(&mut gateway.connect(), "execute_tool", &next, &[]);
                await_marker(server, round);
            });
            ledger.note(trial, format!("list {round} of {server}"), &waits, Ok(""));
        }
    }
    ledger.close()
}
