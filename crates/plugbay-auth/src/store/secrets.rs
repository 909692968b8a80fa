//! The place of a login's secrets: in its file or in the keychain. The file says which.
//!
//! Processes may differ: a daemon may have no keychain where a command has one.
//!
//! - Each process writes secrets to its own place, and the file tells the others where they are.
//! - Secrets in the file are read by all. The next process that writes them may move them to the keychain.
//! - Secrets in the keychain are lost to a process without one: it gets an error that names the remedies, and
//!   it changes nothing. Only a logout is possible, which then leaves the entry in the keychain behind.

use std::io;

use super::{Keychain, Logins, Placement, ServerKey, Store, StoreError};

impl Store {
    /// Adds the secrets that are in the keychain. False if one of them is missing: then its login has no
    /// tokens.
    pub(super) fn reveal(&self, key: &ServerKey, logins: &mut Logins) -> Result<bool, StoreError> {
        let mut is_complete = true;
        for (issuer, login) in &mut logins.by_issuer {
            if !login.is_hidden() {
                continue;
            }
            let found = self.keychain()?.get(&self.entry(key, issuer)).map_err(StoreError::Keychain)?;
            is_complete &= found.is_some();
            login.give_secrets(found.as_deref());
        }
        Ok(is_complete)
    }

    /// Moves secrets to the keychain if they belong there.
    pub(super) fn hide(&self, key: &ServerKey, logins: &mut Logins) -> Result<(), StoreError> {
        let keychain = match self.placement {
            Placement::File => return Ok(()),
            Placement::Auto if self.keychain.is_none() => return Ok(()),
            Placement::Auto | Placement::Keychain => self.keychain()?,
        };
        for (issuer, login) in &mut logins.by_issuer {
            let Some(secrets) = login.secrets() else { continue };
            match keychain.put(&self.entry(key, issuer), &secrets) {
                Ok(()) => login.hide(),
                Err(error) if self.placement == Placement::Keychain => {
                    return Err(StoreError::Keychain(error));
                }
                // If a refresh token were saved nowhere, its login would be lost.
                Err(error) => {
                    if error.kind() == io::ErrorKind::NotFound {
                        tracing::debug!("there is no keychain: {error}");
                    } else {
                        tracing::warn!("the keychain cannot be used, the secrets are in a file: {error}");
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// Removes entries in the keychain that `after` no longer needs.
    pub(super) fn discard(&self, key: &ServerKey, before: &Logins, after: &Logins) {
        let Some(keychain) = &self.keychain else { return };
        for issuer in hidden(before) {
            if after.by_issuer.get(issuer).is_some_and(super::Login::is_hidden) {
                continue;
            }
            if let Err(error) = keychain.remove(&self.entry(key, issuer)) {
                tracing::warn!("an old entry is left in the keychain: {error}");
                return;
            }
        }
    }

    /// Removes all entries of a server.
    pub(super) fn remove_secrets(&self, key: &ServerKey, before: &Logins) -> Result<(), StoreError> {
        for issuer in hidden(before) {
            self.keychain()?.remove(&self.entry(key, issuer)).map_err(StoreError::Keychain)?;
        }
        // If the keychain failed once, it may still have an old entry.
        if let (Some(keychain), Placement::Auto) = (&self.keychain, self.placement) {
            let mut others = before.by_issuer.iter().filter(|(_, login)| !login.is_hidden());
            let _ = others.try_for_each(|(issuer, _)| keychain.remove(&self.entry(key, issuer)));
        }
        Ok(())
    }

    fn keychain(&self) -> Result<&dyn Keychain, StoreError> {
        let missing = || {
            let remedy = "unlock your keychain, or run plugbay in your desktop session; if there is no keychain any more, log out and in again";
            io::Error::new(io::ErrorKind::NotFound, format!("this process has none; {remedy}"))
        };
        self.keychain.as_deref().ok_or_else(|| StoreError::Keychain(missing()))
    }

    /// The name of a login's entry in the keychain. Each folder has its own entries.
    fn entry(&self, key: &ServerKey, issuer: &str) -> String {
        format!("{} {} {issuer} {}", key.name, key.url, self.folder.display())
    }
}

/// The issuers of logins with secrets in the keychain.
fn hidden(logins: &Logins) -> impl Iterator<Item = &String> {
    logins.by_issuer.iter().filter(|(_, login)| login.is_hidden()).map(|(issuer, _)| issuer)
}
