//! A route of calls over a [`Link`](super::link::Link), for gateways without a more direct route.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::Outcome;
use crate::answer::{Message, check};
use crate::batch::Done;
use crate::calls::case::Case;
use crate::payload::Payload;
use crate::rivals::link::Received;
use crate::rivals::running::{Rival, Running};
use crate::rounds::OpenRoute;
use crate::sandbox::{Sandbox, Server};

const ANSWER: Duration = Duration::from_secs(60);

pub(crate) struct Linked<'a> {
    running: Running<'a>,
    server: &'static str,
    case: &'a Case,
    payload: &'a Payload,
    /// Dropped after the process.
    _sandbox: Sandbox,
}

impl<'a> Linked<'a> {
    pub(crate) fn open(
        rival: &'a Rival,
        server: &'static str,
        case: &'a Case,
        payload: &'a Payload,
        limit: Duration,
    ) -> Outcome<Self> {
        let sandbox = Sandbox::new()?;
        let mut running = rival.start(&sandbox, &[Server::new(server, [])], limit)?;
        running.call_until_good(server, case.kind.tool(), &json!({ "size": case.size.bytes() }), limit)?;
        Ok(Self { running, server, case, payload, _sandbox: sandbox })
    }

    fn send(&mut self) -> Outcome<(u64, Instant)> {
        let arguments = json!({ "size": self.case.size.bytes() });
        let sent = Instant::now();
        Ok((self.running.ask(self.server, self.case.kind.tool(), &arguments)?, sent))
    }
}

impl OpenRoute for Linked<'_> {
    fn pid(&self) -> u32 {
        self.running.pid()
    }

    fn calls(&mut self, calls: usize, full_check: bool) -> Outcome<Done> {
        let mut done = Done { latencies: Vec::with_capacity(calls), ..Done::default() };
        let mut waiting: Vec<(u64, Instant)> = Vec::new();
        let began = Instant::now();
        let mut unsent = calls;
        while unsent > 0 || !waiting.is_empty() {
            while unsent > 0 && waiting.len() < self.case.in_flight {
                waiting.push(self.send()?);
                unsent -= 1;
            }
            let answer = self.running.link.receive(Instant::now() + ANSWER);
            let Received { message, at } = answer.map_err(|reply| format!("a call: {reply:?}"))?;
            let Message::Answer { id, exact } = check(&message, self.payload, full_check)? else { continue };
            let place = waiting.iter().position(|(waiting, _)| *waiting == id);
            let (_, sent) = waiting.swap_remove(place.ok_or_else(|| format!("an answer to {id}"))?);
            done.latencies.push(at - sent);
            done.rewritten += usize::from(!exact);
        }
        done.elapsed = began.elapsed();
        Ok(done)
    }
}
