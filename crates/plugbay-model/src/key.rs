//! An API key that cannot be printed, and its source: a variable, or a program that prints it.

use std::{
    fmt,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use plugbay_core::model::ModelError;
use tokio::{process::Command, sync::OnceCell, time::timeout};

/// How long a program may take to print a key: the user may have to unlock something first.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    secret: Secret,
    /// A description of the source, for the user.
    from: String,
}

#[derive(Clone, PartialEq, Eq)]
enum Secret {
    Known(String),
    /// The first line of this program's output; it runs without a shell.
    Printed {
        program: String,
        args: Vec<String>,
    },
}

impl Key {
    /// A key from the variable `from`.
    pub fn new(secret: &str, from: &str) -> Self {
        Self { secret: Secret::Known(secret.trim().to_owned()), from: from.to_owned() }
    }

    /// A key that a program prints. It runs when the key is first needed. `written` is the command as shown
    /// to the user, without the values of variables, which may be secrets.
    pub fn told_by<'a>(
        program: String,
        args: Vec<String>,
        written: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let words: Vec<_> = written.into_iter().map(shown).collect();
        Self { secret: Secret::Printed { program, args }, from: format!("`{}`", words.join(" ")) }
    }

    /// The key stored under this name in the system's keychain.
    pub fn in_keychain(name: &str) -> Self {
        let words: &[&str] = if cfg!(target_os = "macos") {
            &["security", "find-generic-password", "-w", "-s", name]
        } else {
            &["secret-tool", "lookup", "service", name]
        };
        let args = words.iter().skip(1).map(|word| (*word).to_owned()).collect();
        Self::told_by(words[0].to_owned(), args, words.iter().copied())
    }

    pub fn from(&self) -> &str {
        &self.from
    }

    /// Whether a program prints the key.
    pub fn starts_something(&self) -> bool {
        matches!(self.secret, Secret::Printed { .. })
    }

    /// The key; empty until the program has printed it.
    pub(crate) fn secret(&self) -> &str {
        match &self.secret {
            Secret::Known(secret) => secret,
            Secret::Printed { .. } => "",
        }
    }

    async fn revealed(&self) -> Result<Self, ModelError> {
        let Secret::Printed { program, args } = &self.secret else { return Ok(self.clone()) };
        let failed = |why: String| ModelError::NoKey { from: self.from.clone(), why };
        let mut command = Command::new(program);
        let output = command.args(args).stdin(Stdio::null()).kill_on_drop(true).output();
        let output = timeout(PATIENCE, output).await;
        let output = output.map_err(|_| failed(format!("it did not end within {PATIENCE:?}")))?;
        let output = output.map_err(|error| failed(error.to_string()))?;
        let told = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
        };
        if !output.status.success() {
            let words = told(&output.stderr).map(|words| format!(": {words}")).unwrap_or_default();
            return Err(failed(format!("{}{words}", output.status)));
        }
        let secret = told(&output.stdout).ok_or_else(|| failed("it says nothing".to_owned()))?;
        Ok(Self::new(&secret, &self.from))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(from {})", self.from)
    }
}

/// A word of a command, quoted if it would look like two words.
fn shown(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| !c.is_whitespace() && !c.is_control() && c != '"');
    if plain { word.to_owned() } else { format!("{word:?}") }
}

/// Keeps a key that a program has printed, until a provider refuses it.
#[derive(Debug)]
pub(crate) struct KeyCache {
    key: Option<Key>,
    // A std mutex: held for a copy, never across an await.
    revealed: Mutex<Arc<OnceCell<Key>>>,
}

impl KeyCache {
    pub(crate) fn new(key: Option<Key>) -> Self {
        Self { key, revealed: Mutex::default() }
    }

    pub(crate) async fn key(&self) -> Result<Option<Key>, ModelError> {
        let Some(key) = self.key.clone() else { return Ok(None) };
        if !key.starts_something() {
            return Ok(Some(key));
        }
        let revealed = Arc::clone(&self.revealed.lock().unwrap_or_else(PoisonError::into_inner));
        let from = key.from.clone();
        // In a separate task: a search that runs out of time must not end the password prompt.
        let told = tokio::spawn(async move { revealed.get_or_try_init(|| key.revealed()).await.cloned() });
        told.await.unwrap_or_else(|error| Err(ModelError::NoKey { from, why: error.to_string() })).map(Some)
    }

    /// Forgets the key, because the provider refused it: the next request runs the program again.
    pub(crate) fn forget(&self) {
        *self.revealed.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn told_by(script: &str) -> Key {
        Key::told_by("sh".to_owned(), vec!["-c".to_owned(), script.to_owned()], ["sh", "-c", script])
    }

    async fn trouble(key: &Key) -> String {
        key.revealed().await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn the_first_line_that_is_printed_is_the_key() {
        let key =
            told_by("echo; echo ' hunter2 '; echo login: me; echo careful >&2").revealed().await.unwrap();
        assert_eq!(key.secret(), "hunter2");
        assert!(format!("{key:?}").starts_with("Key(from `sh -c \"echo; "), "{key:?}");
        assert_eq!(Key::new(" k\n", "K").revealed().await.unwrap(), Key::new("k", "K"));
    }

    #[tokio::test]
    async fn a_program_that_tells_none_is_told_with_its_reason() {
        let why = trouble(&told_by("echo hunter2; echo 'no such item' >&2; exit 3")).await;
        assert_eq!(
            why,
            "there is no key for it: `sh -c \"echo hunter2; echo 'no such item' >&2; exit 3\"`: exit status: 3: no such item"
        );
        assert!(trouble(&told_by("true")).await.ends_with(": it says nothing"));
        let nowhere = Key::told_by("/nowhere/at-all".to_owned(), Vec::new(), ["/nowhere/at-all"]);
        assert!(
            trouble(&nowhere).await.starts_with("there is no key for it: `/nowhere/at-all`: No such file")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_never_ends_is_ended() {
        assert!(trouble(&told_by("sleep 1000")).await.ends_with(": it did not end within 60s"));
    }

    #[tokio::test]
    async fn what_was_told_is_kept_until_it_is_refused() {
        let folder = std::env::temp_dir().join(format!("plugbay-key-{}", std::process::id()));
        let count = format!("echo x >> {0}; wc -l < {0}", folder.display());
        let key_cache = KeyCache::new(Some(told_by(&count)));
        let secret = async || key_cache.key().await.unwrap().unwrap().secret().to_owned();
        assert_eq!([secret().await, secret().await], ["1", "1"]);
        key_cache.forget();
        assert_eq!(secret().await, "2");
        std::fs::remove_file(folder).unwrap();
        assert_eq!(KeyCache::new(None).key().await, Ok(None));
    }

    #[test]
    fn the_keychain_is_asked_by_its_own_tool() {
        let key = Key::in_keychain("my key");
        let tool = if cfg!(target_os = "macos") { "`security" } else { "`secret-tool" };
        assert!(key.from().starts_with(tool) && key.from().ends_with(" \"my key\"`"), "{key:?}");
    }
}
