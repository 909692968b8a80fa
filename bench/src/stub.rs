//! A deterministic MCP server that costs almost nothing: its answers are built once, and only their id
//! changes.

mod catalogue;
mod faults;
mod http;
mod prebuilt;
mod tools;

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Outcome;
use crate::answer::envelope;
use crate::lines::Lines;
use crate::payload::{IdPlace, Kind};
use crate::pump::unbuffered;
pub(crate) use catalogue::{CHANGE_TOOL, added};
use faults::Faults;
pub(crate) use faults::{CRASH_TOOL, HANG_TOOL, WAIT, WAIT_TOOL};
use prebuilt::Prebuilt;
pub(crate) use tools::{LEDGER_TOOL, definitions, ledger_arguments};

pub(crate) const TOOLS: usize = 20;

/// The option to list [`LEDGER_TOOL`] too.
pub(crate) const LEDGER_OPTION: &str = "--ledger";

/// The option to list tools of a generated catalogue; its value is the number of the server.
pub(crate) const CATALOGUE_OPTION: &str = "--catalogue";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    tools: usize,
    ledger: bool,
    /// The number of the server whose generated tools are listed instead.
    catalogue: Option<u64>,
    start_delay: Duration,
    silent: bool,
    /// Delays and silence apply only while this file exists: the server worked when it last connected.
    when: Option<PathBuf>,
    id_place: IdPlace,
    /// The address to listen at, instead of reading stdin.
    http: Option<String>,
    faults: Faults,
    /// The catalog and the server in it whose tools are listed instead.
    catalog: Option<(PathBuf, String)>,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Outcome<Self> {
        let mut options = Self {
            tools: TOOLS,
            ledger: false,
            catalogue: None,
            start_delay: Duration::ZERO,
            silent: false,
            when: None,
            id_place: IdPlace::First,
            http: None,
            faults: Faults::default(),
            catalog: None,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("stub: {arg} needs a value"));
            match arg.as_str() {
                "--tools" => options.tools = value()?.parse()?,
                LEDGER_OPTION => options.ledger = true,
                CATALOGUE_OPTION => options.catalogue = Some(value()?.parse()?),
                "--start-delay-ms" => options.start_delay = Duration::from_millis(value()?.parse()?),
                "--silent" => options.silent = true,
                "--when" => options.when = Some(PathBuf::from(value()?)),
                "--http" => options.http = Some(value()?.clone()),
                "--id-last" => options.id_place = IdPlace::Last,
                "--faults" => options.faults.tools = true,
                "--garbage" => options.faults.garbage = true,
                "--stay" => options.faults.stay = true,
                "--log" => options.faults.log = Some(PathBuf::from(value()?)),
                "--catalog" => options.catalog = Some((PathBuf::from(value()?), value()?.clone())),
                // A word by which the driver finds its own stubs.
                "--mark" => drop(value()?),
                _ => return Err(format!("stub: unknown argument {arg}").into()),
            }
        }
        Ok(options)
    }

    fn faulty(&self) -> bool {
        self.when.as_ref().is_none_or(|file| file.exists())
    }
}

/// The tools that a stub lists with [`CATALOGUE_OPTION`].
pub(crate) fn catalogue(server: u64, count: usize) -> Value {
    catalogue::list(server, count, 0)
}

pub(crate) fn run(options: &Options) -> Outcome<()> {
    if let Some(address) = &options.http {
        return http::serve(address, options);
    }
    let mut lines = Lines::new(unbuffered(&io::stdin())?);
    let mut out = unbuffered(&io::stdout())?;
    let mut stub = Stub::new(options)?;
    let silent = options.silent && options.faulty();
    if options.faulty() {
        std::thread::sleep(options.start_delay);
    }
    while let Some(line) = lines.next()? {
        options.faults.note(line)?;
        if let (false, Some(answer)) = (silent, stub.answer(line)?) {
            options.faults.write_garbage(&mut out)?;
            out.write_all(answer)?;
        }
    }
    options.faults.stay();
    Ok(())
}

const CHANGED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n";

struct Stub {
    tools: String,
    catalogue: Option<Catalogue>,
    id_place: IdPlace,
    /// Built on first use: fifty idle stubs should not hold 5 MB each.
    prebuilt: HashMap<(Kind, usize), Prebuilt>,
    /// The buffer for an answer that is not worth building beforehand.
    small: Vec<u8>,
}

/// A generated list that grows.
struct Catalogue {
    server: u64,
    count: usize,
    changes: usize,
}

impl Stub {
    fn new(options: &Options) -> Outcome<Self> {
        let catalogue =
            options.catalogue.map(|server| Catalogue { server, count: options.tools, changes: 0 });
        let tools = match (&catalogue, &options.catalog) {
            (Some(Catalogue { server, count, .. }), _) => catalogue::list(*server, *count, 0),
            (None, Some((file, server))) => tools::of_catalog(file, server)?,
            (None, None) => tools::list(options.tools, options.ledger, options.faults.tools),
        };
        Ok(Self {
            tools: tools.to_string(),
            catalogue,
            id_place: options.id_place,
            prebuilt: HashMap::new(),
            small: Vec::new(),
        })
    }

    /// The answer to a message, as a line with its newline; `None` if the message needs no answer.
    fn answer(&mut self, message: &[u8]) -> Outcome<Option<&[u8]>> {
        let fields = envelope(message)?;
        let (Some(id), Some(method)) = (fields.get("id"), fields.get("method")) else { return Ok(None) };
        let (id, params) = (id.get(), fields.get("params").copied());
        let answer = match method.get().trim_matches('"') {
            "tools/call" if faults::strikes(id, params) => return Ok(None),
            "tools/call" => self.call(id, params),
            "tools/list" => {
                let result = format!(r#"{{"tools":{}}}"#, self.tools);
                self.result(id, &result)
            }
            "initialize" => self.result(id, &initialize(params).to_string()),
            "ping" => self.result(id, "{}"),
            _ => self.error(id, -32601, "method not found"),
        };
        Ok(Some(answer))
    }

    fn call(&mut self, id: &str, params: Option<&RawValue>) -> &[u8] {
        if params.is_some_and(|params| params.get().contains(CHANGE_TOOL)) && self.catalogue.is_some() {
            return self.change(id);
        }
        let Some((kind, size)) = params.and_then(parse_call) else {
            return self.error(id, -32602, "no such tool, or no size");
        };
        let id_place = self.id_place;
        let prebuilt =
            self.prebuilt.entry((kind, size)).or_insert_with(|| Prebuilt::new(kind, size, id_place));
        prebuilt.with(id)
    }

    /// Lists one more tool, and announces it after the answer.
    fn change(&mut self, id: &str) -> &[u8] {
        if let Some(catalogue) = &mut self.catalogue {
            catalogue.changes += 1;
            let Catalogue { server, count, changes } = catalogue;
            self.tools = catalogue::list(*server, *count, *changes).to_string();
        }
        self.result(id, r#"{"content":[{"type":"text","text":"changed"}]}"#);
        self.small.extend_from_slice(CHANGED);
        &self.small
    }

    fn result(&mut self, id: &str, result: &str) -> &[u8] {
        self.small = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").into_bytes();
        &self.small
    }

    fn error(&mut self, id: &str, code: i32, message: &str) -> &[u8] {
        let error = json!({ "code": code, "message": message });
        self.small = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n").into_bytes();
        &self.small
    }
}

fn parse_call(params: &RawValue) -> Option<(Kind, usize)> {
    let params = envelope(params.get().as_bytes()).ok()?;
    let kind = tools::kind(params.get("name")?.get().trim_matches('"'))?;
    let arguments = envelope(params.get("arguments")?.get().as_bytes()).ok()?;
    Some((kind, arguments.get("size")?.get().parse().ok()?))
}

fn initialize(params: Option<&RawValue>) -> Value {
    const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    let params: Value = params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let version = LEGACY.into_iter().find(|version| *version == asked).unwrap_or("2025-06-18");
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": { "listChanged": true } },
        "serverInfo": { "name": "stub", "version": "1.0.0" },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed() {
        let parse = |line: &str| Options::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let options = parse("--tools 3 --start-delay-ms 50 --silent").unwrap();
        assert_eq!((options.tools, options.start_delay.as_millis(), options.silent), (3, 50, true));
        assert!(parse("--tools").is_err());
        assert!(parse("--loud").is_err());
    }
}
