//! What a server asks: who is asked, how it is told, and what ends a server request.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    era::Era,
    exchange::{Answer, Call, Caller, Reply, ServerNotification, ServerRequest, ServerRequestError, Ticket},
    task::TaskRole,
    wire::{Draft, Head, Span},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    MINUTE, SECOND,
    harness::{Harness, Setup, cancellation},
    peer::Peer,
    soon,
};
use crate::{server::Command, spec::Timeouts};

/// A host that keeps what it is asked, and answers when the test says so.
#[derive(Debug)]
pub(super) struct Host {
    refuses: Option<ServerRequestError>,
    holder: Option<[u8; 32]>,
    heard: watch::Sender<Vec<Heard>>,
    place: Mutex<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// The number, the call, and the request as it came.
    Asked(Ticket, Option<Ticket>, String),
    Withdrawn(Ticket, String),
    Completed(String),
    /// How a task is, or how far.
    Told(String),
    Ended(Ticket, String),
}

impl Host {
    pub(super) fn new(refuses: Option<ServerRequestError>) -> Arc<Self> {
        Arc::new(Self { refuses, holder: None, heard: watch::Sender::default(), place: Mutex::default() })
    }

    /// One of the requests of a host.
    fn held_by(holder: Option<u8>) -> Arc<Self> {
        let holder = holder.map(|holder| [holder; 32]);
        Arc::new(Self { refuses: None, holder, heard: watch::Sender::default(), place: Mutex::default() })
    }

    fn note(&self, heard: Heard) {
        self.heard.send_modify(|all| all.push(heard));
    }

    pub(super) async fn hear(&self) -> Heard {
        let mut place = *self.place.lock().unwrap();
        let mut heard = self.heard.subscribe();
        let next = soon("a word", heard.wait_for(|all| all.len() > place)).await.unwrap()[place].clone();
        place += 1;
        *self.place.lock().unwrap() = place;
        next
    }

    pub(super) async fn hear_question(&self) -> (Ticket, Option<Ticket>, String) {
        match self.hear().await {
            Heard::Asked(number, during, text) => (number, during, text),
            other => panic!("{other:?} instead of a server request"),
        }
    }

    pub(super) fn heard_nothing_more(&self) {
        let all = self.heard.borrow();
        assert_eq!(all[*self.place.lock().unwrap()..], [], "unexpected");
    }
}

impl Caller for Host {
    fn answered(&self, ticket: Ticket, answer: Answer) {
        let text = match answer {
            Answer::Response { message, head, .. } => {
                String::from_utf8_lossy(&message[head.payload.expect("a payload")]).into_owned()
            }
            Answer::Failed(error) => error.to_string(),
        };
        self.note(Heard::Ended(ticket, text));
    }

    fn holder(&self) -> Option<[u8; 32]> {
        self.holder
    }

    fn progressed(&self, ticket: Ticket, _: Bytes, _: Span) {
        self.note(Heard::Told(format!("progress of {}", ticket.0)));
    }

    fn told(&self, _: Option<Ticket>, server_notification: &ServerNotification) {
        self.note(Heard::Told(String::from_utf8(server_notification.message.to_vec()).unwrap()));
    }

    fn client_capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { form: true, roots: true, roots_changes: true, ..ClientCapabilities::NONE }
    }

    fn asked(&self, during: Option<Ticket>, server_request: ServerRequest) -> Result<(), ServerRequestError> {
        if let Some(why) = self.refuses {
            return Err(why);
        }
        let text = String::from_utf8(server_request.message.to_vec()).unwrap();
        self.note(Heard::Asked(server_request.number, during, text));
        Ok(())
    }

    fn withdrawn(&self, _: Option<Ticket>, server_request: Ticket, notification: Draft) {
        let text = String::from_utf8(notification.render(server_request.0).to_vec()).unwrap();
        self.note(Heard::Withdrawn(server_request, text));
    }

    fn completed(&self, notification: Bytes) {
        self.note(Heard::Completed(String::from_utf8(notification.to_vec()).unwrap()));
    }
}

impl Harness {
    fn call_by(&self, host: &Arc<Host>, tool: &str) -> Ticket {
        self.agent_by(host, tool, TaskRole::None)
    }

    /// The same for a call that has to do with tasks.
    pub(super) fn agent_by(&self, host: &Arc<Host>, tool: &str, task_role: TaskRole) -> Ticket {
        let ticket = self.context.tickets.next();
        let call = self.calls.call(ticket, tool, None);
        self.handle.send(Command::Forward(Call { caller: host.clone(), task_role, ..call }));
        ticket
    }

    fn reply(&self, server_request: Ticket, response: &str) {
        let message = Bytes::from(response.replace('?', &server_request.0.to_string()));
        let head = Head::read(&message).unwrap();
        self.handle.send(Command::Reply { server_request, reply: Reply::Response { message, head } });
    }

    fn listens(&self, host: &Arc<Host>) {
        let host: Arc<dyn Caller> = host.clone();
        self.context.host_registry.joined(Arc::downgrade(&host));
    }
}

const SAMPLING: &str = r#"{ "id":"é 1","method":"sampling/createMessage", "jsonrpc":"2.0","params":{"n":12345678901234567890.0}}"#;

async fn refused(peer: &mut Peer, id: Value) -> String {
    let answer = peer.next().await.unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32601)), "{answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_server_request_is_forwarded_and_answered_byte_for_byte() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    let call = harness.call_by(&host, "a");
    let request = peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    let (number, during, text) = host.hear_question().await;
    assert_eq!((during, &*text), (Some(call), SAMPLING));
    harness
        .reply(number, r#"{"result":{ "z":1.0,"é":123456789012345678901 },"id":?, "jsonrpc":"2.0","x":1}"#);
    let answer = soon("the answer", peer.heard()).await.unwrap();
    assert_eq!(
        answer,
        r#"{"result":{ "z":1.0,"é":123456789012345678901 },"id":"é 1", "jsonrpc":"2.0","x":1}"#
    );
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{"twice":1}}"#);
    peer.expect_nothing().await;
    peer.answer(&request, json!({ "a": 1 })).await;
    assert_eq!(host.hear().await, Heard::Ended(call, r#"{"a":1}"#.to_owned()));
    host.heard_nothing_more();
}

#[tokio::test(start_paused = true)]
async fn an_error_response_of_the_host_is_forwarded_too() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    harness.call_by(&host, "a");
    peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    let (number, ..) = host.hear_question().await;
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"error":{"code":-1,"message":"User rejected"}}"#);
    let answer = peer.next().await.unwrap();
    assert_eq!(
        answer,
        json!({ "jsonrpc": "2.0", "id": "é 1", "error": { "code": -1, "message": "User rejected" } })
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_request_may_be_about_any_call_of_one_host() {
    let timeouts = Timeouts { call: 10 * SECOND, call_max: 60 * MINUTE, ..Timeouts::default() };
    let (harness, mut peer) = Harness::ready(Setup { timeouts, ..Setup::default() }, Era::Legacy).await;
    let host = Host::new(None);
    for by_host in [false, true] {
        let (first, latest) = (harness.call_by(&host, "a"), harness.call_by(&host, "b"));
        let asker = peer.expect_call("a").await;
        let request = peer.expect_call("b").await;
        peer.say(SAMPLING).await;
        let (number, by, _) = host.hear_question().await;
        assert_eq!(by, Some(latest));
        if by_host {
            harness.handle.send(Command::Cancel { ticket: latest, notification: cancellation() });
            peer.expect("notifications/cancelled").await;
        } else {
            peer.answer(&request, json!({})).await;
            assert_eq!(host.hear().await, Heard::Ended(latest, "{}".to_owned()));
        }
        tokio::time::sleep(30 * MINUTE).await;
        host.heard_nothing_more(); // nor has the other call timed out
        harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{"user":1}}"#);
        assert_eq!(peer.next().await.unwrap()["result"], json!({ "user": 1 }));
        peer.answer(&asker, json!({})).await;
        assert_eq!(host.hear().await, Heard::Ended(first, "{}".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_request_ends_with_the_last_call_it_may_be_about() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    harness.call_by(&host, "a");
    harness.call_by(&host, "b");
    let requests = [peer.expect_call("a").await, peer.expect_call("b").await];
    peer.say(SAMPLING).await;
    let (number, ..) = host.hear_question().await;
    harness.call_by(&host, "c"); // which cannot be meant
    peer.expect_call("c").await;
    for request in &requests {
        peer.answer(request, json!({})).await;
    }
    let Heard::Ended(..) = host.hear().await else { panic!("the first is no end of it") };
    let Heard::Withdrawn(withdrawn, _) = host.hear().await else { panic!("not withdrawn") };
    assert_eq!((withdrawn, &peer.next().await.unwrap()["error"]["code"]), (number, &json!(-32000)));
}

#[tokio::test(start_paused = true)]
async fn server_requests_and_logs_that_may_be_for_several_hosts_go_to_none() {
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"?"}}"#;
    for (holders, one_host) in
        [([None, None], false), ([Some(1), Some(2)], false), ([Some(1), Some(1)], true)]
    {
        let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
        let [first, second] = holders.map(Host::held_by);
        harness.call_by(&first, "a");
        harness.call_by(&second, "b");
        peer.expect_call("a").await;
        let request = peer.expect_call("b").await;
        peer.say(log).await;
        peer.say(SAMPLING).await;
        if one_host {
            assert_eq!(second.hear().await, Heard::Told(log.to_owned()));
            second.hear_question().await;
        } else {
            let refused = peer.next().await.unwrap();
            assert_eq!(refused["error"]["message"], ServerRequestError::Ambiguous.to_string());
            second.heard_nothing_more();
            peer.answer(&request, json!({})).await;
            let Heard::Ended(..) = second.hear().await else { panic!("no end") };
            peer.say(log).await;
            peer.say(SAMPLING).await;
            assert_eq!(first.hear().await, Heard::Told(log.to_owned()), "it alone is left");
            first.hear_question().await;
        }
        first.heard_nothing_more();
        second.heard_nothing_more();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_request_that_one_call_leaves_open_is_carried_by_another() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    let (first, latest) = (harness.call_by(&host, "a"), harness.call_by(&host, "b"));
    peer.expect_call("a").await;
    peer.expect_call("b").await;
    peer.say(SAMPLING).await;
    let (number, by, text) = host.hear_question().await;
    assert_eq!(by, Some(latest));
    harness.handle.send(Command::Reply { server_request: number, reply: Reply::LeftOpen });
    assert_eq!(host.hear_question().await, (number, Some(first), text));
    harness.handle.send(Command::Reply { server_request: number, reply: Reply::LeftOpen });
    assert_eq!(refused(&mut peer, json!("é 1")).await, "no host can be asked");
    host.heard_nothing_more();
}

#[tokio::test(start_paused = true)]
async fn a_server_request_without_a_call_goes_to_the_only_host_or_none() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    peer.say(SAMPLING).await;
    assert_eq!(refused(&mut peer, json!("é 1")).await, "no host can be asked");
    let (one, other) = (Host::new(None), Host::new(None));
    harness.listens(&one);
    peer.say(r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#).await;
    let (number, during, _) = one.hear_question().await;
    assert_eq!(during, None);
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{"roots":[]}}"#);
    assert_eq!(peer.next().await.unwrap(), json!({ "jsonrpc": "2.0", "id": 7, "result": { "roots": [] } }));
    harness.listens(&other);
    peer.say(r#"{"jsonrpc":"2.0","id":8,"method":"roots/list"}"#).await;
    assert_eq!(refused(&mut peer, json!(8)).await, "no host can be asked");
    one.heard_nothing_more();
}

#[tokio::test(start_paused = true)]
async fn a_server_request_is_refused_with_the_reason_of_the_host() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(Some(ServerRequestError::Undeclared("sampling")));
    harness.call_by(&host, "a");
    peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    let why = refused(&mut peer, json!("é 1")).await;
    assert_eq!(why, "the host has not declared the capability \"sampling\"");
    host.heard_nothing_more();
}

#[tokio::test(start_paused = true)]
async fn a_server_can_cancel_its_request() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    harness.call_by(&host, "a");
    peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    let (number, ..) = host.hear_question().await;
    peer.notify("notifications/cancelled", json!({ "requestId": "another" })).await;
    peer.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"é 1","reason":"enough"}}"#).await;
    let expected = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{},"reason":"enough"}}}}"#,
        number.0
    );
    assert_eq!(host.hear().await, Heard::Withdrawn(number, expected));
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{"late":1}}"#);
    peer.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn server_requests_end_with_their_call() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    for by_host in [false, true] {
        let call = harness.call_by(&host, "a");
        let request = peer.expect_call("a").await;
        peer.say(SAMPLING).await;
        let (number, ..) = host.hear_question().await;
        if by_host {
            harness.handle.send(Command::Cancel { ticket: call, notification: cancellation() });
            peer.expect("notifications/cancelled").await;
        } else {
            peer.answer(&request, json!({})).await;
        }
        let Heard::Withdrawn(withdrawn, text) = host.hear().await else { panic!("not withdrawn") };
        assert_eq!(withdrawn, number);
        assert!(text.contains("the call has ended"), "{text}");
        let told = peer.next().await.unwrap();
        assert_eq!((&told["id"], &told["error"]["code"]), (&json!("é 1"), &json!(-32000)));
        if !by_host {
            let Heard::Ended(..) = host.hear().await else { panic!("answered before") };
        }
    }
    host.heard_nothing_more();
}

#[tokio::test(start_paused = true)]
async fn a_call_does_not_time_out_while_a_server_request_is_open() {
    let timeouts = Timeouts { call: 10 * SECOND, call_max: 60 * MINUTE, ..Timeouts::default() };
    let (harness, mut peer) = Harness::ready(Setup { timeouts, ..Setup::default() }, Era::Legacy).await;
    let host = Host::new(None);
    let call = harness.call_by(&host, "a");
    peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    let (number, ..) = host.hear_question().await;
    tokio::time::sleep(30 * MINUTE).await;
    host.heard_nothing_more();
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{}}"#);
    peer.next().await.unwrap();
    let answered = tokio::time::Instant::now();
    let Heard::Ended(ended, why) = host.hear().await else { panic!("no end") };
    assert_eq!((ended, answered.elapsed().as_secs()), (call, 10), "{why}");
}

#[tokio::test(start_paused = true)]
async fn the_maximum_call_time_includes_open_server_requests() {
    let timeouts = Timeouts { call: 10 * SECOND, call_max: 2 * MINUTE, ..Timeouts::default() };
    let (harness, mut peer) = Harness::ready(Setup { timeouts, ..Setup::default() }, Era::Legacy).await;
    let host = Host::new(None);
    let start = tokio::time::Instant::now();
    let call = harness.call_by(&host, "a");
    peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    host.hear_question().await;
    let mut heard = [host.hear().await, host.hear().await];
    heard.sort_by_key(|heard| matches!(heard, Heard::Ended(..)));
    let [Heard::Withdrawn(..), Heard::Ended(ended, _)] = heard else { panic!("{heard:?}") };
    assert_eq!((ended, start.elapsed()), (call, 2 * MINUTE));
}

#[tokio::test(start_paused = true)]
async fn a_crash_withdraws_open_server_requests() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    let call = harness.call_by(&host, "a");
    peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    let (number, ..) = host.hear_question().await;
    drop(peer);
    let Heard::Withdrawn(withdrawn, _) = host.hear().await else { panic!("not withdrawn") };
    assert_eq!(withdrawn, number);
    let Heard::Ended(ended, _) = host.hear().await else { panic!("no end") };
    assert_eq!(ended, call);
    // Its successor does not get what another has asked.
    harness.handle.refresh();
    let mut peer = harness.launched().await;
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{}}"#);
    peer.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn elicitation_complete_goes_to_the_host_that_was_asked() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let (host, other) = (Host::new(None), Host::new(None));
    harness.call_by(&host, "a");
    let request = peer.expect_call("a").await;
    let params = json!({ "mode": "url", "elicitationId": "e1", "url": "https://x", "message": "m" });
    peer.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params })).await;
    let (number, ..) = host.hear_question().await;
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{"action":"accept"}}"#);
    peer.next().await.unwrap();
    peer.answer(&request, json!({})).await;
    let Heard::Ended(..) = host.hear().await else { panic!("no end") };
    harness.call_by(&other, "b");
    peer.expect_call("b").await;
    let complete =
        r#"{"jsonrpc":"2.0", "method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}"#;
    peer.notify("notifications/elicitation/complete", json!({ "elicitationId": "unheard of" })).await;
    peer.say(complete).await;
    assert_eq!(host.hear().await, Heard::Completed(complete.to_owned()));
    peer.say(complete).await; // once is enough
    peer.expect_nothing().await;
    host.heard_nothing_more();
    other.heard_nothing_more();
}

#[tokio::test(start_paused = true)]
async fn too_many_server_requests_are_refused() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    harness.call_by(&host, "a");
    peer.expect_call("a").await;
    for n in 0..=256 {
        peer.say(json!({ "jsonrpc": "2.0", "id": n, "method": "roots/list" })).await;
    }
    let refused = peer.next().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(256), &json!(-32000)));
    assert_eq!(host.heard.borrow().len(), 256);
}

#[tokio::test(start_paused = true)]
async fn a_server_request_of_a_modern_server_is_refused() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Modern).await;
    let host = Host::new(None);
    harness.call_by(&host, "a");
    peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    refused(&mut peer, json!("é 1")).await;
    host.heard_nothing_more();
}

#[tokio::test(start_paused = true)]
async fn initialize_declares_the_capabilities_of_hosts() {
    let mut harness = Harness::new(Setup::default());
    harness.context.host_registry.can(ClientCapabilities {
        sampling: true,
        url: true,
        ..ClientCapabilities::NONE
    });
    harness.handle.refresh();
    let mut peer = harness.launched().await;
    let request = peer.expect("initialize").await;
    assert_eq!(request["params"]["capabilities"], json!({ "sampling": {}, "elicitation": { "url": {} } }));
}

#[tokio::test(start_paused = true)]
async fn a_modern_call_declares_the_capabilities_of_its_caller() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Modern).await;
    harness.call_by(&Host::new(None), "a");
    let call = peer.expect_call("a").await;
    let key = "io.modelcontextprotocol/clientCapabilities";
    assert_eq!(call["params"]["_meta"][key], json!({ "elicitation": { "form": {} }, "roots": {} }));
}

#[tokio::test(start_paused = true)]
async fn grown_client_capabilities_reopen_an_idle_legacy_server() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    harness.call_by(&host, "a");
    let request = peer.expect_call("a").await;
    assert!(
        harness.context.host_registry.can(ClientCapabilities { sampling: true, ..ClientCapabilities::NONE })
    );
    harness.handle.send(Command::ClientCapabilitiesGrew);
    peer.expect_nothing().await; // it is at work
    peer.answer(&request, json!({ "a": 1 })).await;
    peer.expect_end().await;
    let mut next = harness.launched().await;
    let request = next.expect("initialize").await;
    assert_eq!(request["params"]["capabilities"], json!({ "sampling": {} }));
    let Heard::Ended(_, answer) = host.hear().await else { panic!("no end") };
    assert_eq!(answer, r#"{"a":1}"#);
    next.answer(&request, json!({ "capabilities": { "tools": {} } })).await;
    next.expect("notifications/initialized").await;
    next.list(&["echo"]).await;
    harness.handle.send(Command::ClientCapabilitiesGrew); // nothing new
    next.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn roots_list_changed_goes_to_servers_that_know_of_roots() {
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    for roots in [true, false] {
        let mut harness = Harness::new(Setup::default());
        harness.context.host_registry.can(ClientCapabilities { roots, ..ClientCapabilities::NONE });
        harness.handle.refresh();
        let mut peer = harness.launched().await;
        peer.open(Era::Legacy).await;
        peer.list(&["echo"]).await;
        assert_eq!(harness.report().await, "echo");
        harness.handle.send(Command::RootsChanged(Bytes::from_static(changed.as_bytes())));
        if roots {
            assert_eq!(soon("a notification", peer.heard()).await.as_deref(), Some(changed));
        } else {
            peer.expect_nothing().await;
        }
    }
}
