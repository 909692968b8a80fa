//! A scripted site on loopback: an MCP server, its authorization server, or both. It records every request.

mod body;
mod grants;
mod routes;

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    net::Ipv4Addr,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http_body_util::BodyExt as _;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

pub use self::{
    body::Reply,
    grants::{Grants, SECRET},
};

/// The authorization server's time, in seconds since 1970.
pub type Time = Arc<AtomicU64>;

/// The start of the simulated time.
pub const START: u64 = 1_800_000_000;

/// A request as the site has received it.
#[derive(Debug, Clone)]
pub struct Received {
    pub method: String,
    pub path: String,
    pub query: String,
    /// All headers as text, one per line.
    pub headers: String,
    pub body: String,
}

/// A programmed answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub reply: Reply,
}

impl Answer {
    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json", body.to_string())
    }

    pub fn text(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        let reply = Reply::Whole(body.into().into());
        Self { status, headers: vec![("content-type", kind.to_owned())], reply }
    }

    pub fn redirect(status: u16, location: &str) -> Self {
        Self { status, headers: vec![("location", location.to_owned())], reply: Reply::default() }
    }
}

/// Trouble with the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trouble {
    #[default]
    None,
    /// The connection ends without an answer, as when the process is killed.
    Killed,
    /// It answers with status 503.
    Unavailable,
    /// It answers after this time.
    Slow(Duration),
    /// It carries out the request, and the connection breaks after this many bytes of the answer.
    Broken(usize),
    /// It accepts the request, but carries it out only when the trouble is over.
    Held,
    /// It carries out the request, but sends the answer only when the trouble is over.
    HeldAfter,
}

/// The behaviour of the site.
#[derive(Debug)]
pub struct Script {
    pub grants: Grants,
    /// Fields of the protected resource metadata, and of the authorization server's. `null` removes a field.
    pub resource: Value,
    pub server: Value,
    /// The challenge in place of `Bearer resource_metadata=…`.
    pub challenge: Option<String>,
    /// The scopes that the MCP server demands.
    pub needs: Vec<String>,
    /// Whether the MCP server rejects all tokens.
    pub rejects_all: bool,
    /// Answers by path that replace the usual ones: for the next requests, and for all further ones.
    once: HashMap<String, VecDeque<Answer>>,
    always: HashMap<String, Answer>,
    received: Vec<Received>,
}

/// A site that runs until this is dropped.
#[derive(Debug)]
pub struct Site {
    pub origin: String,
    pub time: Time,
    script: Arc<Mutex<Script>>,
    trouble: watch::Sender<Trouble>,
    /// How many requests wait in [`Trouble::Held`] and [`Trouble::HeldAfter`].
    held: watch::Sender<usize>,
    serving: JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Site {
    pub async fn start() -> Self {
        Self::at(Arc::new(AtomicU64::new(START))).await
    }

    pub async fn at(time: Time) -> Self {
        crate::log::capture();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let script = Script {
            grants: Grants::default(),
            resource: json!({}),
            server: json!({}),
            challenge: None,
            needs: Vec::new(),
            rejects_all: false,
            once: HashMap::new(),
            always: HashMap::new(),
            received: Vec::new(),
        };
        let (script, trouble, held) =
            (Arc::new(Mutex::new(script)), watch::channel(Trouble::None).0, watch::channel(0).0);
        let place = Place {
            origin: origin.clone(),
            time: Arc::clone(&time),
            script: Arc::clone(&script),
            trouble: trouble.clone(),
            held: held.clone(),
        };
        let serving = tokio::spawn(serve(listener, place));
        Self { origin, time, script, trouble, held, serving }
    }

    /// The URL of the MCP server.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    pub fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    pub fn trouble(&self, trouble: Trouble) {
        self.trouble.send_replace(trouble);
    }

    /// Waits until this many requests are held.
    pub async fn held(&self, count: usize) {
        self.held.subscribe().wait_for(|held| *held >= count).await.unwrap();
    }

    pub fn now(&self) -> u64 {
        self.time.load(Ordering::SeqCst)
    }

    pub fn pass(&self, seconds: u64) {
        self.time.fetch_add(seconds, Ordering::SeqCst);
    }

    /// Programs the answer to all requests for a path.
    pub fn always(&self, path: &str, answer: Answer) {
        self.script().always.insert(path.to_owned(), answer);
    }

    /// Programs the answer to the next request for a path.
    pub fn once(&self, path: &str, answer: Answer) {
        self.script().once.entry(path.to_owned()).or_default().push_back(answer);
    }

    pub fn received(&self) -> Vec<Received> {
        self.script().received.clone()
    }

    /// The paths of all requests, in order.
    pub fn paths(&self) -> Vec<String> {
        self.received().into_iter().map(|request| request.path).collect()
    }

    /// The bodies of all requests for a path.
    pub fn bodies(&self, path: &str) -> Vec<String> {
        self.received()
            .into_iter()
            .filter(|request| request.path == path)
            .map(|request| request.body)
            .collect()
    }

    /// Everything that the site has received, as text.
    pub fn everything(&self) -> String {
        let line = |request: &Received| {
            let Received { method, path, query, headers, body } = request;
            format!("{method} {path}?{query}\n{headers}\n{body}\n")
        };
        self.received().iter().map(line).collect()
    }
}

/// The data that a connection needs.
#[derive(Clone)]
struct Place {
    origin: String,
    time: Time,
    script: Arc<Mutex<Script>>,
    trouble: watch::Sender<Trouble>,
    held: watch::Sender<usize>,
}

async fn serve(listener: TcpListener, place: Place) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let place = place.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let place = place.clone();
                async move { answer(place, request).await }
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Answers a request. An error ends the connection.
async fn answer(place: Place, request: Request<Incoming>) -> Result<Response<Reply>, &'static str> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| "the client has gone")?.to_bytes();
    let received = Received {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers.iter().fold(String::new(), |text, (name, value)| {
            format!("{text}{name}: {}\n", String::from_utf8_lossy(value.as_bytes()))
        }),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let programmed = {
        let mut script = place.script.lock().unwrap();
        script.received.push(received.clone());
        let next = script.once.get_mut(&received.path).and_then(VecDeque::pop_front);
        next.or_else(|| script.always.get(&received.path).cloned())
    };
    let answer = match programmed {
        Some(answer) => answer,
        None if received.path == "/token" => troubled(&place, &received, &parts.headers).await?,
        None => place.route(&received, &parts.headers),
    };
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    Ok::<_, Infallible>(response.body(answer.reply).unwrap()).map_err(|_| "never")
}

/// The answer of the token endpoint, with its current trouble.
async fn troubled(
    place: &Place,
    received: &Received,
    headers: &hyper::HeaderMap,
) -> Result<Answer, &'static str> {
    let trouble = *place.trouble.borrow();
    match trouble {
        Trouble::None => Ok(place.route(received, headers)),
        Trouble::Killed => Err("killed"),
        Trouble::Unavailable => Ok(Answer::json(503, &json!({}))),
        Trouble::Slow(time) => {
            tokio::time::sleep(time).await;
            Ok(place.route(received, headers))
        }
        Trouble::Broken(bytes) => {
            let mut answer = place.route(received, headers);
            answer.reply = answer.reply.broken_after(bytes);
            Ok(answer)
        }
        Trouble::Held => {
            place.wait().await;
            Ok(place.route(received, headers))
        }
        Trouble::HeldAfter => {
            let answer = place.route(received, headers);
            place.wait().await;
            Ok(answer)
        }
    }
}

impl Place {
    async fn wait(&self) {
        let mut trouble = self.trouble.subscribe();
        self.held.send_modify(|held| *held += 1);
        // The request may be dropped while it waits, because its client was killed.
        let held = Counted(&self.held);
        let _ = trouble.wait_for(|trouble| !matches!(trouble, Trouble::Held | Trouble::HeldAfter)).await;
        drop(held);
    }
}

struct Counted<'a>(&'a watch::Sender<usize>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held -= 1);
    }
}
