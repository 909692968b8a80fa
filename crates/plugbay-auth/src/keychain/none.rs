//! A system without a keychain that plugbay supports.

use std::{convert::Infallible, io, time::Duration};

use super::SessionBus;

/// There is no keychain, so this cannot exist.
#[derive(Debug, Clone)]
pub(super) struct Platform(Infallible);

impl Platform {
    pub(super) fn at(_: &SessionBus) -> Option<Self> {
        None
    }

    pub(super) fn check(&self, _: Duration) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn put(&self, _: &str, _: &str, _: Duration) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn get(&self, _: &str, _: Duration) -> io::Result<Option<Vec<u8>>> {
        match self.0 {}
    }

    pub(super) fn remove(&self, _: &str, _: Duration) -> io::Result<()> {
        match self.0 {}
    }
}
