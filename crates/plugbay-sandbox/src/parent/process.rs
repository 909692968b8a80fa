//! One child process, from its start to its end.

use std::{
    io,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Mutex,
    time::Duration,
};

use bytes::BytesMut;
use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::OwnedSemaphorePermit,
    time::timeout,
};

use super::{Cut, Limits, Outcome, SandboxFailure};
use crate::{
    child,
    protocol::{Confinement, Done, FRAME, FRAME_HEAD, Failed, Frame, Job, Request},
};

/// Limit of bytes that are read of the child's last stderr output.
const LAST_WORDS: u64 = 4096;

/// How long a child may take to end after its pipe did.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time after a job's deadline at which the system ends it: nobody else would, if the gateway is killed.
const CPU_GRACE: u64 = 2;

/// A running child, killed on drop.
#[derive(Debug)]
pub(super) struct Process {
    // A std mutex: only to check whether the child is running, never across an await.
    child: Mutex<Child>,
    pipes: Option<(ChildStdin, BufReader<ChildStdout>, ChildStderr)>,
}

impl Process {
    pub(super) fn start(program: &Path) -> Result<Self, SandboxFailure> {
        let unavailable =
            |error: io::Error| SandboxFailure::Unavailable(format!("{}: {error}", program.display()));
        let mut child = Command::new(program)
            .arg(child::COMMAND)
            .env_clear()
            // It must keep no folder busy, and must survive Ctrl-C.
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(unavailable)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pipes = stdin.zip(stdout).zip(stderr);
        let pipes = pipes.map(|((stdin, stdout), stderr)| (stdin, BufReader::new(stdout), stderr));
        Ok(Self { child: Mutex::new(child), pipes })
    }

    pub(super) fn is_running(&self) -> bool {
        self.child.lock().is_ok_and(|mut child| matches!(child.try_wait(), Ok(None)))
    }

    /// Its pipes, once.
    pub(super) fn pipes(&mut self) -> Option<(ChildStdin, BufReader<ChildStdout>, ChildStderr)> {
        self.pipes.take()
    }

    /// Does the job. Then the child has ended, is about to end, or is killed on drop.
    pub(super) async fn run(&mut self, job: Job, limits: Limits) -> Result<Outcome, SandboxFailure> {
        let Some((stdin, stdout, mut stderr)) = self.pipes() else {
            return Err(SandboxFailure::Crashed("it has no pipes".to_owned()));
        };
        let cpu = limits.deadline.as_secs().saturating_add(CPU_GRACE);
        let request = Request { memory: limits.memory, cpu, output: limits.output as u64, job };
        let mut reply = Reply::new(limits.output);
        let exchange = async {
            let (_, end) = tokio::join!(send(stdin, request), reply.read(stdout));
            end
        };
        match timeout(limits.deadline, exchange).await {
            Ok(Some(end)) => reply.outcome(end, limits),
            Ok(None) => {
                let mut words = Vec::new();
                last_words(&mut stderr, &mut words).await;
                Err(self.death(&words, reply.confinement.is_some(), limits).await)
            }
            Err(_) => Err(SandboxFailure::TooSlow(limits.deadline)),
        }
    }

    /// Ends the process. Its job's turn lasts until it is gone.
    pub(super) fn end(self, turn: OwnedSemaphorePermit) {
        let Ok(mut child) = self.child.into_inner() else { return };
        _ = child.start_kill();
        tokio::spawn(async move {
            _ = child.wait().await;
            drop(turn);
        });
    }

    /// The reason why a child ended without a last frame.
    pub(super) async fn death(&mut self, words: &[u8], has_begun: bool, limits: Limits) -> SandboxFailure {
        let words = String::from_utf8_lossy(words);
        let Ok(child) = self.child.get_mut() else {
            return SandboxFailure::Crashed("unknown".to_owned());
        };
        let status = timeout(PATIENCE, child.wait()).await;
        let Ok(Ok(status)) = status else {
            return SandboxFailure::Crashed("it closed its pipes".to_owned());
        };
        if !has_begun && status.signal().is_none() {
            let reason = "another version of the program, or none of ours, is in its place; restart plugbay";
            return SandboxFailure::Unavailable(reason.to_owned());
        }
        cause(status, &words, limits)
    }
}

/// The cause of a death during a job, judging by the signal and the last output.
fn cause(status: ExitStatus, words: &str, limits: Limits) -> SandboxFailure {
    let signal = status.signal().and_then(Signal::from_named_raw);
    // The Rust runtime writes these texts before it aborts.
    if words.contains("memory allocation of") {
        return SandboxFailure::OutOfMemory(limits.memory);
    }
    if words.contains("has overflowed its stack") || matches!(signal, Some(Signal::SEGV | Signal::BUS)) {
        return SandboxFailure::TooDeep;
    }
    match signal {
        Some(Signal::XCPU) => SandboxFailure::TooSlow(limits.deadline),
        // Only the system kills it, because memory is short.
        Some(Signal::KILL) => SandboxFailure::OutOfMemory(limits.memory),
        _ => SandboxFailure::Crashed(status.to_string()),
    }
}

/// Reads the stderr output of a child that has ended. Cancel-safe.
pub(super) async fn last_words(stderr: &mut ChildStderr, words: &mut Vec<u8>) {
    let rest = LAST_WORDS.saturating_sub(words.len() as u64);
    _ = timeout(PATIENCE, stderr.take(rest).read_to_end(words)).await;
}

/// Sends the request. Errors are not reported: a child that does not read has died, and its end shows why.
async fn send(mut stdin: ChildStdin, request: Request) -> io::Result<()> {
    for part in request.encode() {
        stdin.write_all(&part).await?;
    }
    Ok(())
}

/// The outcome that a child's frames describe, if they are complete.
#[cfg(fuzzing)]
pub fn outcome_of(
    frames: impl IntoIterator<Item = Option<Frame>>,
    limits: Limits,
) -> Option<Result<Outcome, SandboxFailure>> {
    let mut reply = Reply::new(limits.output);
    let end = frames.into_iter().find_map(|frame| reply.receive(frame))?;
    Some(reply.outcome(end, limits))
}

/// The last frame of a job.
enum End {
    Done(Done),
    Failed(Failed),
    /// The child wrote something that no real child writes.
    Nonsense,
}

/// The reply so far.
struct Reply {
    confinement: Option<Confinement>,
    output: BytesMut,
    limit: usize,
}

impl Reply {
    fn new(limit: usize) -> Self {
        Self { confinement: None, output: BytesMut::new(), limit }
    }

    /// Reads up to the last frame. `None` if the child ended without one.
    async fn read(&mut self, mut from: BufReader<ChildStdout>) -> Option<End> {
        loop {
            let mut head = [0; FRAME_HEAD];
            from.read_exact(&mut head).await.ok()?;
            let Some((tag, length)) = Frame::head(head) else { return Some(End::Nonsense) };
            debug_assert!(length <= FRAME);
            let mut payload = vec![0; length];
            from.read_exact(&mut payload).await.ok()?;
            if let Some(end) = self.receive(Frame::decode(tag, payload)) {
                return Some(end);
            }
        }
    }

    /// Handles a frame; `None` means one that no real child writes. Returns the end if it is the last frame.
    fn receive(&mut self, frame: Option<Frame>) -> Option<End> {
        match (frame, self.confinement) {
            (Some(Frame::Begun(confinement)), None) => self.confinement = Some(confinement),
            (Some(Frame::Failed(failed)), _) => return Some(End::Failed(failed)),
            (Some(Frame::Done(done)), Some(_)) => return Some(End::Done(done)),
            (Some(Frame::Output(piece)), Some(_)) if self.output.len() + piece.len() <= self.limit => {
                self.output.extend_from_slice(&piece);
            }
            _ => return Some(End::Nonsense),
        }
        None
    }

    fn outcome(self, end: End, limits: Limits) -> Result<Outcome, SandboxFailure> {
        match (end, self.confinement) {
            (End::Done(done), Some(confinement)) => Ok(self.finished(done, confinement)),
            (End::Failed(failed), _) => Err(match failed {
                Failed::Filter(message) => SandboxFailure::Filter(message),
                Failed::Input(message) => SandboxFailure::Input(message),
                Failed::Runtime(message) => SandboxFailure::Runtime(message),
                Failed::TooDeep => SandboxFailure::TooDeep,
                Failed::OutOfMemory => SandboxFailure::OutOfMemory(limits.memory),
                Failed::Internal(message) => SandboxFailure::Crashed(message),
                _ => SandboxFailure::Crashed("its reply makes no sense".to_owned()),
            }),
            (_, None) => Err(SandboxFailure::Unavailable("the program does not answer as ours".to_owned())),
            (_, Some(_)) => Err(SandboxFailure::Crashed("its reply makes no sense".to_owned())),
        }
    }

    fn finished(mut self, done: Done, confinement: Confinement) -> Outcome {
        let cut = done.bytes > self.output.len() as u64;
        if cut {
            let whole = whole_characters(&self.output);
            self.output.truncate(whole);
        }
        Outcome {
            output: self.output.freeze(),
            values: usize::try_from(done.values).unwrap_or(usize::MAX),
            cut: cut.then_some(Cut { bytes: done.bytes, at_least: !done.ended }),
            confinement,
        }
    }
}

/// The length of the text without an incomplete last character.
fn whole_characters(text: &[u8]) -> usize {
    std::str::from_utf8(text).map_or_else(|error| error.valid_up_to(), str::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_is_told_by_its_signal_and_last_words() {
        let limits = Limits::default();
        let signal = |signal: Signal| ExitStatus::from_raw(signal.as_raw());
        let abort = signal(Signal::ABORT);
        assert_eq!(
            cause(abort, "memory allocation of 64 bytes failed\n", limits),
            SandboxFailure::OutOfMemory(limits.memory)
        );
        assert_eq!(cause(abort, "\nthread 'x' has overflowed its stack\n", limits), SandboxFailure::TooDeep);
        assert_eq!(cause(signal(Signal::SEGV), "", limits), SandboxFailure::TooDeep);
        assert_eq!(cause(signal(Signal::XCPU), "", limits), SandboxFailure::TooSlow(limits.deadline));
        assert_eq!(cause(signal(Signal::KILL), "", limits), SandboxFailure::OutOfMemory(limits.memory));
        assert!(matches!(cause(signal(Signal::SYS), "", limits), SandboxFailure::Crashed(_)));
    }

    #[test]
    fn an_output_that_was_cut_ends_with_a_whole_character() {
        assert_eq!(whole_characters("aä".as_bytes()), 3);
        assert_eq!(whole_characters(&"aä".as_bytes()[..2]), 1);
    }
}
