//! A server that needs a login: its calls wait while the user logs in, and it continues with the new
//! credentials.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use plugbay_core::{
    credentials::{Later, LoginOffer},
    exchange::{Answer, Call, Caller, Reply, ServerRequest, ServerRequestError, Ticket},
    failure::{CallError, Failure},
    lifecycle::Due,
    start::Priority,
    wire::{Head, Kind, Members, Span, string_value, write},
};
use serde_json::json;
use tokio::time::sleep;

use super::{
    super::state::{
        logins::{AskedHost, LOGIN_TIME, Logins, WaitingCall},
        start_queue::Unsent,
    },
    Actor, Event, Waiting,
};
use crate::link::Link;

/// The pause after credentials that did not help either; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The actor's knowledge of the login at its server.
#[derive(Default)]
pub(super) struct LoginState {
    calls: Logins,
    /// The reason why a running server needs a login, until it has answered again.
    needed: Option<Arc<Failure>>,
    /// How often the credentials have changed since the server last answered.
    fruitless: u32,
    changed: Option<Later<'static, ()>>,
    beginning: Option<Later<'static, Result<LoginOffer, Arc<Failure>>>>,
    /// Ends when the login that hosts were asked for fails.
    failing: Option<Later<'static, Arc<Failure>>>,
}

impl LoginState {
    /// Waits for new credentials, and for a login to begin. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Event {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        if let Some(changed) = &mut self.changed
            && changed.as_mut().poll(context).is_ready()
        {
            self.changed = None;
            return Poll::Ready(Event::CredentialsChanged);
        }
        if let Some(beginning) = &mut self.beginning
            && let Poll::Ready(outcome) = beginning.as_mut().poll(context)
        {
            self.beginning = None;
            return Poll::Ready(Event::LoginBegun(outcome));
        }
        if let Some(failing) = &mut self.failing
            && let Poll::Ready(failure) = failing.as_mut().poll(context)
        {
            self.failing = None;
            return Poll::Ready(Event::LoginFailed(failure));
        }
        Poll::Pending
    }

    /// The reason why a running server needs a login.
    pub(super) fn needed(&self) -> Option<&Arc<Failure>> {
        self.needed.as_ref()
    }

    /// Notes that the server has answered, so it accepts the credentials.
    pub(super) fn served(&mut self) {
        (self.needed, self.fruitless) = (None, 0);
    }

    pub(super) fn next_deadline(&self) -> Option<std::time::Instant> {
        self.calls.next_deadline()
    }

    fn pause(&self) -> Duration {
        match self.fruitless {
            0 => Duration::ZERO,
            times => FIRST_PAUSE.saturating_mul(1 << (times - 1).min(20)).min(LONGEST_PAUSE),
        }
    }
}

impl Actor {
    /// Handles a call for a server that needs a login. The user may have logged in a moment ago.
    pub(super) fn forward_after_login(&mut self, call: Call, failure: Arc<Failure>) {
        let can_wait = call.caller.can_log_in(call.ticket);
        let joins_others = can_wait && !self.login.calls.is_empty();
        let have_changed =
            || self.context.credentials.as_ref().is_some_and(|credentials| credentials.have_changed());
        if !joins_others && have_changed() {
            self.await_start(call);
            return self.credentials_changed();
        }
        if !can_wait {
            let error = CallError::down(self.spec.name.clone(), failure);
            return call.caller.answered(call.ticket, Answer::Failed(error));
        }
        let (ticket, caller) = (call.ticket, Arc::clone(&call.caller));
        self.await_start(call);
        self.await_login(ticket, caller, failure);
    }

    /// Handles a request that the server rejected over an open link, where only a login can help. It waits in
    /// its task.
    pub(super) fn needs_login(&mut self, ticket: Ticket, failure: Arc<Failure>) {
        self.watch_credentials();
        self.login.needed = Some(Arc::clone(&failure));
        match self.pending.get(ticket) {
            Some(Waiting::Host(caller)) if caller.can_log_in(ticket) => {
                let caller = Arc::clone(caller);
                self.await_login(ticket, caller, failure);
            }
            Some(Waiting::Host(caller)) => {
                let caller = Arc::clone(caller);
                self.fail_waiting(ticket, &*caller, failure);
            }
            Some(Waiting::Listing(_)) => {
                self.abandon_request(ticket);
                self.pending.complete(ticket);
                self.listing_needs_login(&failure);
            }
            // They are sent once the user has logged in.
            Some(Waiting::Page | Waiting::Subscription | Waiting::Nobody) => {}
            None => self.abandon_request(ticket),
        }
    }

    /// Handles a listing that needs a login. A server that has listed before keeps its tools, and lists again
    /// after the login.
    fn listing_needs_login(&mut self, failure: &Failure) {
        let server = &self.spec.name;
        if self.listing.schedule.has_listed() {
            return tracing::warn!(%server, "its tools stay as they were: it {failure}");
        }
        let unsent = self.links.up_mut().map(Link::take_unsent).unwrap_or_default();
        self.end_link();
        self.fail(failure.clone(), unsent);
    }

    /// Handles a server that cannot start without a login. Calls wait for it if their hosts can help.
    pub(super) fn start_needs_login(&mut self, failure: &Arc<Failure>, unsent: Vec<Unsent>) {
        self.watch_credentials();
        let error = CallError::down(self.spec.name.clone(), Arc::clone(failure));
        self.queue.fail_calls_but(&error, |call| call.caller.can_log_in(call.ticket));
        let mut waiting = self.queue.callers();
        let mut all = self.queue.take_unsent();
        all.extend(unsent);
        all.retain(|(ticket, _)| match self.pending.get(*ticket) {
            Some(Waiting::Host(caller)) if caller.can_log_in(*ticket) => {
                waiting.push((*ticket, Arc::clone(caller)));
                true
            }
            _ => false,
        });
        self.queue.replace_unsent(all);
        for (ticket, caller) in waiting {
            self.await_login(ticket, caller, Arc::clone(failure));
        }
    }

    /// Keeps a call until there are new credentials. Its timeout does not run meanwhile.
    fn await_login(&mut self, ticket: Ticket, caller: Arc<dyn Caller>, failure: Arc<Failure>) {
        if self.login.calls.contains(ticket) {
            return;
        }
        self.queue.hold(ticket);
        self.pending.hold(ticket);
        self.login.calls.wait(WaitingCall { ticket, caller, failure, until: self.now + LOGIN_TIME });
        self.begin_login();
    }

    /// Begins a login if there are hosts to ask; hosts that come later join it.
    fn begin_login(&mut self) {
        let Some(credentials) = &self.context.credentials else { return };
        if self.login.beginning.is_none() && !self.login.calls.unasked().is_empty() {
            let source = Arc::clone(credentials.source());
            self.login.beginning = Some(Box::pin(async move { source.login().await }));
        }
    }

    pub(super) fn login_begun(&mut self, outcome: &Result<LoginOffer, Arc<Failure>>) {
        if let (Ok(offer), Some(credentials)) = (outcome, &self.context.credentials) {
            let (source, id) = (Arc::clone(credentials.source()), offer.id.clone());
            self.login.failing = Some(Box::pin(async move { source.login_failed(&id).await }));
        }
        for call in self.login.calls.unasked() {
            let asked = match outcome {
                Ok(offer) => self.ask_for_login(&call, offer).map_err(|_| Arc::clone(&call.failure)),
                Err(failure) => Err(Arc::clone(failure)),
            };
            if let Err(failure) = asked {
                for WaitingCall { ticket, caller, .. } in self.login.calls.leave(&*call.caller) {
                    self.fail_waiting(ticket, &*caller, Arc::clone(&failure));
                }
            }
        }
    }

    /// Handles a login that the user denied, or that took too long: nothing is left to wait for.
    pub(super) fn login_failed(&mut self, failure: &Arc<Failure>) {
        let (calls, asked) = self.login.calls.drain();
        for host in asked.iter().filter(|host| !host.accepted) {
            withdraw(host, "the login has failed");
        }
        for WaitingCall { ticket, caller, .. } in calls {
            self.fail_waiting(ticket, &*caller, Arc::clone(failure));
        }
    }

    /// Asks the host of a call to open the login page, as if the server had asked.
    fn ask_for_login(&mut self, call: &WaitingCall, offer: &LoginOffer) -> Result<(), ServerRequestError> {
        let number = self.context.tickets.next();
        let LoginOffer { url, id, message } = offer;
        let params = json!({ "mode": "url", "url": url, "elicitationId": id, "message": message });
        let message = super::super::request::write(number, "elicitation/create", &params.to_string());
        let (head, method) = read_request(&message).ok_or(ServerRequestError::Unknown)?;
        let (server, calls) = (self.spec.name.clone(), vec![call.ticket]);
        let request = ServerRequest { number, server, calls, message, head, method };
        call.caller.server_request(Some(call.ticket), request)?;
        let (caller, id) = (Arc::clone(&call.caller), id.clone());
        self.login.calls.asked(AskedHost { number, caller, call: call.ticket, accepted: false, id });
        Ok(())
    }

    /// Takes the answer of a host that was asked to log in. Returns whether it is one.
    pub(super) fn login_replied(&mut self, number: Ticket, reply: &Reply) -> bool {
        if !self.login.calls.is_asked(number) {
            return false;
        }
        if is_accepted(reply) {
            self.login.calls.accepted(number);
            return true;
        }
        for WaitingCall { ticket, caller, failure, .. } in self.login.calls.declined(number) {
            self.fail_waiting(ticket, &*caller, failure);
        }
        true
    }

    /// Continues everything that has waited for new credentials.
    pub(super) fn credentials_changed(&mut self) {
        self.login.fruitless += 1;
        self.login.needed = None;
        let awaited = self.queue.is_wanted();
        self.end_logins();
        if self.lifecycle.credentials_changed(awaited) == Some(Due::Start) {
            self.queue.want(Priority::Behind);
            self.start();
        } else {
            self.list();
        }
    }

    /// Continues the calls that have waited; the hosts' answers are no longer needed.
    pub(super) fn end_logins(&mut self) {
        if self.login.calls.is_empty() {
            return;
        }
        let (calls, asked) = self.login.calls.drain();
        self.queue.release(self.now);
        for call in calls {
            self.pending.release(call.ticket, self.now);
        }
        for host in asked {
            let params = json!({ "elicitationId": host.id }).to_string();
            let complete = "notifications/elicitation/complete";
            host.caller.completed(write::notification(complete, Some(params.as_bytes())));
            if !host.accepted {
                withdraw(&host, "the user has logged in");
            }
        }
    }

    pub(super) fn expire_logins(&mut self) {
        for WaitingCall { ticket, caller, failure, .. } in self.login.calls.expire(self.now) {
            self.fail_waiting(ticket, &*caller, failure);
        }
    }

    /// The reason why a call waits for a login, if it does.
    pub(super) fn login_of(&self, ticket: Ticket) -> Option<Arc<Failure>> {
        self.login.calls.get(ticket).map(|call| Arc::clone(&call.failure))
    }

    /// Forgets calls that have ended. If one of them carried the request to its host, another call carries it
    /// now.
    pub(super) fn end_orphaned_logins(&mut self) {
        if self.login.calls.is_empty() {
            return;
        }
        let goes_on = |ticket| self.pending.contains(ticket) || self.queue.contains(ticket);
        for host in self.login.calls.retain(goes_on) {
            withdraw(&host, "the call has ended");
        }
        self.begin_login();
    }

    pub(super) fn withdraw_logins(&mut self) {
        for host in self.login.calls.drain().1 {
            withdraw(&host, "the server has gone");
        }
    }

    /// Ends a call that waits for a login, wherever it waits.
    fn fail_waiting(&mut self, ticket: Ticket, caller: &dyn Caller, failure: Arc<Failure>) {
        self.queue.cancel(ticket);
        if self.pending.complete(ticket).is_some() {
            self.abandon_request(ticket);
        }
        let error = CallError::down(self.spec.name.clone(), failure);
        caller.answered(ticket, Answer::Failed(error));
    }

    /// Waits for other credentials than those that were last rejected. A pause prevents a storm of requests
    /// if the new ones do not help.
    fn watch_credentials(&mut self) {
        let Some(credentials) = &self.context.credentials else { return };
        let (changed, pause) = (credentials.changed(), self.login.pause());
        self.login.changed = Some(Box::pin(async move {
            if !pause.is_zero() {
                sleep(pause).await;
            }
            changed.await;
        }));
    }
}

/// Tells a host that no answer is needed any more.
fn withdraw(host: &AskedHost, why: &str) {
    host.caller.withdrawn(Some(host.call), host.number, write::cancellation(why));
}

fn read_request(message: &Bytes) -> Option<(Head, Span)> {
    let head = Head::read(message).ok()?;
    let Kind::Request { method, .. } = head.kind.clone() else { return None };
    Some((head, method))
}

/// Whether the user has agreed to open the page. With any other answer nobody logs in.
fn is_accepted(reply: &Reply) -> bool {
    let (message, result) = match reply {
        Reply::Response { message, head } if matches!(head.kind, Kind::Result { .. }) => {
            (message, head.payload.clone())
        }
        Reply::Result(result) => (result, Some(0..result.len())),
        Reply::Response { .. } | Reply::Refused(_) | Reply::LeftOpen => return false,
    };
    let action = result.and_then(|result| Members::find(message, &result, "action"));
    action.is_some_and(|action| string_value(&message[action]).as_deref() == Some("accept"))
}
