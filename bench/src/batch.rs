//! Many calls, a fixed number of them in flight, each answer checked.

use std::collections::VecDeque;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::answer::{Message, check};
use crate::host::Host;
use crate::payload::Payload;
use crate::watchdog::guarded;

/// Time limit for a whole batch; the slowest gateways need seconds, and a lost answer would need for ever.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Batch<'a> {
    /// The `params` of the calls, sent in turn.
    pub(crate) params: &'a [String],
    pub(crate) expected: &'a Payload,
    pub(crate) calls: usize,
    pub(crate) in_flight: usize,
    /// Whether every byte of the answers is compared, not only their lengths and ends.
    pub(crate) full_check: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) latencies: Vec<Duration>,
    pub(crate) elapsed: Duration,
    /// Answers that were not byte for byte the stub's.
    pub(crate) rewritten: usize,
}

impl Batch<'_> {
    pub(crate) fn run(&self, host: &mut Host) -> Outcome<Done> {
        guarded(host.group(), LIMIT, || self.drive(host))
    }

    /// Runs the batch. All requests in flight fit into a pipe together, so one thread can write and then
    /// read.
    fn drive(&self, host: &mut Host) -> Outcome<Done> {
        let mut done = Done { latencies: Vec::with_capacity(self.calls), ..Done::default() };
        let mut waiting = VecDeque::with_capacity(self.in_flight);
        let mut line = Vec::with_capacity(256);
        let mut unsent = 0..self.calls;

        let began = Instant::now();
        for number in unsent.by_ref().take(self.in_flight) {
            waiting.push_back(self.send(host, number, &mut line)?);
        }
        while !waiting.is_empty() {
            let received = host.receive()?;
            let now = Instant::now();
            match check(received, self.expected, self.full_check)? {
                Message::Other => {
                    let received = received.to_vec();
                    host.answer(&received)?;
                }
                Message::Answer { id, exact } => {
                    // Mostly it is the oldest. An unknown or repeated id is not found.
                    let place = waiting.iter().position(|(waiting, _)| *waiting == id);
                    let (_, sent) = place
                        .and_then(|place| waiting.remove(place))
                        .ok_or_else(|| format!("an answer to {id}, which is not in flight"))?;
                    done.latencies.push(now - sent);
                    done.rewritten += usize::from(!exact);
                    if let Some(number) = unsent.next() {
                        waiting.push_back(self.send(host, number, &mut line)?);
                    }
                }
            }
        }
        done.elapsed = began.elapsed();
        Ok(done)
    }

    fn send(&self, host: &mut Host, number: usize, line: &mut Vec<u8>) -> Outcome<(u64, Instant)> {
        let id = host.take_id();
        let params = &self.params[number % self.params.len()];
        line.clear();
        writeln!(line, r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)?;
        let sent = Instant::now();
        host.send(line)?;
        Ok((id, sent))
    }
}
