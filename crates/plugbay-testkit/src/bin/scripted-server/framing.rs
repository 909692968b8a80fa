//! Messages in and out, delimited by newlines or by `Content-Length` headers.

use std::io::{self, BufRead, Write};

use crate::script::Framing;

/// The next message, or `None` at the end of input. Input with another framing is skipped silently.
pub(crate) fn read(input: &mut impl BufRead, framing: Framing) -> Option<String> {
    match framing {
        Framing::Newline => read_line(input).map(|line| line.trim().to_owned()),
        Framing::ContentLength => read_headed(input),
    }
}

pub(crate) fn write(output: &mut impl Write, framing: Framing, message: &str) -> io::Result<()> {
    match framing {
        Framing::Newline => {
            output.write_all(message.as_bytes())?;
            output.write_all(b"\n")?;
        }
        Framing::ContentLength => {
            write!(output, "Content-Length: {}\r\n\r\n", message.len())?;
            output.write_all(message.as_bytes())?;
        }
    }
    output.flush()
}

fn read_headed(input: &mut impl BufRead) -> Option<String> {
    let length = loop {
        if let Some(length) = content_length(&read_line(input)?) {
            break length;
        }
    };
    while !read_line(input)?.trim().is_empty() {}
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some(String::from_utf8_lossy(&body).into_owned())
}

fn content_length(line: &str) -> Option<usize> {
    let (key, value) = line.split_once(':')?;
    if !key.eq_ignore_ascii_case("content-length") {
        return None;
    }
    value.trim().parse().ok()
}

fn read_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    let count = input.read_until(b'\n', &mut line).ok()?;
    (count > 0).then(|| String::from_utf8_lossy(&line).into_owned())
}
