//! The bridge: no request of the host gets more answers than it was sent times, and all messages of the
//! bridge are valid.
#![no_main]

use std::collections::HashMap;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use plugbay_core::{
    bridge::{Bridge, Connection, Delivery},
    wire::{Head, Kind, Malformed},
};

const TOKEN: &str = "0123456789abcdef";

// One step per line: `h` and `d` with a message from the host or the daemon, `e`: the connection ends, `r`:
// the next one opens, `u` with a message that could not be sent.
fuzz_target!(|input: &str| {
    let mut bridge = Bridge::default();
    let mut connection: Connection = 1;
    let mut awaited: HashMap<Bytes, u32> = HashMap::new();
    for step in input.lines().take(64) {
        let mut chars = step.chars();
        let kind = chars.next();
        let message = Bytes::copy_from_slice(chars.as_str().as_bytes());
        match kind {
            Some('h') => {
                match Head::peek(&message) {
                    Ok(Head { kind: Kind::Request { id, .. }, .. }) | Err(Malformed { id: Some(id), .. }) => {
                        *awaited.entry(message.slice(id)).or_default() += 1;
                    }
                    _ => {}
                }
                bridge.from_host(&message, connection);
            }
            Some('d') => {
                let delivery = bridge.from_daemon(connection, TOKEN, &message);
                if delivery == Delivery::Host {
                    answered(&mut awaited, &message);
                }
            }
            Some('u') => bridge.unsent(&message),
            Some('e') => {
                for message in bridge.ended(connection) {
                    Head::read(&message).expect("a bridge writes messages");
                    answered(&mut awaited, &message);
                }
                assert!(bridge.is_drained(connection), "nothing is expected of a connection that has ended");
            }
            Some('r') => {
                connection += 1;
                for message in bridge.replay(connection, TOKEN) {
                    Head::peek(&message).expect("a bridge replays messages");
                }
                assert!(!bridge.needs_connection(), "the new connection has every request that waits");
            }
            _ => {}
        }
        for message in bridge.list_changes() {
            Head::read(&message).expect("a bridge writes messages");
        }
    }
});

/// Notes that the host gets this message.
fn answered(awaited: &mut HashMap<Bytes, u32>, message: &Bytes) {
    if let Ok(Head { kind: Kind::Result { id } | Kind::Error { id: Some(id) }, .. }) = Head::peek(message) {
        let left = awaited
            .get_mut(&message[id.clone()])
            .and_then(|left| left.checked_sub(1).map(|next| *left = next));
        assert!(left.is_some(), "one answer too many: {message:?}");
    }
}
