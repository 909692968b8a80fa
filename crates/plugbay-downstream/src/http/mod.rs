//! Hosts over HTTP: many at once, both eras on one endpoint.

mod access;
mod authorization;
mod body;
mod callers;
mod connection;
mod connections;
mod cors;
mod host_views;
mod legacy;
mod listen;
mod live_sessions;
mod metrics;
mod mirrored;
mod modern;
mod negotiate;
mod openapi;
mod reject;
mod reply;
mod route;
mod server_card;
mod session_key;
mod sessions;
mod shares;
mod stream;
#[cfg(test)]
mod tests;
mod token_accounts;
mod tools_api;

use std::{io, sync::Arc, time::Duration};

use plugbay_core::capabilities::ClientCapabilities;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep, timeout},
};

pub use access::{Access, Unguarded};
pub use authorization::{Authorization, AuthorizationTerms, Authorizations};
pub use callers::{NamedToken, NamedTokens};
pub use listen::{Accept, Address, AddressError, Listener, Peer, Stream};
pub use metrics::{MetricsPage, serve_metrics};

use crate::{
    gateway::Gateway,
    limits::{SESSIONS, UNREAD_BY_ALL},
    outbox::Outbox,
    principal::Account,
    refusal::Refusal,
    session::Session,
};
use access::{Caller, Identity};
use callers::Gone;
use connections::Connections;
use host_views::HostViews;
use live_sessions::LiveSessions;
use reject::Rejection;
use sessions::Sessions;
use shares::{Holder, Share, Shares};
use tools_api::InFlight;

/// How long calls in flight may go on after the gateway was told to stop, unless the configuration says
/// otherwise.
const DRAIN: Duration = Duration::from_secs(30);
/// How long hosts may then take to read the rest.
const LAST_READ: Duration = Duration::from_secs(5);
/// How often abandoned sessions and streams are looked for.
const SWEEP: Duration = Duration::from_secs(5);
/// Pause when the system has no descriptor left: trying again at once would only burn the processor.
const NO_DESCRIPTORS: Duration = Duration::from_millis(100);
/// State that all connections share.
struct Shared {
    gateway: Gateway,
    access: Access,
    sessions: Sessions,
    host_views: HostViews,
    live_sessions: LiveSessions,
    /// Calls through the plain API.
    in_flight: InFlight,
    shares: Shares,
    metrics: Option<MetricsPage>,
}

impl Shared {
    /// Ends the sessions and requests of callers whose tokens are no longer valid.
    fn revoke(&self, gone: &Gone) {
        if gone.is_empty() {
            return;
        }
        let Gone { revoked, expired } = gone;
        tracing::info!("the tokens of {} callers count no more", revoked.len() + expired.len());
        let has = |session: &Session, accounts: &[Arc<Account>]| {
            let account = session.gateway().principal.account.get();
            accounts.iter().any(|gone| Arc::ptr_eq(gone, &account))
        };
        self.sessions.revoke(|session| has(session, revoked));
        let paused = self.sessions.pause(|session| has(session, expired));
        self.live_sessions.each(|session| {
            let is_paused = paused.iter().any(|paused| std::ptr::eq(Arc::as_ptr(paused), session));
            if has(session, revoked) || has(session, expired) && !is_paused {
                session.revoke();
            }
        });
    }

    /// A caller with its share. If it holds much memory, plugbay frees what its sessions can spare.
    fn spending(&self, identity: Identity, peer: &Share) -> Caller {
        let holder = if self.access.is_guarded() { Holder::Caller(identity.owner) } else { peer.holder };
        let share = self.shares.of(holder);
        if share.memory.is_under_pressure() && share.may_reclaim() {
            self.sessions.reclaim(&share);
        }
        Caller::new(identity, share)
    }

    /// Rejects a request if its answer says that the caller's access token does not allow it.
    fn check_scope(&self, sink: &Outbox, id: &[u8]) -> Result<(), Rejection> {
        let Some(Refusal::MissingScope { scope }) = sink.refusal() else { return Ok(()) };
        Err(Rejection::missing_scope(self.access.authorization().as_deref(), id, scope))
    }
}

/// Limits on what all hosts together may use of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections open at a time.
    pub connections: usize,
    /// Bytes of requests and answers that wait to be sent.
    pub waiting: usize,
    /// Sessions of hosts that open one.
    pub sessions: usize,
}

impl Limits {
    /// The default limits, with as many connections as the system allows, within reason.
    pub fn detect() -> Self {
        Self { connections: listen::connection_limit(), waiting: UNREAD_BY_ALL, sessions: SESSIONS }
    }
}

/// Serves hosts until `stop`. Then no new host is let in, and requests in flight get their answers. `metrics`
/// are served beside MCP.
pub async fn serve(
    gateway: Gateway,
    mut listener: impl Accept,
    access: Access,
    limits: Limits,
    metrics: Option<MetricsPage>,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    // Any host may come, with any capability. A host that lacks one gets the error when it is asked.
    if gateway.host_registry.add_capabilities(ClientCapabilities::ALL) {
        gateway.servers.client_capabilities_grew();
    }
    gateway.host_events.opened.notify_one();
    let refused = Arc::clone(&gateway.principal.refused);
    let shared = Arc::new(Shared {
        gateway,
        access,
        sessions: Sessions::new(limits.sessions),
        host_views: HostViews::default(),
        live_sessions: LiveSessions::default(),
        in_flight: InFlight::default(),
        shares: Shares::new(limits, refused),
        metrics,
    });
    let connections = Connections::new(limits.connections);
    let (drain, draining) = watch::channel(false);
    let mut open = JoinSet::new();
    let mut snapshots = shared.gateway.snapshots.clone();
    let mut callers = shared.access.callers();
    let mut sweep = interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let peer = shared.shares.of(Holder::Peer(peer));
                    if let Some(connection) = connections.open(Arc::clone(&peer)) {
                        open.spawn(connection::run(Arc::clone(&shared), stream, draining.clone(), connection));
                    } else {
                        peer.count_refusal();
                        peer.report("it has too many connections open");
                        connections::reject(stream);
                    }
                }
                Err(error) => {
                    tracing::warn!("a connection could not be accepted: {error}");
                    sleep(NO_DESCRIPTORS).await;
                }
            },
            Some(_) = open.join_next() => {}
            Ok(()) = snapshots.changed() => shared.live_sessions.each(Session::catalog_changed),
            () = shared.gateway.host_events.switched.notified() => shared.live_sessions.each(Session::catalog_changed),
            () = callers.changed() => shared.revoke(&callers.gone()),
            _ = sweep.tick() => {
                shared.sessions.sweep(Instant::now());
                shared.host_views.sweep(Instant::now());
                shared.shares.sweep();
            }
        }
    }
    drop(listener); // no new connections
    drain.send_replace(true);
    shared.live_sessions.each(|session| {
        session.end_subscriptions();
        session.outbox().close();
    });
    let time = shared.gateway.settings().drain.unwrap_or(DRAIN);
    if timeout(time, all_closed(&mut open)).await.is_err() {
        shared.live_sessions.each(Session::close);
        let _ = timeout(LAST_READ, all_closed(&mut open)).await;
    }
    shared.sessions.end();
    Ok(())
}

async fn all_closed(open: &mut JoinSet<()>) {
    while open.join_next().await.is_some() {}
}
