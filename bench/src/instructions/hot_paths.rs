//! The hot paths, each as a loop without input or output.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::arguments::{self, CompiledSchema};
use plugbay_core::catalog::{Catalog, Change, Offer, Tool};
use plugbay_core::era::Era;
use plugbay_core::exposure::Mode;
use plugbay_core::name::ServerName;
use plugbay_core::outline::{OUTLINE_TOKENS, OutputSchema, Replacement, replace};
use plugbay_core::search::{EmbeddingTable, Engine};
use plugbay_core::shape::Shape;
use plugbay_core::surface::{Layout, Plan, Snapshot};
use plugbay_core::tool_result::ToolResult;
use plugbay_core::wire::{Draft, Framer, Head, Hole, Incoming, Kind, Members, string_value};

use crate::Outcome;
use crate::payload::{IdPlace, Kind as Answer, Payload};
use crate::search::TABLE;
use crate::stub::{LEDGER_TOOL, definitions, ledger_arguments};

/// The paths, with the number of repetitions to count. It is large enough that differences between runs, such
/// as the seeds of hash tables, do not matter.
pub(crate) const PATHS: [(&str, u64); 14] = [
    ("request", 2_000),
    ("answer of 1 KB", 2_000),
    ("answer of 100 KB", 200),
    ("answer of 1 MB", 40),
    ("search", 100),
    ("arguments", 2_000),
    ("outline of 5 MB", 4),
    ("outline of 5 MB, JSON lines", 4),
    ("outline of 5 MB, map", 4),
    ("outline of 5 MB, nested", 4),
    ("outline of 5 MB, text", 4),
    ("outline of 5 MB, log", 4),
    ("outline of 5 MB, CSV", 4),
    ("shape of 1 KB", 1_000),
];

const SERVERS: usize = 5;
const LIMIT: usize = 64 << 20;
/// Bytes of a large result.
const LARGE: usize = 5_000_000;

/// Runs `[path, repetitions]`.
pub(crate) fn run(args: &[String]) -> Outcome<()> {
    let [path, times] = args else { return Err("takes a path and a number".into()) };
    let times = times.parse()?;
    match path.as_str() {
        "request" => request(times),
        "answer of 1 KB" => answer(times, 1_000),
        "answer of 100 KB" => answer(times, 100_000),
        "answer of 1 MB" => answer(times, 1_000_000),
        "search" => search(times),
        "arguments" => check(times),
        "outline of 5 MB" => outline(times, &rows(LARGE)),
        "outline of 5 MB, JSON lines" => outline(times, &lines(LARGE, |n| row(n) + "\n")),
        "outline of 5 MB, map" => outline(times, &map(LARGE)),
        "outline of 5 MB, nested" => outline(times, &nested(LARGE)),
        "outline of 5 MB, text" => outline(times, &lines(LARGE, text_line)),
        "outline of 5 MB, log" => outline(times, &lines(LARGE, log_line)),
        "outline of 5 MB, CSV" => outline(times, &lines(LARGE, table_line)),
        "shape of 1 KB" => shape(times, 1_000),
        _ => Err(format!("there is no path {path}").into()),
    }
}

fn row(n: usize) -> String {
    format!(
        r#"{{"id":{n},"name":"user {n}","email":"u{n}@example.com","ok":{},"score":{},"tags":["a","b"]}}"#,
        n.is_multiple_of(2),
        n * 7 % 1000
    )
}

/// Rows of JSON, about this many bytes.
fn rows(length: usize) -> String {
    let rows: Vec<String> = (0..length / row(1000).len()).map(row).collect();
    format!("[{}]", rows.join(","))
}

/// An object with many similar members, about this many bytes.
fn map(length: usize) -> String {
    let member =
        |n: usize| format!(r#""ship-{n}":{{"tons":{},"berth":"b{}","ok":true}}"#, n * 7 % 1000, n % 12);
    let members: Vec<String> = (0..length / member(1000).len()).map(member).collect();
    format!("{{{}}}", members.join(","))
}

/// JSON of about this many bytes in which no array is long.
fn nested(length: usize) -> String {
    let pod = |n: usize| {
        format!(
            r#"{{"metadata":{{"name":"pod-{n}","labels":{{"app":"web","tier":"t{}"}}}},"spec":{{"containers":[{{"image":"registry/app:{n}","ports":[{{"port":80}},{{"port":443}}],"env":{{"A":"1","B":"two \\"words\\""}}}}]}}}}"#,
            n % 3
        )
    };
    let space = |n: usize| {
        let pods: Vec<String> = (n * 40..n * 40 + 40).map(pod).collect();
        format!(r#""space-{n}":{{"phase":"Active","pods":[{}]}}"#, pods.join(","))
    };
    let spaces: Vec<String> = (0..length / space(100).len()).map(space).collect();
    format!("{{{}}}", spaces.join(","))
}

fn lines(length: usize, line: fn(usize) -> String) -> String {
    let count = length / line(1000).len();
    (0..count).map(line).collect()
}

fn text_line(n: usize) -> String {
    format!("The ship {n} left \"the quay\" at noon, and nobody knew where it would call next.\n")
}

fn log_line(n: usize) -> String {
    let level = ["INFO", "INFO", "DEBUG", "WARN", "INFO", "ERROR"][n % 6];
    format!("2026-11-18T07:{:02}:{:02}Z {level} berth{}: ship {n} moored\n", n / 60 % 60, n % 60, n % 7)
}

fn table_line(n: usize) -> String {
    if n == 0 {
        return "id,ship,berth,tons,remark\n".to_owned();
    }
    format!("{n},Blue Heron {n},{},{},\"late, as ever\"\n", n % 12, n * 7 % 1000)
}

/// Makes an outline of a large result.
fn outline(times: u32, text: &str) -> Outcome<()> {
    let result = serde_json::json!({ "content": [{ "type": "text", "text": text }] }).to_string();
    let how = Replacement {
        threshold: 1,
        outline: OUTLINE_TOKENS,
        error: 1_500,
        closing: "result: \"r_\"",
        schema: OutputSchema::None,
    };
    for _ in 0..times {
        let read = ToolResult::read(result.as_bytes()).ok_or("no result")?;
        black_box(replace(&read, &how).ok_or("not replaced")?);
    }
    Ok(())
}

/// Learns the shape of a result.
fn shape(times: u32, length: usize) -> Outcome<()> {
    let rows = rows(length);
    for _ in 0..times {
        black_box(Shape::of_fields(rows.as_bytes()).ok_or("no JSON")?);
    }
    Ok(())
}

/// Turns a host's call into the request to a server.
fn request(times: u32) -> Outcome<()> {
    let snapshot = snapshot()?;
    let line = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"s03__move_berth_11","arguments":{"size":1000,"ship":"Blue Heron"}}}"#;
    let mut framer = Framer::new(LIMIT);
    for ticket in 0..times {
        let message = framed(&mut framer, line)?;
        let head = Head::read(&message).map_err(|error| format!("{error:?}"))?;
        let (Kind::Request { id, .. }, Some(params)) = (head.kind, head.payload) else {
            return Err("not a request".into());
        };
        let span = Members::find(&message, &params, "name").ok_or("no name")?;
        let name = string_value(&message[span.clone()]).ok_or("no string")?;
        let Plan::Forward(target) = snapshot.plan(&name) else { return Err("no such tool".into()) };
        let draft =
            Draft::new(message.clone()).with(id, Hole::Ticket).with(span, Hole::Text(target.quoted.clone()));
        black_box(draft.render(u64::from(ticket)));
    }
    Ok(())
}

/// Turns a server's answer into the answer to the host.
fn answer(times: u32, size: usize) -> Outcome<()> {
    let payload = Payload::new(Answer::Text, size, IdPlace::First);
    let line = [&payload.before, b"42".as_slice(), &payload.after].concat();
    let mut framer = Framer::new(LIMIT);
    for _ in 0..times {
        let message = framed(&mut framer, &line)?;
        let head = Head::read(&message).map_err(|error| format!("{error:?}"))?;
        black_box(head.readdressed(&message, b"7", &[]));
    }
    Ok(())
}

/// Searches for tools in five servers.
fn search(times: u32) -> Outcome<()> {
    let table = EmbeddingTable::read(TABLE).ok_or("the embedding table cannot be read")?;
    let tools = tools()?;
    let listed: Vec<(String, &Tool)> = (0..SERVERS)
        .flat_map(|server| tools.iter().map(move |tool| (format!("s{server:02}"), tool)))
        .collect();
    let listed: Vec<(&str, &Tool)> = listed.iter().map(|(server, tool)| (server.as_str(), *tool)).collect();
    let engine = Engine::build(&listed, Some(Arc::new(table)));
    for _ in 0..times {
        black_box(engine.search(black_box("which ships were inspected at the quay"), 5, None));
    }
    Ok(())
}

/// Checks the arguments of a call against a schema of about 1 KB.
fn check(times: u32) -> Outcome<()> {
    let tools = tools()?;
    let tool = tools.iter().find(|tool| tool.name == LEDGER_TOOL).ok_or("no such tool")?;
    let schema = CompiledSchema::new(tool.raw("inputSchema").ok_or("no schema")?);
    let given = ledger_arguments(1_000).to_string();
    for _ in 0..times {
        let checked = arguments::check(&schema, black_box(given.as_bytes()), arguments::Mode::CheckOnly);
        black_box(checked.map_err(|_| "the arguments are refused")?);
    }
    Ok(())
}

/// The message that a stream gives once `line` has been read from it.
fn framed(framer: &mut Framer, line: &[u8]) -> Outcome<Bytes> {
    framer.buffer().extend_from_slice(line);
    framer.buffer().extend_from_slice(b"\n");
    framer.filled(line.len() + 1);
    match framer.take() {
        Some(Incoming::Message(message)) => Ok(message),
        other => Err(format!("not a message: {other:?}").into()),
    }
}

fn snapshot() -> Outcome<Snapshot> {
    let mut catalog = Catalog::default();
    for server in 0..SERVERS {
        let offer = Arc::new(Offer::new(Era::Legacy, None, None, tools()?));
        let name = ServerName::parse(&format!("s{server:02}")).map_err(|_| "no name of a server")?;
        catalog = catalog.apply(Change::Listed(name, offer));
    }
    let layout = Layout { mode: Some(Mode::All), name_limit: 64, ..Layout::default() };
    Ok(Snapshot::new(Arc::new(catalog), Arc::new(layout), true))
}

fn tools() -> Outcome<Vec<Tool>> {
    let definitions = definitions();
    let definitions = definitions.as_array().into_iter().flatten();
    let tools = definitions.map(|one| Tool::parse(Bytes::from(one.to_string())).ok_or("no tool"));
    Ok(tools.collect::<Result<_, _>>()?)
}
