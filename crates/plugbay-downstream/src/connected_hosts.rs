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
pub(crate) struct Introduction<'a> {
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) version: Option<Cow<'a, str>>,
    pub(crate) era: Era,
}

impl<'a> Introduction<'a> {
    pub(crate) fn of(request: &'a Request, era: Era) -> Self {
        Self { name: request.client(), version: request.client_version(), era }
    }
}

/// A host's place among the others, until this is dropped.
#[derive(Debug)]
pub(crate) struct Presence {
    connected_hosts: ConnectedHosts,
    guest: ConnectedHost,
}

impl Presence {
    pub(crate) fn take(
        connected_hosts: &ConnectedHosts,
        host: &Introduction<'_>,
        profile: &str,
        chosen: Option<(Mode, String)>,
    ) -> Self {
        let words = |text: &Option<Cow<'_, str>>| Some(text.as_ref()?.chars().take(LONGEST).collect());
        let (mode, why) = chosen.unzip();
        let (name, version) = (words(&host.name), words(&host.version));
        Self::new(
            connected_hosts.clone(),
            ConnectedHost { name, version, profile: profile.to_owned(), era: host.era, mode, why },
        )
    }

    fn new(connected_hosts: ConnectedHosts, guest: ConnectedHost) -> Self {
        connected_hosts.0.send_modify(|all| *all.entry(guest.clone()).or_default() += 1);
        Self { connected_hosts, guest }
    }

    /// One that does not say its name is whoever it was.
    pub(crate) fn is_of(&self, host: &Introduction<'_>, profile: &str) -> bool {
        let ConnectedHost { name, version, profile: known, era, .. } = &self.guest;
        let named =
            || name.as_deref() == host.name.as_deref() && version.as_deref() == host.version.as_deref();
        known == profile && *era == host.era && (host.name.is_none() || named())
    }

    /// The host has got this mode, for this reason.
    pub(crate) fn gets(&mut self, (mode, why): (Mode, String)) {
        let guest = ConnectedHost { mode: Some(mode), why: Some(why), ..self.guest.clone() };
        *self = Self::new(self.connected_hosts.clone(), guest);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.connected_hosts.0.send_modify(|all| {
            let Some(count) = all.get_mut(&self.guest) else { return };
            *count -= 1;
            if *count == 0 {
                all.remove(&self.guest);
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
        let host = Introduction { name: Some("c".into()), version: Some("1".into()), era: Era::Legacy };
        let seat = || Presence::take(&connected_hosts, &host, "unknown", None);
        let (mut first, second) = (seat(), seat());
        assert_eq!(connected_hosts.watch().borrow().values().collect::<Vec<_>>(), [&2]);
        first.gets((Mode::All, "small".to_owned()));
        let told = connected_hosts.watch().borrow().clone();
        assert_eq!(
            told.iter().map(|(guest, count)| (guest.mode, *count)).collect::<Vec<_>>(),
            [(None, 1), (Some(Mode::All), 1)]
        );
        drop((first, second));
        assert!(connected_hosts.watch().borrow().is_empty());
    }

    #[test]
    fn a_host_that_says_nothing_new_keeps_its_seat() {
        let seat = |host: &Introduction<'_>| Presence::take(&ConnectedHosts::default(), host, "codex", None);
        let host = |name: Option<&'static str>, version: &'static str, era| Introduction {
            name: name.map(Into::into),
            version: Some(version.into()),
            era,
        };
        let taken = seat(&host(Some("c"), "1", Era::Modern));
        assert!(taken.is_of(&host(Some("c"), "1", Era::Modern), "codex"));
        assert!(taken.is_of(&host(None, "", Era::Modern), "codex"));
        for other in [
            host(Some("d"), "1", Era::Modern),
            host(Some("c"), "2", Era::Modern),
            host(Some("c"), "1", Era::Legacy),
        ] {
            assert!(!taken.is_of(&other, "codex"), "{other:?}");
        }
        assert!(!taken.is_of(&host(None, "", Era::Modern), "cursor"), "the configuration has changed");
        let long = "x".repeat(1000);
        let boasting =
            seat(&Introduction { name: Some(long.as_str().into()), version: None, era: Era::Legacy });
        assert_eq!(boasting.guest.name.as_ref().map(String::len), Some(LONGEST));
    }
}
