//! The redirect at the end of a login: a listener on this machine, and the page that the user sees.

use std::{convert::Infallible, io, net::Ipv4Addr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HOST},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use plugbay_core::secret::Secret;
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc, oneshot},
    task::JoinSet,
    time::timeout,
};

/// The path of the redirect URI.
const PATH: &str = "/callback";
/// Limit of connections served at a time.
const MOST_CONNECTIONS: usize = 16;
/// How long pages may still be sent after the login.
const LAST_PAGES: Duration = Duration::from_secs(2);
const HEADER_PATIENCE: Duration = Duration::from_secs(10);

/// An answer of the authorization server, from a browser or pasted by the user.
#[derive(Debug)]
pub struct Arrival {
    /// The query of the redirect, which contains the code.
    pub query: Secret,
    /// Takes the page that says how the login ended.
    pub outcome: oneshot::Sender<Page>,
    /// Notified when the browser has the page; `None` if there is no browser.
    pub shown: Option<Arc<Notify>>,
}

/// The page in the user's browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    LoggedIn {
        server: String,
    },
    Failed {
        server: String,
        why: String,
    },
    /// The answer belongs to no current login.
    Stranger,
}

/// Listens for the redirect, on this machine only.
#[derive(Debug)]
pub struct Callback {
    /// `None` if the user pastes the redirect.
    listener: Option<TcpListener>,
    pub redirect_uri: String,
}

impl Callback {
    /// Listens for the redirect. With a `fixed` port the redirect URI is `http://localhost:PORT/callback`, as
    /// clients are registered elsewhere. Otherwise any port is used, `preferred` if it is free. `pasted`: a
    /// fixed port need not be free.
    pub async fn listen(fixed: Option<u16>, preferred: Option<u16>, pasted: bool) -> io::Result<Self> {
        if let Some(port) = fixed {
            let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
                Err(_) if pasted => None,
                Err(error) => return Err(io::Error::other(format!("port {port}: {error}"))),
                Ok(listener) => Some(listener),
            };
            return Ok(Self { listener, redirect_uri: format!("http://localhost:{port}{PATH}") });
        }
        let listener = match preferred {
            Some(port) => TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.ok(),
            None => None,
        };
        let listener = match listener {
            Some(listener) => listener,
            None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?,
        };
        let port = listener.local_addr()?.port();
        let redirect_uri = format!("http://127.0.0.1:{port}{PATH}");
        Ok(Self { listener: Some(listener), redirect_uri })
    }

    /// Serves browsers as long as somebody takes the arrivals. Pages that are being sent are finished.
    pub async fn serve(self, arrivals: mpsc::Sender<Arrival>) {
        let Some(listener) = self.listener else { return arrivals.closed().await };
        let port = listener.local_addr().map(|address| address.port()).unwrap_or_default();
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = arrivals.closed() => break,
            };
            while connections.try_join_next().is_some() {}
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            if connections.len() >= MOST_CONNECTIONS {
                continue;
            }
            let (arrivals, shown) = (arrivals.clone(), Arc::new(Notify::new()));
            let told = Arc::clone(&shown);
            let answer = service_fn(move |request| {
                let (arrivals, shown) = (arrivals.clone(), Arc::clone(&shown));
                async move { Ok::<_, Infallible>(answer(request, port, arrivals, shown).await) }
            });
            connections.spawn(async move {
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEADER_PATIENCE)
                    .keep_alive(false)
                    .serve_connection(TokioIo::new(stream), answer);
                let _ = connection.await;
                told.notify_one();
            });
        }
        drop(listener); // the next login may need the port
        let _ = timeout(LAST_PAGES, connections.join_all()).await;
    }
}

async fn answer(
    request: Request<Incoming>,
    port: u16,
    arrivals: mpsc::Sender<Arrival>,
    shown: Arc<Notify>,
) -> Response<Full<Bytes>> {
    // A page elsewhere can let a name of its own resolve to this machine.
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let ours = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    if !ours.iter().any(|own| own.eq_ignore_ascii_case(host)) {
        return plain(StatusCode::FORBIDDEN);
    }
    if request.uri().path() != PATH {
        return plain(StatusCode::NOT_FOUND);
    }
    if request.method() != Method::GET {
        return plain(StatusCode::METHOD_NOT_ALLOWED);
    }
    let (outcome, heard) = oneshot::channel();
    let query = Secret::new(request.uri().query().unwrap_or_default());
    let _ = arrivals.send(Arrival { query, outcome, shown: Some(shown) }).await;
    page(&heard.await.unwrap_or(Page::Stranger))
}

fn plain(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

fn page(page: &Page) -> Response<Full<Bytes>> {
    let (status, title, text) = match page {
        Page::LoggedIn { server } => (
            StatusCode::OK,
            format!("Logged in to {server}"),
            "You can close this window and go on.".to_owned(),
        ),
        Page::Failed { server, why } => (
            StatusCode::BAD_REQUEST,
            format!("Not logged in to {server}"),
            format!(
                "{why}. Run <code>plugbay auth login {}</code> to try again.",
                escaped(server),
                why = escaped(why)
            ),
        ),
        Page::Stranger => (
            StatusCode::BAD_REQUEST,
            "Nothing to do here".to_owned(),
            "This address belongs to no login that is under way: it may have been used already.".to_owned(),
        ),
    };
    let title = escaped(&title);
    let html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title} · plugbay</title><style>body{{font:17px/1.5 system-ui,sans-serif;max-width:32em;margin:18vh auto;\
         padding:0 1.5em;color:#222;background:#fff}}h1{{font-size:1.5em;margin:0 0 .4em}}code{{background:#eee;padding:.1em \
         .3em;border-radius:.2em}}small{{color:#777}}@media(prefers-color-scheme:dark){{body{{color:#ddd;background:#1b1b1b}}\
         code{{background:#333}}}}</style><h1>{title}</h1><p>{text}</p><p><small>plugbay</small></p></html>\n"
    );
    let response = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "text/html; charset=utf-8")
        .header(
            "content-security-policy",
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        )
        .header("referrer-policy", "no-referrer")
        .header("cache-control", "no-store")
        .header("x-content-type-options", "nosniff")
        .body(Full::from(html));
    response.unwrap_or_default()
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}
