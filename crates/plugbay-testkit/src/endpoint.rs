//! A scripted HTTP endpoint that records its requests.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use serde_json::Value;

use crate::deadline::{DEADLINE, patience};

#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    asked: Receiver<Asked>,
    gone: Receiver<()>,
}

/// One request.
#[derive(Debug)]
pub struct Asked {
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as received, and as JSON.
    pub text: String,
    pub body: Value,
}

/// The reaction to the next request.
#[derive(Debug, Clone)]
pub enum Play {
    Answer {
        status: u16,
        headers: Vec<(&'static str, &'static str)>,
        body: String,
    },
    /// A stream of these events, which ends.
    Stream(Vec<String>),
    /// Like `Stream`, but after the events it stays silent for as long as the client stays.
    Silence(Vec<String>),
}

impl Play {
    pub fn json(status: u16, body: &Value) -> Self {
        Self::Answer { status, headers: Vec::new(), body: body.to_string() }
    }
}

impl Endpoint {
    /// Plays one after the other; further requests get a 500.
    pub fn start(plays: impl IntoIterator<Item = Play>) -> Self {
        let plays: Mutex<VecDeque<Play>> = Mutex::new(plays.into_iter().collect());
        let surplus = Play::Answer { status: 500, headers: Vec::new(), body: String::new() };
        Self::answering(move |_| plays.lock().expect("no panic").pop_front().unwrap_or(surplus.clone()))
    }

    /// Plays for each request what `play` returns for it.
    pub fn answering(play: impl Fn(&Asked) -> Play + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (arrivals, asked) = channel();
        let (leavings, gone) = channel();
        let play = Arc::new(play);
        // The thread ends with the test's process; until then it holds only the port.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (play, arrivals, leavings) = (Arc::clone(&play), arrivals.clone(), leavings.clone());
                thread::spawn(move || serve(stream, &*play, &arrivals, &leavings));
            }
        });
        Self { address, asked, gone }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits for the next request.
    #[track_caller]
    pub fn asked(&self) -> Asked {
        self.asked.recv_timeout(patience(DEADLINE)).expect("a request to the endpoint")
    }

    /// All requests so far that the test has not taken.
    pub fn untaken(&self) -> Vec<Asked> {
        self.asked.try_iter().collect()
    }

    /// Waits until a client has left in the middle of a silence.
    #[track_caller]
    pub fn left(&self) {
        self.gone.recv_timeout(patience(DEADLINE)).expect("the client's leaving");
    }
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

fn serve(
    mut stream: TcpStream,
    play: &(dyn Fn(&Asked) -> Play + Send + Sync),
    arrivals: &Sender<Asked>,
    leavings: &Sender<()>,
) {
    let Some(asked) = read(&stream) else { return };
    let play = play(&asked);
    let _ = arrivals.send(asked);
    let events = match play {
        Play::Answer { status, headers, body } => {
            let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
            for (name, value) in headers {
                let _ = write!(head, "{name}: {value}\r\n");
            }
            let _ = stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes());
            return;
        }
        Play::Stream(events) => {
            begin(&mut stream, &events);
            return;
        }
        Play::Silence(events) => events,
    };
    if !events.is_empty() {
        begin(&mut stream, &events);
    }
    let _ = stream.read_to_end(&mut Vec::new());
    let _ = leavings.send(());
}

/// Begins a stream without a length: it ends with its connection.
fn begin(stream: &mut TcpStream, events: &[String]) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let _ = stream.write_all(format!("{head}{}", events.concat()).as_bytes());
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut lines = BufReader::new(stream.try_clone().ok()?);
    let mut line = || {
        let mut line = String::new();
        lines.read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    };
    let path = line()?.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let header = line()?;
        let Some((name, value)) = header.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(Ok(0), |(_, length)| length.parse()).ok()?;
    let mut body = vec![0; length];
    lines.read_exact(&mut body).ok()?;
    let text = String::from_utf8(body).ok()?;
    let body = serde_json::from_str(&text).unwrap_or_default();
    Some(Asked { path, headers, text, body })
}
