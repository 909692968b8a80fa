//! A scripted HTTP/1.1 server: the test writes every response.

use std::{
    collections::VecDeque,
    fmt::{Display, Write as _},
    net::SocketAddr,
};

use bytes::{Buf, BytesMut};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
};

use super::soon;

pub(super) struct Server {
    pub(super) address: SocketAddr,
    arrivals: mpsc::UnboundedReceiver<Request>,
    /// Requests that came while another one was awaited.
    waiting: VecDeque<Request>,
    accepting: AbortHandle,
}

/// One request. If it is dropped before its answer is complete, its connection is cut.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    headers: Vec<(String, String)>,
    /// The message in its body, or null.
    pub(super) message: Value,
    /// The number of its connection, counted from 0.
    pub(super) connection: usize,
    out: mpsc::UnboundedSender<Out>,
    gone: watch::Receiver<bool>,
}

enum Out {
    Bytes(Vec<u8>),
    /// The answer is complete, and the connection may be used again.
    Whole,
}

impl Server {
    pub(super) async fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap()).await
    }

    pub(super) async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, arrivals) = mpsc::unbounded_channel();
        let accepting = tokio::spawn(accept(listener, sender)).abort_handle();
        Self { address, arrivals, waiting: VecDeque::new(), accepting }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Closes the port and every connection.
    pub(super) async fn vanish(self) -> SocketAddr {
        let address = self.address;
        drop(self);
        // The listener is closed when its task is dropped, at the task's next turn.
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        address
    }

    /// The next request of this kind: an MCP method, "answer", "GET" or "DELETE".
    pub(super) async fn take(&mut self, kind: &str) -> Request {
        if let Some(at) = self.waiting.iter().position(|request| request.kind() == kind) {
            return self.waiting.remove(at).unwrap();
        }
        loop {
            let next = soon(kind, self.arrivals.recv()).await.expect("the listener is there");
            if next.kind() == kind {
                return next;
            }
            self.waiting.push_back(next);
        }
    }

    /// The next request of any kind.
    pub(super) async fn next(&mut self) -> Request {
        if let Some(next) = self.waiting.pop_front() {
            return next;
        }
        soon("a request", self.arrivals.recv()).await.expect("the listener is there")
    }

    /// The next call of this tool.
    pub(super) async fn take_call(&mut self, tool: &str) -> Request {
        let call = self.take("tools/call").await;
        assert_eq!(call.message["params"]["name"], tool);
        call
    }

    /// The kinds of all requests that have come and were not taken.
    pub(super) fn untaken(&mut self) -> Vec<String> {
        while let Ok(request) = self.arrivals.try_recv() {
            self.waiting.push_back(request);
        }
        self.waiting.iter().map(|request| request.kind().to_owned()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Request {
    pub(super) fn kind(&self) -> &str {
        if self.method != "POST" {
            return &self.method;
        }
        self.message["method"].as_str().unwrap_or("answer")
    }

    /// The value of a header that occurs at most once.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "{name} is there twice");
        value
    }

    pub(super) fn all_headers(&self) -> String {
        format!("{:?}", self.headers)
    }

    // --- answering

    /// Sends bytes unchanged.
    pub(super) fn raw(&self, bytes: impl Display) {
        self.raw_bytes(bytes.to_string().into_bytes());
    }

    pub(super) fn raw_bytes(&self, bytes: Vec<u8>) {
        let _ = self.out.send(Out::Bytes(bytes));
    }

    /// Sends a body of JSON, or of bytes in its place.
    pub(super) fn json_bytes(self, body: &[u8]) {
        let head = format!(
            "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.raw_bytes([head.as_bytes(), body].concat());
        let _ = self.out.send(Out::Whole);
    }

    pub(super) fn reply(self, status: u16, headers: &[(&str, &str)], body: impl Display) {
        let body = body.to_string();
        let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        self.raw(format!("{head}\r\n{body}"));
        let _ = self.out.send(Out::Whole);
    }

    pub(super) fn status(self, status: u16) {
        self.reply(status, &[], "");
    }

    pub(super) fn json(self, status: u16, body: impl Display) {
        self.reply(status, &[("content-type", "application/json")], body);
    }

    /// The message that answers this one.
    pub(super) fn response(&self, result: Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.message["id"], "result": result })
    }

    pub(super) fn answer(self, result: Value) {
        let response = self.response(result);
        self.json(200, response);
    }

    pub(super) fn stream(self) -> Stream {
        self.raw(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n",
        );
        Stream(self)
    }

    /// Waits until the client has closed the connection.
    pub(super) async fn gone(&mut self) {
        let _ = soon("the client's leaving", self.gone.wait_for(|gone| *gone)).await;
    }
}

/// An answer that is a stream. If it is dropped without [`Stream::end`], the stream breaks.
pub(super) struct Stream(pub(super) Request);

impl Stream {
    pub(super) fn write(&self, text: impl Display) {
        let text = text.to_string();
        self.0.raw(format!("{:x}\r\n{text}\r\n", text.len()));
    }

    /// Sends an event with these bytes as data, one field for each line.
    pub(super) fn event_bytes(&self, data: &[u8]) {
        let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
        let event = [b"data: ", &lines.join(&b"\ndata: "[..])[..], b"\n\n"].concat();
        let head = format!("{:x}\r\n", event.len());
        self.0.raw_bytes([head.as_bytes(), &event, b"\r\n"].concat());
    }

    pub(super) fn event(&self, message: impl Display) {
        self.write(format!("data: {message}\n\n"));
    }

    pub(super) fn answer(&self, result: Value) {
        self.event(self.0.response(result));
    }

    pub(super) fn notify(&self, method: &str, params: Value) {
        self.event(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    pub(super) fn end(self) {
        self.0.raw("0\r\n\r\n");
        let _ = self.0.out.send(Out::Whole);
    }
}

async fn accept(listener: TcpListener, arrivals: mpsc::UnboundedSender<Request>) {
    let mut connections = JoinSet::new();
    for number in 0.. {
        let Ok((stream, _)) = listener.accept().await else { return };
        connections.spawn(serve(stream, number, arrivals.clone()));
    }
}

async fn serve(mut stream: TcpStream, connection: usize, arrivals: mpsc::UnboundedSender<Request>) {
    let mut buffer = BytesMut::new();
    while let Some((method, path, headers, message)) = read(&mut stream, &mut buffer).await {
        let (out, mut answers) = mpsc::unbounded_channel();
        let (leaving, gone) = watch::channel(false);
        let _ = arrivals.send(Request { method, path, headers, message, connection, out, gone });
        loop {
            tokio::select! {
                biased;
                answer = answers.recv() => match answer {
                    Some(Out::Bytes(bytes)) => _ = stream.write_all(&bytes).await,
                    Some(Out::Whole) => break,
                    None => return,
                },
                read = stream.read_buf(&mut buffer) => if !matches!(read, Ok(1..)) {
                    leaving.send_replace(true);
                    return;
                }
            }
        }
    }
}

type Parts = (String, String, Vec<(String, String)>, Value);

async fn read(stream: &mut TcpStream, buffer: &mut BytesMut) -> Option<Parts> {
    let end = loop {
        match memchr::memmem::find(buffer, b"\r\n\r\n") {
            Some(end) => break end,
            None => more(stream, buffer).await?,
        }
    };
    let head = String::from_utf8(buffer.split_to(end).to_vec()).expect("ASCII");
    buffer.advance(4);
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, length)| length.parse().expect("a length"));
    while buffer.len() < length {
        more(stream, buffer).await?;
    }
    let body = buffer.split_to(length);
    let message = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).expect("JSON") };
    Some((method, path, headers, message))
}

async fn more(stream: &mut TcpStream, buffer: &mut BytesMut) -> Option<()> {
    matches!(stream.read_buf(buffer).await, Ok(1..)).then_some(())
}
