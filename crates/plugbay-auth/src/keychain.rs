//! The keychain of the system: the Secret Service of a Unix desktop, or the login keychain of macOS.
//!
//! It never asks the user anything, and never waits for long. A locked, absent or hanging keychain is an
//! error.

#[cfg(target_os = "macos")]
mod apple;
#[cfg(not(unix))]
mod none;
#[cfg(all(unix, not(target_os = "macos")))]
mod secret_service;

use std::{io, path::PathBuf, time::Duration};

#[cfg(target_os = "macos")]
use self::apple::Platform;
#[cfg(not(unix))]
use self::none::Platform;
#[cfg(all(unix, not(target_os = "macos")))]
use self::secret_service::Platform;
use crate::store::Keychain;

/// The name under which the keychain lists plugbay's entries.
const SERVICE: &str = "plugbay";
/// Time limit for finding out whether there is a keychain: a program may have to start.
const CHECK_LIMIT: Duration = Duration::from_secs(1);
/// Time limit for a call: the keychain writes to disk, and the disk may be busy.
const CALL_LIMIT: Duration = Duration::from_secs(5);

/// The possible places of the D-Bus of the user's session. Only Unix desktops have one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionBus {
    /// `DBUS_SESSION_BUS_ADDRESS`.
    pub address: Option<String>,
    /// `XDG_RUNTIME_DIR`, which usually has the socket `bus`.
    pub runtime_folder: Option<PathBuf>,
}

/// The system's keychain. It is contacted anew for each entry, so it may be locked, unlocked or restarted in
/// between.
#[derive(Debug, Clone)]
pub struct SystemKeychain(Platform);

impl SystemKeychain {
    /// The keychain that this session may have. It is not contacted, so it may still be absent or locked.
    pub fn at(bus: &SessionBus) -> Option<Self> {
        Platform::at(bus).map(Self)
    }

    /// The keychain of this session, if it is usable now. Takes at most a second.
    pub fn find(bus: &SessionBus) -> Option<Self> {
        Self::at(bus).filter(|keychain| keychain.check().is_ok())
    }

    /// Checks that it is usable now. Takes at most a second.
    pub fn check(&self) -> io::Result<()> {
        self.0.check(CHECK_LIMIT)
    }
}

impl Keychain for SystemKeychain {
    fn put(&self, entry: &str, secret: &str) -> io::Result<()> {
        self.0.put(entry, secret, CALL_LIMIT)
    }

    fn get(&self, entry: &str) -> io::Result<Option<String>> {
        let found = self.0.get(entry, CALL_LIMIT)?;
        found
            .map(|secret| String::from_utf8(secret).map_err(|_| io::Error::other("the entry is not text")))
            .transpose()
    }

    fn remove(&self, entry: &str) -> io::Result<()> {
        self.0.remove(entry, CALL_LIMIT)
    }
}

fn locked() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "it is locked; unlock your keychain")
}

fn late(limit: Duration) -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("it has not answered within {limit:?}; restart your keychain, or your desktop session"),
    )
}
