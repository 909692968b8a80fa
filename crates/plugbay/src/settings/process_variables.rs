//! The environment variables of a process, in a type that cannot be printed.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    fmt,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// All environment variables of a process. Many of them are secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProcessVariables(Arc<BTreeMap<OsString, OsString>>);

impl ProcessVariables {
    /// Those of this process.
    pub fn own() -> Self {
        Self(Arc::new(env::vars_os().collect()))
    }

    pub fn get(&self, name: &str) -> Option<OsString> {
        self.0.get(OsStr::new(name)).cloned()
    }

    /// The value, if it is text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.into_string().ok()
    }

    /// The value, if it is an absolute path.
    pub fn folder(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// The same with another value of one variable.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut all = BTreeMap::clone(&self.0);
        all.insert(name.into(), value.into());
        Self(Arc::new(all))
    }

    pub fn all(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.0.iter().map(|(name, value)| (name.clone(), value.clone()))
    }
}

impl fmt::Debug for ProcessVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessVariables")
    }
}

/// A name or a value on the wire: text, or bytes that are not text.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    Raw(Vec<u8>),
}

impl Word {
    fn of(word: &OsStr) -> Self {
        match word.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Raw(word.as_bytes().to_vec()),
        }
    }

    fn into_os(self) -> OsString {
        match self {
            Self::Text(text) => text.into(),
            Self::Raw(bytes) => OsString::from_vec(bytes),
        }
    }
}

impl Serialize for ProcessVariables {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(name, value)| (Word::of(name), Word::of(value))))
    }
}

impl<'de> Deserialize<'de> for ProcessVariables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Vec::<(Word, Word)>::deserialize(deserializer)?;
        let all = words.into_iter().map(|(name, value)| (name.into_os(), value.into_os()));
        Ok(Self(Arc::new(all.collect())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_variables_survive_the_wire_and_are_never_printed() {
        let odd = (OsString::from("ODD"), OsString::from_vec(vec![b'a', 0xff]));
        let variables = ProcessVariables(Arc::new(BTreeMap::from([("KEY".into(), "s3cret".into()), odd])));
        let text = serde_json::to_string(&variables).unwrap();
        assert_eq!(serde_json::from_str::<ProcessVariables>(&text).unwrap(), variables);
        assert!(!format!("{variables:?}").contains("s3cret"));
    }
}
