//! A host behind a bridge: one of many windows at a daemon.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use plugbay_core::{bridge::Control, surface::activate::Active};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};

use super::converse;
use crate::{
    budget::{Budget, BudgetOfConnection},
    gateway::Gateway,
    host_view::Keeper,
    limits::UNREAD_BY_ALL,
    outbox::Outbox,
    seal::Owner,
    session::Session,
    write_timeout::{TAKES_NOTHING, WriteTimeout},
};

/// How much memory all windows of a daemon may leave unread.
#[derive(Debug, Clone)]
pub struct UnreadLimit(Arc<Budget>);

#[cfg(test)]
impl UnreadLimit {
    pub(crate) fn held(&self) -> usize {
        self.0.held()
    }
}

impl Default for UnreadLimit {
    fn default() -> Self {
        Self(Budget::new(UNREAD_BY_ALL))
    }
}

/// What a daemon knows of the connection of a bridge.
#[derive(Debug)]
pub struct Window {
    /// Identifies the window.
    pub owner: [u8; 32],
    /// Part of the method of each control message.
    pub token: String,
    /// The state of the session at another daemon.
    pub state: Option<String>,
    pub unread: UnreadLimit,
    /// Further messages to the bridge.
    pub controls: mpsc::UnboundedReceiver<Control>,
    /// Counts the requests that had no answer when the session ended.
    pub cut: Arc<AtomicUsize>,
}

/// Serves one host behind a bridge, like [`super::serve`]; its servers outlive it. A host that reads nothing
/// for a while is disconnected, because its answers take memory. This happens sooner if windows leave much
/// unread.
pub async fn serve_window<R, W>(
    gateway: Gateway,
    input: R,
    output: W,
    window: Window,
    stop: impl Future<Output = ()>,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let Window { owner, token, state, unread: UnreadLimit(budget), mut controls, cut } = window;
    let budget = budget.session();
    let output = WriteTimeout::new(output, TAKES_NOTHING, BudgetOfConnection::new(Arc::clone(&budget)));
    let outbox = Outbox::for_window(&budget);
    let session = Session::window(Owner(owner), gateway, outbox);
    if let Some(active) = state.as_deref().map(Active::restored).filter(|active| !active.is_empty()) {
        session.host_view().switch(&session.gateway().servers, |now| *now = active);
    }
    let (outbox, own_token) = (Arc::downgrade(session.outbox()), token.clone());
    session.host_view().keep_active(Keeper(Box::new(move |state| {
        if let Some(outbox) = outbox.upgrade() {
            outbox.send(Control::State(state).message(&own_token).into());
        }
    })));
    let controlling = async {
        while let Some(control) = controls.recv().await {
            session.outbox().send(control.message(&token).into());
        }
        std::future::pending::<()>().await;
    };
    let close = |session: &Session| {
        cut.fetch_add(session.in_flight(), Ordering::Relaxed);
        session.close_window();
    };
    tokio::select! {
        biased; // the bridge learns why before its connection ends
        () = controlling => Ok(()),
        done = converse(&session, input, output, stop, close) => done,
    }
}
