//! Calls that were answered with a task. Their results come with another request, and get an outline like
//! those of other calls.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use plugbay_core::name::ServerName;

use super::fit::Fit;
use crate::results::ResultOwner;

/// Limit of remembered tasks. Results of older ones stay whole.
const MOST: usize = 1024;
/// A task id longer than this is not remembered.
const LONGEST_ID: usize = 256;

/// The latest tasks, oldest first.
#[derive(Debug, Default)]
pub(super) struct TaskFits(Mutex<VecDeque<TaskFit>>);

#[derive(Debug)]
struct TaskFit {
    owner: ResultOwner,
    server: ServerName,
    /// The server's own task id.
    id: Box<str>,
    fit: Fit,
}

impl TaskFits {
    pub(super) fn remember(&self, owner: ResultOwner, server: &ServerName, id: &str, fit: Fit) {
        if id.len() > LONGEST_ID {
            return;
        }
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.len() == MOST {
            tasks.pop_front();
        }
        tasks.push_back(TaskFit { owner, server: server.clone(), id: id.into(), fit });
    }

    /// How the call was made that began this task.
    pub(super) fn find(&self, owner: ResultOwner, server: &ServerName, id: &str) -> Option<Fit> {
        let tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |task: &&TaskFit| *task.id == *id && task.owner == owner && task.server == *server;
        tasks.iter().rev().find(is_it).map(|task| task.fit.clone())
    }
}

#[cfg(test)]
mod tests {
    use plugbay_core::observe::SessionMark;

    use super::*;
    use crate::seal::Owner;

    #[test]
    fn tasks_are_remembered_by_session_and_server_and_not_without_end() {
        let owner = |session| ResultOwner { caller: Owner([1; 32]), session: SessionMark([session; 8]) };
        let server = |name: &str| ServerName::parse(name).unwrap();
        let tasks = TaskFits::default();
        tasks.remember(owner(1), &server("s"), "first", Fit::any());
        tasks.remember(owner(1), &server("s"), &"x".repeat(300), Fit::any());
        let is_known = |session, name: &str| tasks.find(owner(session), &server(name), "first").is_some();
        assert!(is_known(1, "s") && !is_known(2, "s") && !is_known(1, "t"));
        for number in 0..2 * MOST {
            tasks.remember(owner(1), &server("s"), &number.to_string(), Fit::any());
        }
        assert!(!is_known(1, "s") && tasks.0.lock().unwrap().len() == MOST);
    }
}
