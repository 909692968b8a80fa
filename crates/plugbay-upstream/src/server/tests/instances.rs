//! Gateways that share a server, and sessions that each have an instance of their own.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use plugbay_core::{
    era::Era,
    exchange::{Caller, Servers, SubscriptionTarget, Ticket},
    host_registry::HostRegistry,
    name::ServerName,
};
use tokio::{sync::mpsc, time::sleep};

use super::{
    MINUTE, SECOND,
    harness::{Calls, silent, spec},
    host::{Host, HostEvent},
    peer::Peer,
    soon,
};
use crate::{
    Attached, Instances, Observer, Pool, Report, ServerSet, SessionFile, SessionLabel, SessionPool, Sharing,
    User,
    link::{Launched, Launcher},
    spec::Framing,
};

/// One process: its instances, and the servers' ends of all launches.
struct Stage {
    instances: Arc<Instances>,
    peers: mpsc::UnboundedReceiver<Peer>,
    launches: Arc<Mutex<usize>>,
    calls: Arc<Calls>,
}

/// A gateway or a session, with the reports that it got.
struct Heard {
    user: User,
    reports: mpsc::UnboundedReceiver<Report>,
}

impl Stage {
    fn new() -> Self {
        let (arrivals, peers) = mpsc::unbounded_channel();
        let launches = Arc::new(Mutex::new(0));
        let count = Arc::clone(&launches);
        let launcher: Launcher = Arc::new(move |_, _| {
            *count.lock().unwrap() += 1;
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            let _ = arrivals.send(Peer::new(theirs));
            let (reader, writer) = tokio::io::split(ours);
            Ok(Launched { reader: Box::new(reader), writer: Box::new(writer), process: None })
        });
        Self { instances: Instances::new(launcher), peers, launches, calls: Arc::default() }
    }

    fn attach(&self, folder: &str, sharing: Sharing, user: &User) -> Attached {
        self.instances.attach(&spec(Framing::Newline), Path::new(folder), sharing, Some(silent()), user)
    }

    /// A pool in which each session has an instance of its own. At most `limit` of them may run.
    fn per_session(&self, limit: usize) -> (Arc<Pool>, Attached) {
        self.per_session_in("/a", limit)
    }

    fn per_session_in(&self, folder: &str, limit: usize) -> (Arc<Pool>, Attached) {
        let attached = self.attach(folder, Sharing::Sessions { limit, file: None }, &user().user);
        let pool = Pool::default();
        let group = attached.sessions.clone().expect("sessions have their own");
        let handles = [(server(), attached.handle().clone())].into();
        pool.replace(ServerSet { handles, per_session: [(server(), group)].into(), ..ServerSet::default() });
        (Arc::new(pool), attached)
    }

    fn session(&self, pool: &Arc<Pool>) -> SessionPool {
        self.session_of(pool, "caller")
    }

    fn session_of(&self, pool: &Arc<Pool>, caller: &str) -> SessionPool {
        let label = SessionLabel { caller: caller.as_bytes().into(), ..label() };
        SessionPool::new(Arc::clone(pool), Arc::clone(&self.instances), user().user, label)
    }

    fn call(&self, servers: &impl Servers, tool: &str) -> Ticket {
        let ticket = self.instances.tickets.next();
        servers.forward(&server(), self.calls.call(ticket, tool, None));
        ticket
    }

    async fn opened(&mut self) -> Peer {
        let mut peer = soon("a launch", self.peers.recv()).await.expect("the launcher is there");
        peer.open(Era::Legacy).await;
        peer.list(&["echo"]).await;
        peer
    }

    /// The first call of a session, which starts its instance, up to the answer.
    async fn first_call(&mut self, session: &SessionPool) -> Peer {
        let ticket = self.call(session, "first");
        let mut peer = self.opened().await;
        answer(&mut peer, "first").await;
        self.calls.end(ticket).await;
        peer
    }

    fn launches(&self) -> usize {
        *self.launches.lock().unwrap()
    }
}

fn server() -> ServerName {
    ServerName::parse("s").unwrap()
}

fn label() -> SessionLabel {
    SessionLabel { name: "x".to_owned(), caller: Arc::from(*b"caller"), lasts: false }
}

fn user() -> Heard {
    let (sender, reports) = mpsc::unbounded_channel();
    let observer =
        Observer { reports: Arc::new(move |report| _ = sender.send(report)), status_changed: Arc::default() };
    Heard { user: User { host_registry: Arc::new(HostRegistry::default()), observer }, reports }
}

impl Heard {
    async fn tools(&mut self) -> usize {
        let report = soon("a report", self.reports.recv()).await.expect("a report");
        report.outcome.expect("an offer").tools.len()
    }
}

async fn answer(peer: &mut Peer, tool: &str) {
    let call = peer.expect_call(tool).await;
    peer.answer(&call, serde_json::json!({ "content": [], "by": tool })).await;
}

#[tokio::test(start_paused = true)]
async fn a_shared_server_starts_once_and_its_list_reaches_every_gateway() {
    let mut stage = Stage::new();
    let (mut one, mut other, mut late) = (user(), user(), user());
    let first = stage.attach("/a", Sharing::Everybody, &one.user);
    let second = stage.attach("/b", Sharing::Everybody, &other.user);
    first.handle().refresh();
    second.handle().refresh();
    let mut peer = stage.opened().await;
    assert_eq!((one.tools().await, other.tools().await), (1, 1));
    let third = stage.attach("/c", Sharing::Everybody, &late.user);
    assert_eq!(late.tools().await, 1, "a gateway that comes later hears the list too");
    first.detach().await;
    drop(second);
    sleep(SECOND).await;
    assert_eq!((stage.launches(), third.running()), (1, 0), "a scripted server has no process id");
    third.detach().await;
    while peer.next().await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn a_project_server_is_shared_by_folder_and_a_gateways_own_by_nobody() {
    let stage = Stage::new();
    let heard = user();
    let same = |one: &Attached, other: &Attached| Arc::ptr_eq(&one.handle().spec, &other.handle().spec);
    let [a, b, again] = ["/a", "/b", "/a"].map(|folder| stage.attach(folder, Sharing::Folder, &heard.user));
    assert!(same(&a, &again) && !same(&a, &b));
    let own = ["/a", "/a"].map(|folder| stage.attach(folder, Sharing::Gateway, &heard.user));
    assert!(!same(&own[0], &own[1]) && !same(&own[0], &a));
}

#[tokio::test(start_paused = true)]
async fn calls_of_two_sessions_go_to_two_instances() {
    let mut stage = Stage::new();
    let (pool, attached) = stage.per_session(8);
    let [one, other] = [stage.session(&pool), stage.session(&pool)];
    let mut first = stage.first_call(&one).await;
    let mut second = stage.first_call(&other).await;
    let (a, b) = (stage.call(&one, "a"), stage.call(&other, "b"));
    answer(&mut first, "a").await;
    answer(&mut second, "b").await;
    assert!(stage.calls.end(a).await.contains("\"a\"") && stage.calls.end(b).await.contains("\"b\""));
    assert_eq!((stage.launches(), attached.running()), (2, 2));
    drop(one);
    first.expect_end().await;
    second.expect_nothing().await;
    sleep(MINUTE).await;
    assert_eq!(attached.running(), 1, "a session that ends takes its instance along");
}

#[tokio::test(start_paused = true)]
async fn the_instance_that_was_idle_longest_gives_way_to_another_session() {
    let mut stage = Stage::new();
    let (pool, attached) = stage.per_session(2);
    let [one, other, third] = [(); 3].map(|()| stage.session(&pool));
    let mut first = stage.first_call(&one).await;
    sleep(SECOND).await;
    let mut second = stage.first_call(&other).await;
    sleep(SECOND).await;
    let ticket = stage.call(&one, "used again");
    answer(&mut first, "used again").await;
    stage.calls.end(ticket).await;
    let ticket = stage.call(&third, "third");
    second.expect_end().await;
    drop(second);
    let mut peer = stage.opened().await;
    answer(&mut peer, "third").await;
    assert!(stage.calls.end(ticket).await.contains("third"));
    assert_eq!(attached.running(), 2);
    first.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_as_busy_when_no_instance_is_idle() {
    let mut stage = Stage::new();
    let (pool, _attached) = stage.per_session(2);
    let [one, other, third] = [(); 3].map(|()| stage.session(&pool));
    let mut first = stage.first_call(&one).await;
    let mut second = stage.first_call(&other).await;
    let slow = stage.call(&one, "slow");
    other.watch(&server(), SubscriptionTarget::Resource(bytes::Bytes::from_static(b"\"x:\"")));
    first.expect_call("slow").await;
    let ticket = stage.call(&third, "third");
    let told = stage.calls.end(ticket).await;
    assert!(told.contains("is busy") && told.contains("all 2 are in use"), "{told}");
    assert!(told.contains("\"instances\""), "{told}");
    assert!(stage.calls.ends_of(slow).is_empty(), "a call in flight goes on");
    other.unwatch(&server(), SubscriptionTarget::Resource(bytes::Bytes::from_static(b"\"x:\"")));
    let ticket = stage.call(&third, "again");
    while second.next().await.is_some() {}
    drop(second);
    let mut peer = stage.opened().await;
    answer(&mut peer, "again").await;
    assert!(stage.calls.end(ticket).await.contains("again"), "busy is not for ever");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_waits_gets_the_instance_that_becomes_idle() {
    let mut stage = Stage::new();
    let (pool, _attached) = stage.per_session(1);
    let [one, other] = [(); 2].map(|()| stage.session(&pool));
    let mut first = stage.first_call(&one).await;
    let slow = stage.call(&one, "slow");
    let call = first.expect_call("slow").await;
    let ticket = stage.call(&other, "other");
    sleep(Duration::from_millis(500)).await;
    first.answer(&call, serde_json::json!({ "content": [] })).await;
    stage.calls.end(slow).await;
    first.expect_end().await;
    drop(first);
    let mut second = stage.opened().await;
    answer(&mut second, "other").await;
    assert!(stage.calls.end(ticket).await.contains("other"));
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_instances_counts_the_sessions_of_all_gateways() {
    let mut stage = Stage::new();
    let ((pool, attached), (there, attached_there)) =
        (stage.per_session_in("/a", 1), stage.per_session_in("/b", 1));
    let (one, other) = (stage.session(&pool), stage.session(&there));
    let mut first = stage.first_call(&one).await;
    assert_eq!((attached.running(), attached_there.running()), (1, 0));
    let ticket = stage.call(&other, "other");
    first.expect_end().await;
    drop(first);
    let mut second = stage.opened().await;
    answer(&mut second, "other").await;
    assert!(stage.calls.end(ticket).await.contains("other"));
    assert_eq!((attached.running(), attached_there.running()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_an_instance_gets_one_before_a_caller_with_several() {
    let mut stage = Stage::new();
    let (pool, _attached) = stage.per_session(2);
    let [one, two, three] = [(); 3].map(|()| stage.session_of(&pool, "alice"));
    let bob = stage.session_of(&pool, "bob");
    let mut first = stage.first_call(&one).await;
    let mut second = stage.first_call(&two).await;
    for (session, peer) in [(&one, &mut first), (&two, &mut second)] {
        stage.call(session, "slow");
        peer.expect_call("slow").await;
    }
    let third = stage.call(&three, "third");
    sleep(Duration::from_millis(50)).await;
    let bobs = stage.call(&bob, "bob");
    sleep(Duration::from_millis(50)).await;
    drop((first, one));
    let mut peer = stage.opened().await;
    peer.expect_call("bob").await; // alice was there first, and has one
    assert!(stage.calls.end(third).await.contains("is busy"));
    assert!(stage.calls.ends_of(bobs).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lister_of_sessions_stops_when_it_has_listed() {
    let mut stage = Stage::new();
    let (_pool, attached) = stage.per_session(8);
    attached.handle().refresh();
    let mut peer = stage.opened().await;
    peer.expect_end().await;
    assert_eq!((stage.launches(), attached.running()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_server_request_of_a_session_finds_its_host_among_several() {
    let mut stage = Stage::new();
    let (pool, _attached) = stage.per_session(8);
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let heard = user();
        let host = Host::new(None);
        let caller: Arc<dyn Caller> = host.clone();
        heard.user.host_registry.joined(Arc::downgrade(&caller));
        let registry = Arc::clone(&heard.user.host_registry);
        let session = SessionPool::new(Arc::clone(&pool), Arc::clone(&stage.instances), heard.user, label());
        let peer = stage.first_call(&session).await;
        sessions.push((session, host, peer, registry));
    }
    let (_, host, peer, _) = &mut sessions[1];
    peer.say(r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#).await;
    assert!(matches!(host.next_event().await, HostEvent::Request(..)), "no call is in flight");
    for (_, other, ..) in [&sessions[0], &sessions[2]] {
        other.expect_nothing_more();
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_message_of_a_shared_server_reaches_no_session_unless_it_is_alone() {
    let mut stage = Stage::new();
    let heard = user();
    let attached = stage.attach("/a", Sharing::Everybody, &heard.user);
    let hosts = [Host::new(None), Host::new(None)];
    let registries = hosts.each_ref().map(|host| {
        let registry = Arc::new(HostRegistry::default());
        heard.user.host_registry.include(&registry);
        let caller: Arc<dyn Caller> = host.clone();
        registry.reads(Arc::downgrade(&caller));
        registry
    });
    attached.handle().refresh();
    let mut peer = stage.opened().await;
    let log =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"canary"}}"#;
    peer.say(log).await;
    sleep(SECOND).await;
    for host in &hosts {
        host.expect_nothing_more();
    }
    drop(registries[1].clone());
    let [first, second] = registries;
    drop(second);
    peer.say(log).await;
    assert!(matches!(hosts[0].next_event().await, HostEvent::Notification(text) if text.contains("canary")));
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_a_file_gets_one_for_each_session() {
    let environments = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&environments);
    let launcher: Launcher = Arc::new(move |_, stdio| {
        seen.lock().unwrap().push(stdio.env.get("FILE").cloned());
        Err(plugbay_core::failure::Failure::new("no", Vec::new()))
    });
    let (instances, pool, calls) =
        (Instances::new(launcher), Arc::new(Pool::default()), Arc::<Calls>::default());
    let file = SessionFile { variable: "FILE".to_owned(), folder: "/files".into() };
    let sharing = Sharing::Sessions { limit: 8, file: Some(file) };
    let spec = spec(Framing::Newline);
    let attached = instances.attach(&spec, Path::new("/a"), sharing, Some(silent()), &user().user);
    let group = attached.sessions.clone().expect("sessions have their own");
    pool.replace(ServerSet { per_session: [(server(), group)].into(), ..ServerSet::default() });
    for name in ["one", "two"] {
        let label = SessionLabel { name: name.to_owned(), lasts: true, ..label() };
        let session = SessionPool::new(Arc::clone(&pool), Arc::clone(&instances), user().user, label);
        let ticket = instances.tickets.next();
        session.forward(&server(), calls.call(ticket, "x", None));
        calls.end(ticket).await;
    }
    let seen = environments.lock().unwrap().clone();
    assert_eq!(seen, ["/files/s-one.json", "/files/s-two.json"].map(|path| Some(path.to_owned())));
}

/// Otherwise sessions that wait for a busy server would hold up the start of every other server.
#[tokio::test(start_paused = true)]
async fn an_instance_that_waits_for_its_slot_holds_up_no_other_start() {
    let mut stage = Stage::new();
    stage.instances.starts.set_slots(Some(1));
    let (pool, _attached) = stage.per_session(1);
    let (busy, waiting) = (stage.session(&pool), stage.session(&pool));
    let mut peer = stage.first_call(&busy).await;
    let call = stage.call(&busy, "long");
    let in_flight = peer.expect_call("long").await;
    let refused = stage.call(&waiting, "second");
    sleep(SECOND / 10).await;
    let before = tokio::time::Instant::now();
    let shared = stage.attach("/b", Sharing::Everybody, &user().user);
    shared.handle().refresh();
    stage.opened().await;
    assert!(before.elapsed() < SECOND, "{:?}", before.elapsed());
    assert!(stage.calls.end(refused).await.contains("busy"));
    peer.answer(&in_flight, serde_json::json!({ "content": [] })).await;
    stage.calls.end(call).await;
}

#[tokio::test(start_paused = true)]
async fn a_shared_server_is_held_for_each_gateway_that_has_it_active() {
    let mut stage = Stage::new();
    let attached = || stage.attach("/a", Sharing::Everybody, &user().user);
    let gateways: Vec<(Pool, Attached)> = [attached(), attached()]
        .map(|attached| {
            let pool = Pool::default();
            let handles = [(server(), attached.handle().clone())].into();
            pool.replace(ServerSet { handles, ..ServerSet::default() });
            (pool, attached)
        })
        .into();
    for (pool, _) in &gateways {
        pool.hold(&server());
    }
    let ticket = stage.call(&gateways[0].0, "first");
    let mut peer = stage.opened().await;
    answer(&mut peer, "first").await;
    stage.calls.end(ticket).await;

    let mut gateways = gateways.into_iter();
    let (first, _attached) = gateways.next().unwrap();
    first.release(&server());
    sleep(60 * MINUTE).await;
    assert_eq!(stage.launches(), 1);
    stage.call(&first, "again");
    peer.expect_call("again").await;
    assert_eq!(stage.launches(), 1, "the other gateway has it active");
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_leaves_a_shared_server_holds_it_no_longer() {
    let mut stage = Stage::new();
    let stays = stage.attach("/a", Sharing::Everybody, &user().user);
    let leaves = stage.attach("/b", Sharing::Everybody, &user().user);
    leaves.handle().hold(true);
    stays.handle().refresh();
    let mut peer = stage.opened().await;
    leaves.detach().await;
    peer.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn the_file_of_a_session_is_removed_after_its_server_has_ended() {
    let folder = std::env::temp_dir().join(format!("plugbay-session-file-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("s-x.json");
    let mut stage = Stage::new();
    let file = SessionFile { variable: "FILE".to_owned(), folder: folder.clone() };
    let sharing = Sharing::Sessions { limit: 8, file: Some(file) };
    let attached = stage.attach("/a", sharing, &user().user);
    let group = attached.sessions.clone().expect("sessions have their own");
    let pool = Arc::new(Pool::default());
    pool.replace(ServerSet { per_session: [(server(), group)].into(), ..ServerSet::default() });
    let session = stage.session(&pool);
    let mut peer = stage.first_call(&session).await;
    std::fs::write(&path, "{}").unwrap();
    drop(session);
    assert!(path.exists(), "its server still runs, and could write it again");
    peer.expect_end().await;
    drop(peer);
    let removed = async {
        while path.exists() {
            sleep(SECOND).await;
        }
    };
    soon("the end of the file", removed).await;
    std::fs::remove_dir(folder).unwrap();
}
