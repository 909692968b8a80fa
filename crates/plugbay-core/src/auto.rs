//! Which mode fits a host: what each would cost in a conversation, estimated in tokens that its model reads.

use std::fmt;

use crate::{
    exposure::Mode,
    name::ServerName,
    profile::Profile,
    surface::{BuiltinTool, Snapshot},
    tokens::{Cost, estimate_definition},
};

/// A conversation as it usually goes. Everything below is counted per turn, because a model reads its whole
/// context anew in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversation {
    /// How often the model is asked for its next step.
    pub turns: usize,
    /// How many tools it uses, of how many servers.
    pub tools: usize,
    pub servers: usize,
    /// What else is in its context: an extra turn reads all of it once more.
    pub context: usize,
}

impl Default for Conversation {
    fn default() -> Self {
        Self { turns: 20, tools: 3, servers: 2, context: 8_000 }
    }
}

/// The reply to a search, as `plugbay-bench search` has it.
const REPLY: usize = 190;
/// A server as one tool, and a line of what it tells of itself, as `plugbay tokens` has them for real servers.
const SUITE: usize = 60;
const SUITE_LINE: usize = 25;

/// The measures of a catalog, as far as the mode is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    pub servers: usize,
    pub tools: usize,
    /// Of all definitions together.
    pub tokens: usize,
}

impl Sizes {
    /// Without the servers whose mode the user has chosen: nothing that is decided here changes how they are shown.
    pub fn of(snapshot: &Snapshot) -> Self {
        let decided =
            |server: &ServerName| snapshot.layout.exposures.get(server).is_some_and(|one| one.mode.is_some());
        let servers = snapshot.servers().iter().filter(|server| !decided(server)).count();
        let Cost { tools, tokens } = snapshot.names.undecided();
        Self { servers, tools, tokens }
    }

    /// Within a quarter: nothing that would make another mode right.
    pub fn are_about(self, tokens: usize) -> bool {
        self.tokens.abs_diff(tokens) <= self.tokens / 4
    }
}

/// What was chosen and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub mode: Mode,
    pub reason: Reason,
    /// Each mode that this host can use, with the tokens that its model would read.
    pub costs: Vec<(Mode, usize)>,
}

/// Definitions of so many tokens are passed through: no detour is worth less than that.
pub const SMALL: usize = 2_000;
/// A host that sees a tool itself can ask its user about it, so there must be more to gain than this, in percent.
pub const WORTHWHILE: usize = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Too little to hide.
    Small,
    /// Every tool in sight is worth more than what another mode would save.
    LittleToGain,
    /// The host has a search of its own; a second one on top would only add turns.
    Defers,
    Cheapest,
}

/// What each mode would make a model read.
pub fn costs(sizes: Sizes, conversation: Conversation) -> Vec<(Mode, usize)> {
    let conversation = Conversation {
        tools: conversation.tools.min(sizes.tools),
        servers: conversation.servers.min(sizes.servers),
        ..conversation
    };
    vec![
        (Mode::All, all(sizes, conversation)),
        (Mode::Search, search(conversation)),
        (Mode::Activate, activate(sizes, conversation)),
        (Mode::Suite, suite(sizes, conversation)),
    ]
}

/// The cheapest of the modes that a host can use.
pub fn choose(profile: &Profile, sizes: Sizes, conversation: Conversation) -> Choice {
    let mut costs = costs(sizes, conversation);
    let too_many = profile.most_tools.is_some_and(|most| sizes.tools > most);
    costs.retain(|(mode, _)| match mode {
        Mode::All => !too_many,
        Mode::Search | Mode::Suite => true,
        Mode::Activate => profile.lists_again,
    });
    if profile.defers_from.is_some_and(|from| sizes.tools >= from) {
        return Choice { mode: Mode::All, reason: Reason::Defers, costs };
    }
    let all = costs.iter().find(|(mode, _)| *mode == Mode::All).map(|(_, tokens)| *tokens);
    if all.is_some() && sizes.tokens <= SMALL {
        return Choice { mode: Mode::All, reason: Reason::Small, costs };
    }
    let (mode, tokens) = costs.iter().min_by_key(|(_, tokens)| *tokens).copied().unwrap_or_default();
    if all.is_some_and(|all| mode != Mode::All && tokens > all / 100 * (100 - WORTHWHILE)) {
        return Choice { mode: Mode::All, reason: Reason::LittleToGain, costs };
    }
    Choice { mode, reason: Reason::Cheapest, costs }
}

/// Some host may be given search to use.
pub fn may_search(snapshot: &Snapshot) -> bool {
    let choice = || choose(snapshot.layout.hosts.unknown(), Sizes::of(snapshot), Conversation::default());
    snapshot.layout.mode.is_none() && matches!(choice().mode, Mode::Search | Mode::Suite)
}

/// Every definition, in every turn.
fn all(sizes: Sizes, conversation: Conversation) -> usize {
    sizes.tokens * conversation.turns
}

/// An extra turn for each tool, whose reply stays in the context for the other half of the conversation.
fn search(conversation: Conversation) -> usize {
    let turns = conversation.turns + conversation.tools;
    builtin_tokens(&[BuiltinTool::Search, BuiltinTool::Describe, BuiltinTool::Execute]) * turns
        + conversation.tools * conversation.context
        + conversation.tools * REPLY * turns / 2
}

/// An extra turn for each server, whose definitions are there from then on.
fn activate(sizes: Sizes, conversation: Conversation) -> usize {
    let turns = conversation.turns + conversation.servers;
    let server = sizes.tokens / sizes.servers.max(1);
    builtin_tokens(&[BuiltinTool::Activate, BuiltinTool::Deactivate, BuiltinTool::Overview]) * turns
        + conversation.servers * conversation.context
        + conversation.servers * server * conversation.turns
}

/// An extra turn for each server, which tells all it has.
fn suite(sizes: Sizes, conversation: Conversation) -> usize {
    let turns = conversation.turns + conversation.servers;
    let told = SUITE_LINE * sizes.tools / sizes.servers.max(1);
    SUITE * sizes.servers * turns
        + conversation.servers * conversation.context
        + conversation.servers * told * turns / 2
}

/// What our own tools cost in one turn.
pub(crate) fn builtin_tokens(tools: &[BuiltinTool]) -> usize {
    tools.iter().map(|own| estimate_definition(own.definition().as_bytes())).sum()
}

impl Choice {
    pub fn why(&self) -> String {
        match self.reason {
            Reason::Defers => "the host keeps tools out of context itself".to_owned(),
            Reason::Small => format!("up to {SMALL} tokens of definitions are passed through"),
            Reason::LittleToGain => format!("no other mode saves {WORTHWHILE}% ({})", self.told()),
            Reason::Cheapest => format!("fewest tokens in a usual conversation ({})", self.told()),
        }
    }

    fn told(&self) -> String {
        let costs: Vec<String> = self.costs.iter().map(|(mode, tokens)| format!("{mode} {tokens}")).collect();
        costs.join(", ")
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.mode, self.why())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profiles;

    fn sizes(tools: usize) -> Sizes {
        Sizes { servers: tools.div_ceil(10), tools, tokens: 300 * tools }
    }

    #[test]
    fn a_small_catalogue_is_passed_through_and_a_large_one_searched() {
        let unknown = Profile::unknown();
        let modes = [3, 30, 300].map(|tools| choose(&unknown, sizes(tools), Conversation::default()).mode);
        assert_eq!(modes, [Mode::All, Mode::Suite, Mode::Search]);
    }

    #[test]
    fn a_host_that_searches_itself_is_left_to_it() {
        let profiles = Profiles::default();
        let claude = choose(profiles.of(Some("claude-code")), sizes(300), Conversation::default());
        assert_eq!((claude.mode, claude.reason), (Mode::All, Reason::Defers));
        let copilot = profiles.of(Some("copilot-cli"));
        assert_ne!(choose(copilot, sizes(29), Conversation::default()).reason, Reason::Defers);
        let tiny = Sizes { servers: 1, tools: 41, tokens: 41 };
        assert_eq!(choose(profiles.of(Some("opencode")), tiny, Conversation::default()).mode, Mode::All);
        assert_ne!(choose(profiles.of(Some("cursor-vscode")), tiny, Conversation::default()).mode, Mode::All);
    }

    #[test]
    fn servers_with_little_in_them_are_worth_switching() {
        let opencode = Profiles::default().of(Some("opencode")).clone();
        let small = Sizes { servers: 40, tools: 80, tokens: 8_000 };
        assert_eq!(choose(&opencode, small, Conversation::default()).mode, Mode::Activate);
        let deaf = Profile { lists_again: false, ..opencode };
        assert_eq!(choose(&deaf, small, Conversation::default()).mode, Mode::Search);
    }
}
