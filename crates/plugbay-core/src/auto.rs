//! The mode that fits a host, by what each would make its model read in conversations of several lengths.
//!
//! The estimate and its figures come from conversations that were measured in real hosts; a test below
//! compares both.

use std::fmt;

use crate::{
    exposure::Mode,
    name::ServerName,
    profile::{LONGEST_INSTRUCTIONS, Profile},
    surface::{BuiltinTool, Snapshot},
    tokens::{Cost, estimate_definition},
};

/// A possible conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversation {
    /// How often the model is asked for its next step, if it need not search for tools.
    pub turns: usize,
    /// How many tools it uses, of how many servers.
    pub tools: usize,
    pub servers: usize,
    /// How many tokens a call and its result add to the context.
    pub result: usize,
    /// The model's provider remembers the beginning of the last request, and charges little for it.
    pub cached: bool,
}

impl Conversation {
    const fn of(turns: usize, cached: bool) -> Self {
        Self { turns, tools: 3, servers: 3, result: 120, cached }
    }

    /// Nobody knows how long a conversation will be, nor whether its beginning is remembered.
    pub const POSSIBLE: [Self; 6] = [
        Self::of(5, false),
        Self::of(10, false),
        Self::of(20, false),
        Self::of(5, true),
        Self::of(10, true),
        Self::of(20, true),
    ];
}

/// A search and its reply, as `plugbay-bench search` has them.
const SEARCHED: usize = 290;
/// A server as one tool; its line on each of its tools, and the call that asks for those.
const SUITE: usize = 60;
const SUITE_LINE: usize = 25;
const INTROSPECTED: usize = 100;
/// The name of a tool that the host hides.
const HIDDEN: usize = 12;
/// Bytes of prose per token.
const BYTES_PER_TOKEN: usize = 4;
/// The price of a token that the provider remembers, as a share of the full price.
const REMEMBERED: f64 = 0.1;

/// The sizes of a catalog, for servers whose mode is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    pub servers: usize,
    pub tools: usize,
    /// The tokens of all definitions together.
    pub tokens: usize,
    /// The length of all that servers say of themselves, in bytes.
    pub words: usize,
}

impl Sizes {
    /// The sizes without servers whose mode the user has chosen: no decision here changes how they are shown.
    pub fn of(snapshot: &Snapshot) -> Self {
        let decided =
            |server: &ServerName| snapshot.layout.exposures.get(server).is_some_and(|one| one.mode.is_some());
        let servers = snapshot.servers().iter().filter(|server| !decided(server)).count();
        let offers = snapshot.catalog.iter().filter(|(server, _)| !decided(server));
        let words = offers.filter_map(|(_, entry)| entry.offer.instructions.as_deref()).map(str::len).sum();
        let Cost { tools, tokens } = snapshot.names.undecided();
        Self { servers, tools, tokens, words }
    }

    /// Whether the tokens differ by at most a quarter, which would not make another mode right.
    pub fn are_about(self, tokens: usize) -> bool {
        self.tokens.abs_diff(tokens) <= self.tokens / 4
    }
}

/// The chosen mode and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub mode: Mode,
    pub reason: Reason,
    /// Each mode that this host can use.
    pub modes: Vec<Estimate>,
}

/// What a mode costs a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    pub mode: Mode,
    /// What it adds to the first request, in tokens.
    pub first: usize,
    /// How many turns the model needs to find its tools.
    pub extra_turns: usize,
    /// What a model reads in each of the possible conversations, in tokens; remembered ones count less.
    pub costs: [usize; Conversation::POSSIBLE.len()],
    /// By how many percent it costs more than the cheapest mode, in its worst conversation.
    pub worst: usize,
}

/// How much it is worth that a host sees a tool itself, in percent: it can then ask its user about the tool.
pub const IN_SIGHT: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The host runs code that calls tools: it needs their definitions, and its model does not read them.
    CodeMode,
    /// The host has a search of its own; a second one on top would only add turns.
    Defers,
    /// The mode never costs much more than the cheapest one, however long the conversation is.
    CheapMistake,
}

/// The cost of each mode for this host.
pub fn estimates(profile: &Profile, sizes: Sizes) -> Vec<Estimate> {
    let shapes =
        [Mode::All, Mode::Search, Mode::Activate, Mode::Suite].map(|mode| Shape::of(mode, profile, sizes));
    let costs = shapes.iter().filter(|shape| shape.is_usable(profile, sizes)).map(|shape| {
        let costs = Conversation::POSSIBLE.map(|conversation| shape.cost(profile, conversation));
        (shape, costs)
    });
    let costs: Vec<_> = costs.collect();
    let least = |at: usize| costs.iter().map(|(_, costs)| costs[at]).min().unwrap_or_default().max(1);
    let estimate = |(shape, costs): &(&Shape, [usize; Conversation::POSSIBLE.len()])| {
        let over = |(at, cost): (usize, &usize)| (cost * 100).div_ceil(least(at)).saturating_sub(100);
        Estimate {
            mode: shape.mode,
            first: shape.first,
            extra_turns: shape.extra_turns,
            worst: costs.iter().enumerate().map(over).max().unwrap_or_default(),
            costs: *costs,
        }
    };
    costs.iter().map(estimate).collect()
}

/// The mode whose worst case is the least bad.
pub fn choose(profile: &Profile, sizes: Sizes) -> Choice {
    let modes = estimates(profile, sizes);
    if profile.code_mode {
        return Choice { mode: Mode::All, reason: Reason::CodeMode, modes };
    }
    if profile.defers(sizes.tools) {
        return Choice { mode: Mode::All, reason: Reason::Defers, modes };
    }
    let price =
        |one: &Estimate| if one.mode == Mode::All { one.worst.saturating_sub(IN_SIGHT) } else { one.worst };
    let mode = modes.iter().min_by_key(|one| price(one)).map(|one| one.mode).unwrap_or_default();
    Choice { mode, reason: Reason::CheapMistake, modes }
}

/// Whether some host may get a mode with search.
pub fn may_search(snapshot: &Snapshot) -> bool {
    let choice = || choose(snapshot.layout.hosts.unknown(), Sizes::of(snapshot));
    snapshot.layout.mode.is_none() && matches!(choice().mode, Mode::Search | Mode::Suite)
}

/// How a mode appears in the requests to a model.
struct Shape {
    mode: Mode,
    first: usize,
    extra_turns: usize,
    /// How many tokens each of these turns adds to the context.
    reply: usize,
    /// The list of tools changes in these turns, so that the provider remembers nothing.
    changes_list: bool,
}

impl Shape {
    fn of(mode: Mode, profile: &Profile, sizes: Sizes) -> Self {
        let Conversation { tools, servers, .. } = Conversation::of(0, false);
        let (tools, servers) = (tools.min(sizes.tools), servers.min(sizes.servers));
        let defers = profile.defers(sizes.tools);
        let (per_tool, per_server) = (sizes.tokens / sizes.tools.max(1), sizes.tokens / sizes.servers.max(1));
        let longest = profile.longest_instructions(mode);
        // One search by the host finds both of our tools; each suite has to be found separately.
        let found_first = |count: usize| if defers && !profile.keeps_in_sight { count } else { 0 };
        let shape = Self { mode, first: 0, extra_turns: 0, reply: 0, changes_list: false };
        match mode {
            Mode::All if defers => Self {
                first: HIDDEN * sizes.tools + sizes.words.min(longest) / BYTES_PER_TOKEN,
                extra_turns: tools,
                reply: per_tool,
                ..shape
            },
            Mode::All => Self { first: sizes.tokens + sizes.words.min(longest) / BYTES_PER_TOKEN, ..shape },
            Mode::Search => Self {
                first: builtin_tokens(&[BuiltinTool::Search, BuiltinTool::Describe, BuiltinTool::Execute])
                    + lines(sizes, longest),
                extra_turns: tools + found_first(1),
                reply: SEARCHED,
                ..shape
            },
            Mode::Code => Self {
                first: builtin_tokens(&[BuiltinTool::Search, BuiltinTool::RunCode]) + lines(sizes, longest),
                extra_turns: tools + found_first(1),
                reply: SEARCHED,
                ..shape
            },
            Mode::Activate => Self {
                first: builtin_tokens(&[
                    BuiltinTool::Activate,
                    BuiltinTool::Deactivate,
                    BuiltinTool::Overview,
                ]) + lines(sizes, longest)
                    + servers * per_server,
                extra_turns: servers,
                changes_list: true,
                ..shape
            },
            Mode::Suite => Self {
                first: SUITE * sizes.servers + lines(sizes, longest),
                extra_turns: servers + found_first(servers),
                reply: INTROSPECTED + SUITE_LINE * sizes.tools / sizes.servers.max(1),
                ..shape
            },
        }
    }

    fn is_usable(&self, profile: &Profile, sizes: Sizes) -> bool {
        match self.mode {
            Mode::All => profile.limits.tools.is_none_or(|most| sizes.tools <= most),
            Mode::Search | Mode::Suite | Mode::Code => true,
            Mode::Activate => profile.lists_again,
        }
    }

    /// The cost of a conversation. A model reads its whole context anew in each turn: what was there first,
    /// and what was added since.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate"
    )]
    fn cost(&self, profile: &Profile, conversation: Conversation) -> usize {
        let turns = conversation.turns + self.extra_turns;
        let added =
            (conversation.turns * conversation.result + self.extra_turns * self.reply) as f64 / turns as f64;
        let first = (profile.request_tokens() + self.first) as f64;
        let before = |turn: usize| first + added * turn as f64;
        if !conversation.cached {
            return (0..turns).map(before).sum::<f64>() as usize;
        }
        let again = |turn: usize| {
            let forgets = self.changes_list && turn <= self.extra_turns;
            added + before(turn - 1) * if forgets { 1.0 } else { REMEMBERED }
        };
        (first + (1..turns).map(again).sum::<f64>()) as usize
    }
}

/// A line of each server, in tokens.
fn lines(sizes: Sizes, longest: usize) -> usize {
    const LINE: usize = 140;
    (LINE * sizes.servers).min(LONGEST_INSTRUCTIONS).min(longest) / BYTES_PER_TOKEN
}

/// The cost of our own tools in one turn.
pub(crate) fn builtin_tokens(tools: &[BuiltinTool]) -> usize {
    tools.iter().map(|own| estimate_definition(own.definition().as_bytes())).sum()
}

impl Choice {
    pub fn why(&self) -> String {
        match self.reason {
            Reason::CodeMode => "the host's own code calls the tools".to_owned(),
            Reason::Defers => "the host keeps tools out of context itself".to_owned(),
            Reason::CheapMistake => {
                let (own, others): (Vec<_>, Vec<_>) =
                    self.modes.iter().partition(|one| one.mode == self.mode);
                let worst = |one: &&Estimate| format!("{} {}%", one.mode, one.worst);
                let own = own.first().map_or(0, |one| one.worst);
                let others: Vec<String> = others.iter().map(worst).collect();
                let others = others.join(", ");
                match own {
                    0 => format!("the cheapest mode in 5 to 20 turns ({others})"),
                    _ => format!("at most {own}% over the cheapest mode in 5 to 20 turns ({others})"),
                }
            }
        }
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
    use crate::profile::{Client, Profiles};

    fn sizes(tools: usize) -> Sizes {
        Sizes { servers: tools.div_ceil(10), tools, tokens: 300 * tools, words: 0 }
    }

    fn profile(name: &str) -> Profile {
        Profiles::built_in(name).unwrap().clone()
    }

    /// Six servers with 51 tools; three tools of three servers in four turns without detours. For each host: what `all`
    /// adds to its first request, and the tokens of all requests together in `all`, `search` and `suite`.
    const MEASURED: [(&str, usize, [usize; 3]); 6] = [
        ("claude-code/eager", 6_978, [97_722, 129_065, 132_050]),
        ("codex/plain", 5_956, [57_513, 67_193, 70_173]),
        ("gemini-cli", 9_551, [79_220, 79_707, 83_901]),
        ("opencode", 7_100, [56_398, 55_600, 58_737]),
        ("copilot-cli/chat", 6_463, [71_102, 80_365, 83_250]),
        ("goose", 6_812, [43_458, 33_383, 36_881]),
    ];

    #[test]
    fn the_estimate_is_what_was_measured_in_real_hosts() {
        for (host, tokens, measured) in MEASURED {
            let (profile, sizes) = (profile(host), Sizes { servers: 6, tools: 51, tokens, words: 0 });
            for (mode, measured) in [Mode::All, Mode::Search, Mode::Suite].into_iter().zip(measured) {
                let estimated = Shape::of(mode, &profile, sizes).cost(&profile, Conversation::of(4, false));
                let off = estimated.abs_diff(measured) * 100 / measured;
                assert!(off <= 7, "{host}, {mode}: {estimated} instead of {measured}, {off}% off");
            }
        }
    }

    #[test]
    fn searches_on_top_of_a_hosts_own_cost_turns_unless_the_host_keeps_them_in_sight() {
        let sizes = Sizes { servers: 6, tools: 51, tokens: 7_000, words: 0 };
        let turns = |host: &str, mode| Shape::of(mode, &profile(host), sizes).extra_turns;
        assert_eq!([Mode::All, Mode::Search, Mode::Suite].map(|mode| turns("claude-code", mode)), [3, 3, 3]);
        assert_eq!([Mode::All, Mode::Search, Mode::Suite].map(|mode| turns("codex/search", mode)), [3, 4, 6]);
    }

    #[test]
    fn a_small_catalogue_is_passed_through_and_a_large_one_searched() {
        let unknown = Profile::unknown();
        let modes = [3, 30, 300].map(|tools| choose(&unknown, sizes(tools)).mode);
        assert_eq!(modes, [Mode::All, Mode::Search, Mode::Search]);
    }

    #[test]
    fn extra_turns_cost_more_in_a_host_with_a_large_request() {
        let sizes = Sizes { servers: 6, tools: 51, tokens: 6_978, words: 0 };
        assert_eq!(choose(&profile("claude-code/eager"), sizes).mode, Mode::All);
        assert_eq!(choose(&profile("goose"), Sizes { tools: 25, ..sizes }).mode, Mode::Search);
    }

    #[test]
    fn a_host_that_searches_itself_or_runs_code_is_left_to_it() {
        let claude = choose(&profile("claude-code"), sizes(300));
        assert_eq!((claude.mode, claude.reason), (Mode::All, Reason::Defers));
        let codex = choose(&profile("codex"), sizes(300));
        assert_eq!((codex.mode, codex.reason), (Mode::All, Reason::CodeMode));
        let profiles = Profiles::default();
        let copilot = profiles.of(Client::named("copilot-cli"));
        assert_ne!(choose(copilot, sizes(13)).reason, Reason::Defers);
        let tiny = Sizes { servers: 1, tools: 41, tokens: 41, words: 0 };
        assert_eq!(choose(profiles.of(Client::named("opencode")), tiny).mode, Mode::All);
        assert_ne!(choose(profiles.of(Client::named("cursor-vscode")), tiny).mode, Mode::All);
    }

    #[test]
    fn what_is_remembered_costs_little_unless_the_list_changes() {
        let (unknown, sizes) = (Profile { lists_again: true, ..Profile::unknown() }, sizes(100));
        let cost =
            |mode, cached| Shape::of(mode, &unknown, sizes).cost(&unknown, Conversation::of(20, cached));
        assert!(cost(Mode::Search, true) * 5 < cost(Mode::Search, false));
        assert!(cost(Mode::Activate, true) * 5 > cost(Mode::Activate, false));
    }
}
