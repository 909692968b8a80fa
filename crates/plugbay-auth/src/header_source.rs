//! Headers that a program prints or a file contains, fetched again when the server rejects them.

mod command;
mod file;
mod headers;
#[cfg(all(test, unix))]
mod tests;

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plugbay_core::{
    credentials::{
        Credentials, Generation, Headers, HeadersCommand, Later, LoginOffer, Rejection, Target, Verdict,
    },
    failure::{Cause, Failure},
    secret::Secret,
};
use tokio::{sync::watch, time::Instant};

use self::{command::Program, file::HeadersFile, file::Stamp};

/// Pause between two attempts if the first has not helped: a server that rejects everything must not start a
/// program for each request.
const PAUSE: Duration = Duration::from_secs(5);
/// How often a waiting caller checks for a change of the file.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A request that was rejected more often than this is not sent again, whatever the program prints.
const MOST_ATTEMPTS: u32 = 2;

/// Headers from a program or a file, for one server. They are fetched on first use, and kept until the server
/// rejects them or the file changes.
pub struct HeaderSource(Arc<Inner>);

struct Inner {
    origin: Origin,
    // A std mutex: held for a copy, never across an await.
    state: Mutex<State>,
    /// Held by the task that fetches headers; all others wait for it.
    flight: tokio::sync::Mutex<()>,
    generation: watch::Sender<Generation>,
}

enum Origin {
    Program(Box<Program>),
    File(HeadersFile),
}

/// Names and values.
type Pairs = Arc<Vec<(String, Secret)>>;

#[derive(Default)]
struct State {
    known: Option<Pairs>,
    /// The state of the file when the headers were read.
    stamp: Option<Stamp>,
    /// The last attempt that did not help.
    failed: Option<(Instant, Arc<Failure>)>,
}

impl HeaderSource {
    /// Headers from a program, which gets `server` and `url` in its environment.
    pub fn of_command(command: HeadersCommand, server: &str, url: &str) -> Self {
        Self::new(Origin::Program(Box::new(Program::new(command, server, url))))
    }

    pub fn of_file(path: PathBuf) -> Self {
        Self::new(Origin::File(HeadersFile::new(path)))
    }

    fn new(origin: Origin) -> Self {
        let generation = watch::Sender::new(Generation::default());
        Self(Arc::new(Inner {
            origin,
            state: Mutex::default(),
            flight: tokio::sync::Mutex::default(),
            generation,
        }))
    }

    /// Runs in a separate task: a request that is cancelled must not end the program for all others.
    async fn spawned<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Arc<Failure>> {
        let ended = |_| {
            Arc::new(Failure::new(
                format!("plugbay ended while it got headers from {}", self.0.origin),
                Vec::new(),
            ))
        };
        tokio::spawn(work).await.map_err(ended)
    }
}

impl Credentials for HeaderSource {
    fn headers<'a>(&'a self, _: Target<'a>) -> Later<'a, Result<Headers, Arc<Failure>>> {
        Box::pin(async move {
            if let Some(headers) = self.0.fresh() {
                return Ok(headers);
            }
            let inner = Arc::clone(&self.0);
            self.spawned(async move { inner.first().await }).await?
        })
    }

    fn rejected<'a>(&'a self, rejection: Rejection<'a>) -> Later<'a, Verdict> {
        Box::pin(async move {
            // Any other status does not mean that other headers would help.
            if rejection.status != 401 {
                return Verdict::NotOurs;
            }
            let (inner, generation, attempts) =
                (Arc::clone(&self.0), rejection.generation, rejection.attempts);
            let verdict = self.spawned(async move { inner.again(generation, attempts).await });
            verdict.await.unwrap_or_else(Verdict::Final)
        })
    }

    fn login(&self) -> Later<'_, Result<LoginOffer, Arc<Failure>>> {
        let what = format!("there is no login for this server: its headers come from {}", self.0.origin);
        let failure = Failure::new(what, Vec::new()).with_remedy(self.0.origin.remedy());
        Box::pin(std::future::ready(Err(Arc::new(failure))))
    }

    fn changed(&self, since: Generation) -> Later<'_, ()> {
        Box::pin(async move {
            let mut generation = self.0.generation.subscribe();
            loop {
                let change = generation.wait_for(|now| *now != since);
                match &self.0.origin {
                    Origin::Program(_) => return drop(change.await),
                    Origin::File(_) if tokio::time::timeout(LOOK_EVERY, change).await.is_ok() => return,
                    Origin::File(_) => _ = self.0.first().await,
                }
            }
        })
    }

    fn generation(&self) -> Generation {
        *self.0.generation.borrow()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current headers, unless their file has changed.
    fn fresh(&self) -> Option<Headers> {
        let stamp = self.origin.stamp();
        let state = self.state();
        let known = state.known.as_ref().filter(|_| state.stamp == stamp)?;
        Some(Headers { values: known.to_vec(), generation: *self.generation.borrow() })
    }

    /// The headers for a request that has none yet.
    async fn first(&self) -> Result<Headers, Arc<Failure>> {
        let _flight = self.flight.lock().await;
        if let Some(headers) = self.fresh() {
            return Ok(headers);
        }
        if let Some(failure) = self.failed_lately() {
            return Err(failure);
        }
        match self.get().await {
            Ok(_) => Ok(self.known()),
            Err(failure) => Err(self.note(failure)),
        }
    }

    /// Handles the rejection of the headers of this generation.
    async fn again(&self, rejected: Generation, attempts: u32) -> Verdict {
        if attempts > MOST_ATTEMPTS {
            return Verdict::Final(Arc::new(self.useless()));
        }
        let _flight = self.flight.lock().await;
        if *self.generation.borrow() != rejected {
            return Verdict::SendAgain;
        }
        if let Some(failure) = self.failed_lately() {
            return Verdict::Final(failure);
        }
        match self.get().await {
            Ok(Change::Other) => Verdict::SendAgain,
            Ok(Change::Same) => Verdict::Final(self.note(self.useless())),
            Err(failure) => Verdict::Final(self.note(failure)),
        }
    }

    /// Fetches headers and keeps them.
    async fn get(&self) -> Result<Change, Failure> {
        let stamp = self.origin.stamp();
        let pairs = match &self.origin {
            Origin::Program(program) => program.run().await,
            Origin::File(file) => file.read(),
        };
        let pairs = pairs.map_err(|failure| match failure.remedy {
            Some(_) => failure,
            None => failure.with_remedy(self.origin.remedy()),
        })?;
        let mut state = self.state();
        let is_same = state.known.as_deref() == Some(&pairs);
        *state = State { known: Some(Arc::new(pairs)), stamp, failed: None };
        if is_same {
            return Ok(Change::Same);
        }
        drop(state);
        self.generation.send_modify(|generation| generation.0 += 1);
        Ok(Change::Other)
    }

    fn known(&self) -> Headers {
        let values = self.state().known.as_deref().cloned().unwrap_or_default();
        Headers { values, generation: *self.generation.borrow() }
    }

    /// The failure of the last attempt, as long as it is too early for another one. A file may be read at any
    /// time.
    fn failed_lately(&self) -> Option<Arc<Failure>> {
        let state = self.state();
        let (when, failure) = state.failed.as_ref()?;
        let is_early = matches!(self.origin, Origin::Program(_)) && when.elapsed() < PAUSE;
        is_early.then(|| Arc::clone(failure))
    }

    fn note(&self, failure: Failure) -> Arc<Failure> {
        let failure = Arc::new(failure);
        self.state().failed = Some((Instant::now(), Arc::clone(&failure)));
        failure
    }

    /// The failure when the server rejects the headers and there are no others.
    fn useless(&self) -> Failure {
        let what = format!("the server rejects the headers that come from {} (HTTP status 401)", self.origin);
        Failure::new(what, Vec::new()).because(Cause::HttpStatus(401)).with_remedy(self.origin.remedy())
    }
}

enum Change {
    Same,
    Other,
}

impl Origin {
    /// The current state of the file; `None` for a program.
    fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::Program(_) => None,
            Self::File(file) => file.stamp(),
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Program(program) => program.remedy(),
            Self::File(file) => file.remedy(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => program.fmt(f),
            Self::File(file) => file.fmt(f),
        }
    }
}

/// Shows no headers.
impl fmt::Debug for HeaderSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeaderSource({})", self.0.origin)
    }
}
