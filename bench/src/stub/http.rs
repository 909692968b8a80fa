//! The stub over HTTP: JSON answers, no sessions, one thread per connection.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::http::Incoming;
use crate::stub::{Options, Stub};
use crate::{Outcome, output};

/// Up to this size head and body are one write; above it, copying costs more than a system call.
const ONE_WRITE: usize = 32 * 1024;

/// Serves for ever; the driver ends us.
pub(crate) fn serve(address: &str, options: &Options) -> Outcome<()> {
    let listener = TcpListener::bind(address)?;
    output::progress(&format!("listening on http://{}/mcp", listener.local_addr()?));
    for stream in listener.incoming() {
        let (stream, stub) = (stream?, Stub::new(options)?);
        thread::spawn(move || {
            // It is no error if the client is gone.
            let _ = converse(stream, stub);
        });
    }
    Ok(())
}

fn converse(mut stream: TcpStream, mut stub: Stub) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let mut incoming = Incoming::new();
    let mut out = Vec::new();
    while incoming.receive(&mut stream)? {
        if incoming.first_line().starts_with("POST ") {
            match stub.answer(incoming.body())? {
                Some(body) => write(&mut stream, &mut out, "200 OK", body)?,
                None => write(&mut stream, &mut out, "202 Accepted", b"")?,
            }
        } else {
            write(&mut stream, &mut out, "405 Method Not Allowed", b"")?;
        }
        incoming.next();
    }
    Ok(())
}

fn write(stream: &mut impl Write, out: &mut Vec<u8>, status: &str, body: &[u8]) -> Outcome<()> {
    out.clear();
    let length = body.len();
    write!(out, "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n")?;
    if length <= ONE_WRITE {
        out.extend_from_slice(body);
        stream.write_all(out)?;
    } else {
        stream.write_all(out)?;
        stream.write_all(body)?;
    }
    Ok(())
}
