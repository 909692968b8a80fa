//! Extensions and experiments: either side declares them by names that need not mean anything to us.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{
    apps, task,
    wire::{Members, Span},
};

/// How many extensions are kept, and how many bytes one may have together with its name: others decide how
/// many they declare.
const LIMIT: usize = 32;
const LONGEST: usize = 4096;

/// Extensions that must not be declared for others. Tasks are handled where ids are; the others are about how
/// a client signs in at a server, and for servers the client is this gateway.
const OWN: [&str; 3] = [
    task::EXTENSION,
    "io.modelcontextprotocol/oauth-client-credentials",
    "io.modelcontextprotocol/enterprise-managed-authorization",
];

/// Extensions as they were declared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extensions(BTreeMap<(Section, String), Bytes>);

/// The member of `capabilities` that an extension stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Extensions,
    Experimental,
}

impl Section {
    const ALL: [Self; 2] = [Self::Extensions, Self::Experimental];

    fn key(self) -> &'static str {
        match self {
            Self::Extensions => "extensions",
            Self::Experimental => "experimental",
        }
    }
}

impl Extensions {
    /// `capabilities` is the object of that name, of either side and era.
    pub fn read(bytes: &[u8], capabilities: &Span) -> Self {
        let mut read = Self::default();
        for section in Section::ALL {
            let declared = Members::find(bytes, capabilities, section.key());
            let members = declared.iter().flat_map(|object| Members::of(bytes, object)).flatten();
            for member in members.filter(|member| !OWN.contains(&&*member.key)) {
                let value = Bytes::copy_from_slice(&bytes[member.value]);
                read.add((section, member.key.into_owned()), &value);
            }
        }
        read
    }

    /// The same with the extension that lets a server answer by a task.
    #[must_use]
    pub fn with_tasks(mut self) -> Self {
        self.0.insert((Section::Extensions, task::EXTENSION.to_owned()), Bytes::from_static(b"{}"));
        self
    }

    /// The same with this value of one extension, or without that extension.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<Bytes>) -> Self {
        let key = (Section::Extensions, name.to_owned());
        match value {
            Some(value) => self.0.insert(key, value),
            None => self.0.remove(&key),
        };
        self
    }

    /// The declared value of one extension.
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.0.get(&(Section::Extensions, name.to_owned()))
    }

    /// Adds what others declared. If both declared the same extension, the first one's value stays: a mixture
    /// of both could be wrong for either. `false`: nothing was new.
    pub fn join(&mut self, other: &Self) -> bool {
        let before = self.0.len();
        for (name, value) in &other.0 {
            self.add(name.clone(), value);
        }
        self.0.len() > before
    }

    /// Whether nothing of `other` is missing here.
    pub fn covers(&self, other: &Self) -> bool {
        other.0.keys().all(|name| self.0.contains_key(name))
    }

    /// Whether MCP Apps are among them.
    pub fn have_apps(&self) -> bool {
        self.0.contains_key(&(Section::Extensions, apps::EXTENSION.to_owned()))
    }

    /// The same names, each with an empty object.
    #[must_use]
    pub fn without_values(&self) -> Self {
        Self(self.0.keys().map(|name| (name.clone(), Bytes::from_static(b"{}"))).collect())
    }

    /// A `capabilities` object with all of this in it.
    pub fn added_to(&self, mut capabilities: String) -> String {
        for section in Section::ALL {
            let members = self.0.iter().filter(|((of, _), _)| *of == section);
            let members = members.map(|((_, name), value)| {
                format!("{}:{}", serde_json::Value::from(name.as_str()), String::from_utf8_lossy(value))
            });
            let members = members.collect::<Vec<_>>().join(",");
            if !members.is_empty() {
                let comma = if capabilities == "{}" { "" } else { "," };
                let end = capabilities.len() - 1;
                capabilities.insert_str(end, &format!(r#"{comma}"{}":{{{members}}}"#, section.key()));
            }
        }
        capabilities
    }

    /// Whether a method belongs to one of these extensions, as far as its name tells: `com.example/x` has
    /// `com.example/x/get` and `x/get`.
    pub fn have(&self, method: &str) -> bool {
        let method = method.strip_prefix("notifications/").unwrap_or(method);
        let first = method.split('/').next();
        self.0.keys().any(|(_, name)| {
            let whole = method.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('/'));
            whole || name.rsplit('/').next() == first
        })
    }

    fn add(&mut self, name: (Section, String), value: &Bytes) {
        if self.0.len() < LIMIT && name.1.len() + value.len() <= LONGEST {
            self.0.entry(name).or_insert_with(|| value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(capabilities: &str) -> Extensions {
        Extensions::read(capabilities.as_bytes(), &(0..capabilities.len()))
    }

    #[test]
    fn what_nobody_here_knows_is_declared_again_as_it_was() {
        let text = r#"{"extensions":{"a/b":{ "n":1.0,"big":123456789012345678901234567890}},"experimental":{"z":{"x":[]},"é":{}}}"#;
        let declared = format!(r#"{{"tools":{{}},{}"#, &text[1..]);
        assert_eq!(read(&declared).added_to("{}".to_owned()), text);
        assert_eq!(read(&declared).added_to(r#"{"tools":{}}"#.to_owned()), declared);
        for nothing in ["{}", r#"{"extensions":{}}"#, r#"{"experimental":7}"#, "7"] {
            assert_eq!(read(nothing).added_to("{}".to_owned()), "{}", "{nothing}");
        }
    }

    #[test]
    fn what_this_gateway_must_keep_itself_is_not_declared_for_others() {
        let text = r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/oauth-client-credentials":{},"io.modelcontextprotocol/ui":{}}}"#;
        let ui = r#"{"extensions":{"io.modelcontextprotocol/ui":{}}}"#;
        assert_eq!(read(text).added_to("{}".to_owned()), ui);
        let tasks = read(ui).with_tasks().added_to("{}".to_owned());
        assert!(task::is_known(tasks.as_bytes(), &(0..tasks.len())), "{tasks}");
    }

    #[test]
    fn a_method_tells_which_it_belongs_to() {
        let declared = read(r#"{"extensions":{"io.modelcontextprotocol/ui":{}},"experimental":{"x":{}}}"#);
        for method in ["ui/open", "notifications/ui/closed", "io.modelcontextprotocol/ui/open", "x/get", "x"]
        {
            assert!(declared.have(method), "{method}");
        }
        for method in ["u/open", "uix/open", "get/x", "io.modelcontextprotocol/open", "notifications/y"] {
            assert!(!declared.have(method), "{method}");
        }
    }

    #[test]
    fn of_two_that_declare_the_same_the_first_is_heard() {
        let (mut one, two) =
            (read(r#"{"extensions":{"a/b":{"v":1}}}"#), read(r#"{"extensions":{"a/b":{"v":2},"c/d":{}}}"#));
        assert!(!one.covers(&two) && one.join(&two) && one.covers(&two) && !one.join(&two));
        assert_eq!(one.added_to("{}".to_owned()), r#"{"extensions":{"a/b":{"v":1},"c/d":{}}}"#);
    }

    #[test]
    fn nobody_can_fill_our_memory_with_them() {
        let many = (0..1000).map(|n| format!(r#""a/{n:04}":{{}}"#)).collect::<Vec<_>>().join(",");
        let mut all = read(&format!(r#"{{"extensions":{{{many}}}}}"#));
        assert_eq!(all.0.len(), LIMIT);
        assert!(!all.join(&read(r#"{"extensions":{"b/more":{}}}"#)));
        let long = format!(r#"{{"extensions":{{"a/b":"{}"}}}}"#, "x".repeat(LONGEST));
        assert_eq!(read(&long), Extensions::default());
    }
}
