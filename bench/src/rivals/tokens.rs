//! Part `tokens`: the text that a host's model reads before its first call, in o200k tokens.

use std::time::{Duration, Instant};

use plugbay_core::tokens::counted;
use serde_json::{Value, json};

use crate::Outcome;
use crate::rivals::running::Rival;
use crate::sandbox::{Sandbox, Server};
use crate::search::metrics::tokens;
use crate::stub::TOOLS;

const STEPS: [usize; 2] = [5, 50];
const LIMIT: Duration = Duration::from_secs(40);

pub(crate) fn measure(rival: &Rival) -> Outcome<Value> {
    let mut rows = Vec::new();
    for servers in STEPS.into_iter().filter(|servers| *servers <= rival.about.servers) {
        let row = step(rival, servers);
        rows.push(row.unwrap_or_else(|error| json!({ "servers": servers, "failed": error.to_string() })));
    }
    if rows.is_empty() {
        return Err(format!("holds at most {} server", rival.about.servers).into());
    }
    Ok(json!({ "rows": rows }))
}

fn step(rival: &Rival, count: usize) -> Outcome<Value> {
    let sandbox = Sandbox::new()?;
    let servers: Vec<Server> = (1..=count).map(|number| Server::new(format!("s{number:02}"), [])).collect();
    let mut running = rival.start(&sandbox, &servers, LIMIT)?;
    let expected = rival.about.listed.with(count, TOOLS);
    let began = Instant::now();
    let tools = loop {
        let tools = running.link.tools(LIMIT)?;
        if tools.len() >= expected || began.elapsed() > LIMIT {
            break tools;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    if tools.len() < expected {
        return Err(format!("{} of {expected} tools in the list", tools.len()).into());
    }
    let listing: usize = tools.iter().map(|tool| tokens(&counted(tool.to_string().as_bytes()))).sum();
    let instructions = running.opening["instructions"].as_str().map_or(0, tokens);
    Ok(json!({
        "servers": count,
        "tools_behind": count * TOOLS,
        "tools": tools.len(),
        "listing": listing,
        "instructions": instructions,
        "total": listing + instructions,
    }))
}
