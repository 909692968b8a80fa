//! Threads for answers that take long: few at a time, and callers take turns.

use std::{
    collections::HashMap,
    num::NonZero,
    sync::{Arc, Mutex, PoisonError, Weak},
    thread::available_parallelism,
};

use tokio::{
    sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore},
    task::{JoinError, spawn_blocking},
};

use crate::seal::Owner;

/// Runs work in other threads. One processor is kept free for the event loop.
#[derive(Debug)]
pub struct Workers {
    threads: Arc<Semaphore>,
    // A std mutex: held for a look-up, never across an await.
    turns: Mutex<HashMap<Owner, Weak<AsyncMutex<()>>>>,
}

impl Default for Workers {
    fn default() -> Self {
        Self::new(available_parallelism().map_or(1, NonZero::get).saturating_sub(1).max(1))
    }
}

impl Workers {
    fn new(threads: usize) -> Self {
        Self { threads: Arc::new(Semaphore::new(threads)), turns: Mutex::default() }
    }

    /// Runs work for a caller when a thread is free. Work whose future is dropped before that never starts.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        caller: Owner,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let thread = self.thread(caller).await;
        let working = spawn_blocking(move || {
            let _until_done = thread; // also if nobody waits for the work any more
            work()
        });
        working.await
    }

    /// Waits for a free thread. Each caller has only one request in the queue for threads; its others wait
    /// for that one.
    async fn thread(&self, caller: Owner) -> Option<OwnedSemaphorePermit> {
        let turn = self.turn_of(caller);
        let _turn = turn.lock().await;
        Arc::clone(&self.threads).acquire_owned().await.ok() // it is never closed
    }

    fn turn_of(&self, caller: Owner) -> Arc<AsyncMutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(&caller).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(caller, Arc::downgrade(&turn));
        turn
    }

    /// Keeps all threads busy until this is dropped.
    #[cfg(test)]
    pub(crate) async fn occupy(&self) -> OwnedSemaphorePermit {
        let all = u32::try_from(self.threads.available_permits()).expect("few");
        Arc::clone(&self.threads).acquire_many_owned(all).await.expect("it is never closed")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::{JoinSet, yield_now};

    use super::*;

    /// Starts work for a caller and returns once it waits for its turn. The work notes its name.
    async fn begin(
        workers: &Arc<Workers>,
        running: &mut JoinSet<()>,
        caller: u8,
        name: &'static str,
        done: &Arc<Mutex<Vec<&'static str>>>,
    ) -> tokio::task::AbortHandle {
        let (workers, done) = (Arc::clone(workers), Arc::clone(done));
        let begun = running.spawn(async move {
            workers.run(Owner([caller; 32]), move || done.lock().unwrap().push(name)).await.unwrap();
        });
        yield_now().await;
        begun
    }

    #[tokio::test]
    async fn callers_take_turns_at_the_threads_and_cancelled_work_never_starts() {
        let (workers, done) = (Arc::new(Workers::new(1)), Arc::default());
        let mut running = JoinSet::new();
        let busy = workers.occupy().await;
        for name in ["a1", "a2", "a3"] {
            begin(&workers, &mut running, 1, name, &done).await;
        }
        let cancelled = begin(&workers, &mut running, 2, "b0", &done).await;
        begin(&workers, &mut running, 3, "c1", &done).await;
        cancelled.abort();
        drop(busy);
        while running.join_next().await.is_some() {}
        assert_eq!(*done.lock().unwrap(), ["a1", "c1", "a2", "a3"]);
        assert!(workers.turns.lock().unwrap().values().all(|turn| turn.strong_count() == 0));
    }

    #[tokio::test]
    async fn one_caller_gets_no_more_threads_than_there_are() {
        let workers = Arc::new(Workers::new(2));
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut running = JoinSet::new();
        for _ in 0..40 {
            let (workers, now, most) = (Arc::clone(&workers), Arc::clone(&now), Arc::clone(&most));
            running.spawn(async move {
                let work = move || {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    now.fetch_sub(1, Ordering::SeqCst);
                };
                workers.run(Owner::default(), work).await.unwrap();
            });
        }
        while running.join_next().await.is_some() {}
        let most = most.load(Ordering::SeqCst);
        assert!((1..=2).contains(&most), "{most} at once");
    }
}
