//! A hostile server: it lists and answers the bytes in its folder, unread and unchecked.
//!
//! `tools.json` is the array of its tools, read at each list; `pages` how often that page is listed; `TOOL.answer` the line that
//! answers a call, with `%ID%` for the id; `TOOL.before` what is sent ahead of it, `TOOL.after` what follows `after_times`. The call of `next` announces another list.
//! `deaf`, `setsid` and `flood` make it misbehave once it has been initialized.

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

/// Makes the folder of a server.
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
        let answered = match method {
            "initialize" => {
                let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"stub","version":"0"}}"#;
                say(&mut out, &result_line(&id, result))
            }
            "notifications/initialized" => {
                misbehave(folder, &mut out);
                Ok(())
            }
            "tools/list" => say(&mut out, &result_line(&id, &page(folder, &message["params"]["cursor"]))),
            "tools/call" => {
                call(folder, &mut out, &id, message["params"]["name"].as_str().unwrap_or_default())
            }
            _ if message["id"].is_null() => Ok(()),
            "ping" => say(&mut out, &result_line(&id, "{}")),
            _ => say(
                &mut out,
                &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#),
            ),
        };
        if answered.is_err() {
            return;
        }
    }
}

fn page(folder: &Path, cursor: &Value) -> String {
    let tools = fs::read_to_string(folder.join("tools.json")).unwrap_or_else(|_| TOOLS.to_owned());
    let pages: u64 = read(folder, "pages").and_then(|text| text.parse().ok()).unwrap_or(1);
    let at: u64 = cursor.as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let tools = tools.replace("%PAGE%", &at.to_string());
    let next = if at + 1 < pages { format!(r#","nextCursor":"{}""#, at + 1) } else { String::new() };
    format!(r#"{{"tools":{tools}{next}}}"#)
}

fn call(folder: &Path, out: &mut impl Write, id: &str, tool: &str) -> std::io::Result<()> {
    if tool == "next" {
        say(out, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)?;
    }
    if let Ok(before) = fs::read(folder.join(format!("{tool}.before"))) {
        out.write_all(&before)?;
        out.flush()?;
    }
    match fs::read(folder.join(format!("{tool}.answer"))) {
        Ok(answer) => {
            let parts: Vec<&[u8]> = split(&answer, b"%ID%");
            out.write_all(&parts.join(id.as_bytes()))?;
            out.write_all(b"\n")?;
            out.flush()?;
        }
        Err(_) => say(out, &result_line(id, r#"{"content":[{"type":"text","text":"ok"}]}"#))?,
    }
    for _ in 0..read(folder, "after_times").and_then(|text| text.parse().ok()).unwrap_or(0) {
        out.write_all(&fs::read(folder.join(format!("{tool}.after")))?)?;
        out.flush()?;
    }
    Ok(())
}

fn misbehave(folder: &Path, out: &mut impl Write) {
    if folder.join("setsid").exists() {
        // Leaves the process group and forgets where it came from; its name is all that is left.
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

fn split<'a>(bytes: &'a [u8], at: &[u8]) -> Vec<&'a [u8]> {
    let (mut parts, mut rest) = (Vec::new(), bytes);
    while let Some(found) = rest.windows(at.len()).position(|window| window == at) {
        parts.push(&rest[..found]);
        rest = &rest[found + at.len()..];
    }
    parts.push(rest);
    parts
}
