//! Section `memory`: the memory of the gateway's own processes, before and after many calls.

use std::time::Duration;

use serde_json::{Value, json};

use crate::args::Settings;
use crate::batch::Batch;
use crate::host::Host;
use crate::payload::{IdPlace, Kind, Payload};
use crate::process::{Family, Memory, megabytes};
use crate::sandbox::{Sandbox, Server};
use crate::stub::TOOLS;
use crate::table::{Table, number};
use crate::target::{Target, exposed};
use crate::{Outcome, output};

const SIZE: usize = 1_000;
const IN_FLIGHT: usize = 8;

/// Fifty servers take a while on a small machine.
const LISTING: Duration = Duration::from_secs(60);

/// The numbers of servers, with the limit of megabytes for plugbay.
const STEPS: [(usize, f64); 2] = [(5, 6.0), (50, 15.0)];

struct Row {
    target: String,
    servers: usize,
    when: String,
    memory: Memory,
    processes: usize,
    /// How many of the servers were running.
    running: usize,
    limit_mb: Option<f64>,
}

impl Row {
    fn passes(&self) -> Option<bool> {
        self.limit_mb.map(|limit| megabytes(self.memory.rss) <= limit)
    }
}

pub(crate) fn run(settings: &Settings) -> Outcome<()> {
    let calls = if settings.quick { 1_000 } else { 10_000 };
    let mut rows = Vec::new();
    for target in Target::gateways(settings)? {
        for (servers, limit_mb) in STEPS {
            output::progress(&format!("{}: {servers} servers …", target.name));
            let limit_mb = (target.name == "plugbay").then_some(limit_mb);
            let measured = measure(&target, servers, calls, limit_mb);
            rows.extend(measured.map_err(|error| target.failed(&*error))?);
        }
    }
    output::show(&if settings.is_json() { json(&rows).to_string() } else { text(&rows) });
    Ok(())
}

fn measure(target: &Target, servers: usize, calls: usize, limit_mb: Option<f64>) -> Outcome<[Row; 2]> {
    let sandbox = Sandbox::new()?;
    let names: Vec<String> = (1..=servers).map(|number| format!("s{number:02}")).collect();
    let stubs: Vec<Server> = names.iter().map(|name| Server::new(name.clone(), [])).collect();
    let mut host = target.open(&sandbox, &stubs)?;

    let listed = host.tools_until(servers * TOOLS, LISTING)?;
    let tool = Kind::Text.tool();
    let params = |tool| json!({ "name": tool, "arguments": { "size": SIZE } }).to_string();
    let params = names
        .iter()
        .map(|name| exposed(&listed, name, tool).map(params))
        .collect::<Option<Vec<_>>>()
        .ok_or("a server's tool is not in the list")?;
    let expected = Payload::new(Kind::Text, SIZE, IdPlace::First);
    let run = |host: &mut Host, calls| {
        let in_flight = IN_FLIGHT;
        Batch { params: &params, expected: &expected, calls, in_flight, full_check: true }.run(host)
    };

    // One call to each, so that a gateway that starts servers late has started them all.
    run(&mut host, servers)?;
    let idle = sample(&host);
    run(&mut host, calls)?;
    let after = sample(&host);

    let row = |when: String, (memory, processes, running)| Row {
        target: target.name.clone(),
        servers,
        when,
        memory,
        processes,
        running,
        limit_mb,
    };
    Ok([row("idle".to_owned(), idle), row(format!("after {calls} calls"), after)])
}

fn sample(host: &Host) -> (Memory, usize, usize) {
    std::thread::sleep(Duration::from_secs(1));
    let family = Family::of(host.pid());
    (family.memory(), family.len(), family.stubs)
}

fn text(rows: &[Row]) -> String {
    let mut table = Table::new(
        1,
        [
            "route",
            "servers",
            "running",
            "when",
            "RSS MB",
            "PSS MB",
            "heap MB",
            "peak MB",
            "processes",
            "at most",
            "bar",
        ],
    );
    for row in rows {
        let verdict = row.passes().map_or("", |passes| if passes { "pass" } else { "FAIL" });
        table.row([
            row.target.clone(),
            row.servers.to_string(),
            row.running.to_string(),
            row.when.clone(),
            number(Some(megabytes(row.memory.rss))),
            number(Some(megabytes(row.memory.pss))),
            number(Some(megabytes(row.memory.anonymous))),
            number(Some(megabytes(row.memory.peak))),
            row.processes.to_string(),
            number(row.limit_mb),
            verdict.to_owned(),
        ]);
    }
    format!(
        "{}the gateway's own processes, without the servers; the bar is on RSS. Heap is what is of no file: the rest \
         is mostly the program itself, as far as the system maps it\n",
        table.render()
    )
}

fn json(rows: &[Row]) -> Value {
    let row = |row: &Row| {
        json!({
            "route": row.target,
            "servers": row.servers,
            "servers_running": row.running,
            "when": row.when,
            "rss_mb": megabytes(row.memory.rss),
            "pss_mb": megabytes(row.memory.pss),
            "heap_mb": megabytes(row.memory.anonymous),
            "peak_mb": megabytes(row.memory.peak),
            "processes": row.processes,
            "limit_mb": row.limit_mb,
            "pass": row.passes(),
        })
    };
    json!({ "section": "memory", "rows": rows.iter().map(row).collect::<Vec<_>>() })
}
