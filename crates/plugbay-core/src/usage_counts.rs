//! How often tools are used.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use crate::name::ServerName;

/// Uses by server and the server's own name of the tool. It is on the path of every call, so it only counts.
#[derive(Debug, Default)]
pub struct UsageCounts(Mutex<BTreeMap<ServerName, BTreeMap<String, u32>>>);

impl UsageCounts {
    pub fn used(&self, server: &ServerName, tool: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(server).and_then(|tools| tools.get_mut(tool)) {
            *count = count.saturating_add(1);
            return;
        }
        counts.entry(server.clone()).or_default().insert(tool.to_owned(), 1);
    }

    /// Takes all counts; counting begins anew.
    pub fn take(&self) -> BTreeMap<ServerName, BTreeMap<String, u32>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
