//! A host that speaks raw HTTP to a gateway and decides what it reads, and when.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, ExitStatus, Stdio},
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::{
    deadline::{DEADLINE, patience, wait_until},
    process::{Process, Signal},
};

/// `plugbay serve --http`, running.
#[derive(Debug)]
pub struct HttpGateway {
    child: Child,
    address: String,
    /// The thread that reads stderr to its end and returns it.
    stderr: Option<JoinHandle<String>>,
}

/// One connection.
#[derive(Debug)]
pub struct HttpHost {
    stream: BufReader<TcpStream>,
    address: String,
}

#[derive(Debug)]
pub struct HttpReply {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; of a stream, everything up to its end.
    pub body: String,
}

impl HttpGateway {
    /// Adds `--http 127.0.0.1:0` to `command` and waits until the gateway prints its address.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self::start_at(command, "127.0.0.1:0")
    }

    /// Like `start`, at this address.
    #[track_caller]
    pub fn start_at(command: &mut Command, address: &str) -> Self {
        let command = command.args(["--http", address]).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let mut lines = BufReader::new(child.stderr.take().expect("stderr"));
        let mut told = String::new();
        let address = loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).is_ok_and(|count| count > 0), "no address: {told}");
            told += &line;
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.split('/').next().unwrap_or_default().to_owned();
            }
        };
        // Somebody must read on; otherwise the gateway would count the lines that it lost.
        let stderr = thread::spawn(move || {
            let mut rest = Vec::new();
            let _ = lines.read_to_end(&mut rest);
            told + &String::from_utf8_lossy(&rest)
        });
        Self { child, address, stderr: Some(stderr) }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn connect(&self) -> HttpHost {
        self.connect_for(DEADLINE)
    }

    /// A host that waits this long for each part of an answer.
    pub fn connect_for(&self, time: Duration) -> HttpHost {
        let stream = TcpStream::connect(&self.address).expect("the gateway listens");
        stream.set_read_timeout(Some(patience(time))).expect("a timeout");
        HttpHost { stream: BufReader::new(stream), address: self.address.clone() }
    }

    /// A host with a small receive buffer.
    pub fn connect_slow(&self) -> HttpHost {
        let host = self.connect();
        let narrow = rustix::net::sockopt::set_socket_recv_buffer_size(host.stream.get_ref(), 4096);
        narrow.expect("a smaller buffer");
        host
    }

    /// One POST on a connection of its own.
    pub fn post(&self, headers: &[(&str, &str)], body: &str) -> HttpReply {
        let mut host = self.connect();
        host.post(headers, body);
        host.reply()
    }

    /// The peak memory of the process, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("/proc");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
        let kibibytes: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
        kibibytes * 1024
    }

    pub fn terminate(&self) {
        if let Some(process) = Process::of(self.child.id()) {
            process.signal(Signal::TERM);
        }
    }

    pub fn ended(&mut self) -> ExitStatus {
        wait_until("the gateway to end", DEADLINE, || self.child.try_wait().expect("a child"))
    }

    /// Everything that the gateway wrote to stderr, once it has ended.
    pub fn into_stderr(mut self) -> String {
        self.ended();
        self.stderr.take().map(|reader| reader.join().expect("a reader")).unwrap_or_default()
    }
}

impl Drop for HttpGateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl HttpHost {
    /// Sends a POST and reads nothing.
    pub fn post(&mut self, headers: &[(&str, &str)], body: &str) {
        self.request("POST", headers, body);
    }

    pub fn request(&mut self, method: &str, headers: &[(&str, &str)], body: &str) {
        self.request_at(method, "/mcp", headers, body);
    }

    pub fn request_at(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
            self.address,
            body.len()
        );
        for (name, value) in headers {
            text.extend([name, ": ", value, "\r\n"]);
        }
        let sent = self.stream.get_mut().write_all(format!("{text}\r\n{body}").as_bytes());
        sent.expect("the gateway reads");
    }

    /// Waits until an answer begins, and reads no more of it than has already arrived.
    pub fn begins(&mut self) {
        let begun = self.stream.fill_buf().is_ok_and(|bytes| !bytes.is_empty());
        assert!(begun, "no answer");
    }

    /// Reads lines of an answer until one contains `part`; `None` at the end, or after this host's time
    /// limit.
    pub fn line_with(&mut self, part: &str) -> Option<String> {
        loop {
            let mut line = String::new();
            if !self.stream.read_line(&mut line).is_ok_and(|count| count > 0) {
                return None;
            }
            if line.contains(part) {
                return Some(line);
            }
        }
    }

    pub fn reply(&mut self) -> HttpReply {
        let status = self.line();
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let find = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        let body = match find("content-length").map(|length| length.parse().expect("a length")) {
            Some(length) => self.exactly(length),
            None if find("transfer-encoding").is_some() => self.chunks(),
            None => Vec::new(),
        };
        HttpReply { status, headers, body: String::from_utf8(body).expect("UTF-8") }
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let length = usize::from_str_radix(&self.line(), 16).expect("the length of a chunk");
            body.extend(self.exactly(length));
            self.line();
            if length == 0 {
                return body;
            }
        }
    }

    fn exactly(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).expect("a whole body");
        bytes
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }
}

impl HttpReply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
