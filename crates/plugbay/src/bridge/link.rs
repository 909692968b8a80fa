//! One connection to a daemon, and the thread that reads it.

use std::{
    io::{self, IoSlice, PipeReader, PipeWriter, Read, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use plugbay_core::{
    bridge::{Connection, Control, Delivery},
    wire::{Frame, Framer, Framing, Incoming, Queue},
};
use smallvec::SmallVec;

use super::{Bridge, Phase, spawn};
use crate::daemon::pipes::PipeEnd;

/// Limit of bytes per read.
pub(super) const CHUNK: usize = 64 * 1024;

/// After messages of this size the buffers are released, so that a bridge stays small as long as its host
/// runs.
pub(super) const LARGE: usize = 1024 * 1024;

/// The messages of one read; mostly there is one.
pub(super) type Batch = SmallVec<[Bytes; 4]>;

/// A connection to a daemon.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) number: Connection,
    /// Part of the method of each control message.
    pub(super) token: String,
    /// Whether this process itself serves at the other end.
    pub(super) is_own: bool,
    from_daemon: PipeReader,
    // A std mutex: held to copy or take the handle, never while something is written.
    to_daemon: Mutex<Option<Arc<PipeWriter>>>,
}

/// How much of some messages was written to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// All of it, or a part before the connection ended.
    Something,
    /// Nothing, because the connection had ended.
    Nothing,
}

impl Link {
    pub(super) fn new(number: Connection, token: String, pipes: PipeEnd, is_own: bool) -> Self {
        let PipeEnd { input, output } = pipes;
        Self { number, token, is_own, from_daemon: input, to_daemon: Mutex::new(Some(Arc::new(output))) }
    }

    pub(super) fn send(&self, messages: impl IntoIterator<Item = Bytes>) -> Sent {
        let Some(output) = self.output().clone() else { return Sent::Nothing };
        let mut queue = Queue::default();
        for message in messages {
            queue.push(&Frame::from(message), Framing::Newline);
        }
        let before = queue.len();
        match write_all(&*output, &mut queue) {
            Err(_) if queue.len() == before => Sent::Nothing,
            _ => Sent::Something,
        }
    }

    /// Closes the host's side: the daemon answers what is in flight, then closes the connection.
    pub(super) fn finish(&self) {
        self.output().take();
    }

    fn output(&self) -> MutexGuard<'_, Option<Arc<PipeWriter>>> {
        self.to_daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bridge {
    /// Reads one connection until it ends.
    pub(super) fn read_daemon(self: &Arc<Self>, link: &Arc<Link>) {
        let (mut framer, mut chunk) = (Framer::new(usize::MAX), vec![0; CHUNK]);
        while fill(&mut framer, &mut chunk, &link.from_daemon) {
            let mut messages = Batch::new();
            while let Some(item) = framer.take() {
                if let Incoming::Message(message) = item {
                    messages.push(message);
                }
            }
            let is_large = size(&messages) >= LARGE;
            self.deliver(link, messages);
            if is_large {
                framer.rest();
            }
        }
        self.ended(link);
    }

    fn deliver(self: &Arc<Self>, link: &Arc<Link>, mut messages: Batch) {
        let (mut hands_over, mut stops) = (false, false);
        let mut state = self.lock();
        messages.retain(|message| match state.table.from_daemon(link.number, &link.token, message) {
            Delivery::Host => true,
            Delivery::Nobody => false,
            Delivery::Bridge(control) => {
                match control {
                    Control::State(text) => state.window.state = Some(text),
                    Control::Stopped => stops = true,
                    Control::HandOver => hands_over = true,
                }
                false
            }
        });
        let drains = state.draining.iter().any(|other| other.number == link.number);
        let is_drained = drains && state.table.is_drained(link.number);
        drop(state);
        self.tell_host(messages);
        if is_drained {
            link.finish();
        }
        if stops {
            self.stopped(link);
        } else if hands_over {
            self.hand_over(link);
        }
    }

    /// Handles a daemon that was stopped. It still reads what was sent until now; the host's next message
    /// starts another one.
    fn stopped(self: &Arc<Self>, link: &Arc<Link>) {
        let mut state = self.lock();
        if state.current.as_ref().is_some_and(|current| current.number == link.number) {
            let old = state.current.take();
            state.draining.extend(old);
            if state.phase == Phase::Open {
                state.phase = Phase::Stopped;
            }
        }
        drop(state);
        link.finish();
    }

    /// Handles a daemon that takes no new requests, because another one does.
    fn hand_over(self: &Arc<Self>, link: &Arc<Link>) {
        let mut state = self.lock();
        if state.current.as_ref().is_none_or(|current| current.number != link.number) {
            return;
        }
        let old = state.current.take();
        state.draining.extend(old);
        drop(state);
        let (bridge, old) = (Arc::clone(self), Arc::clone(link));
        let opened = spawn(move || {
            bridge.reopen();
            if bridge.lock().table.is_drained(old.number) {
                old.finish();
            }
        });
        if opened.is_err() {
            self.reopen();
        }
    }

    fn ended(self: &Arc<Self>, link: &Arc<Link>) {
        // Wait until a message that is being sent is known to be sent or unsent, before it is counted as
        // lost.
        let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        let messages = state.table.ended(link.number);
        state.draining.retain(|other| other.number != link.number);
        let was_current = state.current.take_if(|current| current.number == link.number).is_some();
        let dies = was_current && state.phase == Phase::Open;
        if dies {
            state.died();
        }
        // Also if a message could no longer be sent before the daemon was stopped.
        let reopens = dies || (state.phase == Phase::Stopped && state.table.needs_connection());
        if reopens {
            state.phase = Phase::Open;
        }
        let again = state.current.clone().map(|next| (state.table.send_again(next.number), next));
        drop(state);
        if let Some((again, next)) = again {
            self.send(&next, &again.into());
        }
        drop(sending);
        self.changed.notify_all();
        self.tell_host(messages);
        if reopens {
            self.reopen();
        }
    }
}

/// The total length of these messages.
pub(super) fn size(messages: &Batch) -> usize {
    messages.iter().map(Bytes::len).sum()
}

/// Reads once into the framer. `false` at the end of the input.
pub(super) fn fill(framer: &mut Framer, chunk: &mut [u8], mut input: impl Read) -> bool {
    loop {
        match input.read(chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return false,
            Ok(count) => {
                framer.buffer().extend_from_slice(&chunk[..count]);
                framer.filled(count);
                return true;
            }
        }
    }
}

/// Writes everything, with as many pieces per call as the system accepts.
pub(super) fn write_all(mut output: impl Write, queue: &mut Queue) -> io::Result<()> {
    while !queue.is_empty() {
        let written = output.write_vectored(&queue.slices(IoSlice::new));
        match written {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => queue.advance(written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
