//! The lower bound: a relay that spawns a server and copies bytes both ways without looking at them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::thread;

use crate::Outcome;

const BUFFER: usize = 64 * 1024;

pub(crate) fn run(server: &[String]) -> Outcome<()> {
    let (program, args) = server.split_first().ok_or("pump needs a command")?;
    let mut child = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let to_server = child.stdin.take().ok_or("the server has no stdin")?;
    let from_server = child.stdout.take().ok_or("the server has no stdout")?;
    let (from_host, to_host) = (unbuffered(&io::stdin())?, unbuffered(&io::stdout())?);

    thread::spawn(move || copy(from_host, to_server));
    copy(from_server, to_host)?;
    child.wait()?;
    Ok(())
}

/// Does not use `io::copy`, which would splice; no gateway that reads messages can do that.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The bare descriptor of a standard stream, which would otherwise buffer and lock.
pub(crate) fn unbuffered(stream: &impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}
