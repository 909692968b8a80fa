//! The conversation of a script with the parent: calls and text out, answers in.

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    io::{self, Stdout},
    mem,
    time::{Duration, Instant},
};

use super::write_parts;
use crate::protocol::{Answered, Asked, FRAME, Failed, Frame};

/// Longest name of a server or tool.
const NAME: usize = 1024;

/// The conversation, shared by the script's functions and the engine's loop.
#[derive(Debug)]
pub(super) struct Conversation {
    state: RefCell<State>,
    clock: Clock,
    /// The reason why the script must end now, whatever it catches.
    stop: RefCell<Option<Failed>>,
}

#[derive(Debug)]
struct State {
    to: Stdout,
    /// Text that was not sent yet.
    text: Vec<u8>,
    /// How many bytes of text and value may still be sent.
    room: usize,
    /// Limit of bytes for arguments.
    limit: usize,
    calls: u32,
    most_calls: u32,
    /// The numbers of unanswered calls.
    unanswered: HashSet<u32>,
    answers: u32,
}

/// The reason why a call cannot be made. The script may catch it.
#[derive(Debug)]
pub(super) enum Refused {
    Stopped,
    LongName,
    LargeArguments(usize),
}

impl Conversation {
    pub(super) fn new(output: usize, calls: u32, compute: Duration) -> Self {
        let state = State {
            to: io::stdout(),
            text: Vec::new(),
            room: output,
            limit: output,
            calls: 0,
            most_calls: calls,
            unanswered: HashSet::new(),
            answers: 0,
        };
        Self { state: RefCell::new(state), clock: Clock::new(compute), stop: RefCell::new(None) }
    }

    /// Whether the script must end now. The interpreter asks this repeatedly.
    pub(super) fn must_stop(&self) -> bool {
        if self.clock.is_over() {
            self.stop_with(Failed::TooSlow);
        }
        self.stop.borrow().is_some()
    }

    /// The reason why the script had to end.
    pub(super) fn stopped(&self) -> Option<Failed> {
        self.must_stop();
        self.stop.borrow().clone()
    }

    fn stop_with(&self, failed: Failed) {
        self.stop.borrow_mut().get_or_insert(failed);
    }

    /// Whether no call is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.state.borrow().unanswered.is_empty()
    }

    /// Sends a call and returns its number.
    pub(super) fn call(&self, asked: Asked, arguments: &str) -> Result<u32, Refused> {
        if self.must_stop() {
            return Err(Refused::Stopped);
        }
        let mut state = self.state.borrow_mut();
        if asked.tool.len() > NAME || asked.server.as_ref().is_some_and(|server| server.len() > NAME) {
            return Err(Refused::LongName);
        }
        if arguments.len() > state.limit {
            return Err(Refused::LargeArguments(state.limit));
        }
        if state.calls >= state.most_calls {
            self.stop_with(Failed::TooManyCalls);
            return Err(Refused::Stopped);
        }
        let number = state.calls;
        state.calls += 1;
        state.unanswered.insert(number);
        self.send(|| {
            state.flush()?;
            write_parts(arguments.as_bytes(), &mut state.to)?;
            Frame::Call(asked).write(&mut state.to)
        });
        Ok(number)
    }

    /// Takes text up to the limit of the output; above it, the script ends.
    pub(super) fn text(&self, piece: &str) -> Result<(), Refused> {
        if self.must_stop() {
            return Err(Refused::Stopped);
        }
        let mut state = self.state.borrow_mut();
        let fitting = piece.floor_char_boundary(piece.len().min(state.room));
        state.room -= fitting;
        let mut rest = &piece[..fitting];
        while !rest.is_empty() {
            let end = rest.floor_char_boundary(rest.len().min(FRAME - state.text.len()));
            state.text.extend_from_slice(&rest.as_bytes()[..end]);
            rest = &rest[end..];
            if !rest.is_empty() || state.text.len() == FRAME {
                self.send(|| state.flush());
            }
        }
        if fitting == piece.len() {
            return Ok(());
        }
        self.stop_with(Failed::OutputTooLarge);
        Err(Refused::Stopped)
    }

    /// Tells the parent that the script waits, and waits for the answer.
    pub(super) fn next_answer(&self) -> Result<Answered, Failed> {
        let mut state = self.state.borrow_mut();
        let answers = state.answers;
        self.send(|| {
            state.flush()?;
            Frame::Waiting { answers }.write(&mut state.to)
        });
        self.clock.pause();
        let answered = Answered::read(&mut io::stdin().lock());
        self.clock.go_on();
        let answered = answered.map_err(|error| Failed::Internal(error.to_string()))?;
        state.answers += 1;
        state.unanswered.remove(&answered.number);
        Ok(answered)
    }

    /// Sends the value of the script.
    pub(super) fn finish(&self, value: &str) -> Result<(), Failed> {
        let mut state = self.state.borrow_mut();
        if value.len() > state.room {
            return Err(Failed::OutputTooLarge);
        }
        self.send(|| {
            state.flush()?;
            write_parts(value.as_bytes(), &mut state.to)?;
            Frame::Returned.write(&mut state.to)
        });
        Ok(())
    }

    /// Sends the remaining text. The failure follows.
    pub(super) fn flush(&self) {
        let mut state = self.state.borrow_mut();
        self.send(|| state.flush());
    }

    /// Writes to the parent. The time that the parent takes to read does not count.
    fn send(&self, write: impl FnOnce() -> io::Result<()>) {
        self.clock.pause();
        if let Err(error) = write() {
            self.stop_with(Failed::Internal(error.to_string()));
        }
        self.clock.go_on();
    }
}

impl State {
    fn flush(&mut self) -> io::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        Frame::Output(mem::take(&mut self.text)).write(&mut self.to)
    }
}

/// The time that a script has left to compute.
#[derive(Debug)]
struct Clock {
    left: Cell<Duration>,
    since: Cell<Instant>,
}

impl Clock {
    fn new(left: Duration) -> Self {
        Self { left: Cell::new(left), since: Cell::new(Instant::now()) }
    }

    fn pause(&self) {
        self.left.set(self.left.get().saturating_sub(self.since.get().elapsed()));
    }

    fn go_on(&self) {
        self.since.set(Instant::now());
    }

    fn is_over(&self) -> bool {
        self.since.get().elapsed() >= self.left.get()
    }
}
