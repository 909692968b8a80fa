//! plugbay's own stdin and stdout, without a blocking thread in between, where the system allows it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, fstat};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{UnixStream, unix::pipe},
};

pub type Input = Box<dyn AsyncRead + Send + Unpin>;
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Must be called inside a tokio runtime.
pub fn standard() -> (Input, Output) {
    let input = match kind(std::io::stdin()) {
        Some((FileType::Fifo, _)) => {
            reopened(0, |path| pipe::OpenOptions::new().open_receiver(path)).map(boxed_input)
        }
        Some((FileType::Socket, socket)) => stream(socket).map(boxed_input),
        _ => None,
    };
    let output = match kind(std::io::stdout()) {
        Some((FileType::Fifo, _)) => {
            reopened(1, |path| pipe::OpenOptions::new().open_sender(path)).map(boxed_output)
        }
        Some((FileType::Socket, socket)) => stream(socket).map(boxed_output),
        _ => None,
    };
    (
        input.unwrap_or_else(|| Box::new(tokio::io::stdin())),
        output.unwrap_or_else(|| Box::new(tokio::io::stdout())),
    )
}

fn kind(stream: impl AsFd) -> Option<(FileType, OwnedFd)> {
    let stat = fstat(&stream).ok()?;
    let copy = stream.as_fd().try_clone_to_owned().ok()?;
    Some((FileType::from_raw_mode(stat.st_mode), copy))
}

/// Opens a pipe anew, because "non-blocking" belongs to the open file and not to the descriptor: other
/// holders of the inherited one must not be affected.
#[cfg(target_os = "linux")]
fn reopened<T: AsFd>(fd: i32, open: impl Fn(&str) -> std::io::Result<T>) -> Option<T> {
    let stream = open(&format!("/proc/self/fd/{fd}")).ok()?;
    // With a larger pipe, a large answer needs few wake-ups. The system may refuse; any size works.
    let _ = rustix::pipe::fcntl_setpipe_size(&stream, 256 * 1024);
    Some(stream)
}

#[cfg(not(target_os = "linux"))]
fn reopened<T: AsFd>(_: i32, _: impl Fn(&str) -> std::io::Result<T>) -> Option<T> {
    None
}

/// Node gives its children socket pairs. Our end of one is ours alone, so it may be non-blocking.
fn stream(socket: OwnedFd) -> Option<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true).ok()?;
    UnixStream::from_std(socket).ok()
}

fn boxed_input(stream: impl AsyncRead + Send + Unpin + 'static) -> Input {
    Box::new(stream)
}

fn boxed_output(stream: impl AsyncWrite + Send + Unpin + 'static) -> Output {
    Box::new(stream)
}
