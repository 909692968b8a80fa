//! The gateway's side of the orphan guard: a helper process that ends our children when the gateway cannot.
//!
//! The helper reads from a pipe whose only writer is the gateway, so it notices any kind of death. Until then
//! the pipe tells it the process groups of the servers.

use std::{
    collections::HashSet,
    fmt::Write as _,
    hash::{BuildHasher, RandomState},
    io,
    os::fd::OwnedFd,
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::{Duration, Instant},
};

use rustix::process::Pid;
use tokio::{
    process::{Child, Command},
    time::sleep,
};

use super::{
    cgroup::Cgroup,
    environment::MARKER,
    helper::{GOODBYE, REGISTER, UNREGISTER},
};

/// Shortest time between the starts of two helpers: one that ends at once may be unable to run here.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest time between the starts of helpers that end soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);
/// A helper that lives this long is able to run here.
const LONG_LIFE: Duration = Duration::from_secs(60);

/// A cheap handle. The helper starts with the first child, and is replaced if it is killed. When the last
/// handle is dropped, the helper is told that the gateway ends regularly.
#[derive(Debug, Clone)]
pub struct Guard {
    shared: Arc<Shared>,
}

impl Guard {
    /// The helper is `program args… INSTANCE` and must call [`super::guard_main`] with that last
    /// argument.
    pub fn new(program: PathBuf, args: Vec<String>) -> Self {
        Self::with_launch(Some(Launch { program, args }))
    }

    /// A guard without a helper: child processes outlive a `kill -9` of the gateway.
    pub fn disabled() -> Self {
        Self::with_launch(None)
    }

    fn with_launch(launch: Option<Launch>) -> Self {
        let instance = random_id();
        Self {
            shared: Arc::new(Shared { launch, instance, cgroup: OnceLock::new(), state: Mutex::default() }),
        }
    }

    /// The id that every child carries in its environment.
    pub(super) fn instance(&self) -> &str {
        &self.shared.instance
    }

    /// Starts the helper unless it runs, and makes the cgroup. A failure is logged but is no error: a server
    /// without a guard is better than none.
    pub(super) fn keep_watch(&self) {
        self.shared.cgroup();
        self.shared.lock().keep_watch(&self.shared);
    }

    /// Registers a process group: until the registration is dropped, the helper ends it if the gateway dies.
    pub(super) fn register(&self, group: Pid) -> Registration {
        // This happens before the server is sent anything. A process that it has already started is not in
        // the cgroup, but is found by its group and its marker.
        if let Some(cgroup) = self.shared.cgroup() {
            cgroup.add(group);
        }
        let mut state = self.shared.lock();
        state.groups.insert(group);
        if !state.send(REGISTER, group) {
            // The helper has died, so a new one gets all groups.
            state.helper = None;
            state.keep_watch(&self.shared);
        }
        Registration { guard: self.clone(), group }
    }

    #[cfg(test)]
    pub(super) fn helper_pid(&self) -> Option<Pid> {
        let state = self.shared.lock();
        state.helper.as_ref().map(|helper| helper.pid)
    }
}

#[derive(Debug)]
pub(super) struct Registration {
    guard: Guard,
    group: Pid,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut state = self.guard.shared.lock();
        state.groups.remove(&self.group);
        state.send(UNREGISTER, self.group);
    }
}

#[derive(Debug)]
struct Launch {
    program: PathBuf,
    args: Vec<String>,
}

#[derive(Debug)]
struct Shared {
    launch: Option<Launch>,
    instance: String,
    /// Created with the first server; `None` inside if the system does not allow it.
    cgroup: OnceLock<Option<Cgroup>>,
    // A std mutex: the writes under it never block, and none is held across an await.
    state: Mutex<State>,
}

impl Shared {
    fn cgroup(&self) -> Option<&Cgroup> {
        self.launch.as_ref()?;
        self.cgroup.get_or_init(|| Cgroup::create(&self.instance)).as_ref()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole at every step, so a poisoned lock does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(helper) = &state.helper {
            _ = helper.write(GOODBYE);
        }
    }
}

#[derive(Debug, Default)]
struct State {
    groups: HashSet<Pid>,
    helper: Option<Helper>,
    warned: bool,
    pauses: Pauses,
}

/// The pauses before a new helper: each is twice as long as the one before.
#[derive(Debug)]
struct Pauses {
    next: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { next: FIRST_PAUSE }
    }
}

impl Pauses {
    /// How long to wait after the end of a helper that lived this long.
    fn after(&mut self, lived: Duration) -> Duration {
        if lived >= LONG_LIFE {
            self.next = FIRST_PAUSE;
        }
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST_PAUSE);
        pause.saturating_sub(lived)
    }
}

impl State {
    fn keep_watch(&mut self, shared: &Arc<Shared>) {
        let Some(launch) = &shared.launch else { return };
        if self.helper.is_some() {
            return;
        }
        let started = Helper::start(launch, &shared.instance).and_then(|(helper, process)| {
            helper.write(&all(&self.groups))?;
            Ok((helper, process))
        });
        match started {
            Ok((helper, process)) => {
                tokio::spawn(replace_at_end(process, helper.pid, Arc::downgrade(shared)));
                self.helper = Some(helper);
            }
            // One warning is enough: the next server would cause the same.
            Err(_) if self.warned => {}
            Err(error) => {
                self.warned = true;
                let program = launch.program.display();
                tracing::warn!(%program, %error, "no orphan guard: servers may outlive a killed gateway");
            }
        }
    }

    /// Sends an order; false if the helper has ended.
    fn send(&self, order: char, group: Pid) -> bool {
        let Some(helper) = &self.helper else { return true };
        match helper.write(format!("{order}{}\n", group.as_raw_pid()).as_bytes()) {
            Ok(()) => true,
            // The helper does not read: on Linux it still finds the children by their marker.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
            Err(_) => false,
        }
    }
}

/// Waits for the end of a helper. If there are groups, a new one starts and gets them all; without groups,
/// the next server starts one.
async fn replace_at_end(mut process: Child, pid: Pid, shared: Weak<Shared>) {
    let started = Instant::now();
    _ = process.wait().await;
    let Some(pause) = shared.upgrade().map(|shared| shared.lock().pauses.after(started.elapsed())) else {
        return;
    };
    sleep(pause).await;
    let Some(shared) = shared.upgrade() else { return };
    let mut state = shared.lock();
    if state.helper.as_ref().is_some_and(|helper| helper.pid == pid) {
        state.helper = None;
        if !state.groups.is_empty() {
            tracing::debug!("the orphan guard has ended; it starts again");
            state.keep_watch(&shared);
        }
    }
}

fn all(groups: &HashSet<Pid>) -> Vec<u8> {
    groups
        .iter()
        .fold(String::new(), |mut orders, group| {
            _ = writeln!(orders, "{REGISTER}{}", group.as_raw_pid());
            orders
        })
        .into_bytes()
}

#[derive(Debug)]
struct Helper {
    /// Close-on-exec, like every pipe of `Command`: a child that held it would hide the gateway's death.
    orders: OwnedFd,
    pid: Pid,
}

impl Helper {
    fn start(launch: &Launch, instance: &str) -> io::Result<(Self, Child)> {
        let mut process = Command::new(&launch.program)
            .args(&launch.args)
            .arg(instance)
            // An outer gateway must not take the helper for one of its strays.
            .env_remove(MARKER)
            // It must keep no folder busy, and must survive Ctrl-C or a kill of our group.
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let orders = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?.into_owned_fd()?;
        // A helper that does not read must not block us.
        rustix::io::ioctl_fionbio(&orders, true)?;
        let pid =
            process.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or(io::ErrorKind::NotFound)?;
        Ok((Self { orders, pid }, process))
    }

    /// Orders stay far below the pipe's atomic size, except for hundreds of groups at once, which an empty
    /// pipe takes.
    fn write(&self, orders: &[u8]) -> io::Result<()> {
        if !orders.is_empty() {
            rustix::io::write(&self.orders, orders)?;
        }
        Ok(())
    }
}

/// A random id. It need not be secret, only unique.
fn random_id() -> String {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // The system seeds these as well; this is good enough if nothing else works.
        let random =
            u128::from(RandomState::new().hash_one(1)) << 64 | u128::from(RandomState::new().hash_one(2));
        bytes = random.to_ne_bytes();
    }
    format!("{:032x}", u128::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_helper_that_ends_at_once_is_started_ever_more_rarely() {
        let mut pauses = Pauses::default();
        let mut after = |lived| pauses.after(Duration::from_secs(lived)).as_secs();
        assert_eq!([(); 11].map(|()| after(0)), [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!((after(60), after(0), after(1)), (0, 2, 3), "one that lived for long is replaced at once");
    }
}
