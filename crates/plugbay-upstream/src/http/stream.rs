//! Streams that belong to no request: the GET stream of a legacy server, and the stream of the SSE transport.

use std::sync::Arc;

use plugbay_core::wire::{Incoming, write};
use reqwest::Url;
use tokio::{sync::mpsc, time::sleep};

use super::{
    HttpEvent, TransportError,
    events::{Events, ResumePoint},
    peer::{Peer, is_stream},
};

/// Reads the GET stream of a Streamable HTTP server for as long as the link lives. Some servers have none.
pub(super) async fn listen(peer: Arc<Peer>, to_link: mpsc::Sender<HttpEvent>) {
    let mut resume_point = ResumePoint::default();
    let mut offered = false;
    peer.ready().await;
    loop {
        match peer.get(resume_point.last_id.as_ref()).await {
            Ok(response) if is_stream(&response) => {
                if resume_point.attempts == 1 && resume_point.last_id.is_none() {
                    // The server may have sent this notification in the meantime, and will not repeat it.
                    let changed = write::notification("notifications/tools/list_changed", None);
                    let _ = to_link.send(HttpEvent::Incoming(Incoming::Message(changed))).await;
                }
                offered = true;
                let mut events = Events::new(response, peer.limit, &resume_point);
                while let Ok(event) = events.next().await {
                    let _ = to_link.send(HttpEvent::Incoming(event.data)).await;
                }
                resume_point = events.resume_point(&resume_point);
            }
            // A server that never had a GET stream may also answer "not found".
            Err(error @ TransportError::SessionGone) if offered => {
                let _ = to_link.send(HttpEvent::Lost(error)).await;
                return;
            }
            // A proxy cannot reach it at the moment, or limits the rate.
            Err(TransportError::Status { code: 429 | 502..=504, .. }) => {}
            Err(TransportError::NeedsLogin { since, .. }) => peer.credentials_changed(since).await,
            // It has no GET stream, or does not let us use it.
            Ok(_) | Err(TransportError::Status { .. } | TransportError::SessionGone) => return,
            Err(error @ TransportError::Unreachable(_)) if peer.remote => {
                let _ = to_link.send(HttpEvent::Lost(error)).await;
                return;
            }
            Err(_) => {}
        }
        sleep(resume_point.next_attempt()).await;
    }
}

/// Reads the one stream of the SSE transport. Its first event names the endpoint. When it ends, so does the
/// link.
pub(super) async fn sse(peer: Arc<Peer>, to_link: mpsc::Sender<HttpEvent>) {
    let error = follow(&peer, &to_link).await;
    let _ = to_link.send(HttpEvent::Lost(error)).await;
}

async fn follow(peer: &Peer, to_link: &mpsc::Sender<HttpEvent>) -> TransportError {
    let response = match peer.get(None).await {
        Ok(response) if is_stream(&response) => response,
        Ok(response) => return peer.status_error(response).await,
        Err(error) => return error,
    };
    let mut events = Events::new(response, peer.limit, &ResumePoint::default());
    loop {
        let event = match events.next().await {
            Ok(event) => event,
            Err(error) => return error,
        };
        if event.name != "endpoint" {
            let _ = to_link.send(HttpEvent::Incoming(event.data)).await;
        } else if let Some(url) = endpoint(peer, &event.data) {
            peer.endpoint.send_replace(Some(url));
        } else {
            return TransportError::Broken(
                "the endpoint it names is not an address of the same server".to_owned(),
            );
        }
    }
}

/// The endpoint that an SSE server names. It must be on the same server, because messages carry credentials.
fn endpoint(peer: &Peer, data: &Incoming) -> Option<Url> {
    let Incoming::Message(data) = data else { return None };
    let url = peer.url.join(std::str::from_utf8(data).ok()?.trim()).ok()?;
    (url.origin() == peer.url.origin()).then_some(url)
}
