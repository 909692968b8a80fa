//! How hosts behave: as data, not code, because every host differs and all of them change.

mod condition;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{era::Era, exposure::Mode};
pub use condition::Condition;

/// The longest instructions beside tools that have to be found first, in bytes: the complete words of a
/// server come with its tools.
pub const LONGEST_INSTRUCTIONS: usize = 2000;
/// The longest instructions if every tool is listed, in bytes: then a model gets all that its servers say, as
/// it would without a gateway. No host that was measured shows more of one server.
pub const LONGEST_INSTRUCTIONS_OF_ALL: usize = 12_000;

/// What is known of a host. An absent figure means that nobody has met a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the host")]
pub struct Profile {
    /// The host's name. After a `/` follows the name of a variant: the same host where it behaves otherwise.
    pub name: String,
    /// Its names in `clientInfo.name`; a `*` at the end stands for anything.
    #[serde(default)]
    pub clients: Vec<String>,
    #[serde(flatten)]
    pub variant: Variant,
    /// It lists again when it is told that a list has changed.
    #[serde(default)]
    pub lists_again: bool,
    /// How long the result of an activation waits at most for it to list again, in milliseconds.
    #[serde(default)]
    pub pause_ms: u64,
    /// How long it then needs until its model has the new list, in milliseconds.
    #[serde(default)]
    pub settle_ms: u64,
    #[serde(flatten)]
    pub limits: Limits,
    /// It hides tools behind a search of its own, from this many on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defers_from: Option<usize>,
    /// It leaves tools in sight that ask for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_in_sight: bool,
    /// Its model calls tools from code that the host runs: definitions are read by the code, results are values.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub code_mode: bool,
    /// Its own search finds a tool by the words of its title, and takes `server__tool` for one word.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finds_by_title: bool,
    /// The era in which it works best, though it offers the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<Era>,
    /// The first request to its model, without any MCP server, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_tokens: Option<usize>,
    /// What its model sees of a result with both text and structured content.
    #[serde(default)]
    pub shows: Shows,
    /// It refuses a result without structured content whose first text is JSON, but no object.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refuses_bare_json: bool,
    /// A gateway itself: it lists every tool, whatever the modes are, and chooses a mode for its own hosts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gateway: bool,
}

/// How a variant of a host is recognized.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// One of these must hold. Without any, only the user can say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<Condition>,
    /// How the user knows what plugbay cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The limits of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The most tools with which it works well.
    #[serde(default, rename = "mostTools", skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// The longest name of a tool, without what the host puts in front of it.
    #[serde(default, rename = "nameLimit", skip_serializing_if = "Option::is_none")]
    pub name: Option<usize>,
    /// How many characters of `instructions` its model sees.
    #[serde(default, rename = "instructionsLimit", skip_serializing_if = "Option::is_none")]
    pub instructions: Option<usize>,
    /// A result that is longer, in bytes, is cut or put into a file.
    #[serde(default, rename = "resultLimit", skip_serializing_if = "Option::is_none")]
    pub result: Option<usize>,
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

/// How a host introduces itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Client<'a> {
    pub name: Option<&'a str>,
    pub version: Option<&'a str>,
}

impl Client<'_> {
    pub fn named(name: &str) -> Client<'_> {
        Client { name: Some(name), version: None }
    }
}

/// The assumed first request of a host of which it is not known.
const REQUEST_TOKENS: usize = 8_000;

impl Profile {
    /// The profile of unknown hosts: it relies on nothing.
    pub fn unknown() -> Self {
        Self { name: "unknown".to_owned(), ..Self::default() }
    }

    pub fn pause(&self) -> Duration {
        Duration::from_millis(self.pause_ms)
    }

    pub fn settling(&self) -> Duration {
        Duration::from_millis(self.settle_ms)
    }

    /// Whether it hides tools behind a search of its own, if this many are listed.
    pub fn defers(&self, tools: usize) -> bool {
        self.defers_from.is_some_and(|from| tools >= from)
    }

    pub fn request_tokens(&self) -> usize {
        self.request_tokens.unwrap_or(REQUEST_TOKENS)
    }

    /// How long `instructions` may be in a mode, in bytes. If every tool is listed, a model gets what it
    /// would get from each server itself. A host with a code mode would repeat them in the description of
    /// every tool.
    pub fn longest_instructions(&self, mode: Mode) -> usize {
        let longest = match mode {
            Mode::All if self.code_mode => 0,
            Mode::All => LONGEST_INSTRUCTIONS_OF_ALL,
            Mode::Search | Mode::Activate | Mode::Suite | Mode::Code => LONGEST_INSTRUCTIONS,
        };
        self.limits.instructions.unwrap_or(usize::MAX).min(longest)
    }

    /// The host whose variant this is.
    pub fn variant_of(&self) -> Option<&str> {
        self.name.split_once('/').map(|(host, _)| host)
    }

    fn is(&self, client: &str) -> bool {
        self.clients.iter().any(|pattern| condition::matches(pattern, client))
    }
}

/// The hosts that are known, the user's own before ours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profiles {
    own: Vec<Profile>,
    /// The profile that every host is taken for.
    forced: Option<Profile>,
    /// The environment variables of the host that conditions name.
    environment: BTreeMap<String, String>,
}

static KNOWN: LazyLock<Vec<Profile>> =
    LazyLock::new(|| read(include_str!("profiles.json")).unwrap_or_default());
static UNKNOWN: LazyLock<Profile> = LazyLock::new(Profile::unknown);

/// Reads profiles. A variant is written as its differences to the host before it; `null` removes a key.
fn read(json: &str) -> Result<Vec<Profile>, serde_json::Error> {
    let written: Vec<Map<String, Value>> = serde_json::from_str(json)?;
    let mut host = Map::new();
    let whole = |keys: Map<String, Value>| {
        let is_variant = keys.get("name").and_then(Value::as_str).is_some_and(|name| name.contains('/'));
        let mut profile = if is_variant { host.clone() } else { Map::new() };
        profile.extend(keys);
        profile.retain(|_, value| !value.is_null());
        if !is_variant {
            host.clone_from(&profile);
            host.remove("clients");
        }
        serde_json::from_value(Value::Object(profile))
    };
    written.into_iter().map(whole).collect()
}

impl Profiles {
    pub fn new(own: Vec<Profile>) -> Self {
        Self { own, ..Self::default() }
    }

    /// The same with the variables of the host's environment that conditions need.
    #[must_use]
    pub fn in_environment(mut self, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let names: BTreeSet<String> = self.variables().map(str::to_owned).collect();
        self.environment =
            names.into_iter().filter_map(|name| Some((name.clone(), variable(&name)?))).collect();
        self
    }

    /// The environment variables that conditions name.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.all()
            .flat_map(|profile| &profile.variant.when)
            .flat_map(|condition| condition.env.keys())
            .map(String::as_str)
    }

    /// Takes every host for the one of this name; returns the name if there is none.
    pub fn forced(mut self, name: &str) -> Result<Self, String> {
        let is_wanted = |profile: &&Profile| profile.name.eq_ignore_ascii_case(name);
        let wanted = self.iter().chain([self.unknown()]).find(is_wanted).cloned();
        self.forced = Some(wanted.ok_or_else(|| name.to_owned())?);
        Ok(self)
    }

    /// The host that introduces itself like this, or the variant of it whose conditions hold.
    pub fn of(&self, client: Client<'_>) -> &Profile {
        let known = || client.name.and_then(|name| self.all().find(|profile| profile.is(name)));
        let host = self.forced.as_ref().or_else(known).unwrap_or_else(|| self.unknown());
        let fits = |variant: &&Profile| {
            let mut conditions = variant.variant.when.iter();
            variant.variant_of() == Some(&host.name)
                && conditions.any(|condition| condition.holds(client.version, &self.environment))
        };
        self.all().find(fits).unwrap_or(host)
    }

    /// The profile of unknown hosts: the user's, or else the built-in one.
    pub fn unknown(&self) -> &Profile {
        self.own.iter().find(|own| own.name == UNKNOWN.name).unwrap_or(&UNKNOWN)
    }

    /// The hosts with a model of their own, each followed by its variants.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.all().filter(|profile| !profile.gateway)
    }

    /// The variants of a host that plugbay cannot tell from it: the user can name them.
    pub fn unseen_variants<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a Profile> {
        self.all()
            .filter(move |profile| profile.variant.when.is_empty() && profile.variant_of() == Some(host))
    }

    /// All profiles; the user's own replace ours of the same name.
    fn all(&self) -> impl Iterator<Item = &Profile> {
        let replaced = |known: &&Profile| !self.own.iter().any(|own| own.name == known.name);
        self.own.iter().chain(KNOWN.iter().filter(replaced))
    }

    /// The profile of this name as it comes with the program.
    pub fn built_in(name: &str) -> Option<&'static Profile> {
        KNOWN.iter().find(|profile| profile.name == name)
    }

    /// The variants of a host that come with the program.
    pub fn built_in_variants(host: &str) -> impl Iterator<Item = &'static Profile> {
        KNOWN.iter().filter(move |profile| profile.variant_of() == Some(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(profiles: &Profiles, client: &str, version: Option<&str>) -> String {
        profiles.of(Client { name: Some(client), version }).name.clone()
    }

    #[test]
    fn the_data_can_be_read_and_names_are_unique() {
        let known = read(include_str!("profiles.json")).unwrap();
        let mut names: Vec<&str> = known.iter().map(|profile| profile.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), known.len());
        assert!(known.iter().all(|profile| profile.lists_again || profile.pause_ms == 0));
        let written: Vec<Map<String, Value>> = serde_json::from_str(include_str!("profiles.json")).unwrap();
        for (profile, written) in known.iter().zip(written) {
            let read = serde_json::to_value(profile).unwrap();
            let unread =
                written.iter().find(|(key, value)| !value.is_null() && read[key.as_str()] != **value);
            assert_eq!(unread, None, "{}", profile.name);
        }
        for profile in &known {
            let host = profile.variant_of().map(|host| known.iter().find(|other| other.name == host));
            assert!(host.is_none_or(|host| host.is_some()), "{} is a variant of no host", profile.name);
            assert_eq!(
                profile.variant_of().is_none() && profile.variant.when.is_empty(),
                !profile.clients.is_empty()
            );
        }
    }

    #[test]
    fn a_variant_has_what_its_host_has_but_for_what_it_says() {
        let (host, eager) = ("claude-code", "claude-code/eager");
        let (host, eager) = (Profiles::built_in(host).unwrap(), Profiles::built_in(eager).unwrap());
        assert_eq!((host.defers_from, eager.defers_from), (Some(1), None));
        assert_eq!((eager.lists_again, &eager.limits), (host.lists_again, &host.limits));
    }

    #[test]
    fn hosts_are_known_by_what_they_call_themselves() {
        let profiles = Profiles::default();
        for (client, host) in [
            ("claude-code", "claude-code"),
            ("Gemini-CLI-mcp-client-v2", "gemini-cli"),
            ("qwen-cli-mcp-client-plugbay", "qwen-code"),
            ("goose-cli", "goose"),
            ("claude-codex", "unknown"),
        ] {
            assert_eq!(name_of(&profiles, client, None), host);
        }
        assert_eq!(profiles.of(Client::default()).name, "unknown");
    }

    #[test]
    fn variants_are_told_by_version_and_environment() {
        let with = |name: &'static str, value: &'static str| {
            Profiles::default().in_environment(&move |asked| (asked == name).then(|| value.to_owned()))
        };
        let claude = |profiles: Profiles, version| name_of(&profiles, "claude-code", Some(version));
        assert_eq!(claude(Profiles::default(), "2.1.325"), "claude-code");
        assert_eq!(claude(with("ENABLE_TOOL_SEARCH", "true"), "2.1.325"), "claude-code");
        assert_eq!(claude(with("ENABLE_TOOL_SEARCH", "false"), "2.1.325"), "claude-code/eager");
        assert_eq!(
            claude(with("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1"), "2.1.325"),
            "claude-code/eager"
        );
        assert_eq!(claude(with("ANTHROPIC_BASE_URL", "http://[::1]:1"), "2.1.325"), "claude-code");
        assert_eq!(claude(with("ANTHROPIC_BASE_URL", "http://[::1]:1"), "2.1.197"), "claude-code/eager");
        assert_eq!(claude(with("ANTHROPIC_BASE_URL", "https://api.anthropic.com"), "2.1.197"), "claude-code");
        let code = with("OPENCODE_EXPERIMENTAL_CODE_MODE", "1");
        assert!(code.of(Client::named("opencode")).code_mode);
        assert!(!Profiles::default().of(Client::named("opencode")).code_mode);
    }

    #[test]
    fn what_cannot_be_seen_can_be_said() {
        let profiles = Profiles::default();
        let unseen: Vec<&str> = profiles.unseen_variants("codex").map(|one| one.name.as_str()).collect();
        assert_eq!(unseen, ["codex/search", "codex/plain"]);
        let plain = profiles.clone().forced("codex/plain").unwrap();
        assert_eq!(name_of(&plain, "codex-mcp-client", None), "codex/plain");
        let forced = profiles.forced("opencode").unwrap();
        let code = |name: &str| (name == "OPENCODE_EXPERIMENTAL_CODE_MODE").then(|| "1".to_owned());
        assert_eq!(name_of(&forced.in_environment(&code), "anything", None), "opencode/code");
    }

    #[test]
    fn the_users_word_counts_before_ours() {
        let mine = Profile { pause_ms: 7, ..Profiles::built_in("claude-code").unwrap().clone() };
        let profiles = Profiles::new(vec![mine.clone()]);
        assert_eq!(profiles.of(Client::named("claude-code")), &mine);
        assert_eq!(profiles.iter().filter(|profile| profile.name == "claude-code").count(), 1);
        let unknown = Profile { lists_again: true, ..Profile::unknown() };
        assert_eq!(Profiles::new(vec![unknown.clone()]).of(Client::named("stranger")), &unknown);
        let forced = profiles.forced("Codex").unwrap();
        assert_eq!(name_of(&forced, "claude-code", None), "codex");
        assert_eq!(forced.forced("nobody"), Err("nobody".to_owned()));
    }

    #[test]
    fn instructions_are_a_matter_of_host_and_mode() {
        let longest = |name, mode| Profiles::built_in(name).unwrap().longest_instructions(mode);
        assert_eq!(longest("codex", Mode::All), 0, "they would stand in the description of every tool");
        assert_eq!(longest("codex", Mode::Search), LONGEST_INSTRUCTIONS);
        assert_eq!(longest("codex/plain", Mode::All), LONGEST_INSTRUCTIONS_OF_ALL);
        assert_eq!(longest("claude-code", Mode::All), 4096);
        assert_eq!(longest("copilot-cli", Mode::Search), 0, "its model does not see them");
    }
}
