//! The frames that a child writes.

use std::io::{self, Write};

use bytes::{Buf, BytesMut};

use crate::code::CallKind;

/// Longest payload of a frame, in bytes.
pub const FRAME: usize = 64 * 1024;

/// The length of a frame's head: its tag and the length of its payload.
pub const FRAME_HEAD: usize = 5;

/// The child wrote something that no real child writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonsense;

/// A message from the child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The child is confined and begins its job.
    Begun(Confinement),
    /// A piece of the output: JSON values, each followed by a newline.
    Output(Vec<u8>),
    /// The job is done.
    Done(Done),
    /// The job has failed.
    Failed(Failed),
    /// A piece of the data for the next frame: arguments, a value, names.
    Part(Vec<u8>),
    /// A call of a script. Its arguments are in the preceding parts.
    Call(Asked),
    /// A script waits for an answer. It has got this many so far.
    Waiting { answers: u32 },
    /// A script has ended. Its value is in the preceding parts.
    Returned,
    /// The tools that a script names are in the preceding parts.
    Reached { is_complete: bool },
}

/// The target of a script's call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The kind of the call, as in [`Asked::kind`].
    pub code: u8,
    pub server: Option<String>,
    pub tool: String,
}

/// The figures of a job that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Number of values that were sent completely.
    pub values: u64,
    /// Number of bytes of output that were made; more than were sent if the output was cut.
    pub bytes: u64,
    /// Whether the job ended. A job is not continued only to count output that nobody reads.
    pub ended: bool,
}

/// The reason why a job has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// The filter does not parse, or uses a function that does not exist.
    Filter(String),
    /// The input is not JSON.
    Input(String),
    /// The filter raised an error.
    Runtime(String),
    /// A value is nested too deeply.
    TooDeep,
    /// A value does not fit into the memory.
    OutOfMemory,
    /// A defect of the child.
    Internal(String),
    /// The script does not parse.
    Syntax(String),
    /// The script threw an exception.
    Thrown {
        message: String,
        call: Option<u32>,
    },
    /// The script computed for too long.
    TooSlow,
    /// Its text and value are too large.
    OutputTooLarge,
    TooManyCalls,
    /// Its value is not JSON.
    NotJson(String),
    /// It waits although nothing will come.
    NeverEnds,
}

/// The parts of the confinement that work for a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Confinement {
    /// Limits of memory, processor time, descriptors, processes and file sizes.
    pub limits: bool,
    /// Whether no program that it starts could have more rights.
    pub no_new_privileges: bool,
    /// Whether files, TCP and other processes are out of reach.
    pub landlock: Landlock,
    /// Whether system calls are limited to those that a computation needs (seccomp).
    pub system_calls: bool,
}

/// How much of Landlock's protection the kernel supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Landlock {
    #[default]
    Absent,
    /// An older kernel: files at least.
    Partial,
    Full,
}

const BEGUN: u8 = 1;
const OUTPUT: u8 = 2;
const DONE: u8 = 3;
const FAILED: u8 = 4;
const PART: u8 = 5;
const CALL: u8 = 6;
const WAITING: u8 = 7;
const RETURNED: u8 = 8;
const REACHED: u8 = 9;

impl Frame {
    /// The frame as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let (tag, mut payload) = match self {
            Self::Begun(confinement) => (BEGUN, confinement.encode().to_vec()),
            Self::Output(bytes) => (OUTPUT, bytes.clone()),
            Self::Done(done) => (DONE, done.encode()),
            Self::Failed(failed) => (FAILED, failed.encode()),
            Self::Part(bytes) => (PART, bytes.clone()),
            Self::Call(asked) => (CALL, asked.encode()),
            Self::Waiting { answers } => (WAITING, answers.to_le_bytes().to_vec()),
            Self::Returned => (RETURNED, Vec::new()),
            Self::Reached { is_complete } => (REACHED, vec![u8::from(*is_complete)]),
        };
        payload.truncate(FRAME);
        let length = u32::try_from(payload.len()).unwrap_or_default();
        let mut bytes = vec![tag];
        bytes.extend(length.to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    /// The tag and the length of the payload; `None` if the frame is too long.
    pub fn head(head: [u8; FRAME_HEAD]) -> Option<(u8, usize)> {
        let [tag, length @ ..] = head;
        let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
        (length <= FRAME).then_some((tag, length))
    }

    /// Takes the next complete frame.
    pub fn take(unread: &mut BytesMut) -> Option<Result<Self, Nonsense>> {
        let head = unread.first_chunk::<FRAME_HEAD>()?;
        let Some((tag, length)) = Self::head(*head) else { return Some(Err(Nonsense)) };
        if unread.len() < FRAME_HEAD + length {
            return None;
        }
        unread.advance(FRAME_HEAD);
        Some(Self::decode(tag, unread.split_to(length).to_vec()).ok_or(Nonsense))
    }

    /// Decodes a frame; `None` if no real child writes such a frame.
    pub fn decode(tag: u8, payload: Vec<u8>) -> Option<Self> {
        match tag {
            BEGUN => Confinement::decode(payload.try_into().ok()?).map(Self::Begun),
            OUTPUT => Some(Self::Output(payload)),
            DONE => Done::decode(payload.try_into().ok()?).map(Self::Done),
            FAILED => Failed::decode(&payload).map(Self::Failed),
            PART => Some(Self::Part(payload)),
            CALL => Asked::decode(&payload).map(Self::Call),
            WAITING => {
                let answers = payload.try_into().map(u32::from_le_bytes).ok()?;
                Some(Self::Waiting { answers })
            }
            RETURNED => payload.is_empty().then_some(Self::Returned),
            REACHED => match payload[..] {
                [is_complete] => Some(Self::Reached { is_complete: is_complete == 1 }),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.encode())?;
        to.flush()
    }
}

impl Confinement {
    fn encode(self) -> [u8; 4] {
        let landlock = match self.landlock {
            Landlock::Absent => 0,
            Landlock::Partial => 1,
            Landlock::Full => 2,
        };
        [self.limits.into(), self.no_new_privileges.into(), landlock, self.system_calls.into()]
    }

    fn decode([limits, no_new_privileges, landlock, system_calls]: [u8; 4]) -> Option<Self> {
        let landlock = match landlock {
            0 => Landlock::Absent,
            1 => Landlock::Partial,
            2 => Landlock::Full,
            _ => return None,
        };
        let [limits, no_new_privileges, system_calls] =
            [limits, no_new_privileges, system_calls].map(|byte| byte == 1);
        Some(Self { limits, no_new_privileges, landlock, system_calls })
    }
}

impl Done {
    fn encode(self) -> Vec<u8> {
        let numbers = [self.values, self.bytes].map(u64::to_le_bytes);
        [numbers.as_flattened(), &[u8::from(self.ended)]].concat()
    }

    fn decode(bytes: [u8; 17]) -> Option<Self> {
        let number = |from: usize| bytes[from..from + 8].try_into().ok().map(u64::from_le_bytes);
        Some(Self { values: number(0)?, bytes: number(8)?, ended: bytes[16] == 1 })
    }
}

impl Failed {
    fn encode(&self) -> Vec<u8> {
        let (kind, message) = match self {
            Self::Filter(message) => (1, message.as_str()),
            Self::Input(message) => (2, message.as_str()),
            Self::Runtime(message) => (3, message.as_str()),
            Self::TooDeep => (4, ""),
            Self::OutOfMemory => (5, ""),
            Self::Internal(message) => (6, message.as_str()),
            Self::Syntax(message) => (7, message.as_str()),
            Self::Thrown { message, call: None } => (8, message.as_str()),
            Self::Thrown { message, call: Some(call) } => {
                return [&[9], &call.to_le_bytes()[..], message.as_bytes()].concat();
            }
            Self::TooSlow => (10, ""),
            Self::OutputTooLarge => (11, ""),
            Self::TooManyCalls => (12, ""),
            Self::NotJson(message) => (13, message.as_str()),
            Self::NeverEnds => (14, ""),
        };
        [&[kind], message.as_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, mut message) = bytes.split_first()?;
        let mut call = None;
        if *kind == 9 {
            let (number, rest) = message.split_first_chunk()?;
            (call, message) = (Some(u32::from_le_bytes(*number)), rest);
        }
        let message = String::from_utf8_lossy(message).into_owned();
        Some(match kind {
            1 => Self::Filter(message),
            2 => Self::Input(message),
            3 => Self::Runtime(message),
            4 => Self::TooDeep,
            5 => Self::OutOfMemory,
            6 => Self::Internal(message),
            7 => Self::Syntax(message),
            8 | 9 => Self::Thrown { message, call },
            10 => Self::TooSlow,
            11 => Self::OutputTooLarge,
            12 => Self::TooManyCalls,
            13 => Self::NotJson(message),
            14 => Self::NeverEnds,
            _ => return None,
        })
    }
}

impl Asked {
    const TOOL: u8 = 0;
    const SEARCH: u8 = 1;
    const DESCRIBE: u8 = 2;
    const HELP: u8 = 3;
    const RESULT: u8 = 4;

    /// The kind of the call; `None` if the code is unknown.
    pub fn kind(self) -> Option<CallKind> {
        Some(match self.code {
            Self::TOOL => CallKind::Tool { server: self.server, tool: self.tool },
            Self::SEARCH => CallKind::Search,
            Self::DESCRIBE => CallKind::Describe,
            Self::HELP => CallKind::Help,
            Self::RESULT => CallKind::Result,
            _ => return None,
        })
    }

    fn encode(&self) -> Vec<u8> {
        let server = self.server.as_deref().unwrap_or_default();
        let length = u32::try_from(server.len()).unwrap_or_default();
        let head = [self.code, u8::from(self.server.is_some())];
        [&head, &length.to_le_bytes()[..], server.as_bytes(), self.tool.as_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let ([code, has_server], rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (server, tool) = rest.split_at_checked(u32::from_le_bytes(*length).try_into().ok()?)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        Some(Self { code: *code, server: text(server)?.into(), tool: text(tool)? })
            .map(|asked| Self { server: asked.server.filter(|_| *has_server == 1), ..asked })
    }
}

/// The tools of a script as parts of a [`Frame::Reached`].
pub fn reached_parts(tools: &[(String, String)]) -> Vec<u8> {
    let names = tools.iter().flat_map(|(server, tool)| [server, tool]);
    names.flat_map(|name| [&(name.len() as u64).to_le_bytes()[..], name.as_bytes()].concat()).collect()
}

/// Decodes parts; `None` if no real child writes such parts.
pub fn reached(mut parts: &[u8]) -> Option<Vec<(String, String)>> {
    let mut tools = Vec::new();
    while !parts.is_empty() {
        tools.push((super::text(&mut parts).ok()?, super::text(&mut parts).ok()?));
    }
    Some(tools)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn comes_back(frame: Frame) {
        let bytes = frame.encode();
        let (head, payload) = bytes.split_at(FRAME_HEAD);
        let (tag, length) = Frame::head(head.try_into().unwrap()).unwrap();
        assert_eq!(length, payload.len());
        assert_eq!(Frame::decode(tag, payload.to_vec()), Some(frame));
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        let confinement = Confinement { landlock: Landlock::Partial, limits: true, ..Confinement::default() };
        comes_back(Frame::Begun(confinement));
        comes_back(Frame::Output(b"1\n".to_vec()));
        comes_back(Frame::Done(Done { values: 7, bytes: u64::MAX, ended: true }));
        comes_back(Frame::Part(b"{}".to_vec()));
        comes_back(Frame::Waiting { answers: 9 });
        comes_back(Frame::Returned);
        comes_back(Frame::Reached { is_complete: true });
        for server in [None, Some(String::new()), Some("ä".to_owned())] {
            comes_back(Frame::Call(Asked { code: 0, server, tool: "é".to_owned() }));
        }
        let message = || "ä".to_owned();
        for failed in [
            Failed::Filter(message()),
            Failed::Input(message()),
            Failed::Runtime(message()),
            Failed::TooDeep,
            Failed::OutOfMemory,
            Failed::Internal(message()),
            Failed::Syntax(message()),
            Failed::Thrown { message: message(), call: None },
            Failed::Thrown { message: message(), call: Some(7) },
            Failed::TooSlow,
            Failed::OutputTooLarge,
            Failed::TooManyCalls,
            Failed::NotJson(message()),
            Failed::NeverEnds,
        ] {
            comes_back(Frame::Failed(failed));
        }
    }

    #[test]
    fn frames_that_no_child_writes_are_refused() {
        assert_eq!(Frame::head([OUTPUT, 0, 0, 2, 0]), None, "128 KiB");
        assert_eq!(Frame::decode(9, Vec::new()), None);
        assert_eq!(Frame::decode(BEGUN, vec![1, 1, 3, 1]), None);
        assert_eq!(Frame::decode(DONE, vec![0; 16]), None);
        assert_eq!(Frame::decode(FAILED, Vec::new()), None);
        assert_eq!(Frame::decode(FAILED, vec![9, 0]), None);
        assert_eq!(Frame::decode(CALL, vec![0, 1, 5, 0, 0, 0, b'a']), None);
        assert_eq!(Frame::decode(WAITING, vec![0]), None);
        assert_eq!(reached(&[1]), None);
    }

    #[test]
    fn the_tools_of_a_script_are_read_as_they_were_written() {
        let tools = vec![("a".to_owned(), "b.ä".to_owned()), (String::new(), "c".to_owned())];
        assert_eq!(reached(&reached_parts(&tools)), Some(tools));
    }
}
