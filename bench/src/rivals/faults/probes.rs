//! The faults, one by one.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{FAULTY, SOON, SOUND, answers, started};
use crate::Outcome;
use crate::payload::Kind;
use crate::process::{marked_stubs, megabytes};
use crate::rivals::link::Reply;
use crate::rivals::running::{Rival, Running};
use crate::sandbox::{Sandbox, Server};
use crate::stats::millis;
use crate::stub::{CRASH_TOOL, HANG_TOOL};

/// Time limit for the answer to a call of a dead or silent server.
const WAIT: Duration = Duration::from_secs(6);
const RECOVERY: Duration = Duration::from_secs(6);
const LARGE: usize = 50_000_000;

/// Time that gateways get to end their servers.
const ENDING: Duration = Duration::from_secs(3);

/// Probe: a server's process ends in the middle of a call.
pub(super) fn crash(rival: &Rival) -> Outcome<Value> {
    let sandbox = Sandbox::new()?;
    let mut running = started(rival, &sandbox, &[])?;
    let began = Instant::now();
    let reply = running.call(FAULTY, CRASH_TOOL, &json!({}), WAIT);
    let answered_ms = reply.is_answer().then(|| millis(began.elapsed()));
    let others = others(rival, &mut running);
    let began = Instant::now();
    let mut recovers_ms = None;
    while recovers_ms.is_none() && began.elapsed() < RECOVERY && !running.has_ended() {
        if answers(&mut running, FAULTY) {
            recovers_ms = Some(millis(began.elapsed()));
        } else {
            thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(json!({ "answered_ms": answered_ms, "others_answer": others, "recovers_ms": recovers_ms }))
}

/// Probe: a server writes lines that are not messages.
pub(super) fn garbage(rival: &Rival) -> Outcome<Value> {
    let sandbox = Sandbox::new()?;
    let Ok(mut running) = started(rival, &sandbox, &["--garbage"]) else {
        return Ok(json!({ "answers": false }));
    };
    Ok(json!({ "answers": answers(&mut running, FAULTY) }))
}

/// Probe: a server never answers a call.
pub(super) fn hang(rival: &Rival) -> Outcome<Value> {
    let sandbox = Sandbox::new()?;
    let mut running = started(rival, &sandbox, &[])?;
    let began = Instant::now();
    let id = running.ask(FAULTY, HANG_TOOL, &json!({}))?;
    let same = answers(&mut running, FAULTY);
    let others = others(rival, &mut running);
    let reply = running.link.answer_to(id, WAIT.saturating_sub(began.elapsed()));
    let answered_ms = reply.is_answer().then(|| millis(began.elapsed()));
    Ok(json!({
        "same_server_answers": same,
        "others_answer": others,
        "answered_ms": answered_ms,
        "waited_s": WAIT.as_secs(),
    }))
}

/// Probe: the host cancels a call.
pub(super) fn cancel(rival: &Rival) -> Outcome<Value> {
    let sandbox = Sandbox::new()?;
    let log = sandbox.path("log.txt");
    let mut running = started(rival, &sandbox, &["--log", &log.display().to_string()])?;
    let id = running.ask(FAULTY, HANG_TOOL, &json!({}))?;
    thread::sleep(Duration::from_millis(300));
    let note =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    running.link.send(&note.to_string())?;
    let arrived = within(Duration::from_secs(2), || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("notifications/cancelled"))
    });
    Ok(json!({ "reaches_the_server": arrived }))
}

/// Probe: ids too large for the numbers of most languages must come back unchanged.
pub(super) fn ids(rival: &Rival) -> Outcome<Value> {
    let sandbox = Sandbox::new()?;
    let mut results = json!({});
    let mut running = started(rival, &sandbox, &[])?;
    for (name, id) in [("2^53+1", "9007199254740993"), ("2^64", "18446744073709551616"), ("text", "\"a b\"")]
    {
        if running.has_ended() {
            running = started(rival, &sandbox, &[])?;
        }
        let params = running.params(FAULTY, Kind::Text.tool(), &json!({ "size": 10 }));
        running
            .link
            .send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#))?;
        results[name] = Value::from(match running.link.receive(Instant::now() + SOON) {
            Ok(received) if id_of(&received.message).as_deref() == Some(id) => "same",
            Ok(received) if id_of(&received.message).is_some_and(|other| other != "null") => "changed",
            Ok(_) => "refused",
            Err(_) => "no answer",
        });
    }
    Ok(results)
}

/// Probe: the host sends half a message.
pub(super) fn malformed(rival: &Rival) -> Outcome<Value> {
    let sandbox = Sandbox::new()?;
    let mut running = started(rival, &sandbox, &[])?;
    running.link.send(r#"{"jsonrpc":"2.0","id":77,"method":"#)?;
    let answer = match running.link.receive(Instant::now() + Duration::from_secs(2)) {
        Ok(received) => {
            let message: Value = serde_json::from_slice(&received.message).unwrap_or_default();
            message["error"]["code"].as_i64().map_or_else(|| "other".to_owned(), |code| code.to_string())
        }
        Err(Reply::Closed) => "it ends".to_owned(),
        Err(_) => "none".to_owned(),
    };
    Ok(json!({ "answer": answer, "goes_on": answers(&mut running, FAULTY) }))
}

/// Probe: a result of 50 MB.
pub(super) fn large(rival: &Rival) -> Outcome<Value> {
    let sandbox = Sandbox::new()?;
    let mut running = started(rival, &sandbox, &[])?;
    let began = Instant::now();
    let reply = running.call(FAULTY, Kind::Text.tool(), &json!({ "size": LARGE }), Duration::from_secs(15));
    let whole = matches!(&reply, Reply::Result(result) if result.to_string().len() > LARGE);
    let took_ms = whole.then(|| millis(began.elapsed()));
    let peak = megabytes(running.family().memory().peak);
    let answer = if whole { None } else { reply.good().err().map(|error| error.to_string()) };
    let goes_on = answers(&mut running, FAULTY);
    let result = json!({
        "arrives": whole,
        "answer": answer,
        "took_ms": took_ms,
        "peak_mb": peak,
        "goes_on": goes_on,
    });
    Ok(result)
}

/// Probe: the gateway is killed. How many of four servers survive? One of them ignores the end of its stdin.
pub(super) fn killed(rival: &Rival) -> Outcome<Value> {
    left(rival, End::Killed)
}

/// Probe: the same, but the host closes regularly.
pub(super) fn closed(rival: &Rival) -> Outcome<Value> {
    left(rival, End::Closed)
}

/// The way in which a gateway ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Killed,
    Closed,
}

fn left(rival: &Rival, end: End) -> Outcome<Value> {
    let sandbox = Sandbox::new()?;
    let mark = sandbox.path("mark").display().to_string();
    let count = 4.min(rival.about.servers);
    let args = |number| {
        let stay = (number == 1).then(|| "--stay".to_owned());
        ["--mark".to_owned(), mark.clone()].into_iter().chain(stay)
    };
    let servers: Vec<Server> =
        (1..=count).map(|number| Server::new(format!("s{number:02}"), args(number))).collect();
    let mut running = rival.start(&sandbox, &servers, Duration::from_secs(30))?;
    for server in &servers {
        let limit = Duration::from_secs(30);
        running.call_until_good(&server.name, Kind::Text.tool(), &json!({ "size": 10 }), limit)?;
    }
    match end {
        End::Killed => running.kill()?,
        End::Closed => drop(running.close()),
    }
    within(ENDING, || marked_stubs(&mark).is_empty());
    let orphans = marked_stubs(&mark);
    for orphan in &orphans {
        let pid = rustix::process::Pid::from_raw((*orphan).cast_signed());
        pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
    }
    Ok(json!({ "servers": count, "left": orphans.len() }))
}

/// Whether the server without a fault answers; `None` if there is none.
fn others(rival: &Rival, running: &mut Running<'_>) -> Option<bool> {
    (rival.about.servers > 1).then(|| answers(running, SOUND))
}

fn within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if began.elapsed() > limit {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The id of an answer, as raw JSON.
fn id_of(message: &[u8]) -> Option<String> {
    Some(crate::answer::envelope(message).ok()?.get("id")?.get().to_owned())
}
