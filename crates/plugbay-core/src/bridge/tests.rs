//! Any interleaving of messages, kills and hand-overs gives each request exactly one answer.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const TOKEN: &str = "0f";

fn request(id: u64, method: &str, params: &Value) -> Bytes {
    write::request(id.to_string().as_bytes(), method, params.to_string().as_bytes())
}

fn result(id: &Value) -> Bytes {
    write::result(id.to_string().as_bytes(), br#"{"capabilities":{"tools":{"listChanged":true}}}"#)
}

fn value(message: &Bytes) -> Value {
    serde_json::from_slice(message).unwrap()
}

fn opened() -> Bridge {
    let mut bridge = Bridge::default();
    bridge.from_host(&request(1, "initialize", &json!({})), 0);
    assert_eq!(bridge.from_daemon(0, TOKEN, &result(&json!(1))), Delivery::Host);
    bridge.from_host(&write::notification("notifications/initialized", None), 0);
    bridge
}

#[test]
fn a_call_in_flight_gets_one_error_when_its_daemon_ends() {
    let mut bridge = opened();
    assert_eq!(bridge.from_host(&request(2, "tools/call", &json!({})), 0), Some(0));
    let errors = bridge.ended(0);
    assert_eq!(errors.len(), 1);
    assert_eq!((&value(&errors[0])["id"], bridge.is_idle()), (&json!(2), true));
    assert!(value(&errors[0])["error"]["message"].as_str().unwrap().contains("may have had an effect"));
    assert_eq!(bridge.ended(0), Vec::<Bytes>::new());
}

#[test]
fn a_call_that_could_not_be_sent_goes_to_the_next_daemon_once() {
    let mut bridge = opened();
    let call = request(2, "tools/call", &json!({}));
    bridge.from_host(&call, 0);
    bridge.unsent(&call);
    assert_eq!(bridge.ended(0), Vec::<Bytes>::new());
    assert_eq!(bridge.replay(1, TOKEN).last(), Some(&call));
    assert_eq!(bridge.ended(1).len(), 1, "it was sent to the second daemon");
    assert_eq!(bridge.replay(2, TOKEN).len(), 2, "only the opening");
}

#[test]
fn a_bridge_is_at_rest_without_calls_and_a_lost_list_request_needs_a_connection() {
    let mut bridge = opened();
    assert!(bridge.is_at_rest() && !bridge.needs_connection());
    bridge.from_host(&request(2, "subscriptions/listen", &json!({})), 0);
    bridge.from_host(&request(3, "tools/list", &json!({})), 0);
    assert!(bridge.is_at_rest());
    bridge.from_host(&request(4, "tools/call", &json!({})), 0);
    assert!(!bridge.is_at_rest());
    assert_eq!(bridge.ended(0).len(), 1);
    assert!(bridge.is_at_rest() && bridge.needs_connection());
    let again: Vec<Value> = bridge.send_again(1).iter().map(value).collect();
    assert_eq!((again.len(), &again[1]["method"]), (2, &json!("tools/list")));
    assert!(!bridge.needs_connection() && bridge.send_again(1).is_empty());
    bridge.from_daemon(1, TOKEN, &request(9, "roots/list", &json!({})));
    assert!(!bridge.is_at_rest());
}

#[test]
fn of_two_calls_with_one_id_none_is_sent_again() {
    let mut bridge = opened();
    let call = request(2, "tools/call", &json!({}));
    bridge.from_host(&call, 0);
    bridge.from_host(&call, 0);
    bridge.unsent(&call);
    assert_eq!(bridge.ended(0).len(), 2);
}

#[test]
fn initialize_is_replayed_and_its_second_answer_is_swallowed() {
    let mut bridge = opened();
    bridge.from_host(&request(2, "logging/setLevel", &json!({"level":"info"})), 0);
    bridge.from_daemon(0, TOKEN, &result(&json!(2)));
    for uri in ["a", "b"] {
        bridge.from_host(&request(3, "resources/subscribe", &json!({"uri": uri})), 0);
        bridge.from_daemon(0, TOKEN, &result(&json!(3)));
    }
    bridge.from_host(&request(4, "resources/unsubscribe", &json!({"uri": "a"})), 0);
    bridge.from_daemon(0, TOKEN, &result(&json!(4)));
    bridge.ended(0);
    let replayed: Vec<Value> = bridge.replay(1, "t").iter().map(value).collect();
    let methods: Vec<&str> = replayed.iter().filter_map(|message| message["method"].as_str()).collect();
    assert_eq!(
        methods,
        ["initialize", "notifications/initialized", "logging/setLevel", "resources/subscribe"]
    );
    assert_eq!(replayed[3]["params"]["uri"], "b");
    for message in replayed.iter().filter(|message| message.get("id").is_some()) {
        assert_eq!(bridge.from_daemon(1, "t", &result(&message["id"])), Delivery::Nobody);
    }
    let changes: Vec<Value> = bridge.list_changes().iter().map(value).collect();
    assert_eq!(changes, [json!({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})]);
}

#[test]
fn a_list_request_in_flight_is_answered_by_the_next_daemon() {
    let mut bridge = opened();
    bridge.from_host(&request(2, "tools/list", &json!({})), 0);
    assert!(bridge.ended(0).is_empty());
    let replayed = bridge.replay(1, TOKEN);
    assert_eq!(value(replayed.last().unwrap())["id"], 2);
    assert_eq!(bridge.from_daemon(1, TOKEN, &result(&json!(2))), Delivery::Host);
    assert_eq!(bridge.from_daemon(1, TOKEN, &result(&json!(2))), Delivery::Nobody);
}

#[test]
fn an_initialize_without_answer_is_sent_again_under_its_own_id() {
    let mut bridge = Bridge::default();
    bridge.from_host(&request(1, "initialize", &json!({})), 0);
    assert!(bridge.ended(0).is_empty());
    assert_eq!(bridge.replay(1, TOKEN), [request(1, "initialize", &json!({}))]);
    assert_eq!(bridge.from_daemon(1, TOKEN, &result(&json!(1))), Delivery::Host);
}

#[test]
fn an_open_listen_moves_and_is_acknowledged_once() {
    let mut bridge = Bridge::default();
    let listen = request(7, "subscriptions/listen", &json!({"notifications": {"toolsListChanged": true}}));
    bridge.from_host(&listen, 0);
    let meta = json!({"_meta": {crate::era::SUBSCRIPTION_KEY: 7}}).to_string();
    let acknowledged = write::notification("notifications/subscriptions/acknowledged", Some(meta.as_bytes()));
    assert_eq!(bridge.from_daemon(0, TOKEN, &acknowledged), Delivery::Host);
    assert_eq!(bridge.replay(1, TOKEN), [listen]);
    assert_eq!(bridge.from_daemon(1, TOKEN, &acknowledged), Delivery::Nobody);
    assert_eq!(bridge.from_daemon(0, TOKEN, &result(&json!(7))), Delivery::Nobody, "the old daemon ends it");
    assert_eq!(bridge.list_changes().len(), 1);
    assert!(bridge.is_drained(0) && !bridge.is_drained(1));
}

#[test]
fn a_server_request_is_answered_on_its_connection_and_cancelled_with_it() {
    let mut bridge = opened();
    for (connection, id) in [(0, 50), (1, 60)] {
        let question = request(id, "elicitation/create", &json!({}));
        assert_eq!(bridge.from_daemon(connection, TOKEN, &question), Delivery::Host);
    }
    assert_eq!(bridge.from_host(&result(&json!(50)), 1), Some(0));
    assert_eq!(bridge.from_host(&result(&json!(50)), 1), None);
    let withdrawn = bridge.ended(1);
    assert_eq!(value(&withdrawn[0])["params"]["requestId"], 60);
    assert_eq!(bridge.from_host(&result(&json!(60)), 2), None);
}

#[test]
fn a_control_message_needs_the_token_of_its_connection() {
    let mut bridge = Bridge::default();
    for control in [Control::State("s".to_owned()), Control::HandOver, Control::Stopped] {
        let message = control.message(TOKEN);
        assert_eq!(bridge.from_daemon(0, TOKEN, &message), Delivery::Bridge(control));
        assert_eq!(bridge.from_daemon(0, "other", &message), Delivery::Host);
    }
}

#[derive(Debug, Clone)]
enum Event {
    Request(bool),
    Cancel(usize),
    Answer(usize),
    Ask,
    Kill,
    /// The daemons that have handed over end.
    KillDraining,
    /// The host sends a call before anybody has noticed that the daemon is dead.
    CallToTheDead,
    HandOver,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => any::<bool>().prop_map(Event::Request),
        1 => any::<usize>().prop_map(Event::Cancel),
        4 => any::<usize>().prop_map(Event::Answer),
        1 => Just(Event::Ask),
        1 => Just(Event::Kill),
        1 => Just(Event::KillDraining),
        1 => Just(Event::CallToTheDead),
        1 => Just(Event::HandOver),
    ]
}

/// A host, a bridge, and the requests that each daemon has not answered.
#[derive(Default)]
struct World {
    bridge: Bridge,
    current: Connection,
    unanswered: Vec<(Connection, Value)>,
    next: u64,
    cancelled: Vec<u64>,
    /// How many answers the host has got to each request.
    answers: BTreeMap<u64, usize>,
    calls_sent: BTreeMap<u64, usize>,
}

impl World {
    fn send(&mut self, connection: Connection, message: &Bytes) {
        let message = value(message);
        if message["method"] == "tools/call" {
            *self.calls_sent.entry(message["id"].as_u64().unwrap()).or_default() += 1;
        }
        if message.get("id").is_some() && message.get("method").is_some() {
            self.unanswered.push((connection, message["id"].clone()));
        }
    }

    fn deliver(&mut self, message: &Bytes) {
        if let Some(id) = value(message)["id"].as_u64() {
            *self.answers.entry(id).or_default() += 1;
        }
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Request(call) => {
                self.next += 1;
                let method = if *call { "tools/call" } else { "tools/list" };
                let message = request(self.next, method, &json!({}));
                let connection = self.bridge.from_host(&message, self.current).unwrap();
                self.send(connection, &message);
            }
            Event::Cancel(which) if self.next > 0 => {
                let id = *which as u64 % self.next + 1;
                let params = json!({"requestId": id}).to_string();
                let message = write::notification("notifications/cancelled", Some(params.as_bytes()));
                if !self.answers.contains_key(&id) {
                    self.cancelled.push(id);
                }
                assert!(self.bridge.from_host(&message, self.current).is_some());
            }
            Event::Answer(which) if !self.unanswered.is_empty() => {
                let (connection, id) = self.unanswered.remove(which % self.unanswered.len());
                let message = result(&id);
                if self.bridge.from_daemon(connection, TOKEN, &message) == Delivery::Host {
                    self.deliver(&message);
                }
            }
            Event::Ask => {
                self.bridge.from_daemon(self.current, TOKEN, &request(9999, "roots/list", &json!({})));
            }
            Event::Kill => self.kill(),
            Event::KillDraining => {
                for connection in 0..self.current {
                    for message in self.bridge.ended(connection) {
                        self.deliver(&message);
                    }
                    self.unanswered.retain(|(other, _)| *other != connection);
                }
                for message in self.bridge.send_again(self.current) {
                    self.send(self.current, &message);
                }
            }
            Event::CallToTheDead => {
                self.next += 1;
                let message = request(self.next, "tools/call", &json!({}));
                self.bridge.from_host(&message, self.current);
                self.bridge.unsent(&message);
                self.kill();
            }
            Event::HandOver => self.open(),
            _ => {}
        }
    }

    fn kill(&mut self) {
        for connection in 0..=self.current {
            for message in self.bridge.ended(connection) {
                self.deliver(&message);
            }
        }
        self.unanswered.clear();
        self.open();
    }

    fn open(&mut self) {
        self.current += 1;
        for message in self.bridge.replay(self.current, &format!("t{}", self.current)) {
            self.send(self.current, &message);
        }
    }
}

proptest! {
    #[test]
    fn every_request_gets_one_answer_and_no_call_is_sent_twice(events in prop::collection::vec(event(), 0..80)) {
        let mut world = World { bridge: opened(), next: 10, ..World::default() };
        for event in &events {
            world.happen(event);
        }
        while !world.unanswered.is_empty() {
            world.happen(&Event::Answer(0));
        }
        for id in 11..=world.next {
            let (answers, cancelled) = (world.answers.get(&id).copied().unwrap_or(0), world.cancelled.contains(&id));
            prop_assert!(answers == 1 || cancelled && answers == 0, "{} answers to {}", answers, id);
            prop_assert!(world.calls_sent.get(&id).copied().unwrap_or(0) <= 1);
        }
        prop_assert!(world.bridge.is_idle());
        prop_assert!((0..=world.current).all(|one| one == world.current || world.bridge.is_drained(one)
            || world.bridge.questions.values().any(|other| *other == one)));
    }
}
