//! What hosts do with what they are told: data, not code, because every host differs and all of them change.

use std::{sync::LazyLock, time::Duration};

use serde::{Deserialize, Serialize};

/// What is known of a host. An absent figure is no limit that anybody has met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Profile {
    pub name: String,
    /// How it calls itself in `clientInfo.name`; a `*` at the end stands for anything.
    #[serde(default)]
    pub clients: Vec<String>,
    /// It lists again when it is told that a list has changed.
    #[serde(default)]
    pub lists_again: bool,
    /// How long the result of an activation waits for it to do so at most, in milliseconds.
    #[serde(default)]
    pub pause_ms: u64,
    /// And how long it then needs until its model has what was listed.
    #[serde(default)]
    pub settle_ms: u64,
    /// With more tools than this it does not work, or not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_tools: Option<usize>,
    /// It hides tools behind a search of its own, from this many on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defers_from: Option<usize>,
    /// The longest name of a tool, without what the host puts in front of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_limit: Option<usize>,
    /// Of `instructions` its model sees so many characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_limit: Option<usize>,
    /// A result that is longer, in bytes, is cut or put into a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_limit: Option<usize>,
    /// Where a result has both text and structured content, what its model sees.
    #[serde(default)]
    pub shows: Shows,
    /// A gateway itself: it lists every tool, whatever the modes are, and chooses a mode for its own hosts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gateway: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shows {
    Text,
    Structured,
    Both,
    #[default]
    Unknown,
}

impl Profile {
    /// For hosts that nobody has met: nothing is relied upon.
    pub fn unknown() -> Self {
        Self {
            name: "unknown".to_owned(),
            clients: Vec::new(),
            lists_again: false,
            pause_ms: 0,
            settle_ms: 0,
            most_tools: None,
            defers_from: None,
            name_limit: None,
            instructions_limit: None,
            result_limit: None,
            shows: Shows::Unknown,
            gateway: false,
        }
    }

    pub fn pause(&self) -> Duration {
        Duration::from_millis(self.pause_ms)
    }

    pub fn settling(&self) -> Duration {
        Duration::from_millis(self.settle_ms)
    }

    fn is(&self, client: &str) -> bool {
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => client.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)),
            None => client.eq_ignore_ascii_case(pattern),
        };
        self.clients.iter().any(fits)
    }
}

/// The hosts that are known, the user's own before ours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profiles {
    own: Vec<Profile>,
    /// Every host is taken for this one.
    forced: Option<Profile>,
}

static KNOWN: LazyLock<Vec<Profile>> =
    LazyLock::new(|| serde_json::from_str(include_str!("profiles.json")).unwrap_or_default());
static UNKNOWN: LazyLock<Profile> = LazyLock::new(Profile::unknown);

impl Profiles {
    pub fn new(own: Vec<Profile>) -> Self {
        Self { own, forced: None }
    }

    /// Takes every host for the one of this name; gives it back if there is none.
    pub fn forced(mut self, name: &str) -> Result<Self, String> {
        let wanted = self.iter().find(|profile| profile.name.eq_ignore_ascii_case(name)).cloned();
        self.forced = Some(wanted.ok_or_else(|| name.to_owned())?);
        Ok(self)
    }

    /// Whatever a host calls itself.
    pub fn of(&self, client: Option<&str>) -> &Profile {
        if let Some(forced) = &self.forced {
            return forced;
        }
        let known = client.and_then(|client| self.all().find(|profile| profile.is(client)));
        known.unwrap_or_else(|| self.unknown())
    }

    /// Hosts that nobody has met, unless the user knows better.
    pub fn unknown(&self) -> &Profile {
        self.own.iter().find(|own| own.name == UNKNOWN.name).unwrap_or(&UNKNOWN)
    }

    /// The hosts with a model of their own.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.all().filter(|profile| !profile.gateway)
    }

    /// Of two with the same name, the first counts.
    fn all(&self) -> impl Iterator<Item = &Profile> {
        let replaced = |known: &&Profile| !self.own.iter().any(|own| own.name == known.name);
        self.own.iter().chain(KNOWN.iter().filter(replaced))
    }

    /// The one of this name as it comes with the program.
    pub fn built_in(name: &str) -> Option<&'static Profile> {
        KNOWN.iter().find(|profile| profile.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_can_be_read_and_names_are_unique() {
        let known: Vec<Profile> = serde_json::from_str(include_str!("profiles.json")).unwrap();
        let mut names: Vec<&str> = known.iter().map(|profile| profile.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), known.len());
        assert!(known.iter().all(|profile| profile.lists_again || profile.pause_ms == 0));
    }

    #[test]
    fn hosts_are_known_by_what_they_call_themselves() {
        let profiles = Profiles::default();
        assert_eq!(profiles.of(Some("claude-code")).name, "claude-code");
        assert_eq!(profiles.of(Some("Gemini-CLI-mcp-client-v2")).name, "gemini-cli");
        assert_eq!(profiles.of(Some("claude-codex")).name, "unknown");
        assert_eq!(profiles.of(None).name, "unknown");
    }

    #[test]
    fn the_users_word_counts_before_ours() {
        let mine = Profile { pause_ms: 7, ..Profiles::built_in("claude-code").unwrap().clone() };
        let profiles = Profiles::new(vec![mine.clone()]);
        assert_eq!(profiles.of(Some("claude-code")), &mine);
        assert_eq!(profiles.iter().filter(|profile| profile.name == "claude-code").count(), 1);
        let unknown = Profile { lists_again: true, ..Profile::unknown() };
        assert_eq!(Profiles::new(vec![unknown.clone()]).of(Some("stranger")), &unknown);
        let forced = profiles.forced("Codex").unwrap();
        assert_eq!(forced.of(Some("claude-code")).name, "codex");
        assert_eq!(forced.forced("nobody"), Err("nobody".to_owned()));
    }
}
