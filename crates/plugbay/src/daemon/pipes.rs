//! The two pipes between a bridge and its daemon, which the bridge makes and passes with its hello.
//!
//! A pipe moves a message with fewer wake-ups than a socket: it wakes a writer only if it was full.

use std::{
    io::{self, IoSlice, IoSliceMut, PipeReader, PipeWriter, pipe},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use tokio::net::unix::pipe as tokio_pipe;

/// Buffer size of a pipe, with which a large message needs few wake-ups. The system may refuse it; any size
/// works.
#[cfg(target_os = "linux")]
const SIZE: usize = 256 * 1024;

/// One end of both pipes.
#[derive(Debug)]
pub struct PipeEnd {
    pub input: PipeReader,
    pub output: PipeWriter,
}

/// Two pipes, with one end for each side.
pub fn pair() -> io::Result<[PipeEnd; 2]> {
    let ((near_input, far_output), (far_input, near_output)) = (pipe()?, pipe()?);
    #[cfg(target_os = "linux")]
    for pipe in [near_input.as_fd(), far_input.as_fd()] {
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, SIZE);
    }
    let end = |input, output| PipeEnd { input, output };
    Ok([end(near_input, near_output), end(far_input, far_output)])
}

impl PipeEnd {
    /// The same end for tokio. Must be called inside a runtime.
    pub fn into_tokio(self) -> io::Result<(tokio_pipe::Receiver, tokio_pipe::Sender)> {
        let input = tokio_pipe::Receiver::from_owned_fd(self.input.into())?;
        let output = tokio_pipe::Sender::from_owned_fd(self.output.into())?;
        Ok((input, output))
    }

    /// Sends the beginning of a line together with this end. Returns how many bytes were sent.
    pub fn send_with(&self, stream: &UnixStream, line: &[u8]) -> io::Result<usize> {
        let descriptors = [self.input.as_fd(), self.output.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        Ok(sendmsg(stream, &[IoSlice::new(line)], &mut control, SendFlags::empty())?)
    }

    /// The end that came in these descriptors; `None` if they are not the two of a pipe end.
    pub fn received(descriptors: Vec<OwnedFd>) -> Option<Self> {
        let [input, output] = <[OwnedFd; 2]>::try_from(descriptors).ok()?;
        Some(Self { input: input.into(), output: output.into() })
    }
}

/// Reads from a socket, and collects the descriptors that come with the bytes.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], into: &mut Vec<OwnedFd>) -> io::Result<usize> {
    #[cfg(target_os = "linux")]
    let flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = RecvFlags::empty();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            into.extend(descriptors);
        }
    }
    #[cfg(not(target_os = "linux"))]
    for descriptor in into.iter() {
        rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(received.bytes)
}
