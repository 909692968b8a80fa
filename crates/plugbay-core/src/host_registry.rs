//! Who is there to be asked: the hosts that servers may turn to, and what they can do all together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::{capabilities::ClientCapabilities, exchange::Caller, extension::Extensions, level::Level};

/// Fed by the host side, read by the server side.
#[derive(Debug, Default)]
pub struct HostRegistry {
    // A std mutex: held for a look or a push.
    hosts: Mutex<Hosts>,
}

#[derive(Debug, Default)]
struct Hosts {
    client_capabilities: ClientCapabilities,
    extensions: Extensions,
    /// Those that can be asked though they have called nobody.
    listening: Vec<Weak<dyn Caller>>,
    /// Those that want to hear the notifications.
    reading: Vec<Weak<dyn Caller>>,
    /// From which level on they want the log, as far as they have said so.
    levels: Vec<(Weak<dyn Caller>, Level)>,
}

impl HostRegistry {
    /// What servers are told that they can ask for.
    pub fn client_capabilities(&self) -> ClientCapabilities {
        self.lock().client_capabilities
    }

    /// Hosts can do this too. `false`: that was known.
    pub fn can(&self, client_capabilities: ClientCapabilities) -> bool {
        let mut hosts = self.lock();
        let wider = hosts.client_capabilities.with(client_capabilities);
        std::mem::replace(&mut hosts.client_capabilities, wider) != wider
    }

    /// What else they are told of, by names that only hosts and servers need to know.
    pub fn extensions(&self) -> Extensions {
        self.lock().extensions.clone()
    }

    /// Hosts have declared this too. `false`: that was known.
    pub fn knows(&self, extensions: &Extensions) -> bool {
        self.lock().extensions.join(extensions)
    }

    /// Whether a server that was told this has been told everything.
    pub fn is_told(&self, client_capabilities: ClientCapabilities, extensions: &Extensions) -> bool {
        let hosts = self.lock();
        client_capabilities.covers(hosts.client_capabilities) && extensions.covers(&hosts.extensions)
    }

    pub fn joined(&self, host: Weak<dyn Caller>) {
        let mut hosts = self.lock();
        hosts.listening.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&host));
        hosts.listening.push(host);
    }

    pub fn left(&self, host: &Weak<dyn Caller>) {
        self.lock().listening.retain(|other| other.strong_count() > 0 && !other.ptr_eq(host));
    }

    /// A host wants the log from this level on, or has no wish any more. `false`: all together want the same
    /// as before.
    pub fn wants_log(&self, host: &Weak<dyn Caller>, level: Option<Level>) -> bool {
        let mut hosts = self.lock();
        let before = hosts.log_level();
        hosts.levels.retain(|(other, _)| other.strong_count() > 0 && !other.ptr_eq(host));
        hosts.levels.extend(level.map(|level| (host.clone(), level)));
        hosts.log_level() != before
    }

    /// From which level on anybody wants the log. The most curious decides.
    pub fn log_level(&self) -> Option<Level> {
        self.lock().log_level()
    }

    /// Whoever reads hears of everything; what concerns it, it knows itself.
    pub fn reads(&self, host: Weak<dyn Caller>) {
        let mut hosts = self.lock();
        hosts.reading.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&host));
        hosts.reading.push(host);
    }

    pub fn each(&self, tell: impl Fn(&dyn Caller)) {
        let reading: Vec<_> = self.lock().reading.iter().filter_map(Weak::upgrade).collect();
        for host in reading {
            tell(&*host);
        }
    }

    /// The one that listens, if there is no other: among several nobody could tell who is meant.
    pub fn only(&self) -> Option<Arc<dyn Caller>> {
        let hosts = self.lock();
        let mut listening = hosts.listening.iter().filter_map(Weak::upgrade);
        listening.next().filter(|_| listening.next().is_none())
    }

    fn lock(&self) -> MutexGuard<'_, Hosts> {
        // Nothing can panic half-way through a change.
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hosts {
    fn log_level(&self) -> Option<Level> {
        self.levels.iter().map(|(_, level)| *level).min()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{
        exchange::{Answer, Ticket},
        wire::Span,
    };

    #[derive(Debug)]
    struct Host;

    impl Caller for Host {
        fn answered(&self, _: Ticket, _: Answer) {}
        fn progressed(&self, _: Ticket, _: Bytes, _: Span) {}
    }

    #[test]
    fn one_alone_is_asked_and_of_several_none() {
        let hosts: [Arc<dyn Caller>; 2] = [Arc::new(Host), Arc::new(Host)];
        let host_registry = HostRegistry::default();
        assert!(host_registry.only().is_none());
        host_registry.joined(Arc::downgrade(&hosts[0]));
        assert!(host_registry.only().is_some());
        host_registry.joined(Arc::downgrade(&hosts[1]));
        assert!(host_registry.only().is_none());
        host_registry.left(&Arc::downgrade(&hosts[0]));
        assert!(host_registry.only().is_some_and(|only| Arc::ptr_eq(&only, &hosts[1])));
        drop(hosts);
        assert!(host_registry.only().is_none(), "who has gone without a word is not there either");
    }

    #[test]
    fn the_log_is_wanted_as_the_most_curious_says() {
        let hosts: [Arc<dyn Caller>; 2] = [Arc::new(Host), Arc::new(Host)];
        let [one, other] = hosts.each_ref().map(Arc::downgrade);
        let host_registry = HostRegistry::default();
        assert_eq!(host_registry.log_level(), None);
        for (host, level, changed, all_want) in [
            (&one, Some(Level::Error), true, Some(Level::Error)),
            (&other, Some(Level::Debug), true, Some(Level::Debug)),
            (&one, Some(Level::Info), false, Some(Level::Debug)),
            (&other, Some(Level::Critical), true, Some(Level::Info)),
            (&other, None, false, Some(Level::Info)),
            (&one, None, true, None),
        ] {
            assert_eq!(
                (host_registry.wants_log(host, level), host_registry.log_level()),
                (changed, all_want)
            );
        }
    }

    #[test]
    fn what_hosts_can_do_only_grows() {
        let host_registry = HostRegistry::default();
        assert!(!host_registry.can(ClientCapabilities::NONE));
        assert!(host_registry.can(ClientCapabilities { form: true, ..ClientCapabilities::NONE }));
        assert!(host_registry.can(ClientCapabilities { roots: true, ..ClientCapabilities::NONE }));
        assert!(!host_registry.can(ClientCapabilities { form: true, ..ClientCapabilities::NONE }));
        assert_eq!(
            host_registry.client_capabilities(),
            ClientCapabilities { form: true, roots: true, ..ClientCapabilities::NONE }
        );
    }
}
