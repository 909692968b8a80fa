//! Section `scale`: the cost of the number of tools: at the start, in a search, in memory, and when one
//! server changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::args::{Format, Settings};
use crate::host::Host;
use crate::process::{Family, Memory, spent};
use crate::sandbox::{Sandbox, Server};
use crate::stats::{median, millis};
use crate::stub::{CATALOGUE_OPTION, CHANGE_TOOL, added};
use crate::table::{Table, number};
use crate::target::Target;
use crate::{Outcome, gateway, output};

/// The modes whose openings are measured; `auto` is the configuration without a mode.
const MODES: [&str; 5] = ["search", "activate", "suite", "auto", "all"];

const STEPS: [usize; 4] = [200, 2_000, 10_000, 50_000];
const TOOLS_PER_SERVER: usize = 500;
const FEWEST_SERVERS: usize = 5;
/// How many times the list of one server changes.
const CHANGES: usize = 5;

const OPENING_MS: f64 = 20.0;
const SEARCH_MS: f64 = 300.0;
const MEMORY: f64 = 1.5;

const FILL_LIMIT: Duration = Duration::from_secs(180);

/// The figures for one number of tools.
struct Row {
    tools: usize,
    servers: usize,
    /// The size of all definitions as their servers wrote them, in bytes.
    raw: u64,
    /// In the order of [`MODES`].
    openings: Vec<Opening>,
    first_search_ms: Option<f64>,
    second_search_ms: Option<f64>,
    memory_opened: Memory,
    memory_searched: Memory,
    memory_listed: Memory,
    /// Time until a search finds a tool that a server has added.
    change_ms: Option<f64>,
    /// The gateway's processor time for that.
    change_cpu_ms: Option<f64>,
}

/// Times from the spawn until two answers.
#[derive(Default)]
struct Opening {
    initialize_ms: Option<f64>,
    list_ms: Option<f64>,
    list_bytes: usize,
}

pub(crate) fn run(settings: &Settings) -> Outcome<()> {
    let binary = gateway::find(settings.gateway.as_deref())?;
    let spawns = settings.rounds.unwrap_or(if settings.quick { 3 } else { 9 });
    let mut rows = Vec::new();
    for tools in STEPS.into_iter().filter(|tools| settings.wants_case(&tools.to_string())) {
        output::progress(&format!("{tools} tools …"));
        rows.push(measure(&binary, tools, spawns)?);
    }
    output::show(&match settings.format {
        Format::Json => json(&rows).to_string(),
        Format::Markdown => markdown(&rows),
        Format::Text => text(&rows),
    });
    Ok(())
}

fn measure(binary: &Path, tools: usize, spawns: u32) -> Outcome<Row> {
    let sandbox = Sandbox::new()?;
    let count = (tools / TOOLS_PER_SERVER).max(FEWEST_SERVERS);
    let servers = servers(tools, count);
    let target = |mode: &str| {
        let mode = Some(mode.to_owned()).filter(|mode| mode != "auto");
        Target::plugbay("plugbay", binary.to_owned(), mode)
    };
    fill_cache(&target("search"), &sandbox, &servers)?;
    let open = |mode: &&str| {
        // Sending every definition takes long and varies little.
        let spawns = if *mode == "all" { spawns.min(5) } else { spawns };
        openings(&target(mode), &sandbox, &servers, spawns)
    };
    let openings = MODES.iter().map(open).collect::<Outcome<Vec<_>>>()?;

    let mut firsts = Vec::new();
    let mut seconds = Vec::new();
    let mut memories = Vec::new();
    for _ in 0..spawns.min(5) {
        let mut host = target("search").open(&sandbox, &servers)?;
        host.tools()?;
        firsts.push(millis(host.timed("tools/call", &query("restore a customer record", 5))?.0));
        seconds.push(millis(host.timed("tools/call", &query("export the dashboard to a file", 5))?.0));
        memories.push(sample(&host));
    }
    let mut opened = target("search").open(&sandbox, &servers)?;
    opened.tools()?;
    let memory_opened = sample(&opened);
    drop(opened);
    let mut listed = target("all").open(&sandbox, &servers)?;
    listed.timed("tools/list", &json!({}))?;
    let memory_listed = sample(&listed);
    drop(listed);
    let (change_ms, change_cpu_ms) = changes(&target("search"), &sandbox, &servers)?;
    memories.sort_by_key(|memory| memory.pss);
    Ok(Row {
        tools,
        servers: count,
        raw: raw_bytes(tools, count),
        openings,
        first_search_ms: median(&firsts),
        second_search_ms: median(&seconds),
        memory_opened,
        memory_searched: memories[memories.len() / 2],
        memory_listed,
        change_ms,
        change_cpu_ms,
    })
}

fn servers(tools: usize, count: usize) -> Vec<Server> {
    let server = |number: usize| {
        let args = ["--tools", &(tools / count).to_string(), CATALOGUE_OPTION, &number.to_string()];
        Server::new(format!("s{number:03}"), args.map(str::to_owned))
    };
    (0..count).map(server).collect()
}

fn raw_bytes(tools: usize, count: usize) -> u64 {
    let of = |server: usize| crate::stub::catalogue(server as u64, tools / count);
    let bytes = |list: Value| {
        list.as_array().into_iter().flatten().map(|tool| tool.to_string().len() as u64).sum::<u64>()
    };
    (0..count).map(|server| bytes(of(server))).sum()
}

/// A run in which every server lists its tools.
fn fill_cache(target: &Target, sandbox: &Sandbox, servers: &[Server]) -> Outcome<()> {
    let host = target.open(sandbox, servers)?;
    let began = Instant::now();
    while cached(&sandbox.path("cache")) < servers.len() {
        if began.elapsed() > FILL_LIMIT {
            return Err("not every server has listed its tools in time".into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(host);
    Ok(())
}

/// The number of files in the folders `servers` below a folder.
fn cached(folder: &Path) -> usize {
    let entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let is_cache = |path: &&PathBuf| {
        path.parent().is_some_and(|parent| parent.ends_with("servers"))
            && !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    let own = entries.iter().filter(is_cache).filter(|path| path.is_file()).count();
    own + entries.iter().filter(|path| path.is_dir()).map(|path| cached(path)).sum::<usize>()
}

fn openings(target: &Target, sandbox: &Sandbox, servers: &[Server], spawns: u32) -> Outcome<Opening> {
    let (mut initialized, mut listed, mut list_bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..spawns {
        let mut command = target.command(sandbox, servers)?;
        let began = Instant::now();
        let mut host = Host::spawn(&mut command, sandbox)?;
        host.initialize()?;
        initialized.push(millis(began.elapsed()));
        list_bytes = host.timed("tools/list", &json!({}))?.1;
        listed.push(millis(began.elapsed()));
    }
    Ok(Opening { initialize_ms: median(&initialized), list_ms: median(&listed), list_bytes })
}

fn query(text: &str, limit: usize) -> Value {
    json!({ "name": "search_tools", "arguments": { "query": text, "limit": limit } })
}

/// Changes the list of one server several times. Returns the mean time until a search finds the new tool, and
/// the CPU time.
fn changes(target: &Target, sandbox: &Sandbox, servers: &[Server]) -> Outcome<(Option<f64>, Option<f64>)> {
    let mut host = target.open(sandbox, servers)?;
    host.tools()?;
    host.timed("tools/call", &query("restore a customer record", 5))?;
    let change = json!({
        "name": "execute_tool",
        "arguments": { "name": format!("s001__{CHANGE_TOOL}"), "arguments": {} },
    });
    // The first call starts the server.
    host.call_until_result(&change, Duration::from_secs(30))?;
    until_found(&mut host, &added(1, 1))?;
    let (mut times, mut cpu) = (Vec::new(), Vec::new());
    for number in 2..=CHANGES + 1 {
        let before = spent(host.pid());
        let began = Instant::now();
        host.request("tools/call", &change)?;
        until_found(&mut host, &added(1, number))?;
        times.push(millis(began.elapsed()));
        // The rest of the work is done after the answer.
        std::thread::sleep(Duration::from_millis(700));
        cpu.extend(spent(host.pid()).zip(before).map(|(after, before)| millis(after.saturating_sub(before))));
    }
    // The kernel counts in steps that are longer than a change may take, so only their sum is meaningful.
    let count = u32::try_from(cpu.len()).ok().filter(|count| *count > 0);
    Ok((median(&times), count.map(|count| cpu.iter().sum::<f64>() / f64::from(count))))
}

fn until_found(host: &mut Host, tool: &str) -> Outcome<()> {
    let began = Instant::now();
    loop {
        let result = host.request("tools/call", &query(tool, 1))?;
        if result.to_string().contains(tool) && result["isError"] != true {
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            if text.contains(&format!("__{tool}")) {
                return Ok(());
            }
        }
        if began.elapsed() > Duration::from_secs(60) {
            return Err(format!("a search does not find {tool}: {result}").into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The memory a second later, so that it includes background work.
fn sample(host: &Host) -> Memory {
    std::thread::sleep(Duration::from_secs(1));
    Family::of(host.pid()).memory()
}

impl Row {
    /// The memory as a multiple of the definitions.
    fn ratio(&self, memory: Memory) -> f64 {
        megabytes(memory.pss) / self.raw_mb()
    }

    fn raw_mb(&self) -> f64 {
        f64::from(u32::try_from(self.raw / 1000).unwrap_or(u32::MAX)) / 1e3
    }
}

fn text(rows: &[Row]) -> String {
    let mut table = Table::new(
        0,
        [
            "tools",
            "servers",
            "raw MB",
            "init ms",
            "search",
            "activate",
            "suite",
            "auto",
            "all",
            "1st search",
            "2nd search",
            "MB opened",
            "MB searched",
            "× raw",
            "MB all",
            "change ms",
            "change CPU ms",
        ],
    );
    for row in rows {
        let listed = |at: usize| number(row.openings[at].list_ms);
        table.row([
            row.tools.to_string(),
            row.servers.to_string(),
            number(Some(row.raw_mb())),
            number(row.openings[0].initialize_ms),
            listed(0),
            listed(1),
            listed(2),
            listed(3),
            listed(4),
            number(row.first_search_ms),
            number(row.second_search_ms),
            number(Some(megabytes(row.memory_opened.pss))),
            number(Some(megabytes(row.memory_searched.pss))),
            number(Some(row.ratio(row.memory_searched))),
            number(Some(megabytes(row.memory_listed.pss))),
            number(row.change_ms),
            number(row.change_cpu_ms),
        ]);
    }
    format!(
        "{}times from the spawn: init until the answer of initialize in search mode, then per mode until that of \
         tools/list; memory in search mode is the proportional share, after a second\naims with 50,000 tools: opened \
         within {OPENING_MS} ms but for all mode, first search within {SEARCH_MS} ms, memory at most {MEMORY} times \
         the definitions\n",
        table.render()
    )
}

fn markdown(rows: &[Row]) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut line = |label: &str, cell: &dyn Fn(&Row) -> String| {
        let cells: Vec<String> = rows.iter().map(cell).collect();
        lines.push(format!("| {label} | {} |", cells.join(" | ")));
        if lines.len() == 1 {
            lines.push(format!("|---|{}", "---|".repeat(rows.len())));
        }
    };
    line("tools", &|row| thousands(row.tools));
    line("servers", &|row| row.servers.to_string());
    line("all definitions together", &|row| format!("{} MB", number(Some(row.raw_mb()))));
    for (at, mode) in MODES.iter().enumerate() {
        let label = match *mode {
            "search" => "`search`: spawn to the answer of `tools/list`".to_owned(),
            "all" => "`all`: every definition is sent".to_owned(),
            mode => format!("`{mode}`"),
        };
        line(&label, &|row| ms(row.openings[at].list_ms));
    }
    line("first search, right after the list", &|row| ms(row.first_search_ms));
    line("next search", &|row| ms(row.second_search_ms));
    line("memory after the first list", &|row| mb(row.memory_opened));
    line("memory after searches (× definitions)", &|row| {
        format!("{} ({})", mb(row.memory_searched), number(Some(row.ratio(row.memory_searched))))
    });
    line("one server's list changes: until a search finds it", &|row| ms(row.change_ms));
    line("the same in processor time", &|row| ms(row.change_cpu_ms));
    lines.join("\n")
}

fn thousands(count: usize) -> String {
    if count < 1000 { count.to_string() } else { format!("{},{:03}", count / 1000, count % 1000) }
}

fn ms(value: Option<f64>) -> String {
    format!("{} ms", number(value))
}

fn mb(memory: Memory) -> String {
    format!("{} MB", number(Some(megabytes(memory.pss))))
}

fn json(rows: &[Row]) -> Value {
    let opening = |opening: &Opening| {
        json!({
            "initialize_ms": opening.initialize_ms,
            "list_ms": opening.list_ms,
            "list_bytes": opening.list_bytes,
        })
    };
    let memory =
        |memory: Memory| json!({ "rss_kib": memory.rss, "pss_kib": memory.pss, "peak_kib": memory.peak });
    let row = |row: &Row| {
        json!({
            "tools": row.tools,
            "servers": row.servers,
            "raw_bytes": row.raw,
            "openings": MODES.iter().zip(&row.openings).map(|(mode, one)| (*mode, opening(one))).collect::<BTreeMap<_, _>>(),
            "first_search_ms": row.first_search_ms,
            "second_search_ms": row.second_search_ms,
            "memory_opened": memory(row.memory_opened),
            "memory_searched": memory(row.memory_searched),
            "memory_listed_all": memory(row.memory_listed),
            "change_ms": row.change_ms,
            "change_cpu_ms": row.change_cpu_ms,
        })
    };
    json!({ "section": "scale", "rows": rows.iter().map(row).collect::<Vec<_>>() })
}

fn megabytes(kib: u64) -> f64 {
    f64::from(u32::try_from(kib).unwrap_or(u32::MAX)) * 1024.0 / 1e6
}
