//! The messages between a sandbox and its child: one request on stdin, a few frames on stdout.
//!
//! Numbers are little-endian. Neither side believes a length: the child reads what its memory limit allows, the
//! parent reads frames of at most [`FRAME`] bytes and output up to the limit of the job.

use std::io::{self, Read, Write};

use bytes::Bytes;

/// Changes with the messages: a gateway may outlive the program file that it was started from.
const VERSION: u8 = 1;

/// The longest payload of a frame.
pub const FRAME: usize = 64 * 1024;

/// The length of a frame's head: its tag and the length of its payload.
pub const FRAME_HEAD: usize = 5;

/// A job with its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Bytes of memory that the job may use.
    pub memory: u64,
    /// Seconds of processor time that the job may use.
    pub cpu: u64,
    /// Bytes of output that the parent takes.
    pub output: u64,
    pub job: Job,
}

/// The kinds of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Apply a jq filter to one JSON value.
    Jq { filter: String, input: Bytes },
    /// Compile a jq filter, and no more.
    Check { filter: String },
}

const JQ: u8 = 1;
const CHECK: u8 = 2;

impl Request {
    /// The request as bytes, in pieces: a large input is not copied.
    pub fn encode(self) -> [Bytes; 2] {
        let mut head = vec![VERSION];
        for number in [self.memory, self.cpu, self.output] {
            head.extend(number.to_le_bytes());
        }
        let (kind, filter, input) = match self.job {
            Job::Jq { filter, input } => (JQ, filter, Some(input)),
            Job::Check { filter } => (CHECK, filter, None),
        };
        head.push(kind);
        head.extend((filter.len() as u64).to_le_bytes());
        head.extend(filter.as_bytes());
        if let Some(input) = &input {
            head.extend((input.len() as u64).to_le_bytes());
        }
        [head.into(), input.unwrap_or_default()]
    }

    /// Reads one request. `None` if the parent closed the pipe before it sent one.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut version = [0];
        if from.read(&mut version)? == 0 {
            return Ok(None);
        }
        if version != [VERSION] {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the request is of another version"));
        }
        let [memory, cpu, output] = [number(from)?, number(from)?, number(from)?];
        let mut kind = [0];
        from.read_exact(&mut kind)?;
        let job = match kind {
            [JQ] => Job::Jq { filter: text(from)?, input: sized(from)?.into() },
            [CHECK] => Job::Check { filter: text(from)? },
            _ => return Err(io::Error::new(io::ErrorKind::Unsupported, "the job is of an unknown kind")),
        };
        Ok(Some(Self { memory, cpu, output, job }))
    }
}

fn text(from: &mut impl Read) -> io::Result<String> {
    String::from_utf8(sized(from)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn number(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn sized(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = number(from)?;
    let mut bytes = Vec::new();
    let read = from.take(length).read_to_end(&mut bytes)?;
    if read as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// A message of the child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The child is confined and begins with the job.
    Begun(Confinement),
    /// A piece of the output: JSON values, each followed by a newline.
    Output(Vec<u8>),
    /// The job is done.
    Done(Done),
    /// The job has failed.
    Failed(Failed),
}

/// The figures of a job that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// The values that were sent whole.
    pub values: u64,
    /// The bytes of output that were made; more than were sent if the output was cut.
    pub bytes: u64,
    /// Whether the job ended. A job is not finished merely to count output that nobody takes.
    pub ended: bool,
}

/// Why a job has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// The filter does not parse, or uses a function that there is not.
    Filter(String),
    /// The input is not JSON.
    Input(String),
    /// The filter raised an error.
    Runtime(String),
    /// A value nests too deep.
    TooDeep,
    /// A value is larger than the memory.
    OutOfMemory,
    /// A defect of the child.
    Internal(String),
}

/// The parts of the confinement that hold for a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Confinement {
    /// Limits of memory, processor time, descriptors, processes and file sizes.
    pub limits: bool,
    /// No program that it starts could have more rights.
    pub no_new_privileges: bool,
    /// Files, TCP and other processes are out of reach.
    pub landlock: Landlock,
    /// System calls are limited to those that a computation needs (seccomp).
    pub system_calls: bool,
}

/// How much of what Landlock can deny the kernel denies.
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

impl Frame {
    /// The frame as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let (tag, mut payload) = match self {
            Self::Begun(confinement) => (BEGUN, confinement.encode().to_vec()),
            Self::Output(bytes) => (OUTPUT, bytes.clone()),
            Self::Done(done) => (DONE, done.encode()),
            Self::Failed(failed) => (FAILED, failed.encode()),
        };
        payload.truncate(FRAME);
        let length = u32::try_from(payload.len()).unwrap_or_default();
        let mut bytes = vec![tag];
        bytes.extend(length.to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    /// The tag and the length of the payload, if a frame may be so long.
    pub fn head(head: [u8; FRAME_HEAD]) -> Option<(u8, usize)> {
        let [tag, length @ ..] = head;
        let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
        (length <= FRAME).then_some((tag, length))
    }

    /// `None` if no child writes such a frame.
    pub fn decode(tag: u8, payload: Vec<u8>) -> Option<Self> {
        match tag {
            BEGUN => Confinement::decode(payload.try_into().ok()?).map(Self::Begun),
            OUTPUT => Some(Self::Output(payload)),
            DONE => Done::decode(payload.try_into().ok()?).map(Self::Done),
            FAILED => Failed::decode(&payload).map(Self::Failed),
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
        };
        [&[kind], message.as_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, message) = bytes.split_first()?;
        let message = String::from_utf8_lossy(message).into_owned();
        Some(match kind {
            1 => Self::Filter(message),
            2 => Self::Input(message),
            3 => Self::Runtime(message),
            4 => Self::TooDeep,
            5 => Self::OutOfMemory,
            6 => Self::Internal(message),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(job: Job) -> Request {
        Request { memory: 1, cpu: 2, output: 3, job }
    }

    fn jq(filter: &str, input: &[u8]) -> Request {
        request(Job::Jq { filter: filter.to_owned(), input: Bytes::copy_from_slice(input) })
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        for request in [jq(".ä", b"{}"), jq("", b""), request(Job::Check { filter: ".".to_owned() })] {
            assert_eq!(
                Request::read(&mut request.clone().encode().concat().as_slice()).unwrap(),
                Some(request)
            );
        }
    }

    #[test]
    fn a_parent_that_sends_nothing_has_no_request() {
        assert_eq!(Request::read(&mut [].as_slice()).unwrap(), None);
    }

    #[test]
    fn a_request_that_is_cut_or_foreign_is_an_error() {
        let whole = jq(".", b"1").encode().concat();
        for length in 1..whole.len() {
            assert!(Request::read(&mut &whole[..length]).is_err(), "{length} bytes");
        }
        let mut other = whole.clone();
        other[0] += 1;
        assert_eq!(Request::read(&mut other.as_slice()).unwrap_err().kind(), io::ErrorKind::Unsupported);
        // A length beyond the bytes that follow costs no memory.
        let mut huge = whole;
        huge[26..34].fill(0xff);
        assert_eq!(Request::read(&mut huge.as_slice()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

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
        let message = || "ä".to_owned();
        for failed in [
            Failed::Filter(message()),
            Failed::Input(message()),
            Failed::Runtime(message()),
            Failed::TooDeep,
            Failed::OutOfMemory,
            Failed::Internal(message()),
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
    }
}
