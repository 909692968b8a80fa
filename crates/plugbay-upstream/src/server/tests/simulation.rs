//! Random schedules of calls, answers, crashes, cancellations, timeouts, progress and reloads. Every
//! call ends exactly once, by its own answer, and no server gets a call twice.

use std::{
    collections::{BTreeMap, HashMap},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, atomic::Ordering::Relaxed},
    time::Duration,
};

use plugbay_core::{
    era::Era,
    exchange::{Servers, Ticket},
    failure::Failure,
    name::ServerName,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    MINUTE, SECOND,
    harness::{Calls, Scripted, cancellation, spec},
    peer::{Peer, page},
};
use crate::{
    Observers, Pool, ServerContext, ServerHandle, ServerSet, Starts,
    link::{Launched, Launcher},
    spec::{Framing, ServerSpec, Timeouts},
};

const SEEDS: std::ops::Range<u64> = 0..400;
const STEPS: usize = 80;
const SERVERS: [&str; 2] = ["one", "two"];

#[test]
fn every_call_gets_exactly_one_response_whatever_happens() {
    for seed in SEEDS {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| runtime.block_on(schedule(seed))));
        assert!(outcome.is_ok(), "the seed is {seed}");
    }
}

/// A small random generator: the same seed gives the same schedule.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn pause(&mut self, at_most: Duration) -> Duration {
        at_most * u32::try_from(self.roll(1000)).unwrap() / 1000
    }
}

// --- the hosts

async fn schedule(seed: u64) {
    let dice = &mut Dice(seed);
    let stage = Stage::new(dice);
    let calls = Arc::new(Calls::default());
    let mut made: Vec<(ServerName, Ticket)> = Vec::new();
    let mut taken_back: HashMap<Ticket, usize> = HashMap::new();
    for _ in 0..STEPS {
        let server = ServerName::parse(SERVERS[usize::try_from(dice.roll(2)).unwrap()]).unwrap();
        match dice.roll(100) {
            0..60 => {
                let ticket = stage.context.tickets.next();
                let timeout = (dice.roll(4) == 0).then(|| SECOND + dice.pause(20 * SECOND));
                stage.pool.forward(&server, calls.call(ticket, &canary(ticket), timeout));
                made.push((server, ticket));
            }
            60..72 if !made.is_empty() => {
                let (server, ticket) = &made[usize::try_from(dice.roll(made.len() as u64)).unwrap()];
                sleep(SECOND / 1000).await; // a call that is refused at once has been refused by now
                taken_back.entry(*ticket).or_insert_with(|| calls.ends_of(*ticket).len());
                stage.pool.cancel(server, *ticket, cancellation());
            }
            72..90 => sleep(dice.pause(3 * SECOND)).await,
            90..93 => sleep(dice.pause(10 * MINUTE)).await,
            93..96 => stage.pool.servers().handles[&server].refresh(),
            _ => stage.reload(&server, dice).await,
        }
    }
    if dice.roll(3) == 0 {
        for server in SERVERS {
            stage.reload(&ServerName::parse(server).unwrap(), dice).await;
        }
    } else {
        sleep(10 * MINUTE).await; // longer than any call may take
    }
    for (_, ticket) in &made {
        let ends = calls.ends_of(*ticket);
        let expected = taken_back.get(ticket).copied().unwrap_or(1);
        assert_eq!(ends.len(), expected, "{ticket:?}: {ends:?}");
        let foreign = |end: &String| end.contains("canary") && !end.contains(&quoted(*ticket));
        assert!(!ends.iter().any(foreign), "{ticket:?}: {ends:?}");
    }
    let delivered = stage.delivered.lock().unwrap();
    let twice: Vec<_> = delivered.iter().filter(|(_, servers)| servers.len() > 1).collect();
    assert!(twice.is_empty(), "sent twice: {twice:?}");
}

fn canary(ticket: Ticket) -> String {
    format!("canary-{}", ticket.0)
}

fn quoted(ticket: Ticket) -> String {
    format!("\"{}\"", canary(ticket))
}

/// The servers that got each call, over all their lives.
type Delivered = Arc<Mutex<BTreeMap<u64, Vec<ServerName>>>>;

struct Stage {
    pool: Pool,
    context: ServerContext,
    delivered: Delivered,
}

impl Stage {
    fn new(dice: &mut Dice) -> Self {
        let delivered = Delivered::default();
        let (log, seeds) = (Arc::clone(&delivered), Mutex::new(Dice(dice.roll(u64::MAX))));
        let launcher: Launcher = Arc::new(move |name, _| {
            let mut dice = seeds.lock().unwrap();
            if dice.roll(12) == 0 {
                return Err(Failure::new("it is not installed", Vec::new()));
            }
            let capacity = if dice.roll(2) == 0 { 300 } else { 64 * 1024 };
            let (ours, theirs) = tokio::io::duplex(capacity);
            let (dice, log) = (Dice(dice.roll(u64::MAX)), Arc::clone(&log));
            tokio::spawn(Wild::new(name.clone(), dice, log).run(Peer::new(theirs)));
            let (reader, writer) = tokio::io::split(ours);
            Ok(Launched { reader: Box::new(reader), writer: Box::new(writer), process: None })
        });
        let vitals = Scripted::default();
        vitals.uses.store(dice.roll(2), Relaxed);
        // One at a time: a start often waits for another.
        let starts = Starts::with(1, Arc::new(vitals));
        let context =
            ServerContext::new(launcher, Arc::default(), starts, Arc::default(), Observers::default());
        let stage = Self { pool: Pool::default(), context, delivered };
        let running = SERVERS.map(|name| {
            let name = ServerName::parse(name).unwrap();
            (name.clone(), stage.spawn(name, dice))
        });
        stage.pool.replace(ServerSet { handles: running.into(), ..ServerSet::default() });
        stage
    }

    fn spawn(&self, name: ServerName, dice: &mut Dice) -> ServerHandle {
        let (call, call_max) = (10 * SECOND, MINUTE);
        let timeouts = Timeouts { call, call_max, ..Timeouts::default() };
        let known = [None, Some(Era::Legacy), Some(Era::Modern)][usize::try_from(dice.roll(3)).unwrap()];
        let spec = ServerSpec { name, timeouts, ..spec(Framing::Auto) };
        ServerHandle::spawn(spec, known.map(Into::into), self.context.clone())
    }

    /// Replaces a server by another one of the same name, and waits for the end of the old one.
    async fn reload(&self, name: &ServerName, dice: &mut Dice) {
        let mut running = self.pool.servers().handles.clone();
        let old = running.insert(name.clone(), self.spawn(name.clone(), dice)).expect("it was there");
        self.pool.replace(ServerSet { handles: running, ..ServerSet::default() });
        old.stop().await;
    }
}

// --- the servers

/// A server with random properties: quick or slow, modern or legacy, healthy or about to crash.
struct Wild {
    name: ServerName,
    dice: Dice,
    log: Delivered,
    modern: bool,
    /// The messages that it will send, and when.
    plans: BTreeMap<(Instant, usize), String>,
}

impl Wild {
    fn new(name: ServerName, mut dice: Dice, log: Delivered) -> Self {
        let modern = dice.roll(2) == 0;
        Self { name, dice, log, modern, plans: BTreeMap::new() }
    }

    async fn run(mut self, mut peer: Peer) {
        if self.dice.roll(15) == 0 {
            return; // it does not even start
        }
        let slow = self.dice.roll(4) == 0;
        loop {
            let due = self.plans.first_key_value().map(|((at, _), _)| *at);
            tokio::select! {
                biased;
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    let (_, line) = self.plans.pop_first().unwrap();
                    peer.say(line).await;
                }
                message = peer.receive() => {
                    let Some(message) = message else { return };
                    if !self.take(&serde_json::from_str(&message).unwrap()) {
                        return;
                    }
                    if slow {
                        sleep(self.dice.pause(SECOND)).await;
                    }
                }
            }
        }
    }

    /// Handles a message; `false` if the server crashes at it.
    fn take(&mut self, message: &Value) -> bool {
        let id = &message["id"];
        match message["method"].as_str() {
            Some("server/discover") if self.modern => self.open(id),
            Some("server/discover") => match self.dice.roll(3) {
                0 => return false,
                1 => {}
                _ => self.plan(
                    SECOND,
                    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": 1, "message": "?" } }),
                ),
            },
            Some("initialize") => self.open(id),
            Some("tools/list") if self.dice.roll(30) > 0 => self.result(2 * SECOND, id, &page(&["echo"])),
            Some("tools/call") => return self.call(id.as_u64().unwrap(), &message["params"]["name"]),
            _ => {}
        }
        true
    }

    fn open(&mut self, id: &Value) {
        if self.dice.roll(20) > 0 {
            self.result(3 * SECOND, id, &json!({ "capabilities": { "tools": {} } }));
        }
    }

    fn call(&mut self, id: u64, name: &Value) -> bool {
        assert_eq!(*name, canary(Ticket(id)), "the id and the call belong together");
        self.log.lock().unwrap().entry(id).or_default().push(self.name.clone());
        let answer = json!({ "canary": name });
        match self.dice.roll(20) {
            0 => return false,
            1 | 2 => {} // it never answers
            3 => {
                for _ in 0..self.dice.roll(10) {
                    let params = json!({ "progressToken": id, "progress": 1 });
                    self.plan(
                        MINUTE,
                        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }),
                    );
                }
                self.result(2 * MINUTE, &id.into(), &answer);
            }
            4 => {
                self.result(5 * SECOND, &id.into(), &answer);
                self.result(5 * SECOND, &id.into(), &answer);
            }
            5 => self.plan(SECOND, json!({ "id": id, "result": answer })),
            6 => self.plan(SECOND, json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })),
            7 => {
                // It answers a request that another server got.
                let log = self.log.lock().unwrap();
                let foreign = log.iter().filter(|(_, servers)| !servers.contains(&self.name));
                let foreign: Vec<u64> = foreign.map(|(id, _)| *id).collect();
                drop(log);
                for id in foreign {
                    self.result(SECOND, &id.into(), &answer);
                }
            }
            8 => self.result(30 * SECOND, &id.into(), &answer),
            _ => self.result(2 * SECOND, &id.into(), &answer),
        }
        true
    }

    fn result(&mut self, within: Duration, id: &Value, result: &Value) {
        self.plan(within, json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn plan(&mut self, within: Duration, message: Value) {
        let at = Instant::now() + self.dice.pause(within);
        self.plans.insert(
            (at, self.plans.len() + usize::try_from(self.dice.roll(1 << 30)).unwrap()),
            message.to_string(),
        );
    }
}
