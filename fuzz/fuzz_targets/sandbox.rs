//! The messages between the gateway and the process of a filter or script. Frames do not depend on where
//! reads end. A message is the same after it was read and written again. A hostile process stays within its
//! limits.
#![no_main]

use std::{io::Read, time::Duration};

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use plugbay_sandbox::{
    CodeFailure, Event, Limits, RunLimits,
    fuzzing::{Conversation, outcome_of},
    protocol::{Answered, FRAME, FRAME_HEAD, Frame, Nonsense, Request, reached, reached_parts},
};

const OUTPUT: usize = 256;
const CALLS: u32 = 3;

// The first byte determines the length of reads.
fuzz_target!(|input: &[u8]| {
    let Some((size, stream)) = input.split_first() else { return };
    let size = usize::from(*size) % 64 + 1;
    let frames = cut(stream, stream.len());
    assert_eq!(frames, cut(stream, size), "the frames depend on the reads");
    frames.iter().flatten().for_each(comes_back);
    converse(&frames);
    filter(&frames);
    names(stream);
    requests(stream, size);
});

/// The frames up to the first one that no real child writes.
fn cut(stream: &[u8], size: usize) -> Vec<Result<Frame, Nonsense>> {
    let (mut unread, mut frames) = (BytesMut::new(), Vec::new());
    for chunk in stream.chunks(size.max(1)) {
        unread.extend_from_slice(chunk);
        while let Some(frame) = Frame::take(&mut unread) {
            let is_last = frame.is_err();
            frames.push(frame);
            if is_last {
                return frames;
            }
        }
        assert!(unread.len() < FRAME_HEAD + FRAME, "a frame that is not whole is no longer than the longest");
    }
    frames
}

fn comes_back(frame: &Frame) {
    let mut bytes = BytesMut::from(&frame.encode()[..]);
    assert!(bytes.len() <= FRAME_HEAD + FRAME);
    // Text that was not UTF-8 has grown, and may have been cut.
    if bytes.len() < FRAME_HEAD + FRAME {
        assert_eq!(Frame::take(&mut bytes), Some(Ok(frame.clone())));
        assert!(bytes.is_empty());
    }
}

/// Plays a script: each call is answered as soon as the script waits.
fn converse(frames: &[Result<Frame, Nonsense>]) {
    let limits = RunLimits { output: OUTPUT, calls: CALLS, ..RunLimits::default() };
    let mut conversation = Conversation::new(limits);
    let (mut calls, mut answers, mut text) = (0, 0, 0);
    for frame in frames {
        let Some(event) = conversation.receive(frame.clone()) else { continue };
        match event {
            Event::Call(call) => {
                assert_eq!(call.number, calls, "calls are numbered in their order");
                calls += 1;
                assert!(calls <= CALLS && call.arguments.len() <= OUTPUT);
            }
            Event::Text(piece) => {
                text += piece.len();
                assert!(text <= OUTPUT);
            }
            Event::Waiting => {
                assert!(conversation.is_waiting() && answers < calls, "it waits for nothing");
                conversation.answer();
                answers += 1;
                assert!(!conversation.is_waiting());
            }
            Event::Done(value) => {
                assert!(value.len() <= OUTPUT + 1 && conversation.confinement().is_some());
                return;
            }
            Event::Failed(failure) => {
                let is_foreign = matches!(failure, CodeFailure::Unavailable(_));
                assert!(!is_foreign || conversation.confinement().is_none());
                return;
            }
        }
    }
    assert!(frames.iter().all(Result::is_ok), "a frame that no child writes ends the script");
}

fn filter(frames: &[Result<Frame, Nonsense>]) {
    let limits = Limits { deadline: Duration::from_secs(1), memory: 1, output: OUTPUT };
    let Some(Ok(outcome)) = outcome_of(frames.iter().map(|frame| frame.clone().ok()), limits) else { return };
    assert!(outcome.output.len() <= OUTPUT);
    let values: Vec<_> = outcome.whole().collect();
    assert!(values.len() <= outcome.values && values.iter().all(|value| !value.contains(&b'\n')));
    if let Some(cut) = outcome.cut {
        assert!(cut.bytes > outcome.output.len() as u64 && std::str::from_utf8(&outcome.output).is_ok());
    }
}

fn names(parts: &[u8]) {
    if let Some(tools) = reached(parts) {
        assert_eq!(reached_parts(&tools), parts);
    }
}

/// Reads requests and answers, as the child does.
fn requests(stream: &[u8], size: usize) {
    let request = Request::read(&mut &stream[..]).ok();
    assert_eq!(request, Request::read(&mut Slow(stream, size)).ok(), "the request depends on the reads");
    if let Some(Some(request)) = request {
        let bytes = request.clone().encode().concat();
        assert!(bytes.len() <= stream.len());
        assert_eq!(Request::read(&mut &bytes[..]).ok(), Some(Some(request)));
    }
    let answered = Answered::read(&mut &stream[..]).ok();
    assert_eq!(answered, Answered::read(&mut Slow(stream, size)).ok(), "the answer depends on the reads");
    if let Some(answered) = answered {
        let bytes = answered.clone().encode().concat();
        assert!(stream.starts_with(&bytes), "an answer that is written again is the same");
    }
}

/// A reader that returns at most this many bytes at once.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = into.len().min(self.1);
        self.0.read(&mut into[..length])
    }
}
