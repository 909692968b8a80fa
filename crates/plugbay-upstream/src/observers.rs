//! The observers of one server: each gateway or session that uses it.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use plugbay_core::{
    catalog::{Dialect, Offer},
    exchange::ListChange,
    failure::Failure,
};
use tokio::sync::Notify;

use crate::{
    server::{ListTerms, Report},
    spec::ServerSpec,
};

/// Takes the reports of a server, in order. It is called under a lock, so it must only pass them on.
pub type Reports = Arc<dyn Fn(Report) + Send + Sync>;

/// An observer of servers.
#[derive(Clone)]
pub struct Observer {
    pub reports: Reports,
    /// Notified when the status of a server has changed.
    pub status_changed: Arc<Notify>,
}

/// The observers of one server, and what it last offered or why it failed.
#[derive(Debug, Clone, Default)]
pub struct Observers(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    observers: Vec<(u64, Arc<ServerSpec>, Observer)>,
    next: u64,
    offer: Option<(Arc<Offer>, ListTerms)>,
    /// The dialect that was last used.
    dialect: Option<Dialect>,
    /// The reason why it does not work now.
    failure: Option<Arc<Failure>>,
}

/// The registration of an observer, until this is dropped.
#[derive(Debug)]
pub(crate) struct Observing {
    observers: Observers,
    number: u64,
}

impl Observers {
    /// Adds an observer for as long as the result lives. It gets the latest reports at once. `spec` is the
    /// server as this observer has configured it.
    pub(crate) fn add(&self, spec: &Arc<ServerSpec>, observer: &Observer) -> Observing {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.observers.push((number, Arc::clone(spec), observer.clone()));
        if let Some(dialect) = state.dialect {
            let offer = state.offer.clone().map(|(offer, terms)| (Ok(offer), terms));
            let failure = state.failure.clone().map(|failure| (Err(failure), ListTerms::default()));
            for (outcome, terms) in offer.into_iter().chain(failure) {
                (observer.reports)(Report { spec: Arc::clone(spec), outcome, dialect, terms, change: None });
            }
        }
        drop(state);
        Observing { observers: self.clone(), number }
    }

    /// Observers with one that sends its reports here.
    #[cfg(test)]
    pub(crate) fn reporting_to(
        reports: tokio::sync::mpsc::UnboundedSender<Report>,
        spec: ServerSpec,
    ) -> Self {
        let reports: Reports = Arc::new(move |report| _ = reports.send(report));
        let observer = Observer { reports, status_changed: Arc::default() };
        let observers = Self::default();
        observers.lock().observers.push((0, Arc::new(spec), observer));
        observers
    }

    pub(crate) fn report(
        &self,
        outcome: &Result<Arc<Offer>, Arc<Failure>>,
        dialect: Dialect,
        terms: &ListTerms,
        change: Option<&Arc<ListChange>>,
    ) {
        let mut state = self.lock();
        state.dialect = Some(dialect);
        match outcome {
            Ok(offer) => (state.offer, state.failure) = (Some((Arc::clone(offer), terms.clone())), None),
            Err(failure) => state.failure = Some(Arc::clone(failure)),
        }
        for (_, spec, observer) in &state.observers {
            let (outcome, terms, change) = (outcome.clone(), terms.clone(), change.cloned());
            (observer.reports)(Report { spec: Arc::clone(spec), outcome, dialect, terms, change });
        }
    }

    pub(crate) fn status_changed(&self) {
        for (_, _, observer) in &self.lock().observers {
            observer.status_changed.notify_one();
        }
    }

    /// The dialect that was last used.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        self.lock().dialect
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing can panic half-way through a change, so a poisoned list is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observing {
    /// A number that identifies this observer of the server.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        self.observers.lock().observers.retain(|(number, ..)| *number != self.number);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.observers.len())
    }
}
