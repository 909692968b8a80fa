//! Tests of logins whose secrets are in a keychain.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};

use plugbay_core::{credentials::OAuthSettings, secret::Secret};

use super::*;
use crate::{
    LoginSettings, ServerLogin,
    client::{Client, ClientSource},
    token::AuthMethod,
};

const ISSUER: &str = "https://issuer.example";
const CANARY: &str = "canary-";

/// A keychain in memory, which can fail.
#[derive(Debug, Default)]
struct Fake {
    entries: Mutex<BTreeMap<String, String>>,
    failure: Mutex<Option<io::ErrorKind>>,
    /// Runs before an entry is read.
    before_get: Mutex<Option<Before>>,
}

struct Before(Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Before {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Before")
    }
}

impl Fake {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.entries.lock().unwrap()
    }

    fn fail_with(&self, failure: Option<io::ErrorKind>) {
        *self.failure.lock().unwrap() = failure;
    }

    fn attempt(&self) -> io::Result<()> {
        let failure = *self.failure.lock().unwrap();
        failure.map_or(Ok(()), |kind| Err(io::Error::new(kind, "it is locked; unlock your keychain")))
    }
}

impl Keychain for Fake {
    fn put(&self, entry: &str, secret: &str) -> io::Result<()> {
        self.attempt()?;
        self.entries().insert(entry.to_owned(), secret.to_owned());
        Ok(())
    }

    fn get(&self, entry: &str) -> io::Result<Option<String>> {
        let before = self.before_get.lock().unwrap().take();
        if let Some(Before(run)) = before {
            run();
        }
        self.attempt()?;
        Ok(self.entries().get(entry).cloned())
    }

    fn remove(&self, entry: &str) -> io::Result<()> {
        self.attempt()?;
        self.entries().remove(entry);
        Ok(())
    }
}

/// A folder, a keychain, and the server that the logins are for.
struct Place {
    folder: tempfile::TempDir,
    keychain: Arc<Fake>,
    key: ServerKey,
}

impl Place {
    fn new() -> Self {
        let key = ServerKey { name: "linear".to_owned(), url: "https://mcp.example/mcp".to_owned() };
        Self { folder: tempfile::tempdir().unwrap(), keychain: Arc::default(), key }
    }

    fn store(&self, placement: Placement) -> Store {
        let keychain: Arc<dyn Keychain> = self.keychain.clone();
        Store::new(self.folder.path().join("logins"), Some(keychain)).with_placement(placement)
    }

    fn store_without_keychain(&self) -> Store {
        Store::new(self.folder.path().join("logins"), None)
    }

    fn file(&self) -> String {
        fs::read_to_string(self.store(Placement::Auto).path(&self.key)).unwrap()
    }

    fn has_secrets_in_file(&self) -> bool {
        self.file().contains(CANARY)
    }
}

fn logins() -> Logins {
    let secret = |what: &str| Secret::new(format!("{CANARY}{what}"));
    let client = Client {
        id: "plugbay".to_owned(),
        secret: Some(secret("client")),
        method: AuthMethod::ClientSecretBasic,
        source: ClientSource::Configured,
    };
    let endpoint = format!("{ISSUER}/token").parse().unwrap();
    let mut login =
        Login::new(client, endpoint, "https://mcp.example/mcp".to_owned(), vec!["read".to_owned()]);
    login.dpop_key = Some(secret("dpop"));
    login.tokens = Some(Tokens {
        access: secret("access"),
        refresh: Some(secret("refresh")),
        issued_at: 1_800_000_000,
        expires_in: Some(3600),
        scopes: vec!["read".to_owned()],
        is_dpop: true,
    });
    let by_issuer = [(ISSUER.to_owned(), login)].into();
    Logins { current: Some(ISSUER.to_owned()), by_issuer, ..Logins::default() }
}

#[test]
fn secrets_in_the_keychain_are_not_in_the_file() {
    let place = Place::new();
    let store = place.store(Placement::Auto);
    store.save(&place.key, &logins()).unwrap();
    let entries = place.keychain.entries().clone();
    assert_eq!(entries.len(), 1);
    let (entry, secrets) = entries.first_key_value().unwrap();
    assert!(entry.starts_with("linear https://mcp.example/mcp https://issuer.example "), "{entry}");
    for secret in ["client", "dpop", "access", "refresh"] {
        assert!(secrets.contains(&format!("{CANARY}{secret}")), "{secret}");
    }
    assert!(!place.has_secrets_in_file(), "{}", place.file());
    assert_eq!(store.load(&place.key).unwrap(), logins());
    store.remove(&place.key).unwrap();
    assert!(place.keychain.entries().is_empty());
    assert_eq!(store.load(&place.key).unwrap(), Logins::default());
}

#[test]
fn a_login_without_secrets_has_no_keychain_entry() {
    let place = Place::new();
    let mut bare = logins();
    let login = bare.current_mut().unwrap();
    (login.client.secret, login.dpop_key, login.tokens) = (None, None, None);
    place.store(Placement::Keychain).save(&place.key, &bare).unwrap();
    assert!(place.keychain.entries().is_empty());
    assert_eq!(place.store_without_keychain().load(&place.key).unwrap(), bare);
}

#[test]
fn two_folders_have_two_keychain_entries() {
    let (place, other) = (Place::new(), tempfile::tempdir().unwrap());
    let keychain: Arc<dyn Keychain> = place.keychain.clone();
    let other = Store::new(other.path().to_owned(), Some(keychain));
    place.store(Placement::Auto).save(&place.key, &logins()).unwrap();
    let mut another = logins();
    another.current_mut().unwrap().client.secret = None;
    other.save(&place.key, &another).unwrap();
    assert_eq!(place.keychain.entries().len(), 2);
    assert_eq!(place.store(Placement::Auto).load(&place.key).unwrap(), logins());
}

#[test]
fn a_process_without_the_keychain_gets_an_error_with_the_remedy() {
    let place = Place::new();
    place.store(Placement::Auto).save(&place.key, &logins()).unwrap();
    let error = place.store_without_keychain().load(&place.key).unwrap_err().to_string();
    assert!(error.starts_with("the keychain: this process has none; unlock your keychain"), "{error}");
    assert!(error.ends_with("log out and in again"), "{error}");
    // The process has changed nothing, so the other one still has its login.
    assert_eq!(place.store(Placement::Auto).load(&place.key).unwrap(), logins());
    // A logout is possible, and reports what is left behind.
    let error = place.store_without_keychain().remove(&place.key).unwrap_err();
    assert!(matches!(error, StoreError::Keychain(_)), "{error}");
    assert_eq!(place.store_without_keychain().load(&place.key).unwrap(), Logins::default());
}

#[tokio::test]
async fn a_logout_without_the_keychain_says_what_is_left_in_it() {
    let place = Place::new();
    place.store(Placement::Auto).save(&place.key, &logins()).unwrap();
    let login = ServerLogin::new(LoginSettings {
        name: place.key.name.clone(),
        url: place.key.url.clone(),
        oauth: OAuthSettings::default(),
        ca_file: None,
        store: place.store_without_keychain(),
        mcp_remote: None,
        clock: Arc::new(|| 1_800_000_000),
    })
    .unwrap();
    assert!(matches!(login.logins().await, Err(StoreError::Keychain(_))));
    let logged_out = login.logout().await.unwrap();
    assert!(logged_out.was_logged_in);
    let problem = logged_out.problem.unwrap();
    assert!(
        problem.starts_with("its tokens may still be in the keychain: this process has none"),
        "{problem}"
    );
    assert_eq!(login.logins().await.unwrap(), Logins { logged_out: true, ..Logins::default() });
}

#[test]
fn a_process_with_a_keychain_reads_secrets_of_one_without() {
    let place = Place::new();
    let (with, without) = (place.store(Placement::Auto), place.store_without_keychain());
    without.save(&place.key, &logins()).unwrap();
    assert!(place.has_secrets_in_file());
    assert_eq!(with.load(&place.key).unwrap(), logins());
    assert!(place.has_secrets_in_file(), "who only reads moves nothing");
    with.save(&place.key, &logins()).unwrap();
    assert!(!place.has_secrets_in_file());
    assert!(without.load(&place.key).is_err());
}

#[test]
fn a_locked_keychain_is_an_error_for_logins_that_are_in_it() {
    let place = Place::new();
    let store = place.store(Placement::Auto);
    store.save(&place.key, &logins()).unwrap();
    place.keychain.fail_with(Some(io::ErrorKind::PermissionDenied));
    let error = store.load(&place.key).unwrap_err().to_string();
    assert_eq!(error, "the keychain: it is locked; unlock your keychain");
    place.keychain.fail_with(None);
    assert_eq!(store.load(&place.key).unwrap(), logins());
}

#[test]
fn a_missing_keychain_entry_is_a_login_without_tokens() {
    let place = Place::new();
    let store = place.store(Placement::Auto);
    store.save(&place.key, &logins()).unwrap();
    place.keychain.entries().clear();
    let loaded = store.load(&place.key).unwrap();
    let login = loaded.current().unwrap();
    assert_eq!((&login.tokens, &login.dpop_key, &login.client.secret), (&None, &None, &None));
    assert_eq!(login.client.id, "plugbay");
    // A broken entry is no better.
    store.save(&place.key, &logins()).unwrap();
    place.keychain.entries().values_mut().for_each(|secrets| "{".clone_into(secrets));
    assert_eq!(store.load(&place.key).unwrap().current().unwrap().tokens, None);
}

#[test]
fn another_placement_moves_the_secrets_at_the_next_save() {
    let place = Place::new();
    for (placement, in_keychain) in [
        (Placement::Auto, true),
        (Placement::File, false),
        (Placement::Keychain, true),
        (Placement::File, false),
        (Placement::Auto, true),
    ] {
        let store = place.store(placement);
        let loaded = if place.store(placement).stamp(&place.key).is_some() {
            store.load(&place.key).unwrap()
        } else {
            logins()
        };
        assert_eq!(loaded, logins(), "{placement:?}");
        store.save(&place.key, &loaded).unwrap();
        assert_eq!(place.keychain.entries().len(), usize::from(in_keychain), "{placement:?}");
        assert_eq!(place.has_secrets_in_file(), !in_keychain, "{placement:?}");
    }
}

#[test]
fn secrets_go_to_the_file_while_the_keychain_fails() {
    let place = Place::new();
    let store = place.store(Placement::Auto);
    store.save(&place.key, &logins()).unwrap();
    let mut refreshed = logins();
    refreshed.current_mut().unwrap().tokens.as_mut().unwrap().refresh = Some(Secret::new("canary-second"));
    for failure in [io::ErrorKind::PermissionDenied, io::ErrorKind::TimedOut, io::ErrorKind::NotFound] {
        place.keychain.fail_with(Some(failure));
        store.save(&place.key, &refreshed).unwrap();
        assert!(place.file().contains("canary-second"));
        assert_eq!(
            store.load(&place.key).unwrap(),
            refreshed,
            "the old entry of the keychain does not count"
        );
    }
    let strict = place.store(Placement::Keychain);
    let error = strict.save(&place.key, &refreshed).unwrap_err();
    assert!(matches!(error, StoreError::Keychain(_)), "{error}");
    assert_eq!(strict.load(&place.key).unwrap(), refreshed, "a save that fails changes nothing");
    // The entry that could not be removed is removed with the login.
    place.keychain.fail_with(None);
    assert_eq!(place.keychain.entries().len(), 1);
    store.remove(&place.key).unwrap();
    assert!(place.keychain.entries().is_empty());
}

#[test]
fn the_placement_keychain_needs_a_keychain() {
    let place = Place::new();
    let store = place.store_without_keychain().with_placement(Placement::Keychain);
    let error = store.save(&place.key, &logins()).unwrap_err();
    assert!(matches!(error, StoreError::Keychain(_)), "{error}");
    assert_eq!(store.stamp(&place.key), None);
}

#[test]
fn a_login_that_is_dropped_takes_its_keychain_entry_along() {
    let place = Place::new();
    let store = place.store(Placement::Auto);
    let mut two = logins();
    let other = two.current().unwrap().clone();
    two.by_issuer.insert("https://other.example".to_owned(), other);
    store.save(&place.key, &two).unwrap();
    assert_eq!(place.keychain.entries().len(), 2);
    store.save(&place.key, &logins()).unwrap();
    assert_eq!(place.keychain.entries().len(), 1);
    assert_eq!(store.load(&place.key).unwrap(), logins());
}

#[test]
fn secrets_that_leave_the_keychain_during_a_load_are_found_in_the_file() {
    let place = Place::new();
    place.store(Placement::Auto).save(&place.key, &logins()).unwrap();
    let (mover, key) = (place.store(Placement::File), place.key.clone());
    let move_them = move || mover.save(&key, &logins()).unwrap();
    *place.keychain.before_get.lock().unwrap() = Some(Before(Box::new(move_them)));
    assert_eq!(place.store(Placement::Auto).load(&place.key).unwrap(), logins());
    assert!(place.has_secrets_in_file());
}
