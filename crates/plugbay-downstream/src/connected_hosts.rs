//! The hosts that are connected, with their `clientInfo` and mode, for `plugbay status`.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use plugbay_core::{era::Era, exposure::Mode, profile::Client};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::message::Request;

/// Longest host name or version that is kept, in characters.
const LONGEST: usize = 64;

/// The number of connected hosts of each kind. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ConnectedHosts {
    counts: watch::Sender<BTreeMap<ConnectedHost, usize>>,
    /// The counts that include these hosts among others.
    all: Option<Arc<ConnectedHosts>>,
}

/// A kind of connected host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectedHost {
    /// The name in its `clientInfo`.
    pub name: Option<String>,
    pub version: Option<String>,
    /// The name of its host profile.
    pub profile: String,
    pub era: Era,
    /// Its mode and the reason; absent until all servers have listed or failed.
    pub mode: Option<Mode>,
    pub why: Option<String>,
}

impl ConnectedHosts {
    pub fn watch(&self) -> watch::Receiver<BTreeMap<ConnectedHost, usize>> {
        self.counts.subscribe()
    }

    /// Counts for the hosts of one connection, which are also counted here.
    #[must_use]
    pub fn of_connection(&self) -> Self {
        Self { counts: watch::Sender::default(), all: Some(Arc::new(self.clone())) }
    }

    fn add(&self, host: &ConnectedHost) {
        self.counts.send_modify(|all| *all.entry(host.clone()).or_default() += 1);
        if let Some(all) = &self.all {
            all.add(host);
        }
    }

    fn remove(&self, host: &ConnectedHost) {
        self.counts.send_modify(|all| {
            let Some(count) = all.get_mut(host) else { return };
            *count -= 1;
            if *count == 0 {
                all.remove(host);
            }
        });
        if let Some(all) = &self.all {
            all.remove(host);
        }
    }
}

/// A host's `clientInfo` and protocol era.
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

    pub(crate) fn client(&self) -> Client<'_> {
        Client { name: self.name.as_deref(), version: self.version.as_deref() }
    }
}

/// A host's entry in [`ConnectedHosts`], until this is dropped.
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
        connected_hosts.add(&host);
        Self { connected_hosts, host }
    }

    /// Whether the entry still describes the host. A host that sends no name keeps its former one.
    pub(crate) fn matches(&self, client: &ClientInfo<'_>, profile: &str) -> bool {
        let ConnectedHost { name, version, profile: known, era, .. } = &self.host;
        let named =
            || name.as_deref() == client.name.as_deref() && version.as_deref() == client.version.as_deref();
        known == profile && *era == client.era && (client.name.is_none() || named())
    }

    /// Sets the mode of the host and its reason.
    pub(crate) fn set_mode(&mut self, (mode, why): (Mode, String)) {
        let host = ConnectedHost { mode: Some(mode), why: Some(why), ..self.host.clone() };
        *self = Self::new(self.connected_hosts.clone(), host);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.connected_hosts.remove(&self.host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connected_hosts_are_counted_by_client_info() {
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
    fn a_connected_host_keeps_its_presence_if_client_info_is_unchanged() {
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
