//! A remote gateway that has only the plain API: `GET /tools` and `POST /tools/call`, presented as a legacy
//! server.
//!
//! Only tools pass. The list is requested again regularly, because the API sends no notifications.

mod result;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use plugbay_core::wire::{Head, Incoming, Kind, Members, Span, as_message, write};
use reqwest::{
    Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH},
};
use tokio::{sync::mpsc, time::sleep};

use super::{
    HttpEvent, TransportError,
    peer::{self, Peer},
    post::Outgoing,
    remote,
};

/// How often the list is requested. If its `ETag` is unchanged, that costs the remote one short answer.
const POLL_EVERY: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 15_000 });
/// After this many unanswered polls in a row the remote counts as gone.
const SILENT_POLLS: u32 = 2;

const OPENED: &[u8] = br#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"remote","version":"plain API"}}"#;
const NO_METHOD: &[u8] =
    br#"{"code":-32601,"message":"Method not found: the remote has the plain API alone, with tools only"}"#;
const NO_ARGUMENTS: &[u8] = b"{}";

/// The list of tools, as last read.
#[derive(Default)]
pub(super) struct KnownTools(
    // A std mutex: held for a copy, never across an await.
    Mutex<Option<ToolList>>,
);

#[derive(Clone)]
struct ToolList {
    etag: Option<HeaderValue>,
    body: Bytes,
}

/// Answers a request of the gateway through the API.
pub(super) async fn request(request: Outgoing, message: Bytes) {
    let Outgoing { peer, ticket, to_link, .. } = &request;
    let ticket = *ticket;
    match request.with_login(Some(&message), || answer(peer, &message)).await {
        Ok(response) => {
            // The response must be on one line, because hosts read lines.
            let incoming = as_message(BytesMut::from(&response[..]));
            let _ = to_link.send(HttpEvent::Incoming(incoming)).await;
            let _ = to_link.send(HttpEvent::Done(ticket)).await;
        }
        Err(error) => _ = to_link.send(HttpEvent::Failed { ticket, message, error }).await,
    }
}

/// Polls the list, and reports to the gateway when it has changed and when the remote is gone.
pub(super) async fn poll(peer: Arc<Peer>, to_link: mpsc::Sender<HttpEvent>) {
    let mut silent = 0;
    loop {
        sleep(POLL_EVERY).await;
        let event = match tools(&peer).await {
            Ok(ListRead { changed: true, .. }) => {
                let changed = write::notification("notifications/tools/list_changed", None);
                HttpEvent::Incoming(Incoming::Message(changed))
            }
            Err(error @ TransportError::Unreachable(_)) => HttpEvent::Lost(error),
            Err(error @ TransportError::Broken(_)) if silent + 1 >= SILENT_POLLS => HttpEvent::Lost(error),
            Err(TransportError::Broken(_)) => {
                silent += 1;
                continue;
            }
            Err(TransportError::NeedsLogin { since, .. }) => {
                peer.credentials_changed(since).await;
                continue;
            }
            Ok(_) | Err(_) => {
                silent = 0;
                continue;
            }
        };
        silent = 0;
        let _ = to_link.send(event).await;
    }
}

async fn answer(peer: &Peer, message: &Bytes) -> Result<Bytes, TransportError> {
    let head = Head::read(message).map_err(|_| TransportError::Unusable("the request is malformed"))?;
    let Kind::Request { id, method } = head.kind else {
        return Err(TransportError::Unusable("the request is malformed"));
    };
    let id = &message[id];
    Ok(match &message[method] {
        b"initialize" => {
            tools(peer).await?;
            write::result(id, OPENED)
        }
        b"tools/list" => write::result(id, &result::tool_list(&tools(peer).await?.body)),
        b"tools/call" => write::result(id, &call(peer, message, head.payload.as_ref()).await?),
        b"ping" => write::result(id, b"{}"),
        _ => write::error(id, NO_METHOD),
    })
}

/// The list, and whether it differs from the one before.
struct ListRead {
    body: Bytes,
    changed: bool,
}

async fn tools(peer: &Peer) -> Result<ListRead, TransportError> {
    let known = peer.known_tools.get();
    let mut request = peer.client.get(remote::tools(&peer.url)).header(ACCEPT, "application/json");
    if let Some(etag) = known.as_ref().and_then(|known| known.etag.as_ref()) {
        request = request.header(IF_NONE_MATCH, etag);
    }
    let response = peer.exchange(request).await?;
    if let (StatusCode::NOT_MODIFIED, Some(ToolList { body, .. })) = (response.status(), &known) {
        return Ok(ListRead { body: body.clone(), changed: false });
    }
    if !response.status().is_success() {
        return Err(peer.status_error(response).await);
    }
    let etag = response.headers().get(ETAG).cloned();
    let body = peer::body(response, peer.limit).await?.freeze();
    if !result::is_tool_list(&body) {
        return Err(TransportError::Unusable("its answer to GET /tools is not a list of tools"));
    }
    let changed = known.is_some_and(|known| known.body != body);
    peer.known_tools.set(ToolList { etag, body: body.clone() });
    Ok(ListRead { body, changed })
}

async fn call(peer: &Peer, message: &Bytes, params: Option<&Span>) -> Result<Vec<u8>, TransportError> {
    let member = |key: &str| params.and_then(|params| Members::find(message, params, key));
    let name = member("name").ok_or(TransportError::Unusable("the request names no tool"))?;
    let arguments = member("arguments").map_or(NO_ARGUMENTS, |span| &message[span]);
    let body = [br#"{"name":"#, &message[name], br#","arguments":"#, arguments, b"}"].concat();
    let request = peer
        .client
        .post(remote::call(&peer.url))
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .body(body);
    let response = peer.exchange(request).await?;
    if response.status().is_success() {
        let body = peer::body(response, peer.limit).await?;
        return Ok(result::of_call(&body));
    }
    refused(peer, response).await
}

/// The result or error for a refused call. If the API explains an error, the model gets it as a result.
async fn refused(peer: &Peer, response: Response) -> Result<Vec<u8>, TransportError> {
    if response.status().is_redirection() || !peer::is_json(&response) {
        return Err(peer.status_error(response).await);
    }
    let status = response.status();
    let challenge = peer::challenge(&response);
    let body = peer::body(response, peer.limit).await?;
    match result::error_message(&body) {
        Some(message) => {
            let message = peer.response_secrets().hide(message).into_owned();
            Ok(result::tool_error(&format!("{message} (HTTP {})", status.as_u16())))
        }
        None => Err(peer.error_of(status, String::new(), challenge)),
    }
}

impl KnownTools {
    fn get(&self) -> Option<ToolList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, list: ToolList) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(list);
    }
}
