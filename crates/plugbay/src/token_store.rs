//! The store of named tokens: a file with their digests, never the tokens themselves.
//!
//! A token is 256 random bits, so a plain SHA-256 of it cannot be reversed by guessing; a slow hash would only make
//! each request slower.

use std::{
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use plugbay_core::{limit::CallLimits, policy::ToolGrant};
use plugbay_downstream::{
    Grant,
    http::{NamedToken, NamedTokens},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::{sync::watch, time::timeout};

use crate::{config::Paths, error::CommandError, files::own, watch::Watch};

const FILE: &str = "tokens.json";
const VERSION: u32 = 1;
/// Size limit: more than any store needs.
const LARGEST: u64 = 16 * 1024 * 1024;
/// How long to wait for the lock: another command needs it only for a moment.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// The prefix of tokens, by which secret scanners find them.
const PREFIX: &str = "pb_";
const LONGEST_NAME: usize = 64;
/// How often the store is checked anyway, for changes that the system did not report.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// A token in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredToken {
    pub name: String,
    /// SHA-256 of the token, in hexadecimal digits.
    pub digest: String,
    /// The tools that it allows; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Seconds since 1970.
    pub created: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    #[serde(flatten)]
    pub limits: CallLimits,
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    /// A random key, without which the holder of a token cannot compute the owner of its sessions.
    key: String,
    tokens: Vec<StoredToken>,
}

/// The path of the user's store.
pub fn usual(paths: &Paths) -> Option<PathBuf> {
    Some(paths.state_folder.as_ref()?.join(FILE))
}

/// A store in a file, which may not exist yet.
#[derive(Debug, Clone)]
pub struct TokenStore(pub PathBuf);

impl TokenStore {
    pub fn list(&self) -> Result<Vec<StoredToken>, CommandError> {
        Ok(self.read()?.map(|content| content.tokens).unwrap_or_default())
    }

    /// Adds a token and returns it; it cannot be shown again.
    pub fn create(&self, token: StoredToken) -> Result<String, CommandError> {
        check_name(&token.name)?;
        let secret = format!("{PREFIX}{}", BASE64.encode(random()?));
        let digest = hex(&Sha256::digest(&secret));
        self.change(|tokens| {
            // Names that differ only in case would be confused in the audit log.
            if let Some(known) = tokens.iter().find(|known| known.name.eq_ignore_ascii_case(&token.name)) {
                let name = &known.name;
                return Err(CommandError::failed(format!("there is a token {name:?} already"))
                    .hint(format!("revoke it first: plugbay token revoke {name}")));
            }
            tokens.push(StoredToken { digest, ..token });
            Ok(())
        })?;
        Ok(secret)
    }

    pub fn revoke(&self, name: &str) -> Result<(), CommandError> {
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.name != name);
            if tokens.len() < before {
                return Ok(());
            }
            let error = CommandError::failed(format!("there is no token {name:?}"));
            Err(error.hint("`plugbay token list` shows all"))
        })
    }

    /// A secret of this store, from which the owners of callers with access tokens are computed. Creates the
    /// store if needed.
    pub fn caller_key(&self) -> Result<[u8; 32], CommandError> {
        let key = |content: Content| Sha256::digest(format!("plugbay access token {}", content.key)).into();
        if let Some(content) = self.read()? {
            return Ok(key(content));
        }
        self.change(|_| Ok(()))?;
        let missing = || CommandError::failed(format!("{} cannot be read", self.0.display()));
        self.read()?.map(key).ok_or_else(missing)
    }

    /// Changes the store under a lock, so that no change of another command is lost.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<StoredToken>) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let failed =
            |error: io::Error| CommandError::failed(format!("cannot write {}: {error}", self.0.display()));
        let _lock = own::lock(&self.0.with_extension("lock"), LOCK_PATIENCE).map_err(failed)?;
        let mut content = match self.read()? {
            Some(content) => content,
            None => Content { version: VERSION, key: BASE64.encode(random()?), tokens: Vec::new() },
        };
        change(&mut content.tokens)?;
        let text = serde_json::to_string_pretty(&content).unwrap_or_default();
        own::replace(&self.0, format!("{text}\n").as_bytes()).map_err(failed)
    }

    fn read(&self) -> Result<Option<Content>, CommandError> {
        let problem = |why: String| CommandError::failed(format!("{} {why}", self.0.display()));
        let text = match own::read_text(&self.0, LARGEST) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(problem(format!("cannot be read: {error}"))),
        };
        let content: Content = serde_json::from_str(&text)
            .map_err(|error| problem(format!("is no store of tokens (line {})", error.line())))?;
        if content.version != VERSION {
            return Err(problem(format!("has the version {}, not {VERSION}", content.version)));
        }
        Ok(Some(content))
    }

    /// The tokens in the form in which a gateway compares them.
    fn named(&self) -> Result<Vec<NamedToken>, CommandError> {
        let Some(Content { key, tokens, .. }) = self.read()? else { return Ok(Vec::new()) };
        tokens.iter().map(|token| self.resolved(&key, token)).collect()
    }

    fn resolved(&self, key: &str, token: &StoredToken) -> Result<NamedToken, CommandError> {
        let broken =
            |what: &str| CommandError::failed(format!("{}: token {:?} {what}", self.0.display(), token.name));
        let digest = unhex(&token.digest).ok_or_else(|| broken("has no valid digest"))?;
        let tools = token.tools.as_ref().map(ToolGrant::compile).transpose();
        let tools = tools.map_err(|error| broken(&format!("has a bad pattern: {error}")))?;
        let owner = Sha256::digest([b"plugbay caller ", key.as_bytes(), &digest].concat()).into();
        let moment = |seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        let expires = token.expires.map(|at| moment(at).ok_or_else(|| broken("has no valid expiry")));
        let expires = expires.transpose()?;
        let name = Some(Arc::from(token.name.as_str()));
        let grant = Grant { name, tools, limits: token.limits, ..Grant::default() };
        Ok(NamedToken { digest, owner, expires, grant })
    }
}

/// Follows the store for a running gateway.
#[derive(Debug)]
pub struct Follow {
    store: TokenStore,
    tokens: watch::Sender<Arc<Vec<NamedToken>>>,
}

impl Follow {
    pub fn new(file: PathBuf) -> Result<Self, CommandError> {
        let store = TokenStore(file);
        let tokens = watch::Sender::new(Arc::new(store.named()?));
        Ok(Self { store, tokens })
    }

    pub fn tokens(&self) -> NamedTokens {
        self.tokens.subscribe()
    }

    /// Reads the store after each change. If it cannot be read, the tokens stay as they were.
    pub async fn run(self) {
        let files = [self.store.0.clone()];
        let mut watch = Watch::new(&files, &[]);
        loop {
            match self.store.named() {
                Ok(tokens) => {
                    self.tokens.send_if_modified(|known| {
                        let changed = **known != tokens;
                        if changed {
                            *known = Arc::new(tokens);
                        }
                        changed
                    });
                }
                Err(error) => tracing::error!("the tokens stay as they were: {}", error.message),
            }
            let _ = timeout(LOOK_AGAIN, watch.touched()).await;
            watch.follow(&files, &[]);
        }
    }
}

fn check_name(name: &str) -> Result<(), CommandError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_plain) {
        return Ok(());
    }
    let error = CommandError::usage(format!("{name:?} cannot be the name of a token"));
    Err(error.hint("use letters, digits, '-', '_', '.' and '@', at most 64 of them"))
}

/// 256 bits from the system.
pub fn random() -> Result<[u8; 32], CommandError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| CommandError::failed("the system gives no random numbers"))?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn token(name: &str) -> StoredToken {
        let (digest, limits) = (String::new(), CallLimits::default());
        StoredToken { name: name.to_owned(), digest, tools: None, created: 7, expires: None, limits }
    }

    fn store() -> (tempfile::TempDir, TokenStore) {
        let folder = tempfile::tempdir().unwrap();
        let store = TokenStore(folder.path().join("deep/tokens.json"));
        (folder, store)
    }

    #[test]
    fn a_token_is_stored_as_a_digest_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;

        let (_folder, store) = store();
        let secret = store.create(token("ci")).unwrap();
        assert!(secret.starts_with("pb_") && secret.len() == 46, "{secret}");
        let text = fs::read_to_string(&store.0).unwrap();
        assert!(!text.contains(&secret[3..]) && text.contains(&hex(&Sha256::digest(&secret))));
        assert_eq!(fs::metadata(&store.0).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_token_with_an_expiry_beyond_the_clock_is_broken() {
        let (_folder, store) = store();
        store.create(StoredToken { expires: Some(u64::MAX), ..token("ci") }).unwrap();
        assert!(store.named().unwrap_err().message.contains("has no valid expiry"));
    }

    #[test]
    fn a_caller_stays_the_same_when_other_tokens_come_and_go() {
        let (_folder, store) = store();
        store.create(token("one")).unwrap();
        let owner = || {
            store
                .named()
                .unwrap()
                .into_iter()
                .find(|token| token.grant.name.as_deref() == Some("one"))
                .unwrap()
                .owner
        };
        let before = owner();
        store.create(token("two")).unwrap();
        assert_eq!(before, owner());
        store.revoke("two").unwrap();
        assert_eq!(before, owner());
        let other = store.read().unwrap().unwrap();
        assert_ne!(store.resolved("another key", &other.tokens[0]).unwrap().owner, before);
    }

    #[test]
    fn mistakes_with_tokens_name_their_remedy() {
        let (_folder, store) = store();
        store.create(token("ci")).unwrap();
        for (outcome, words) in [
            (store.create(token("ci")).map(drop), "already"),
            (store.create(token("with space")).map(drop), "cannot be the name"),
            (store.revoke("other"), "no token \"other\""),
        ] {
            let error = outcome.unwrap_err();
            assert!(error.message.contains(words) && !error.details.is_empty(), "{error:?}");
        }
        fs::write(&store.0, "{").unwrap();
        assert!(store.list().unwrap_err().message.contains("is no store of tokens"));
    }
}
