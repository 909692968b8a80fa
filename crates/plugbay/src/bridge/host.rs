//! The host's side of the bridge: the thread that reads stdin, and stdout.

use std::{
    io,
    os::fd::AsFd as _,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use plugbay_core::wire::{Fault, Frame, Framer, Framing, Incoming, Queue, write};
use smallvec::SmallVec;

use super::{
    Bridge, Phase,
    link::{Batch, CHUNK, LARGE, Link, Sent, fill, size, write_all},
};

/// Messages grouped by connection; mostly there is one.
type Outgoing = SmallVec<[(Arc<Link>, Batch); 1]>;

/// The output to the host.
#[derive(Default)]
pub(super) struct HostOutput {
    /// The framing of the host's first message, in which it is answered.
    framing: OnceLock<Framing>,
    /// Keeps messages of several connections apart. Held by the thread that writes, while it writes a
    /// message.
    writing: Mutex<()>,
    /// The longest message that the daemon accepts from the host.
    limit: AtomicUsize,
}

impl HostOutput {
    pub(super) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    fn write(&self, messages: impl IntoIterator<Item = Bytes>) -> io::Result<()> {
        let framing = self.framing.get().copied().unwrap_or_default();
        let mut queue = Queue::default();
        for message in messages {
            queue.push(&Frame::from(message), framing);
        }
        if queue.is_empty() {
            return Ok(());
        }
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // Written without std's own buffer, which would copy every message.
        write_all(Descriptor(rustix::stdio::stdout()), &mut queue)
    }
}

/// A descriptor of this process, written to without a buffer.
struct Descriptor<'a>(rustix::fd::BorrowedFd<'a>);

impl io::Write for Descriptor<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self.0.as_fd(), bytes)?)
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(self.0.as_fd(), slices)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Bridge {
    /// Reads the host until it closes its end.
    pub(super) fn read_host(self: &Arc<Self>) {
        let limit = || self.host.limit.load(Ordering::Relaxed);
        let (mut framer, mut chunk) = (Framer::new(limit()), vec![0; CHUNK]);
        let mut input = io::stdin().lock();
        while fill(&mut framer, &mut chunk, &mut input) {
            framer.set_limit(limit());
            let mut messages = Batch::new();
            while let Some(item) = framer.take() {
                if let Some(seen) = framer.seen() {
                    self.host.framing.get_or_init(|| seen);
                }
                match item {
                    // Invalid messages are forwarded too: the daemon rejects them as it does for any host.
                    Incoming::Message(bytes) | Incoming::NotText(bytes) | Incoming::Noise(bytes) => {
                        messages.push(bytes);
                    }
                    Incoming::TooLong { .. } => self.tell_host([too_long(limit())]),
                }
            }
            self.forward(&messages);
            let is_large = size(&messages) >= LARGE;
            drop(messages);
            if is_large {
                framer.rest();
            }
        }
        self.end(Phase::Ending);
    }

    /// Forwards messages of the host, each on its connection. Waits while there is no connection.
    fn forward(self: &Arc<Self>, messages: &Batch) {
        while !messages.is_empty() && self.await_link() {
            let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
            // The connection may have ended before this thread could send.
            let Some(outgoing) = self.register(messages) else { continue };
            for (link, batch) in outgoing {
                self.send(&link, &batch);
            }
            drop(sending);
            return;
        }
    }

    /// Sends registered messages. If this connection has ended, the next one gets them.
    pub(super) fn send(&self, link: &Link, messages: &Batch) {
        if link.send(messages.iter().cloned()) == Sent::Nothing {
            let mut state = self.lock();
            messages.iter().for_each(|message| state.table.unsent(message));
        }
    }

    /// Waits for a connection. `false`: the host is gone.
    fn await_link(self: &Arc<Self>) -> bool {
        let mut state = self.lock();
        loop {
            if state.phase == Phase::HostGone || state.current.is_some() {
                return state.phase != Phase::HostGone;
            }
            if state.phase == Phase::Stopped {
                state.phase = Phase::Open;
                drop(state);
                self.reopen();
                state = self.lock();
                continue;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Registers messages and finds their connections; `None` if there is no connection.
    fn register(&self, messages: &Batch) -> Option<Outgoing> {
        let mut outgoing = Outgoing::new();
        let mut state = self.lock();
        let current = state.current.as_ref()?.number;
        for message in messages {
            let number = state.table.from_host(message, current);
            let Some(link) = number.and_then(|number| state.link(number)).cloned() else { continue };
            match outgoing.last_mut().filter(|(last, _)| last.number == link.number) {
                Some((_, batch)) => batch.push(message.clone()),
                None => outgoing.push((link, Batch::from_iter([message.clone()]))),
            }
        }
        Some(outgoing)
    }

    /// Writes to the host. A host that has gone ends the bridge.
    pub(super) fn tell_host(&self, messages: impl IntoIterator<Item = Bytes>) {
        if self.host.write(messages).is_err() {
            self.end(Phase::HostGone);
        }
    }

    fn end(&self, phase: Phase) {
        let mut state = self.lock();
        state.phase = phase;
        for link in state.current.iter().chain(&state.draining) {
            link.finish();
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// The error for a message that is too long. It has no id, because the message was not read.
fn too_long(limit: usize) -> Bytes {
    let error = serde_json::json!({ "code": -32600, "message": Fault::TooLong(limit).to_string() });
    write::error(b"null", error.to_string().as_bytes())
}
