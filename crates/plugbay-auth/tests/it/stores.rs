//! The store of logins: its files, and its behaviour on unusable disks.

use std::{
    collections::HashMap,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use plugbay_auth::{
    LoginError, LoginSettings, ServerLogin,
    store::{Keychain, Store, StoreError},
};
use plugbay_core::credentials::{Credentials as _, OAuthSettings};

use crate::{
    bench::{Bench, Outcome, log_in},
    scripted::{SECRET, Site},
};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn files_of_tokens_are_for_their_owner_alone() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let login = bench.logged_in().await;
    assert_eq!((mode(&bench.logins()), mode(&bench.file())), (0o700, 0o600));
    for name in names(&bench.logins()) {
        assert_eq!(mode(&bench.logins().join(&name)), 0o600, "{name}");
    }
    // A folder that others can read is made private again.
    fs::set_permissions(bench.logins(), fs::Permissions::from_mode(0o755)).unwrap();
    site.pass(700);
    assert!(bench.call(&login).await.is_done());
    assert_eq!((mode(&bench.logins()), mode(&bench.file())), (0o700, 0o600));
    assert!(!names(&bench.logins()).iter().any(|name| name.starts_with(".tmp")));
}

#[tokio::test]
async fn a_corrupt_file_of_tokens_is_set_aside_and_reported() {
    for broken in ["", "{", "[]", "{\"version\":\"x\"}", "{\"version\":1}", "\u{0}\u{0}\u{0}"] {
        let site = Site::start().await;
        let bench = Bench::new(&site);
        bench.logged_in().await;
        let file = bench.file();
        fs::write(&file, broken).unwrap();
        let login = bench.login();
        let error = login.logins().await.unwrap_err();
        let StoreError::Corrupt(_, aside) = &error else { panic!("{error}") };
        assert_eq!(fs::read_to_string(aside).unwrap(), broken);
        assert!(error.to_string().contains("moved"), "{error}");
        assert!(!file.exists());
        assert!(matches!(bench.call(&login).await, Outcome::NeedsLogin(_)));
        log_in(&login).await.unwrap();
        assert!(bench.call(&bench.login()).await.is_done());
        assert!(aside.exists(), "what was found stays");
    }
}

#[tokio::test]
async fn a_process_that_knows_the_tokens_writes_them_again() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let login = bench.logged_in().await;
    let record = bench.record();
    let file = bench.file();
    for notices_first in ["a request", "somebody who asks for the generation"] {
        fs::write(&file, "broken").unwrap();
        if notices_first != "a request" {
            let _ = login.generation();
        }
        assert!(bench.call(&login).await.is_done());
        while !file.exists() {
            tokio::task::yield_now().await;
        }
        login.settled().await; // the process knows that it has written the file
        assert_eq!(bench.record(), record, "{notices_first}");
        site.pass(11);
    }
    assert!(bench.call(&bench.login()).await.is_done());
}

#[tokio::test]
async fn a_file_of_a_newer_plugbay_is_left_alone() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    bench.logged_in().await;
    fs::write(bench.file(), "{\"version\": 2, \"more\": []}").unwrap();
    let login = bench.login();
    assert!(matches!(login.logins().await, Err(StoreError::Newer(_))));
    assert!(!bench.call(&login).await.is_done());
    assert_eq!(bench.record()["version"], 2);
}

/// A keychain that can be full.
#[derive(Debug, Default)]
struct Memory {
    entries: Mutex<HashMap<String, String>>,
    is_full: AtomicBool,
}

impl Keychain for Memory {
    fn put(&self, entry: &str, secret: &str) -> io::Result<()> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.entries.lock().unwrap().insert(entry.to_owned(), secret.to_owned());
        Ok(())
    }

    fn get(&self, entry: &str) -> io::Result<Option<String>> {
        Ok(self.entries.lock().unwrap().get(entry).cloned())
    }

    fn remove(&self, entry: &str) -> io::Result<()> {
        self.entries.lock().unwrap().remove(entry);
        Ok(())
    }
}

#[tokio::test]
async fn tokens_are_kept_in_memory_when_they_cannot_be_written() {
    let site = Site::start().await;
    site.script().grants.grace = 0;
    let bench = Bench::new(&site);
    let keychain = Arc::new(Memory::default());
    let open = || {
        let store = Store::new(bench.logins(), Some(Arc::clone(&keychain) as Arc<dyn Keychain>));
        ServerLogin::new(LoginSettings { store, ..bench.settings(OAuthSettings::default()) }).unwrap()
    };
    let login = open();
    log_in(&login).await.unwrap();
    assert!(!fs::read_to_string(bench.file()).unwrap().contains(SECRET), "secrets are in the keychain");
    assert!(bench.call(&open()).await.is_done());
    keychain.is_full.store(true, Ordering::SeqCst);
    for _ in 0..4 {
        site.pass(700);
        for _ in 0..4 {
            let outcome = bench.call(&login).await;
            assert!(outcome.is_done(), "{}", outcome.text());
        }
    }
    // When there is room again, the logins in memory are written for the other processes.
    keychain.is_full.store(false, Ordering::SeqCst);
    site.pass(10);
    assert!(bench.call(&login).await.is_done());
    login.settled().await;
    assert!(bench.call(&open()).await.is_done());
    let grants = &site.script().grants;
    assert_eq!((grants.refreshed.len(), grants.reused), (4, 0));
}

/// A folder that is not writable, if this machine has one.
fn unwritable() -> Option<std::path::PathBuf> {
    let folder = Path::new("/sys/kernel/plugbay-test");
    let error = fs::create_dir(folder).err()?;
    matches!(error.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem)
        .then(|| folder.to_owned())
}

#[tokio::test]
async fn a_login_works_from_memory_with_a_read_only_store() {
    let Some(folder) = unwritable() else { return };
    let site = Site::start().await;
    site.script().grants.grace = 0;
    let bench = Bench::new(&site);
    let mut settings = bench.settings(OAuthSettings::default());
    settings.store = Store::new(folder, None);
    let login = ServerLogin::new(settings).unwrap();
    let error = log_in(&login).await.unwrap_err();
    assert!(matches!(error, LoginError::Store(_)), "it says that the login is not kept: {error}");
    for _ in 0..4 {
        assert!(bench.call(&login).await.is_done());
        site.pass(700);
    }
    let refreshed = site.script().grants.refreshed.len();
    assert_eq!(refreshed, 3);
    login.logout().await.unwrap_err();
}

#[tokio::test]
async fn a_store_behind_a_link_or_of_another_user_is_refused() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let login = bench.logged_in().await;
    let elsewhere = bench.folder.path().join("elsewhere");
    fs::rename(bench.logins(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, bench.logins()).unwrap();
    let fresh = bench.login();
    assert!(matches!(fresh.logins().await, Err(StoreError::Read(..))));
    let error = log_in(&fresh).await.unwrap_err().to_string();
    assert!(error.contains("symbolic link"), "{error}");
    fs::remove_file(bench.logins()).unwrap();
    fs::rename(&elsewhere, bench.logins()).unwrap();
    assert!(bench.call(&login).await.is_done());
    // Only root can give a folder away.
    if std::os::unix::fs::chown(bench.logins(), Some(12345), None).is_ok() {
        let error = bench.login().logins().await.unwrap_err().to_string();
        assert!(error.contains("another user"), "{error}");
    }
}

#[tokio::test]
async fn a_file_of_tokens_that_is_too_large_to_read_is_never_written() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let login = bench.logged_in().await;
    let record = bench.record();
    site.script().grants.scopes = Some("s".repeat(60 * 1024));
    site.pass(700);
    assert!(bench.call(&login).await.is_done());
    assert_ne!(bench.record(), record, "60 KiB are no reason to stop");
}
