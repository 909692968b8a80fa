//! The child process: it confines itself, does one job, and ends.
//!
//! It starts before there is a job, so that a filter need not wait for it: everything that all jobs need is
//! made first. Then it sleeps in one `read` until the request comes, or its parent is gone.

mod code;
pub mod confinement;
mod jq;
mod json;
mod output;

use std::{
    io, panic,
    process::{self, ExitCode},
    thread,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::{code::Engine, jq::Library, output::Output};
use crate::protocol::{Done, Failed, Frame, Job, Request};

/// The first argument of a child process.
pub const COMMAND: &str = "__sandbox";

/// The stack size of the job. Nested filters and values use it; if it overflows, the child ends.
pub(crate) const STACK: usize = 64 * 1024 * 1024;

/// The body of the hidden command that [`crate::Sandbox`] starts.
pub fn main() -> ExitCode {
    let begun = confinement::begin();
    let job = thread::Builder::new().stack_size(STACK).spawn(move || serve(begun));
    match job.map(thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn serve(begun: confinement::Begun) -> io::Result<()> {
    report_panics();
    let library = Library::load();
    let calls = confinement::Calls::new();
    // If a job is already waiting, only a script job needs it.
    let engine = (!is_awaited()).then(Engine::new);
    let Some(request) = Request::read(&mut io::stdin().lock())? else { return Ok(()) };
    let confinement = begun.finish(&calls, request.memory.saturating_add(STACK as u64), request.cpu);
    // Unlocked, so that a panic can still be reported.
    let mut stdout = io::stdout();
    Frame::Begun(confinement).write(&mut stdout)?;
    let Request { memory, output, job, .. } = request;
    let done = match job {
        Job::Code(code) => {
            let engine = engine.unwrap_or_else(Engine::new);
            engine.and_then(|engine| engine.run(&code, memory, output)).map(|()| None)
        }
        Job::Reach { code } => code::reach(&code, &mut stdout).map(|()| None),
        filter => filtered(library, filter, &mut Output::new(&mut stdout, output)).map(Some),
    };
    let last = match done {
        Ok(done) => done.map(Frame::Done),
        Err(failed) => Some(Frame::Failed(failed)),
    };
    last.map_or(Ok(()), |last| last.write(&mut stdout))?;
    end()
}

/// Whether a job is already waiting.
fn is_awaited() -> bool {
    let stdin = io::stdin();
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Does a jq job.
fn filtered<W: io::Write>(library: Library, job: Job, output: &mut Output<W>) -> Result<Done, Failed> {
    match job {
        Job::Jq { filter, input } => library.run(&filter, &input, output)?,
        Job::Check { filter } => library.compile(&filter).map(drop)?,
        Job::Code(_) | Job::Reach { .. } => {}
    }
    output.finish().map_err(|error| Failed::Internal(error.to_string()))
}

/// Ends without dropping anything: dropping a deeply nested value would overflow the stack.
#[expect(clippy::disallowed_methods, reason = "a child has no children, and leaves nothing half done")]
fn end() -> ! {
    process::exit(0)
}

/// Reports a panic of the interpreter as a failure of the job. In release builds the process ends after the
/// hook.
fn report_panics() {
    panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("a panic");
        // The standard library's message for a buffer that fits into no memory.
        let failed = if message.contains("capacity overflow") {
            Failed::OutOfMemory
        } else {
            Failed::Internal(message.to_owned())
        };
        _ = Frame::Failed(failed).write(&mut io::stdout());
        end();
    }));
}
