//! Search mode: tools are found by what they are for.

use std::sync::{Arc, OnceLock};

use super::{found::Found, names::Names};
use crate::{
    catalog::Tool,
    search::{Engine, Explanation, Table},
};

/// Finds tools in one snapshot. The index is made when it is first needed, or before, by whoever has time.
#[derive(Debug)]
pub struct Finder {
    names: Arc<Names>,
    /// Numbers tools as `names` does.
    engine: OnceLock<Engine>,
}

impl Finder {
    pub(super) fn new(names: Arc<Names>) -> Self {
        Self { names, engine: OnceLock::new() }
    }

    /// Makes the index, if nobody has.
    pub fn prepare(&self, table: impl FnOnce() -> Option<Arc<Table>>) {
        self.engine(table);
    }

    pub fn is_ready(&self) -> bool {
        self.engine.get().is_some()
    }

    /// The best tools for a query with their scores, best first; of one server, if it is named.
    pub fn search(
        &self,
        query: &str,
        limit: usize,
        server: Option<&str>,
        table: impl FnOnce() -> Option<Arc<Table>>,
    ) -> Vec<(&Found, f32)> {
        // A server's own are spread among the others'.
        let wanted = if server.is_some() { self.names.len() } else { limit };
        let hits = self.engine(table).search(query, wanted).into_iter();
        let found = hits.map(|hit| (&self.names.as_slice()[hit.tool as usize], hit.score));
        found
            .filter(|(found, _)| server.is_none_or(|server| found.target.server.as_str() == server))
            .take(limit)
            .collect()
    }

    /// What was found in which words, and what meaning added.
    pub fn explain(
        &self,
        query: &str,
        exposed: &str,
        table: impl FnOnce() -> Option<Arc<Table>>,
    ) -> Option<Explanation> {
        let (number, found) = (self.names.position(exposed)?, self.names.get(exposed)?);
        let number = u32::try_from(number).ok()?;
        Some(self.engine(table).explain(query, number, (found.target.server.as_str(), &found.tool)))
    }

    fn engine(&self, table: impl FnOnce() -> Option<Arc<Table>>) -> &Engine {
        self.engine.get_or_init(|| {
            let tools: Vec<(&str, &Tool)> =
                self.names.iter().map(|found| (found.target.server.as_str(), &found.tool)).collect();
            Engine::build(&tools, table())
        })
    }
}
