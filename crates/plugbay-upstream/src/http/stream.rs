//! Streams that belong to no request: what a legacy server says by itself, and the old SSE transport.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::wire::Incoming;
use reqwest::Url;
use tokio::{sync::mpsc, time::sleep};

use super::{
    Note,
    events::{Bookmark, Events},
    peer::{self, Peer, Trouble, is_stream},
};

const CHANGED: Bytes =
    Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);

/// Listens to a Streamable HTTP server for as long as the link lives. Not every server offers this.
pub(super) async fn listen(peer: Arc<Peer>, notes: mpsc::Sender<Note>) {
    let mut bookmark = Bookmark::default();
    let mut offered = false;
    peer.ready().await;
    loop {
        match peer.get(bookmark.last_id.as_ref()).await {
            Ok(response) if is_stream(&response) => {
                if bookmark.attempts == 1 && bookmark.last_id.is_none() {
                    // Nobody will tell what was said meanwhile.
                    let _ = notes.send(Note::Incoming(Incoming::Message(CHANGED))).await;
                }
                offered = true;
                let mut events = Events::new(response, peer.limit, &bookmark);
                while let Ok(event) = events.next().await {
                    let _ = notes.send(Note::Incoming(event.data)).await;
                }
                bookmark = events.bookmark(&bookmark);
            }
            // Many servers that have no such stream say "not found" as well.
            Err(trouble @ Trouble::SessionGone) if offered => {
                let _ = notes.send(Note::Lost(trouble)).await;
                return;
            }
            // In between stands somebody who cannot reach it just now, or asks for patience.
            Err(Trouble::Status { code: 429 | 502..=504, .. }) => {}
            // It does not offer one, or not to us.
            Ok(_) | Err(Trouble::Status { .. } | Trouble::SessionGone) => return,
            Err(_) => {}
        }
        sleep(bookmark.next_attempt()).await;
    }
}

/// The one stream of the old transport. It first tells where messages go; with it the link ends.
pub(super) async fn sse(peer: Arc<Peer>, notes: mpsc::Sender<Note>) {
    let trouble = follow(&peer, &notes).await;
    let _ = notes.send(Note::Lost(trouble)).await;
}

async fn follow(peer: &Peer, notes: &mpsc::Sender<Note>) -> Trouble {
    let response = match peer.get(None).await {
        Ok(response) if is_stream(&response) => response,
        Ok(response) => return peer::refused(response).await,
        Err(trouble) => return trouble,
    };
    let mut events = Events::new(response, peer.limit, &Bookmark::default());
    loop {
        let event = match events.next().await {
            Ok(event) => event,
            Err(trouble) => return trouble,
        };
        if event.name != "endpoint" {
            let _ = notes.send(Note::Incoming(event.data)).await;
        } else if let Some(url) = endpoint(peer, &event.data) {
            peer.endpoint.send_replace(Some(url));
        } else {
            return Trouble::Broken("the endpoint it names is not an address of the same server".to_owned());
        }
    }
}

/// Messages carry the user's credentials: they go nowhere else.
fn endpoint(peer: &Peer, data: &Incoming) -> Option<Url> {
    let Incoming::Message(data) = data else { return None };
    let url = peer.url.join(std::str::from_utf8(data).ok()?.trim()).ok()?;
    (url.origin() == peer.url.origin()).then_some(url)
}
