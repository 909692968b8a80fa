//! A running script: the conversation with its process.
//!
//! [`Run`] is driven by the caller that waits for the next event: nothing is read or written otherwise, so a
//! busy gateway makes the script wait. Time counts only while a caller waits for the script and the script
//! does not wait for answers.

mod conversation;
mod pipes;

use std::{
    mem,
    time::{Duration, Instant},
};

use tokio::{sync::OwnedSemaphorePermit, time::timeout};

pub use self::conversation::Conversation;
use self::pipes::Pipes;
use super::{Limits, Process, Sandbox, SandboxFailure};
use crate::{
    code::{Answer, CODE, CodeFailure, Event, Reach, RunLimits, Script},
    protocol::{self, Answered, Code, Confinement, Frame, Job, Nonsense, Request},
};

/// Time after its limit at which a script is killed, if it has not ended by itself.
const GRACE: Duration = Duration::from_millis(100);

/// Time for a process to begin: to start, and to read the script and its input.
const START: Duration = Duration::from_secs(20);

/// Time after its limit at which the system ends a script: nobody else would, if the gateway is killed.
const CPU_GRACE: u64 = 2;

/// A running script. Dropping it ends its process.
#[derive(Debug)]
pub struct Run {
    sandbox: Sandbox,
    process: Option<(Process, OwnedSemaphorePermit)>,
    pipes: Pipes,
    limits: RunLimits,
    conversation: Conversation,
    /// How it ended.
    end: Option<Event>,
    computed: Duration,
    has_refilled: bool,
}

impl Sandbox {
    /// Starts a script when its turn comes. It waits for its turn at most as long as the script may compute.
    pub async fn code(&self, script: Script, limits: RunLimits) -> Result<Run, CodeFailure> {
        let Script { code, input, seed, now } = script;
        if code.len() > CODE {
            return Err(CodeFailure::TooLong);
        }
        let compute = u64::try_from(limits.compute.as_millis()).unwrap_or(u64::MAX);
        let job = Job::Code(Code { code, input, seed, now, calls: limits.calls, compute });
        self.start(job, limits).await
    }

    /// The tools that a script names literally, without running it.
    pub async fn reach(&self, code: &str) -> Result<Reach, CodeFailure> {
        if code.len() > CODE {
            return Err(CodeFailure::TooLong);
        }
        let limits = RunLimits { calls: 0, ..RunLimits::default() };
        let mut run = self.start(Job::Reach { code: code.to_owned() }, limits).await?;
        match run.next().await {
            Event::Done(parts) => reached(&parts).ok_or_else(nonsense),
            Event::Failed(failure) => Err(failure),
            _ => Err(nonsense()),
        }
    }

    async fn start(&self, job: Job, limits: RunLimits) -> Result<Run, CodeFailure> {
        let turns = if matches!(job, Job::Code(_)) { &self.runs } else { &self.turns };
        let Ok(Ok(turn)) = timeout(limits.compute, turns.clone().acquire_owned()).await else {
            return Err(CodeFailure::Busy);
        };
        let failed = |failure| CodeFailure::from(failure, limits);
        let mut process = self.process().map_err(failed)?;
        let pipes = process.pipes().ok_or_else(nonsense)?;
        let cpu = limits.compute.as_secs().saturating_add(CPU_GRACE);
        let request = Request { memory: limits.memory, cpu, output: limits.output as u64, job };
        let mut run = Run::new(self.clone(), (process, turn), Pipes::new(pipes, request), limits);
        if timeout(START, run.begin()).await.is_err() {
            let reason = "the program does not answer".to_owned();
            run.end(Event::Failed(CodeFailure::Unavailable(reason)));
        }
        match &run.end {
            Some(Event::Failed(failure)) => Err(failure.clone()),
            _ => Ok(run),
        }
    }
}

impl Run {
    fn new(
        sandbox: Sandbox,
        process: (Process, OwnedSemaphorePermit),
        pipes: Pipes,
        limits: RunLimits,
    ) -> Self {
        Self {
            sandbox,
            process: Some(process),
            pipes,
            limits,
            conversation: Conversation::new(limits),
            end: None,
            computed: Duration::ZERO,
            has_refilled: false,
        }
    }

    /// The next action of the script. Also writes queued answers. Cancel-safe. After the end it returns the
    /// end again.
    pub async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = &self.end {
                return event.clone();
            }
            while let Some(frame) = self.pipes.frame() {
                if let Some(event) = self.receive(frame) {
                    return event;
                }
            }
            self.exchange().await;
        }
    }

    /// Queues an answer. It is written while a caller waits for the next action.
    pub fn answer(&mut self, number: u32, answer: Answer) {
        if self.end.is_some() {
            return;
        }
        self.conversation.answer();
        self.pipes.queue(Answered { number, answer }.encode());
    }

    /// How the process is confined.
    pub fn confinement(&self) -> Confinement {
        self.conversation.confinement().unwrap_or_default()
    }

    /// Waits until the process is confined and has read the script.
    async fn begin(&mut self) {
        while self.conversation.confinement().is_none() && self.end.is_none() {
            match self.pipes.frame() {
                Some(frame) => drop(self.receive(frame)),
                None if self.pipes.exchange().await => {}
                None => self.die().await,
            }
        }
    }

    /// Moves bytes in both directions, until some have come or the time has passed.
    async fn exchange(&mut self) {
        let left = (self.limits.compute + GRACE).saturating_sub(self.computed);
        let moved = if self.conversation.is_waiting() {
            Ok(self.pipes.exchange().await)
        } else {
            let _ticking = Ticking { since: Instant::now(), computed: &mut self.computed };
            timeout(left, self.pipes.exchange()).await
        };
        match moved {
            Ok(true) => {}
            Ok(false) => self.die().await,
            Err(_) => self.end(Event::Failed(CodeFailure::TooSlow(self.limits.compute))),
        }
    }

    /// The event in a frame, if it is one.
    fn receive(&mut self, frame: Result<Frame, Nonsense>) -> Option<Event> {
        let event = self.conversation.receive(frame)?;
        match event {
            Event::Done(_) | Event::Failed(_) => self.end(event.clone()),
            Event::Waiting => self.refill(),
            Event::Call(_) | Event::Text(_) => {}
        }
        Some(event)
    }

    /// Handles the end of the process's pipe.
    async fn die(&mut self) {
        let RunLimits { compute, memory, output, .. } = self.limits;
        let mut was_silent = false;
        let failure = match &mut self.process {
            Some((process, _)) => {
                let limits = Limits { deadline: compute, memory, output };
                let words = self.pipes.last_words().await;
                was_silent = words.is_empty();
                process.death(words, self.conversation.confinement().is_some(), limits).await
            }
            None => SandboxFailure::Crashed("it is gone".to_owned()),
        };
        let failure = match failure {
            // The engine itself respects the memory limit, and reports it.
            SandboxFailure::OutOfMemory(_) if was_silent => {
                CodeFailure::Died("somebody killed it".to_owned())
            }
            failure => CodeFailure::from(failure, self.limits),
        };
        self.end(Event::Failed(failure));
    }

    fn end(&mut self, event: Event) {
        self.end = Some(event);
        self.release();
    }

    /// Ends the process. Its turn lasts until it is gone.
    fn release(&mut self) {
        let Some((process, turn)) = self.process.take() else { return };
        // Without a runtime, because the program ends, the process is killed anyway.
        if tokio::runtime::Handle::try_current().is_ok() {
            process.end(turn);
            self.refill();
        }
    }

    /// Starts the process of the next job, once.
    fn refill(&mut self) {
        if !mem::replace(&mut self.has_refilled, true) {
            self.sandbox.refill();
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.release();
    }
}

/// Counts the time until it is dropped, even if its future is dropped.
struct Ticking<'a> {
    since: Instant,
    computed: &'a mut Duration,
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        *self.computed += self.since.elapsed();
    }
}

/// The tools in a frame with names, as a [`Conversation`] reads them.
fn reached(parts: &[u8]) -> Option<Reach> {
    let (is_complete, names) = parts.split_first()?;
    Some(Reach { tools: protocol::reached(names)?, is_complete: *is_complete == 1 })
}

fn nonsense() -> CodeFailure {
    CodeFailure::Died("its reply makes no sense".to_owned())
}

impl CodeFailure {
    fn from(failure: SandboxFailure, limits: RunLimits) -> Self {
        match failure {
            SandboxFailure::TooSlow(_) => Self::TooSlow(limits.compute),
            SandboxFailure::OutOfMemory(_) => Self::OutOfMemory(limits.memory),
            SandboxFailure::TooDeep => Self::TooDeep,
            SandboxFailure::Busy => Self::Busy,
            SandboxFailure::Unavailable(reason) => Self::Unavailable(reason),
            SandboxFailure::Crashed(reason)
            | SandboxFailure::Filter(reason)
            | SandboxFailure::Runtime(reason)
            | SandboxFailure::Input(reason) => Self::Died(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parent::Settings;

    fn is_send<T: Send>(_: &T) {}

    #[tokio::test]
    async fn a_run_may_move_between_threads() {
        let sandbox = Sandbox::new(Settings::new("/nowhere/plugbay".into()));
        let start = async {
            let mut run = sandbox.code(Script::default(), RunLimits::default()).await?;
            Ok::<_, CodeFailure>(run.next().await)
        };
        is_send(&start);
        assert!(matches!(start.await, Err(CodeFailure::Unavailable(_))));
    }

    #[test]
    fn names_that_make_no_sense_are_no_reach() {
        assert_eq!(reached(&[]), None);
        assert_eq!(reached(&[1, 5]), None);
        assert_eq!(reached(&[1]), Some(Reach { tools: Vec::new(), is_complete: true }));
    }

    #[tokio::test]
    async fn a_script_that_is_too_long_starts_no_process() {
        let sandbox = Sandbox::new(Settings::new("/nowhere/plugbay".into()));
        let code = " ".repeat(CODE + 1);
        assert_eq!(sandbox.reach(&code).await, Err(CodeFailure::TooLong));
        let script = Script { code, ..Script::default() };
        assert_eq!(sandbox.code(script, RunLimits::default()).await.err(), Some(CodeFailure::TooLong));
    }
}
