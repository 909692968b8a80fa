//! The messages between a sandbox and its child: one request on stdin, frames on stdout. A script also gets the
//! answers to its calls on stdin.
//!
//! Numbers are little-endian. Neither side trusts a length: the child reads what its memory limit allows, the
//! parent reads frames of at most [`FRAME`] bytes and output up to the limit of the job.

mod answer;
mod frame;

use std::io::{self, Read};

use bytes::Bytes;

pub use self::{
    answer::Answered,
    frame::{
        Asked, Confinement, Done, FRAME, FRAME_HEAD, Failed, Frame, Landlock, Nonsense, reached,
        reached_parts,
    },
};

/// The version of the messages: a gateway may outlive the program file that it was started from.
const VERSION: u8 = 2;

/// A job with its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Bytes of memory that the job may use.
    pub memory: u64,
    /// Seconds of processor time that the job may use.
    pub cpu: u64,
    /// Bytes of output that the parent accepts.
    pub output: u64,
    pub job: Job,
}

/// The kinds of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Apply a jq filter to one JSON value.
    Jq { filter: String, input: Bytes },
    /// Only compile a jq filter.
    Check { filter: String },
    /// Run a script.
    Code(Code),
    /// Report the tools that a script names.
    Reach { code: String },
}

/// A script with the limits that only scripts have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    pub code: String,
    /// JSON, or empty.
    pub input: Bytes,
    pub seed: u64,
    /// Milliseconds since 1970.
    pub now: i64,
    /// Limit of calls.
    pub calls: u32,
    /// Limit of computing time, in milliseconds.
    pub compute: u64,
}

const JQ: u8 = 1;
const CHECK: u8 = 2;
const CODE: u8 = 3;
const REACH: u8 = 4;

impl Request {
    /// The request as bytes, in pieces: a large input is not copied.
    pub fn encode(self) -> [Bytes; 2] {
        let mut head = vec![VERSION];
        for number in [self.memory, self.cpu, self.output] {
            head.extend(number.to_le_bytes());
        }
        let (kind, text, numbers, input) = match self.job {
            Job::Jq { filter, input } => (JQ, filter, Vec::new(), Some(input)),
            Job::Check { filter } => (CHECK, filter, Vec::new(), None),
            Job::Reach { code } => (REACH, code, Vec::new(), None),
            Job::Code(Code { code, input, seed, now, calls, compute }) => {
                (CODE, code, vec![seed, now.cast_unsigned(), calls.into(), compute], Some(input))
            }
        };
        head.push(kind);
        head.extend((text.len() as u64).to_le_bytes());
        head.extend(text.as_bytes());
        head.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        if let Some(input) = &input {
            head.extend((input.len() as u64).to_le_bytes());
        }
        [head.into(), input.unwrap_or_default()]
    }

    /// Reads one request; `None` if the parent closed the pipe before sending one.
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
            [REACH] => Job::Reach { code: text(from)? },
            [CODE] => Job::Code(Code {
                code: text(from)?,
                seed: number(from)?,
                now: number(from)?.cast_signed(),
                calls: u32::try_from(number(from)?).unwrap_or(u32::MAX),
                compute: number(from)?,
                input: sized(from)?.into(),
            }),
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
        let code = Code {
            code: "return input".to_owned(),
            input: Bytes::from_static(b"{}"),
            seed: 1,
            now: -2,
            calls: 3,
            compute: 4,
        };
        for request in [
            jq(".ä", b"{}"),
            jq("", b""),
            request(Job::Check { filter: ".".to_owned() }),
            request(Job::Reach { code: "tools.a.b()".to_owned() }),
            request(Job::Code(code)),
        ] {
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
        // A length beyond the actual bytes costs no memory.
        let mut huge = whole;
        huge[26..34].fill(0xff);
        assert_eq!(Request::read(&mut huge.as_slice()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
