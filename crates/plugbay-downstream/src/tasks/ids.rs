//! Task ids as hosts see them: they name their server, and only their caller can use them.
//!
//! A task is shown as `{server}__{id}`. Every later process can decode that, and two servers may use the same
//! ids. If callers have tokens, it is `{server}__{tag}_{id}`. The tag is computed from a secret about the
//! caller, so no other caller can use the id or forge one, however easy a server's ids are to guess. Nothing
//! needs to be remembered.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use hmac::{Hmac, Mac, digest::KeyInit};
use plugbay_core::{
    name::{self, ServerName},
    wire::{Span, string_value},
};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::seal::Owner;

/// Length of the tag in bytes: too long to guess.
const TAG: usize = 12;

/// A server's task by its own id.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) server: ServerName,
    pub(crate) id: String,
}

impl Task {
    /// The task of a shown id; `None` if the id is not ours, or not for this caller.
    pub(crate) fn find(shown: &str, owner: &Owner) -> Option<Self> {
        let (server, rest) = name::split(shown)?;
        let server = ServerName::parse(server).ok()?;
        let Some(length) = (*owner != Owner::default()).then(|| BASE64.encode([0; TAG]).len()) else {
            return Some(Self { server, id: rest.to_owned() });
        };
        let (given, id) = (rest.get(..length)?, rest.get(length..)?.strip_prefix('_')?);
        let expected = tag(&server, id, owner);
        let ours: bool = given.as_bytes().ct_eq(expected.as_bytes()).into();
        ours.then(|| Self { server, id: id.to_owned() })
    }

    /// The prefix of the server's own id.
    fn before(&self, owner: &Owner) -> String {
        let server = name::before(&self.server);
        if *owner == Owner::default() {
            server
        } else {
            format!("{server}{}_", tag(&self.server, &self.id, owner))
        }
    }
}

/// The insertions that turn a server's task ids into those of the host. The server's bytes stay unchanged.
pub(crate) fn labels(
    message: &[u8],
    ids: impl IntoIterator<Item = Span>,
    server: &ServerName,
    owner: &Owner,
) -> Vec<(usize, Vec<u8>)> {
    let label = |span: Span| {
        let id = string_value(&message[span.clone()])?.into_owned();
        let task = Task { server: server.clone(), id };
        Some((span.start + 1, task.before(owner).into_bytes()))
    };
    ids.into_iter().filter_map(label).collect()
}

fn tag(server: &ServerName, id: &str, owner: &Owner) -> String {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&owner.0).expect("a key of any length will do");
    mac.update(b"task of ");
    mac.update(name::before(server).as_bytes());
    mac.update(id.as_bytes());
    BASE64.encode(&mac.finalize().into_bytes()[..TAG])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(id: &str, owner: &Owner) -> String {
        let message = serde_json::Value::from(id).to_string();
        let (server, whole) = (ServerName::parse("a-b_c").unwrap(), 0..message.len());
        let labels = labels(message.as_bytes(), [whole], &server, owner);
        let (at, text) = &labels[0];
        let shown = [&message.as_bytes()[..*at], text, &message.as_bytes()[*at..]].concat();
        string_value(&shown).unwrap().into_owned()
    }

    #[test]
    fn a_task_id_leads_back_to_its_server() {
        for owner in [Owner::default(), Owner([7; 32])] {
            for id in ["1", "", "x__y", "__", "ä \"quoted\"\n", "786512e2-9e0d-44bd"] {
                let task = Task::find(&shown(id, &owner), &owner).expect("ours");
                assert_eq!((task.server.as_str(), &*task.id), ("a-b_c", id));
            }
        }
        assert_eq!(shown("1", &Owner::default()), "a-b_c__1");
    }

    #[test]
    fn a_task_id_is_unknown_to_other_callers() {
        let (mine, theirs) = (Owner([1; 32]), Owner([2; 32]));
        let id = shown("1", &mine);
        assert!(Task::find(&id, &mine).is_some());
        let other_server = id.replacen("a-b_c", "b", 1);
        let other_id = format!("{}2", &id[..id.len() - 1]);
        for (guess, caller) in [
            (&*id, theirs),
            ("a-b_c__1", mine),
            (&*other_server, mine),
            (&*other_id, mine),
            ("1", mine),
            ("", mine),
        ] {
            assert_eq!(Task::find(guess, &caller), None, "{guess}");
        }
        assert_eq!(Task::find("a-b_c__äääääääää", &mine), None, "no letter is cut in two");
    }
}
