//! The hosts that servers can send requests and notifications to, and their capabilities together.
//!
//! Registries form a tree: a session's registry is a member of its gateway's, and the gateway's is a member
//! of the registry of each server that it shares with other gateways. Capabilities are passed up when they
//! grow; hosts are looked up from above.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::{
    capabilities::ClientCapabilities, declaration::Declaration, exchange::Caller, extension::Extensions,
    level::Level,
};

/// Fed by the host side, read by the server side.
#[derive(Debug, Default)]
pub struct HostRegistry {
    // A std mutex: held only to read or push.
    hosts: Mutex<Hosts>,
    /// The name of the session of these hosts towards remote gateways.
    session_id: OnceLock<Arc<str>>,
}

#[derive(Debug, Default)]
struct Hosts {
    client_capabilities: ClientCapabilities,
    extensions: Extensions,
    /// Hosts that can be asked although they have called no server.
    listening: Vec<Weak<dyn Caller>>,
    /// Hosts that receive notifications.
    reading: Vec<Weak<dyn Caller>>,
    /// The log levels of hosts that have set one.
    levels: Vec<(Weak<dyn Caller>, Level)>,
    /// Registries whose hosts count here too.
    members: Vec<Weak<HostRegistry>>,
    /// Registries that know the capabilities of these hosts.
    above: Vec<Weak<HostRegistry>>,
}

impl HostRegistry {
    /// The hosts of `member` can be asked and notified from here too.
    pub fn include(self: &Arc<Self>, member: &Arc<Self>) {
        push_live(&mut self.lock().members, Arc::downgrade(member));
        self.declare_for(member);
    }

    /// Servers of this registry are told the capabilities of the hosts of `other`, now and later, but cannot
    /// ask them.
    pub fn declare_for(self: &Arc<Self>, other: &Arc<Self>) {
        push_live(&mut other.lock().above, Arc::downgrade(self));
        self.add_capabilities(other.client_capabilities());
        self.add_extensions(&other.extensions());
    }

    /// The client capabilities that servers are told.
    pub fn client_capabilities(&self) -> ClientCapabilities {
        self.lock().client_capabilities
    }

    /// Adds capabilities of hosts. `false`: they were known.
    pub fn add_capabilities(&self, client_capabilities: ClientCapabilities) -> bool {
        let mut hosts = self.lock();
        let wider = hosts.client_capabilities.with(client_capabilities);
        let grown = std::mem::replace(&mut hosts.client_capabilities, wider) != wider;
        drop(hosts);
        if grown {
            self.each_above(|above| _ = above.add_capabilities(wider));
        }
        grown
    }

    /// The extensions that servers are told, by names that only hosts and servers need to know.
    pub fn extensions(&self) -> Extensions {
        self.lock().extensions.clone()
    }

    /// Everything that servers are told.
    pub fn declaration(&self) -> Declaration {
        let hosts = self.lock();
        Declaration::new(hosts.client_capabilities, hosts.extensions.clone())
    }

    /// Adds extensions that hosts have declared. `false`: they were known.
    pub fn add_extensions(&self, extensions: &Extensions) -> bool {
        let grown = self.lock().extensions.join(extensions);
        if grown {
            self.each_above(|above| _ = above.add_extensions(extensions));
        }
        grown
    }

    /// Whether a server that was told this has been told everything.
    pub fn is_told(&self, client_capabilities: ClientCapabilities, extensions: &Extensions) -> bool {
        let hosts = self.lock();
        client_capabilities.covers(hosts.client_capabilities) && extensions.covers(&hosts.extensions)
    }

    /// The name of the session of these hosts towards remote gateways; `make` makes it when it is first needed. It
    /// belongs to the hosts and not to a connection, so that a remote finds their data again.
    pub fn session_id(&self, make: impl FnOnce() -> Arc<str>) -> Arc<str> {
        Arc::clone(self.session_id.get_or_init(make))
    }

    pub fn joined(&self, host: Weak<dyn Caller>) {
        let mut hosts = self.lock();
        hosts.listening.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&host));
        hosts.listening.push(host);
    }

    pub fn left(&self, host: &Weak<dyn Caller>) {
        self.lock().listening.retain(|other| other.strong_count() > 0 && !other.ptr_eq(host));
    }

    /// A host wants the log from this level on, or no longer sets one. `false`: the level of all together is
    /// the same as before.
    pub fn wants_log(&self, host: &Weak<dyn Caller>, level: Option<Level>) -> bool {
        let mut hosts = self.lock();
        let before = hosts.log_level();
        hosts.levels.retain(|(other, _)| other.strong_count() > 0 && !other.ptr_eq(host));
        hosts.levels.extend(level.map(|level| (host.clone(), level)));
        hosts.log_level() != before
    }

    /// The lowest log level that any host wants.
    pub fn log_level(&self) -> Option<Level> {
        let own = self.lock().log_level();
        self.members().iter().filter_map(|member| member.log_level()).chain(own).min()
    }

    /// Adds a host that receives notifications: it gets all, and decides itself which concern it.
    pub fn reads(&self, host: Weak<dyn Caller>) {
        let mut hosts = self.lock();
        hosts.reading.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&host));
        hosts.reading.push(host);
    }

    pub fn each(&self, tell: impl Fn(&dyn Caller)) {
        for host in self.readers().into_iter().flatten() {
            tell(&*host);
        }
    }

    /// The same if all hosts are of one session; else nobody is told. For messages that do not say for whom
    /// they are.
    pub fn each_of_one_session(&self, tell: impl Fn(&dyn Caller)) {
        if let [session] = &self.readers()[..] {
            for host in session {
                tell(&**host);
            }
        }
    }

    /// The only host that listens; `None` if there are several, because it would be unclear who is meant.
    pub fn only(&self) -> Option<Arc<dyn Caller>> {
        let mut listening = self.listening().into_iter();
        listening.next().filter(|_| listening.next().is_none())
    }

    fn listening(&self) -> Vec<Arc<dyn Caller>> {
        let mut all: Vec<_> = self.lock().listening.iter().filter_map(Weak::upgrade).collect();
        all.extend(self.members().iter().flat_map(|member| member.listening()));
        all
    }

    /// The hosts that read notifications, by session: each registry that has hosts of its own is one.
    fn readers(&self) -> Vec<Vec<Arc<dyn Caller>>> {
        let own: Vec<_> = self.lock().reading.iter().filter_map(Weak::upgrade).collect();
        let mut all: Vec<_> = self.members().iter().flat_map(|member| member.readers()).collect();
        if !own.is_empty() {
            all.push(own);
        }
        all
    }

    fn members(&self) -> Vec<Arc<Self>> {
        self.lock().members.iter().filter_map(Weak::upgrade).collect()
    }

    /// Acts on the registries above, never under the lock: registries are locked one at a time.
    fn each_above(&self, act: impl Fn(&Self)) {
        let above: Vec<_> = self.lock().above.iter().filter_map(Weak::upgrade).collect();
        for above in above {
            act(&above);
        }
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

/// Adds a registry, unless it is present already, and removes those that have gone.
fn push_live(registries: &mut Vec<Weak<HostRegistry>>, new: Weak<HostRegistry>) {
    registries.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&new));
    registries.push(new);
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
        assert!(!host_registry.add_capabilities(ClientCapabilities::NONE));
        assert!(
            host_registry.add_capabilities(ClientCapabilities { form: true, ..ClientCapabilities::NONE })
        );
        assert!(
            host_registry.add_capabilities(ClientCapabilities { roots: true, ..ClientCapabilities::NONE })
        );
        assert!(
            !host_registry.add_capabilities(ClientCapabilities { form: true, ..ClientCapabilities::NONE })
        );
        assert_eq!(
            host_registry.client_capabilities(),
            ClientCapabilities { form: true, roots: true, ..ClientCapabilities::NONE }
        );
    }

    #[test]
    fn hosts_of_a_session_count_for_the_servers_that_it_uses() {
        let [server, gateway, one, other] = [(); 4].map(|()| Arc::new(HostRegistry::default()));
        one.add_capabilities(ClientCapabilities { form: true, ..ClientCapabilities::NONE });
        server.include(&gateway);
        gateway.include(&one);
        gateway.include(&other);
        other.add_capabilities(ClientCapabilities { roots: true, ..ClientCapabilities::NONE });
        let both = ClientCapabilities { form: true, roots: true, ..ClientCapabilities::NONE };
        assert_eq!(server.client_capabilities(), both, "known before and after");
        assert!(!one.client_capabilities().roots, "another session's capabilities stay there");
        let host: Arc<dyn Caller> = Arc::new(Host);
        other.joined(Arc::downgrade(&host));
        other.wants_log(&Arc::downgrade(&host), Some(Level::Info));
        assert!(server.only().is_some_and(|only| Arc::ptr_eq(&only, &host)) && one.only().is_none());
        assert_eq!((server.log_level(), one.log_level()), (Some(Level::Info), None));
        drop(other);
        assert!(server.only().is_none());
    }

    #[test]
    fn a_notification_for_nobody_in_particular_reaches_one_session_and_of_several_none() {
        let [server, one, other] = [(); 3].map(|()| Arc::new(HostRegistry::default()));
        let hosts: [Arc<dyn Caller>; 3] = [Arc::new(Host), Arc::new(Host), Arc::new(Host)];
        server.include(&one);
        server.include(&other);
        let told = || {
            let count = std::cell::Cell::new(0);
            server.each_of_one_session(|_| count.set(count.get() + 1));
            count.get()
        };
        one.reads(Arc::downgrade(&hosts[0]));
        one.reads(Arc::downgrade(&hosts[1]));
        assert_eq!(told(), 2);
        other.reads(Arc::downgrade(&hosts[2]));
        assert_eq!(told(), 0);
    }
}
