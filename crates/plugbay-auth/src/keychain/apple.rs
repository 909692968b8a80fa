//! The login keychain of macOS. The system has no time limit for calls, so each call has a thread that may be
//! left behind.

use std::{
    io, process,
    sync::{OnceLock, mpsc},
    thread,
    time::Duration,
};

use security_framework::{
    base::Error,
    os::macos::keychain::{KeychainUserInteractionLock, SecKeychain},
    passwords::{PasswordOptions, delete_generic_password, generic_password, set_generic_password},
};

use super::{SERVICE, SessionBus, late, locked};

const NOT_FOUND: i32 = -25300;
/// The keychain is locked, or the system would ask the user.
const INTERACTION_NOT_ALLOWED: i32 = -25308;
/// The entry belongs to a program with another signature, such as a different build of plugbay.
const AUTH_FAILED: i32 = -25293;

#[derive(Debug, Clone)]
pub(super) struct Platform;

impl Platform {
    pub(super) fn at(_: &SessionBus) -> Option<Self> {
        Some(Self)
    }

    /// Only a write shows whether it is unlocked.
    pub(super) fn check(&self, limit: Duration) -> io::Result<()> {
        run(limit, write_something)
    }

    pub(super) fn put(&self, entry: &str, secret: &str, limit: Duration) -> io::Result<()> {
        let (entry, secret) = (entry.to_owned(), secret.to_owned());
        run(limit, move || {
            match set_generic_password(SERVICE, &entry, secret.as_bytes()) {
                // An entry of another build can be replaced but not changed. If the keychain is only locked,
                // the entry stays.
                Err(error) if matches!(error.code(), INTERACTION_NOT_ALLOWED | AUTH_FAILED) => {
                    write_something()?;
                    delete_generic_password(SERVICE, &entry)?;
                    set_generic_password(SERVICE, &entry, secret.as_bytes())
                }
                put => put,
            }
        })
    }

    pub(super) fn get(&self, entry: &str, limit: Duration) -> io::Result<Option<Vec<u8>>> {
        let entry = entry.to_owned();
        run(limit, move || match generic_password(PasswordOptions::new_generic_password(SERVICE, &entry)) {
            Err(error) if error.code() == NOT_FOUND => Ok(None),
            found => found.map(Some),
        })
    }

    pub(super) fn remove(&self, entry: &str, limit: Duration) -> io::Result<()> {
        let entry = entry.to_owned();
        run(limit, move || match delete_generic_password(SERVICE, &entry) {
            Err(error) if error.code() == NOT_FOUND => Ok(()),
            removed => removed,
        })
    }
}

fn write_something() -> Result<(), Error> {
    let entry = format!("check {}", process::id());
    set_generic_password(SERVICE, &entry, b"check")?;
    delete_generic_password(SERVICE, &entry)
}

/// Runs a call until its end or the time limit, without asking the user.
fn run<T: Send + 'static>(
    limit: Duration,
    call: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> io::Result<T> {
    // Held for ever, so that nothing in this process may ask.
    static QUIET: OnceLock<Result<KeychainUserInteractionLock, Error>> = OnceLock::new();
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let quiet = QUIET.get_or_init(SecKeychain::disable_user_interaction);
        let _ = sender.send(quiet.as_ref().map_err(|error| *error).and_then(|_| call()));
    })?;
    let ended = receiver.recv_timeout(limit).map_err(|_| late(limit))?;
    ended.map_err(|error| match error.code() {
        INTERACTION_NOT_ALLOWED => locked(),
        AUTH_FAILED => io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the entry belongs to another build of plugbay; log out and in again",
        ),
        _ => io::Error::other(error),
    })
}
