//! Many calls over a fixed number of connections, each answer checked.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Pid;

use crate::Outcome;
use crate::answer::{Message, check};
use crate::batch::Done;
use crate::http::client::Connection;
use crate::payload::Payload;
use crate::watchdog::guarded;

/// Time limit for a whole batch; a lost answer would need for ever.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Batch<'a> {
    /// The `params` of the call.
    pub(crate) params: &'a str,
    pub(crate) expected: &'a Payload,
    pub(crate) calls: usize,
    /// Whether every byte of the answers is compared, not only their lengths and ends.
    pub(crate) full_check: bool,
}

impl Batch<'_> {
    /// Runs the batch. `group` is killed if it keeps us waiting.
    pub(crate) fn run(&self, connections: &mut [Connection], group: Pid) -> Outcome<Done> {
        guarded(group, LIMIT, || match connections {
            [one] => self.one_by_one(one),
            many => self.at_once(many),
        })
    }

    /// The bare path: one write, and as many reads as the answer needs.
    fn one_by_one(&self, connection: &mut Connection) -> Outcome<Done> {
        let mut done = Done { latencies: Vec::with_capacity(self.calls), ..Done::default() };
        let mut body = String::new();
        let began = Instant::now();
        for number in 0..self.calls {
            self.write_call(number, &mut body)?;
            let sent = Instant::now();
            connection.send(&body)?;
            let answer = connection.receive()?;
            done.latencies.push(sent.elapsed());
            done.rewritten += usize::from(!self.is_exact(answer, number)?);
        }
        done.elapsed = began.elapsed();
        Ok(done)
    }

    /// Uses one thread for all connections: more threads would disturb the measured processes.
    fn at_once(&self, connections: &mut [Connection]) -> Outcome<Done> {
        let mut done = Done { latencies: Vec::with_capacity(self.calls), ..Done::default() };
        let mut body = String::new();
        let mut unsent = 0..self.calls;
        // For the index of each connection: the call on it, and when it was sent.
        let mut waiting: HashMap<usize, (usize, Instant)> = HashMap::new();

        let began = Instant::now();
        for (place, number) in (0..connections.len()).zip(unsent.by_ref()) {
            self.send(&mut connections[place], number, &mut body)?;
            waiting.insert(place, (number, Instant::now()));
        }
        while !waiting.is_empty() {
            for place in readable(connections)? {
                let Some((number, sent)) = waiting.get(&place).copied() else { continue };
                let Some(answer) = connections[place].receive_some()? else { continue };
                done.latencies.push(sent.elapsed());
                done.rewritten += usize::from(!self.is_exact(answer, number)?);
                waiting.remove(&place);
                if let Some(number) = unsent.next() {
                    self.send(&mut connections[place], number, &mut body)?;
                    waiting.insert(place, (number, Instant::now()));
                }
            }
        }
        done.elapsed = began.elapsed();
        Ok(done)
    }

    fn send(&self, connection: &mut Connection, number: usize, body: &mut String) -> Outcome<()> {
        self.write_call(number, body)?;
        connection.send(body)
    }

    fn write_call(&self, number: usize, body: &mut String) -> Outcome<()> {
        let params = self.params;
        body.clear();
        write!(body, r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{params}}}"#)?;
        Ok(())
    }

    fn is_exact(&self, answer: &[u8], number: usize) -> Outcome<bool> {
        match check(answer, self.expected, self.full_check)? {
            Message::Answer { id, exact } if usize::try_from(id) == Ok(number) => Ok(exact),
            other => Err(format!("{other:?} is no answer to call {number}").into()),
        }
    }
}

/// The indexes of connections that can be read.
fn readable(connections: &[Connection]) -> Outcome<Vec<usize>> {
    let mut fds: Vec<PollFd<'_>> =
        connections.iter().map(|one| PollFd::new(&one.stream, PollFlags::IN)).collect();
    poll(&mut fds, None)?;
    Ok(fds.iter().enumerate().filter(|(_, fd)| !fd.revents().is_empty()).map(|(place, _)| place).collect())
}
