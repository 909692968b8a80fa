//! The windows that are connected to a daemon.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use plugbay_core::bridge::Control;
use plugbay_downstream::ConnectedHosts;
use tokio::sync::{mpsc, watch};

use super::hello::{WindowHello, WindowStatus};
use crate::clock::now;

/// The number of a context of this daemon, see [`super::contexts`].
pub(super) type ContextNumber = u64;

/// All windows of one daemon.
#[derive(Debug, Default)]
pub(super) struct Windows {
    // A std mutex: held for look-ups, never across an await.
    table: Mutex<Table>,
    /// The number of windows; it changes when one comes or goes.
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Table {
    last: u64,
    open: BTreeMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    context: ContextNumber,
    hello: Arc<WindowHello>,
    since: u64,
    hosts: ConnectedHosts,
    controls: mpsc::UnboundedSender<Control>,
}

/// The entry of a window, until this is dropped.
#[derive(Debug)]
pub(super) struct Membership {
    windows: Arc<Windows>,
    number: u64,
    /// The hosts of this window alone.
    pub(super) hosts: ConnectedHosts,
}

/// A window, with the sender for its control messages.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) hello: Arc<WindowHello>,
    pub(super) controls: mpsc::UnboundedSender<Control>,
}

impl Windows {
    /// Adds a window. `all` counts the hosts of all windows of the context.
    pub(super) fn add(
        self: &Arc<Self>,
        context: ContextNumber,
        hello: Arc<WindowHello>,
        all: &ConnectedHosts,
    ) -> (Membership, mpsc::UnboundedReceiver<Control>) {
        let (controls, inbox) = mpsc::unbounded_channel();
        let hosts = all.of_connection();
        let mut table = self.lock();
        table.last += 1;
        let number = table.last;
        table.open.insert(number, Open { context, hello, since: now(), hosts: hosts.clone(), controls });
        drop(table);
        self.recount();
        (Membership { windows: Arc::clone(self), number, hosts }, inbox)
    }

    /// Sends a control message to every window.
    pub(super) fn tell(&self, control: &Control) {
        for window in self.lock().open.values() {
            let _ = window.controls.send(control.clone());
        }
    }

    /// The windows of one context.
    pub(super) fn of(&self, context: ContextNumber) -> Vec<Member> {
        let member =
            |window: &Open| Member { hello: Arc::clone(&window.hello), controls: window.controls.clone() };
        self.lock().open.values().filter(|window| window.context == context).map(member).collect()
    }

    pub(super) fn has(&self, context: ContextNumber) -> bool {
        self.lock().open.values().any(|window| window.context == context)
    }

    /// A receiver that is notified when a window comes or goes.
    pub(super) fn changes(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// Waits until no window is left.
    pub(super) async fn gone(&self) {
        let _ = self.changes().wait_for(|count| *count == 0).await;
    }

    pub(super) fn status(&self) -> Vec<WindowStatus> {
        let status = |window: &Open| {
            let WindowHello { pid, folder, config, .. } = &*window.hello;
            let host = window.hosts.watch().borrow().keys().next().cloned();
            WindowStatus {
                pid: *pid,
                since: window.since,
                folder: folder.clone(),
                config: config.as_ref().map(|file: &PathBuf| folder.join(file)),
                host,
            }
        };
        self.lock().open.values().map(status).collect()
    }

    fn recount(&self) {
        let count = self.lock().open.len();
        self.count.send_replace(count);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing can panic half-way through a change, so a poisoned table is still whole.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.windows.lock().open.remove(&self.number);
        self.windows.recount();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ProcessVariables;

    fn hello(pid: u32) -> Arc<WindowHello> {
        Arc::new(WindowHello {
            session: pid.to_string(),
            pid,
            folder: "/project".into(),
            config: Some("own.jsonc".into()),
            host: None,
            variables: ProcessVariables::default(),
            state: None,
        })
    }

    #[test]
    fn a_window_is_shown_and_told_of_a_hand_over_until_its_connection_ends() {
        let windows = Arc::new(Windows::default());
        let (one, mut told_one) = windows.add(1, hello(11), &ConnectedHosts::default());
        let (two, mut told_two) = windows.add(2, hello(12), &ConnectedHosts::default());
        assert_eq!(windows.status().iter().map(|window| window.pid).collect::<Vec<_>>(), [11, 12]);
        assert_eq!(windows.status()[0].config, Some("/project/own.jsonc".into()));
        drop(two);
        windows.tell(&Control::HandOver);
        assert_eq!(told_one.try_recv(), Ok(Control::HandOver));
        assert!(told_two.try_recv().is_err());
        assert!(windows.has(1) && !windows.has(2) && windows.of(2).is_empty());
        drop(one);
        assert_eq!((windows.status().len(), *windows.changes().borrow()), (0, 0));
    }
}
