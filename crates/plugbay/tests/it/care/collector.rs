//! A scripted OTLP collector on loopback, which keeps the requests that it gets.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::any_value::Value,
    trace::v1::Span,
};
use plugbay_testkit::{DEADLINE, wait_until};
use prost::Message as _;

pub struct Collector {
    address: SocketAddr,
    /// The path and the body of each request.
    got: Arc<Mutex<Requests>>,
}

type Requests = Vec<(String, Vec<u8>)>;

/// A span as it came.
#[derive(Debug)]
pub struct SpanSeen {
    pub name: String,
    pub kind: i32,
    span: Span,
}

impl SpanSeen {
    pub fn id(&self) -> String {
        hex(&self.span.span_id)
    }

    pub fn parent(&self) -> String {
        hex(&self.span.parent_span_id)
    }

    pub fn trace_id(&self) -> String {
        hex(&self.span.trace_id)
    }

    pub fn attribute(&self, key: &str) -> Option<String> {
        let attribute = self.span.attributes.iter().find(|attribute| attribute.key == key)?;
        match attribute.value.as_ref()?.value.as_ref()? {
            Value::StringValue(text) => Some(text.clone()),
            other => Some(format!("{other:?}")),
        }
    }
}

impl Collector {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&got);
        // Ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || while take(&stream, &kept).is_some() {});
            }
        });
        Self { address, got }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits for this many spans.
    #[track_caller]
    pub fn spans(&self, count: usize) -> Vec<SpanSeen> {
        wait_until("spans", DEADLINE, || {
            let spans = self.all_spans();
            (spans.len() >= count).then_some(spans)
        })
    }

    #[track_caller]
    pub fn await_metric(&self, name: &str) {
        wait_until("a metric", DEADLINE, || {
            let got = self.got.lock().unwrap();
            let metrics = got.iter().filter(|(path, _)| path == "/v1/metrics");
            let mut metrics =
                metrics.filter_map(|(_, body)| ExportMetricsServiceRequest::decode(&body[..]).ok());
            metrics.any(|request| format!("{request:?}").contains(name)).then_some(())
        });
    }

    /// Everything that was received, as text.
    pub fn everything(&self) -> String {
        let got = self.got.lock().unwrap();
        got.iter().fold(String::new(), |all, (path, body)| all + path + &String::from_utf8_lossy(body))
    }

    fn all_spans(&self) -> Vec<SpanSeen> {
        let got = self.got.lock().unwrap();
        let traces = got.iter().filter(|(path, _)| path == "/v1/traces");
        let requests =
            traces.map(|(_, body)| ExportTraceServiceRequest::decode(&body[..]).expect("protobuf"));
        let scopes = requests.flat_map(|request| request.resource_spans).flat_map(|spans| spans.scope_spans);
        let spans = scopes.flat_map(|scope| scope.spans);
        spans.map(|span| SpanSeen { name: span.name.clone(), kind: span.kind, span }).collect()
    }
}

/// Reads one request and accepts it.
fn take(stream: &TcpStream, kept: &Mutex<Requests>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|count| *count > 0)?;
        let header = header.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    kept.lock().unwrap().push((path, body));
    let mut stream = stream;
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n")
        .ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
