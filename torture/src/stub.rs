//! A hostile server: it sends the bytes in its folder as lists and answers, unread and unchecked.
//!
//! - `METHOD.answer` is the line that answers a request of this method, with `_` for `/` and `%ID%` for the
//!   id.
//! - `tools.json` is the array of its tools, read at each list; `pages` is how often that page is listed.
//! - `TOOL.answer` is the line that answers a call, and `TOOL.before` the bytes before it.
//! - `TOOL.after` is sent after the answer, `after_times` times, and then a line is written to `done`.
//! - `deaf`, `setsid` and `flood` make it misbehave once it is initialized; `modern` lets it speak the modern
//!   era.
//!
//! A call of `next…` announces new lists.

use std::{
    fs,
    io::{BufRead, Read, Write},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

pub(crate) const FLAG: &str = "stub";

const TOOLS: &str =
    r#"[{"name":"next","inputSchema":{"type":"object"}},{"name":"raw","inputSchema":{"type":"object"}}]"#;
/// Its capabilities and name, in either era.
const ABOUT: &str = r#""capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{}},"serverInfo":{"name":"stub","version":"0"}"#;

/// Creates the folder of a server.
pub(crate) fn write(folder: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(folder).expect("the folder of a server");
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("a file of a server");
    }
}

/// Serves on stdio until the input ends.
pub(crate) fn run(folder: &str) {
    let folder = Path::new(folder);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let (method, id) = (message["method"].as_str().unwrap_or_default(), message["id"].to_string());
        if method == "notifications/initialized" {
            misbehave(folder, &mut out);
        }
        if message["id"].is_null() {
            continue;
        }
        if answer(folder, &mut out, method, &id, &message["params"]).is_err() {
            return;
        }
    }
}

fn answer(
    folder: &Path,
    out: &mut impl Write,
    method: &str,
    id: &str,
    params: &Value,
) -> std::io::Result<()> {
    if let Ok(line) = fs::read(folder.join(format!("{}.answer", method.replace('/', "_")))) {
        return say_as(out, &line, id);
    }
    let result = match method {
        "initialize" => format!(r#"{{"protocolVersion":"2025-11-25",{ABOUT}}}"#),
        "server/discover" if folder.join("modern").exists() => {
            format!(r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],{ABOUT}}}"#)
        }
        "tools/list" => page(folder, &params["cursor"]),
        "prompts/list" => r#"{"prompts":[{"name":"p"}]}"#.to_owned(),
        "resources/list" => r#"{"resources":[{"uri":"stub://r","name":"r"}]}"#.to_owned(),
        "resources/templates/list" => r#"{"resourceTemplates":[]}"#.to_owned(),
        "ping" | "resources/subscribe" | "logging/setLevel" => "{}".to_owned(),
        "tools/call" => return call(folder, out, id, params["name"].as_str().unwrap_or_default()),
        _ => {
            return say(
                out,
                &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#),
            );
        }
    };
    say(out, &result_line(id, &result))
}

fn page(folder: &Path, cursor: &Value) -> String {
    let tools = fs::read_to_string(folder.join("tools.json")).unwrap_or_else(|_| TOOLS.to_owned());
    let pages: u64 = read(folder, "pages").and_then(|text| text.parse().ok()).unwrap_or(1);
    let at: u64 = cursor.as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let tools = if pages > 1 { tools.replace("%PAGE%", &at.to_string()) } else { tools };
    let next = if at + 1 < pages { format!(r#","nextCursor":"{}""#, at + 1) } else { String::new() };
    format!(r#"{{"resultType":"complete","tools":{tools}{next}}}"#)
}

fn call(folder: &Path, out: &mut impl Write, id: &str, tool: &str) -> std::io::Result<()> {
    if tool.starts_with("next") {
        for list in ["tools", "prompts", "resources"] {
            say(out, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#))?;
        }
    }
    if let Ok(before) = fs::read(folder.join(format!("{tool}.before"))) {
        out.write_all(&before)?;
        out.flush()?;
    }
    match fs::read(folder.join(format!("{tool}.answer"))) {
        Ok(answer) => say_as(out, &answer, id)?,
        Err(_) => say(
            out,
            &result_line(id, r#"{"resultType":"complete","content":[{"type":"text","text":"ok"}]}"#),
        )?,
    }
    if let Ok(after) = fs::read(folder.join(format!("{tool}.after"))) {
        let times = read(folder, "after_times").and_then(|text| text.parse().ok()).unwrap_or(1);
        for _ in 0..times {
            out.write_all(&after)?;
            out.flush()?;
        }
        let mut done = fs::File::options().create(true).append(true).open(folder.join("done"))?;
        done.write_all(b"done\n")?;
    }
    Ok(())
}

fn misbehave(folder: &Path, out: &mut impl Write) {
    if folder.join("setsid").exists() {
        // The child leaves the process group and clears its environment; only its name shows its origin.
        let child = Command::new("setsid")
            .args(["-f", "env", "-i", "sh", "-c", "while :; do /bin/sleep 1; done", "sh"])
            .arg(folder.join("child"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let _ = child;
    }
    if let Some(line) = read(folder, "flood") {
        let times: usize = read(folder, "flood_times").and_then(|text| text.parse().ok()).unwrap_or(1);
        for _ in 0..times {
            if say(out, &line).is_err() {
                return;
            }
        }
    }
    if folder.join("deaf").exists() {
        loop {
            std::thread::park();
        }
    }
}

fn read(folder: &Path, name: &str) -> Option<String> {
    let mut text = String::new();
    fs::File::open(folder.join(name)).ok()?.read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned())
}

fn result_line(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn say(out: &mut impl Write, line: &str) -> std::io::Result<()> {
    writeln!(out, "{line}").and_then(|()| out.flush())
}

/// Sends a line in which the first `%ID%` is replaced by the id.
fn say_as(out: &mut impl Write, line: &[u8], id: &str) -> std::io::Result<()> {
    const MARK: &[u8] = b"%ID%";
    let found = line.windows(MARK.len()).position(|window| window == MARK);
    let (head, rest) = found.map_or((line, &[][..]), |at| (&line[..at], &line[at + MARK.len()..]));
    out.write_all(head)?;
    if found.is_some() {
        out.write_all(id.as_bytes())?;
    }
    out.write_all(rest)?;
    out.write_all(b"\n").and_then(|()| out.flush())
}
