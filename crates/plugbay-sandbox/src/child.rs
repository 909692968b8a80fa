//! The child process: confines itself, does one job, ends.
//!
//! It starts before there is a job, so that a filter need not wait for it: everything that every job needs is
//! made first. Then it sleeps in one `read` until the request comes, or until its parent is gone.

pub mod confinement;
mod jq;
mod json;
mod output;

use std::{
    io, panic,
    process::{self, ExitCode},
    thread,
};

use self::{jq::Library, output::Output};
use crate::protocol::{Failed, Frame, Job, Request};

/// The first argument of a child process.
pub const COMMAND: &str = "__sandbox";

/// The stack of the job. Filters and values nest on it; beyond it, the child ends.
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
    let Some(request) = Request::read(&mut io::stdin().lock())? else { return Ok(()) };
    let confinement = begun.finish(&calls, request.memory.saturating_add(STACK as u64), request.cpu);
    // Unlocked, so that a panic can still be reported.
    let mut stdout = io::stdout();
    Frame::Begun(confinement).write(&mut stdout)?;
    let mut output = Output::new(&mut stdout, request.output);
    let done = match request.job {
        Job::Jq { filter, input } => library.run(&filter, &input, &mut output),
        Job::Check { filter } => library.compile(&filter).map(drop),
    };
    let last = match done {
        Ok(()) => Frame::Done(output.finish()?),
        Err(failed) => Frame::Failed(failed),
    };
    last.write(&mut stdout)?;
    end()
}

/// Ends without dropping anything: a value that nests deep would overflow the stack while it is dropped.
#[expect(clippy::disallowed_methods, reason = "a child has no children, and leaves nothing half done")]
fn end() -> ! {
    process::exit(0)
}

/// A panic of the interpreter is a failure of the job like any other. Release builds end after the hook.
fn report_panics() {
    panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("a panic");
        // The standard library's words for a buffer that no memory could hold.
        let failed = if message.contains("capacity overflow") {
            Failed::OutOfMemory
        } else {
            Failed::Internal(message.to_owned())
        };
        _ = Frame::Failed(failed).write(&mut io::stdout());
        end();
    }));
}
