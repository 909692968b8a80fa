//! The hosts that are here, how they introduced themselves and how they see the panel: for people who ask.

use std::{borrow::Cow, collections::BTreeMap};

use plugbay_core::{era::Era, exposure::Mode};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::message::Request;

/// A host chooses its words itself.
const LONGEST: usize = 64;

/// How many hosts there are of each kind. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ConnectedHosts(watch::Sender<BTreeMap<ConnectedHost, usize>>);

/// A host as others see it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectedHost {
    /// What it calls itself.
    pub name: Option<String>,
    pub version: Option<String>,
    /// The host that it is taken for.
    pub profile: String,
    pub era: Era,
    /// Its mode and the reason; absent until all servers have been heard of.
    pub mode: Option<Mode>,
    pub why: Option<String>,
}

impl ConnectedHosts {
    pub fn watch(&self) -> watch::Receiver<BTreeMap<ConnectedHost, usize>> {
        self.0.subscribe()
    }
}

/// How a host introduces itself.
#[derive(Debug)]
pub(crate) struct ClientInfo<'a> {
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) version: Option<Cow<'a, str>>,
    pub(crate) era: Era,
}

impl<'a> ClientInfo<'a> {
    pub(crate) fn of(request: &'a Request, era: Era) -> Self {
        Self { name: request.client(), version: request.client_version(), era }
    }
}

/// A host's place among the others, until this is dropped.
#[derive(Debug)]
pub(crate) struct Presence {
    connected_hosts: ConnectedHosts,
    host: ConnectedHost,
}

impl Presence {
    pub(crate) fn register(
        connected_hosts: &ConnectedHosts,
        client: &ClientInfo<'_>,
        profile: &str,
        chosen: Option<(Mode, String)>,
    ) -> Self {
        let words = |text: &Option<Cow<'_, str>>| Some(text.as_ref()?.chars().take(LONGEST).collect());
        let (mode, why) = chosen.unzip();
        let (name, version) = (words(&client.name), words(&client.version));
        Self::new(
            connected_hosts.clone(),
            ConnectedHost { name, version, profile: profile.to_owned(), era: client.era, mode, why },
        )
    }

    fn new(connected_hosts: ConnectedHosts, host: ConnectedHost) -> Self {
        connected_hosts.0.send_modify(|all| *all.entry(host.clone()).or_default() += 1);
        Self { connected_hosts, host }
    }

    /// One that does not say its name is whoever it was.
    pub(crate) fn matches(&self, client: &ClientInfo<'_>, profile: &str) -> bool {
        let ConnectedHost { name, version, profile: known, era, .. } = &self.host;
        let named =
            || name.as_deref() == client.name.as_deref() && version.as_deref() == client.version.as_deref();
        known == profile && *era == client.era && (client.name.is_none() || named())
    }

    /// The host has got this mode, for this reason.
    pub(crate) fn set_mode(&mut self, (mode, why): (Mode, String)) {
        let host = ConnectedHost { mode: Some(mode), why: Some(why), ..self.host.clone() };
        *self = Self::new(self.connected_hosts.clone(), host);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.connected_hosts.0.send_modify(|all| {
            let Some(count) = all.get_mut(&self.host) else { return };
            *count -= 1;
            if *count == 0 {
                all.remove(&self.host);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_kind_are_counted_while_they_are_here() {
        let connected_hosts = ConnectedHosts::default();
        let host = ClientInfo { name: Some("c".into()), version: Some("1".into()), era: Era::Legacy };
        let register = || Presence::register(&connected_hosts, &host, "unknown", None);
        let (mut first, second) = (register(), register());
        assert_eq!(connected_hosts.watch().borrow().values().collect::<Vec<_>>(), [&2]);
        first.set_mode((Mode::All, "small".to_owned()));
        let told = connected_hosts.watch().borrow().clone();
        assert_eq!(
            told.iter().map(|(host, count)| (host.mode, *count)).collect::<Vec<_>>(),
            [(None, 1), (Some(Mode::All), 1)]
        );
        drop((first, second));
        assert!(connected_hosts.watch().borrow().is_empty());
    }

    #[test]
    fn a_host_that_says_nothing_new_keeps_its_seat() {
        let register =
            |client: &ClientInfo<'_>| Presence::register(&ConnectedHosts::default(), client, "codex", None);
        let host = |name: Option<&'static str>, version: &'static str, era| ClientInfo {
            name: name.map(Into::into),
            version: Some(version.into()),
            era,
        };
        let presence = register(&host(Some("c"), "1", Era::Modern));
        assert!(presence.matches(&host(Some("c"), "1", Era::Modern), "codex"));
        assert!(presence.matches(&host(None, "", Era::Modern), "codex"));
        for other in [
            host(Some("d"), "1", Era::Modern),
            host(Some("c"), "2", Era::Modern),
            host(Some("c"), "1", Era::Legacy),
        ] {
            assert!(!presence.matches(&other, "codex"), "{other:?}");
        }
        assert!(!presence.matches(&host(None, "", Era::Modern), "cursor"), "the configuration has changed");
        let long = "x".repeat(1000);
        let long_named =
            register(&ClientInfo { name: Some(long.as_str().into()), version: None, era: Era::Legacy });
        assert_eq!(long_named.host.name.as_ref().map(String::len), Some(LONGEST));
    }
}
