//! How a host sees the catalog: its profile, its mode, and the tools that it has activated.

mod list_changes;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use plugbay_core::{
    auto::{self, Choice, Sizes},
    declaration::Declaration,
    exchange::Servers,
    exposure::Mode,
    fit::HostTakes,
    name::ServerName,
    profile::{Client, Profile},
    surface::{AgentAccess, Layout, Learned, Snapshot, View, activate::Active, instructions},
};
use tokio::sync::Notify;

use crate::{
    connected_hosts::{ClientInfo, ConnectedHosts, Presence},
    open_apps::OpenApps,
};

/// A host's view of the catalog.
#[derive(Debug)]
pub(crate) struct HostView {
    persistence: Persistence,
    // A std mutex: held for look-ups, never across an await.
    state: Mutex<State>,
    /// Notified when the host has listed its tools.
    pub(crate) listed: Notify,
    /// Counts the tool lists that the host got.
    listings: AtomicUsize,
    /// The host was notified that its tools have changed, and has not listed them since.
    unlisted: AtomicBool,
    /// Number of live [`ListChangeListener`]s.
    listeners: AtomicUsize,
    /// Called with the active tools after each change, if they are to be saved.
    keeper: OnceLock<Keeper>,
    pub(crate) open_apps: OpenApps,
}

/// Saves the active tools of a host, as text.
pub(crate) struct Keeper(pub(crate) Box<dyn Fn(String) + Send + Sync>);

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keeper")
    }
}

/// A connection on which the host gets `list_changed` notifications, until this is dropped.
#[derive(Debug)]
pub(crate) struct ListChangeListener(Arc<HostView>);

impl Drop for ListChangeListener {
    fn drop(&mut self) {
        self.0.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A server with active tools: it does not become idle until this is dropped.
struct HeldServer {
    servers: Arc<dyn Servers>,
    server: ServerName,
}

impl HeldServer {
    fn new(servers: &Arc<dyn Servers>, server: &ServerName) -> Self {
        servers.hold(server);
        Self { servers: Arc::clone(servers), server: server.clone() }
    }
}

impl Drop for HeldServer {
    fn drop(&mut self) {
        self.servers.release(&self.server);
    }
}

impl fmt::Debug for HeldServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldServer").field(&self.server).finish()
    }
}

/// How long activated tools stay active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Persistence {
    /// As long as the session of the host.
    Session,
    /// Under the name in the URL, until no host uses that name any more.
    Named,
    /// For one request: plugbay cannot tell which host sends the next one.
    None,
    /// Nothing can be activated: a client of the plain API sees every tool under its full name, in every mode.
    Plain,
}

#[derive(Debug)]
struct State {
    host: Profile,
    /// The name and the version in the host's `clientInfo`.
    client: Option<String>,
    version: Option<String>,
    /// The host has identified itself.
    identified: bool,
    /// The host declared `sampling.tools`.
    has_sampling_tools: bool,
    /// The host has declared MCP Apps.
    shows_apps: bool,
    /// The entry among the connected hosts.
    presence: Option<Presence>,
    /// Over HTTP: whether no stream was open for `list_changed` when the host first listed its tools.
    missed_first_list: Option<bool>,
    active: Active,
    /// The tools used most when the host connected; fixed, because a list must not change in
    /// mid-conversation.
    learned: Arc<Learned>,
    /// The value of the setting `learn` at that moment.
    learn: usize,
    held: BTreeMap<ServerName, HeldServer>,
    chosen: Option<ChosenMode>,
    /// The snapshot that the last view was made of, and that view. Cached for sessions only: other host views
    /// may be unused for long.
    seen: Option<(Snapshot, Snapshot)>,
}

impl State {
    fn configure(&mut self, layout: &Layout, first: bool, learned: impl FnOnce() -> Arc<Learned>) {
        if first || self.learn != layout.settings.learn {
            self.learn = layout.settings.learn;
            (self.learned, self.seen) = (learned(), None);
        }
        let client = Client { name: self.client.as_deref(), version: self.version.as_deref() };
        let host = layout.hosts.of(client);
        if self.host != *host {
            self.host = host.clone();
            (self.chosen, self.seen) = (None, None);
        }
    }
}

/// The mode of a conversation, with the configuration and the catalog size from which it was chosen.
#[derive(Debug)]
struct ChosenMode {
    configured: Option<Mode>,
    sizes: Sizes,
    mode: Mode,
    /// The automatic choice, unless the mode is configured.
    choice: Option<Choice>,
}

impl ChosenMode {
    fn mode_and_reason(&self) -> (Mode, String) {
        (self.mode, self.choice.as_ref().map_or_else(|| "configured".to_owned(), Choice::why))
    }
}

impl HostView {
    pub(crate) fn new(persistence: Persistence) -> Self {
        let host = Profile::unknown();
        let state = State {
            host,
            client: None,
            version: None,
            identified: false,
            has_sampling_tools: false,
            shows_apps: false,
            presence: None,
            missed_first_list: None,
            active: Active::default(),
            learned: Arc::default(),
            learn: 0,
            held: BTreeMap::new(),
            chosen: None,
            seen: None,
        };
        Self {
            persistence,
            state: Mutex::new(state),
            listed: Notify::new(),
            listings: AtomicUsize::new(0),
            unlisted: AtomicBool::new(false),
            listeners: AtomicUsize::new(0),
            keeper: OnceLock::new(),
            open_apps: OpenApps::default(),
        }
    }

    /// From now on, `keeper` takes the active tools after each change.
    pub(crate) fn keep_active(&self, keeper: Keeper) {
        let _ = self.keeper.set(keeper);
    }

    /// Takes the host's `clientInfo`; a host that sends no name keeps its former one. The learned tools are
    /// fixed when a conversation begins.
    pub(crate) fn identify(
        &self,
        client: Client<'_>,
        layout: &Layout,
        learned: impl FnOnce() -> Arc<Learned>,
    ) {
        let mut state = self.lock();
        if let Some(name) = client.name {
            state.client = Some(name.to_owned());
            state.version = client.version.map(str::to_owned);
        }
        let first = !std::mem::replace(&mut state.identified, true);
        state.configure(layout, first, learned);
    }

    /// Takes the profile of the host and the number of learned tools from a new configuration.
    pub(crate) fn reconfigure(&self, layout: &Layout, learned: impl FnOnce() -> Arc<Learned>) {
        let mut state = self.lock();
        if state.identified {
            state.configure(layout, false, learned);
        }
    }

    /// Registers the host among the connected hosts.
    pub(crate) fn register(&self, host: &ClientInfo<'_>, connected_hosts: &ConnectedHosts) {
        let mut state = self.lock();
        if !state.presence.as_ref().is_some_and(|presence| presence.matches(host, &state.host.name)) {
            let chosen = state.chosen.as_ref().map(ChosenMode::mode_and_reason);
            state.presence = Some(Presence::register(connected_hosts, host, &state.host.name, chosen));
        }
    }

    /// Removes the host from the connected hosts.
    pub(crate) fn unregister(&self) {
        self.lock().presence = None;
    }

    /// Sets whether the host declared `sampling.tools` and MCP Apps.
    pub(crate) fn set_declared(&self, has_sampling_tools: bool, shows_apps: bool) {
        let mut state = self.lock();
        if (state.has_sampling_tools, state.shows_apps) != (has_sampling_tools, shows_apps) {
            (state.has_sampling_tools, state.shows_apps) = (has_sampling_tools, shows_apps);
            state.seen = None;
        }
    }

    /// The name in the host's `clientInfo`.
    pub(crate) fn client(&self) -> Option<String> {
        self.lock().client.clone()
    }

    pub(crate) fn host(&self) -> Profile {
        self.lock().host.clone()
    }

    /// How the host takes large results. A client of the plain API has no model that could read more of them.
    pub(crate) fn takes(&self) -> HostTakes {
        let takes = HostTakes::of(&self.lock().host);
        HostTakes { outlines: takes.outlines && self.persistence != Persistence::Plain, ..takes }
    }

    /// Whether activated tools stay active and the host is notified of them.
    pub(crate) fn shows_changes(&self) -> bool {
        self.is_persistent() && self.lock().host.lists_again && self.has_listener()
    }

    /// Whether activated tools stay active and the host lists its tools again, now or later.
    pub(crate) fn lists_again(&self) -> bool {
        let state = self.lock();
        self.is_persistent() && state.host.lists_again && state.missed_first_list != Some(true)
    }

    /// Notes whether the host could get `list_changed` when it first listed its tools. This stays fixed: a
    /// list that varied with the host's connections would be worse.
    pub(crate) fn note_first_list(&self) {
        let mut state = self.lock();
        if state.missed_first_list.is_none() {
            state.missed_first_list = Some(!self.has_listener());
            state.seen = None;
        }
    }

    fn has_listener(&self) -> bool {
        self.listeners.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn listen(self: &Arc<Self>) -> ListChangeListener {
        self.listeners.fetch_add(1, Ordering::Relaxed);
        ListChangeListener(Arc::clone(self))
    }

    pub(crate) fn is_persistent(&self) -> bool {
        !matches!(self.persistence, Persistence::None | Persistence::Plain)
    }

    /// Whether several connections may share this view.
    pub(crate) fn is_shared(&self) -> bool {
        self.persistence == Persistence::Named
    }

    /// The current snapshot in this view, for a host with this declaration.
    pub(crate) fn snapshot(
        &self,
        now: &Snapshot,
        declared: impl FnOnce() -> Option<Arc<Declaration>>,
    ) -> Snapshot {
        if self.persistence == Persistence::Plain {
            return now.clone(); // names lead where they lead, and a listing would be written for nobody
        }
        let mut state = self.lock();
        if let Some((_, seen)) = state.seen.as_ref().filter(|(source, _)| source.is_same_moment(now)) {
            return seen.clone();
        }
        let fitting = declared().map_or_else(|| now.clone(), |declared| now.for_host(&declared));
        let view = self.view(&mut state, &fitting);
        let seen = fitting.seen_by(&view);
        state.seen = (self.persistence == Persistence::Session).then(|| (now.clone(), seen.clone()));
        seen
    }

    /// The `instructions` for the host's model, cut to the limit of the host.
    pub(crate) fn instructions(&self, seen: &Snapshot) -> String {
        // Before all servers have listed or failed, the mode is not chosen yet.
        let decided = seen.settled || seen.layout.mode.is_some();
        let host = &self.lock().host;
        let lists_all = if decided { seen.listing.is_plain() } else { host.code_mode };
        let longest = host.longest_instructions(if lists_all { Mode::All } else { Mode::Search });
        instructions(seen, decided.then_some(&*seen.listing), longest)
    }

    /// The view, and the automatic choice of its mode.
    pub(crate) fn view_of(&self, now: &Snapshot) -> (View, Option<Choice>) {
        let mut state = self.lock();
        let view = self.view(&mut state, now);
        (view, state.chosen.as_ref().and_then(|chosen| chosen.choice.clone()))
    }

    pub(crate) fn switch(&self, servers: &Arc<dyn Servers>, change: impl FnOnce(&mut Active)) {
        if !self.is_persistent() {
            return;
        }
        let mut state = self.lock();
        let State { active, held, seen, .. } = &mut *state;
        change(active);
        held.retain(|server, _| active.has_server(server));
        for server in active.servers() {
            held.entry(server.clone()).or_insert_with(|| HeldServer::new(servers, server));
        }
        *seen = None;
        let saved = self.keeper.get().map(|Keeper(keep)| (keep, active.saved()));
        drop(state);
        if let Some((keep, saved)) = saved {
            keep(saved);
        }
    }

    fn view(&self, state: &mut State, now: &Snapshot) -> View {
        let mode = self.mode(state, now);
        let view = View::of(&state.host, mode);
        View {
            active: state.active.clone(),
            learned: Arc::clone(&state.learned),
            ignores_list_changes: view.ignores_list_changes
                || self.persistence == Persistence::None
                || state.missed_first_list == Some(true),
            agents: match now.layout.agents {
                AgentAccess::Nobody => false,
                AgentAccess::Everybody => true,
                AgentAccess::Lenders => state.has_sampling_tools,
            },
            apps: state.shows_apps,
            ..view
        }
    }

    /// The mode. It is chosen once, when all servers have listed or failed, and at least one has listed.
    /// Changing it in mid-conversation would cost more than a wrong choice, so only the user's configuration
    /// changes it. Without a session the choice holds as long as the catalog keeps about the same size.
    fn mode(&self, state: &mut State, now: &Snapshot) -> Mode {
        let configured = if state.host.gateway { Some(Mode::All) } else { now.layout.mode };
        let lasts = configured.is_some() || self.is_persistent();
        let holds = |chosen: &&ChosenMode| {
            chosen.configured == configured && (lasts || chosen.sizes.are_about(now.names.undecided().tokens))
        };
        if let Some(chosen) = state.chosen.as_ref().filter(holds) {
            return chosen.mode;
        }
        let sizes = Sizes::of(now);
        let choice = configured.is_none().then(|| auto::choose(&state.host, sizes));
        let mode = configured.or(choice.as_ref().map(|choice| choice.mode)).unwrap_or_default();
        // While the catalog is empty the choice is not kept: a repaired configuration may bring any number of
        // tools.
        let known = configured.is_some() || now.catalog.iter().next().is_some();
        if now.settled && known {
            if let Some(choice) = &choice {
                tracing::info!("mode for {}: {choice}", state.host.name);
            }
            let chosen = ChosenMode { configured, sizes, mode, choice };
            if let Some(presence) = &mut state.presence {
                presence.set_mode(chosen.mode_and_reason());
            }
            state.chosen = Some(chosen);
        }
        mode
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use plugbay_core::{
        profile::{Limits, Profiles},
        surface::LiveSettings,
    };

    use super::*;

    #[test]
    fn a_host_without_client_info_keeps_its_former_profile() {
        let (host_view, layout) = (HostView::new(Persistence::Session), Layout::default());
        let identified = |client| {
            host_view.identify(client, &layout, Arc::default);
            host_view.host().name
        };
        assert_eq!(identified(Client::default()), "unknown");
        assert_eq!(identified(Client::named("claude-code")), "claude-code");
        assert_eq!(identified(Client::default()), "claude-code");
        let hosts = Profiles::default().forced("codex").unwrap();
        let forced = Layout { hosts, ..Layout::default() };
        let other = HostView::new(Persistence::Session);
        other.identify(Client::default(), &forced, Arc::default);
        assert_eq!(other.host().name, "codex");
    }

    #[test]
    fn a_new_configuration_changes_the_profile_and_the_learned_tools_of_a_connected_host() {
        let host_view = HostView::new(Persistence::Session);
        let learned = |tool: &str| {
            let server = ServerName::parse("s").unwrap();
            Arc::new(Learned::from([(server, [tool.to_owned()].into())]))
        };
        host_view.reconfigure(&Layout::default(), || panic!("nobody is here yet"));
        host_view.identify(Client::named("claude-code"), &Layout::default(), || learned("first"));
        host_view.reconfigure(&Layout::default(), || panic!("nothing has changed"));
        let known = host_view.host();
        let profile = Profile { limits: Limits { name: Some(7), ..Limits::default() }, ..known };
        let settings = LiveSettings { learn: 3, ..LiveSettings::default() };
        let next = Layout { hosts: Profiles::new(vec![profile]), settings, ..Layout::default() };
        host_view.reconfigure(&next, || learned("next"));
        assert_eq!(host_view.host().limits.name, Some(7));
        assert_eq!(host_view.lock().learned, learned("next"));
    }
}
