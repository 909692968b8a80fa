//! All live sessions of both eras, for catalog changes and shutdown.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::session::Session;

#[derive(Debug, Default)]
pub(super) struct LiveSessions {
    // A std mutex: held for a push or a copy, never across an await.
    sessions: Mutex<Vec<Weak<Session>>>,
}

impl LiveSessions {
    pub(super) fn add(&self, session: &Arc<Session>) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() == sessions.capacity() {
            // Removes ended sessions only before the list grows, so that each newcomer shares the cost.
            sessions.retain(|session| session.strong_count() > 0);
            let length = sessions.len();
            sessions.reserve(length.max(16));
        }
        sessions.push(Arc::downgrade(session));
    }

    pub(super) fn each(&self, act: impl Fn(&Session)) {
        let sessions: Vec<_> = {
            let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.iter().filter_map(Weak::upgrade).collect()
        };
        for session in &sessions {
            act(session);
        }
    }
}
