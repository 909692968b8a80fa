//! The conversation with a script's process, without its pipes: it takes frames and returns events. Once a
//! script has escaped its engine, every frame may be hostile.

use std::mem;

use bytes::{Bytes, BytesMut};

use super::nonsense;
use crate::{
    code::{Call, CodeFailure, Event, RunLimits},
    protocol::{Confinement, Failed, Frame, Nonsense},
};

/// The state of the conversation, from what the process has sent so far.
#[derive(Debug)]
pub struct Conversation {
    limits: RunLimits,
    confinement: Option<Confinement>,
    /// The parts of arguments, a value or names that have come so far.
    parts: BytesMut,
    calls: u32,
    answers: u32,
    /// Bytes of text.
    text: usize,
    is_waiting: bool,
}

impl Conversation {
    pub fn new(limits: RunLimits) -> Self {
        Self {
            limits,
            confinement: None,
            parts: BytesMut::new(),
            calls: 0,
            answers: 0,
            text: 0,
            is_waiting: false,
        }
    }

    /// The confinement of the process; `None` if it has not begun.
    pub fn confinement(&self) -> Option<Confinement> {
        self.confinement
    }

    /// Whether the script has got all answers so far, and waits for another one.
    pub fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Counts an answer.
    pub fn answer(&mut self) {
        self.is_waiting = false;
        self.answers += 1;
    }

    /// The event in a frame, if it is one.
    pub fn receive(&mut self, frame: Result<Frame, Nonsense>) -> Option<Event> {
        match frame {
            Ok(Frame::Begun(confinement)) if self.confinement.is_none() => {
                self.confinement = Some(confinement);
                None
            }
            Ok(Frame::Failed(failed)) => Some(Event::Failed(CodeFailure::told(failed, self.limits))),
            _ if self.confinement.is_none() => Some(Event::Failed(CodeFailure::Unavailable(
                "another version of the program, or none of ours, is in its place; restart plugbay"
                    .to_owned(),
            ))),
            frame => frame
                .and_then(|frame| self.converse(frame))
                .unwrap_or_else(|Nonsense| Some(Event::Failed(nonsense()))),
        }
    }

    /// The event in a frame of a confined process, if it is one.
    fn converse(&mut self, frame: Frame) -> Result<Option<Event>, Nonsense> {
        Ok(Some(match frame {
            Frame::Part(part) if self.parts.len() + part.len() <= self.limits.output => {
                self.parts.extend_from_slice(&part);
                return Ok(None);
            }
            Frame::Output(text) if self.text + text.len() <= self.limits.output => {
                self.text += text.len();
                Event::Text(text.into())
            }
            Frame::Call(asked) if self.calls < self.limits.calls => {
                let number = self.calls;
                self.calls += 1;
                Event::Call(Call { number, kind: asked.kind().ok_or(Nonsense)?, arguments: self.whole() })
            }
            // If it waited without an unanswered call, its time would stand still for ever.
            Frame::Waiting { answers } if answers <= self.answers && answers < self.calls => {
                // More answers are on their way to it.
                if answers < self.answers {
                    return Ok(None);
                }
                self.is_waiting = true;
                Event::Waiting
            }
            Frame::Returned => Event::Done(self.whole()),
            Frame::Reached { is_complete } => {
                Event::Done([&[u8::from(is_complete)][..], &self.whole()].concat().into())
            }
            _ => return Err(Nonsense),
        }))
    }

    fn whole(&mut self) -> Bytes {
        mem::take(&mut self.parts).freeze()
    }
}

impl CodeFailure {
    /// The failure that a child reported.
    fn told(failed: Failed, limits: RunLimits) -> Self {
        match failed {
            Failed::Syntax(message) => Self::Syntax(message),
            Failed::Thrown { message, call } => Self::Thrown { message, call },
            Failed::TooSlow => Self::TooSlow(limits.compute),
            Failed::OutOfMemory => Self::OutOfMemory(limits.memory),
            Failed::TooDeep => Self::TooDeep,
            Failed::OutputTooLarge => Self::OutputTooLarge(limits.output),
            Failed::TooManyCalls => Self::TooManyCalls(limits.calls),
            Failed::NotJson(message) => Self::NotJson(message),
            Failed::NeverEnds => Self::NeverEnds,
            Failed::Internal(message)
            | Failed::Filter(message)
            | Failed::Input(message)
            | Failed::Runtime(message) => Self::Died(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Asked;

    fn begun() -> Conversation {
        let mut conversation = Conversation::new(RunLimits { output: 4, calls: 2, ..RunLimits::default() });
        assert_eq!(conversation.receive(Ok(Frame::Begun(Confinement::default()))), None);
        conversation
    }

    fn call() -> Frame {
        Frame::Call(Asked { code: 1, server: None, tool: String::new() })
    }

    fn is_nonsense(event: Option<&Event>) -> bool {
        event == Some(&Event::Failed(nonsense()))
    }

    #[test]
    fn waiting_without_an_unanswered_call_is_nonsense() {
        let waiting = |answers| Ok(Frame::Waiting { answers });
        assert!(is_nonsense(begun().receive(waiting(0)).as_ref()));
        let mut conversation = begun();
        assert!(matches!(conversation.receive(Ok(call())), Some(Event::Call(_))));
        assert_eq!(conversation.receive(waiting(0)), Some(Event::Waiting));
        conversation.answer();
        assert!(!conversation.is_waiting());
        // It was written before the answer came.
        assert_eq!(conversation.receive(waiting(0)), None);
        assert!(is_nonsense(conversation.receive(waiting(1)).as_ref()));
    }

    #[test]
    fn text_parts_and_calls_beyond_their_limits_are_nonsense() {
        let mut conversation = begun();
        assert_eq!(conversation.receive(Ok(Frame::Part(vec![b' '; 4]))), None);
        assert!(is_nonsense(conversation.receive(Ok(Frame::Part(vec![b' '; 1]))).as_ref()));
        let mut conversation = begun();
        assert!(matches!(conversation.receive(Ok(Frame::Output(vec![b'a'; 4]))), Some(Event::Text(_))));
        assert!(is_nonsense(conversation.receive(Ok(Frame::Output(vec![b'a'; 1]))).as_ref()));
        let mut conversation = begun();
        assert!(matches!(conversation.receive(Ok(call())), Some(Event::Call(_))));
        assert!(matches!(conversation.receive(Ok(call())), Some(Event::Call(_))));
        assert!(is_nonsense(conversation.receive(Ok(call())).as_ref()));
    }
}
