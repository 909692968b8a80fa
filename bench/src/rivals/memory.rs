//! Part `memory`: the memory of the gateway's own processes with few and with many servers, before and after
//! many calls.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;
use crate::payload::Kind;
use crate::process::megabytes;
use crate::rivals::Effort;
use crate::rivals::link::shortened;
use crate::rivals::running::{Rival, Running};
use crate::sandbox::{Sandbox, Server};

const STEPS: [usize; 2] = [5, 50];
const SIZE: usize = 1_000;
const IN_FLIGHT: usize = 8;

/// Fifty servers take a while on a small machine.
const READY: Duration = Duration::from_secs(40);
const ANSWER: Duration = Duration::from_secs(20);

/// A gateway that needs longer for its calls makes fewer; the row shows how many.
const CALLING: Duration = Duration::from_secs(10);

pub(crate) fn measure(rival: &Rival, effort: Effort) -> Outcome<Value> {
    let mut rows = Vec::new();
    for servers in STEPS.into_iter().filter(|servers| *servers <= rival.about.servers) {
        let measured = step(rival, servers, effort);
        match measured {
            Ok(measured) => rows.extend(measured),
            Err(error) => rows.push(json!({ "servers": servers, "failed": error.to_string() })),
        }
    }
    if rows.is_empty() {
        return Err(format!("holds at most {} server", rival.about.servers).into());
    }
    Ok(json!({ "rows": rows }))
}

fn step(rival: &Rival, count: usize, effort: Effort) -> Outcome<[Value; 2]> {
    let sandbox = Sandbox::new()?;
    let servers: Vec<Server> = (1..=count).map(|number| Server::new(format!("s{number:02}"), [])).collect();
    let mut running = rival.start(&sandbox, &servers, READY)?;
    running.link.tools(READY)?;
    // One call to each, so that a gateway that starts servers late has started them all.
    let arguments = json!({ "size": SIZE });
    for server in &servers {
        running.call_until_good(&server.name, Kind::Text.tool(), &arguments, READY)?;
    }
    let idle = sample(&running, count, 0);
    let calls = call_all(&mut running, &servers, effort.pick(1_000, 10_000))?;
    Ok([idle, sample(&running, count, calls)])
}

/// Calls the servers in turn, with a few calls in flight; returns how many were made.
fn call_all(running: &mut Running<'_>, servers: &[Server], calls: usize) -> Outcome<usize> {
    let began = Instant::now();
    let arguments = json!({ "size": SIZE });
    let mut waiting = std::collections::VecDeque::new();
    let mut made = 0;
    for number in 0..calls {
        if began.elapsed() > CALLING {
            break;
        }
        waiting.push_back(running.ask(
            &servers[number % servers.len()].name,
            Kind::Text.tool(),
            &arguments,
        )?);
        made += 1;
        if waiting.len() == IN_FLIGHT {
            take_all(running, &mut waiting)?;
        }
    }
    take_all(running, &mut waiting)?;
    Ok(made)
}

/// Takes answers in any order: waiting for a certain one would drop the others.
fn take_all(running: &mut Running<'_>, waiting: &mut std::collections::VecDeque<u64>) -> Outcome<()> {
    let until = Instant::now() + ANSWER;
    while !waiting.is_empty() {
        let received = running.link.receive(until).map_err(|reply| format!("a call: {reply:?}"))?;
        let message: Value = serde_json::from_slice(&received.message)?;
        if message["result"].is_null() || message["result"]["isError"] == true {
            return Err(format!("a call failed: {}", shortened(&message)).into());
        }
        waiting.retain(|id| message["id"] != *id);
    }
    Ok(())
}

fn sample(running: &Running<'_>, servers: usize, calls: usize) -> Value {
    std::thread::sleep(Duration::from_secs(1));
    let family = running.family();
    let memory = family.memory();
    json!({
        "servers": servers,
        "servers_running": family.stubs,
        "after_calls": calls,
        "processes": family.len(),
        "anonymous_mb": megabytes(memory.anonymous),
        "private_mb": megabytes(memory.private),
        "proportional_mb": megabytes(memory.pss),
        "peak_mb": megabytes(memory.peak),
    })
}
