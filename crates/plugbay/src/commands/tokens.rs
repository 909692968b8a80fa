//! `plugbay tokens`: counts the tokens that each mode puts into a model's context, using the real listings.

mod host_costs;

use std::process::ExitCode;

use plugbay_core::{
    auto::{Conversation, Estimate, Sizes, estimates},
    exposure::Mode,
    name::ServerName,
    profile::{Profile, Profiles},
    surface::{
        LONGEST_INSTRUCTIONS, LONGEST_INSTRUCTIONS_OF_ALL, Snapshot, View,
        activate::{Extent, Switch},
        instructions,
        suite::{self, Wanted},
    },
    tokens::counted,
    wire::elements,
};
use serde::Serialize;
use serde_json::json;

use super::{
    CommandError, Context,
    hosts::{Row, rows},
    tools::{find, learn},
};
use crate::{app::App, tokenizer};
pub use host_costs::{HostCost, behind, direct};

/// Count the tokens that each mode puts into a model's context.
///
/// Tokens are counted with the o200k vocabulary, on the very texts that hosts get. The second table compares what
/// each host pays today, with the servers in its own configuration, to what it pays behind plugbay.
#[derive(Debug, clap::Args)]
pub struct TokensArgs {
    /// The server that the examples of activate and suite mode use.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Also estimate what each mode costs over a conversation, and which mode each host gets.
    #[arg(long)]
    explain: bool,
    /// The host for which --explain estimates: a profile that `plugbay hosts` shows.
    #[arg(long, value_name = "NAME", requires = "explain")]
    host: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct Tokens {
    pub listings: Vec<Listed>,
    /// What each host pays today, and in each mode.
    pub hosts: Vec<HostCost>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "estimate")]
    pub conversation: Option<ConversationCosts>,
}

/// The tokens in a model's context in one situation.
#[derive(Debug, Clone, Serialize)]
pub struct Listed {
    pub seen: String,
    pub tools: usize,
    /// Definitions, and the calls and results so far, in o200k tokens.
    pub tokens: usize,
    /// The instructions, in o200k tokens; only their first line depends on the mode.
    pub instructions: usize,
    /// Both together.
    pub total: usize,
}

impl Listed {
    fn new(seen: String, tools: usize, tokens: usize, instructions: usize) -> Self {
        Self { seen, tools, tokens, instructions, total: tokens + instructions }
    }
}

/// The cost of each mode for one host over conversations of several lengths, and the mode that each host
/// gets.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationCosts {
    pub host: String,
    /// The tokens of the host's request without any server.
    pub request: usize,
    /// The tokens of all definitions, estimated without a vocabulary, as in `serve`.
    pub definitions: usize,
    /// The number of tools that the model uses, and of their servers.
    pub tools: usize,
    pub servers: usize,
    pub costs: Vec<Cost>,
    /// The mode that each host gets.
    pub hosts: Vec<Chosen>,
}

#[derive(Debug, Serialize)]
pub struct Chosen {
    pub name: String,
    pub mode: String,
    pub why: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    pub mode: String,
    /// The tokens that it adds to the first request.
    pub first: usize,
    pub extra_turns: usize,
    pub conversations: Vec<ConversationCost>,
    /// How many percent more it costs than the cheapest mode, in the conversation where the difference is
    /// largest.
    pub worst: usize,
}

#[derive(Debug, Serialize)]
pub struct ConversationCost {
    pub turns: usize,
    /// Whether the provider caches the beginning of the last request.
    pub cached: bool,
    /// The tokens that a model reads in all turns. A cached token counts a tenth.
    pub tokens: usize,
}

pub async fn tokens(context: &Context, args: &TokensArgs) -> Result<ExitCode, CommandError> {
    let settings = context.settings_in_passing()?;
    let wanted = args.server.as_deref().map(|name| find(&settings, name)).transpose()?;
    tokenizer::prepare();
    let app = App::assemble(&settings, context.environment.clone());
    let unknown = learn(context, &settings, &app, None).await;
    let snapshot = app.snapshots().borrow().clone();
    app.shut_down().await;

    let server = wanted.or_else(|| typical(&snapshot));
    let mut listings = Vec::new();
    for mode in MODES {
        listings.push(in_mode(&snapshot, mode));
        let used = server.as_ref().and_then(|server| used(&snapshot, mode, server));
        listings.extend(used.into_iter().flatten());
    }
    let host = host(&settings.hosts, args.host.as_deref())?;
    let conversation = args.explain.then(|| conversation_costs(&snapshot, host));
    let hosts = host_costs::host_costs(&snapshot);
    context.output.show(&Tokens { listings, hosts, conversation });
    context.note_unknown(&unknown);
    Ok(ExitCode::SUCCESS)
}

fn host<'a>(hosts: &'a Profiles, name: Option<&str>) -> Result<&'a Profile, CommandError> {
    let Some(name) = name else { return Ok(hosts.unknown()) };
    let known = hosts.iter().chain([hosts.unknown()]).find(|profile| profile.name.eq_ignore_ascii_case(name));
    known.ok_or_else(|| {
        let error = CommandError::usage(format!("there is no profile of a host {name:?}"));
        error.hint("`plugbay hosts` shows those that there are")
    })
}

/// The modes, in the order of how much they hide.
pub const MODES: [Mode; 5] = [Mode::All, Mode::Suite, Mode::Search, Mode::Activate, Mode::Code];

/// The listing of a mode before anything is used.
pub fn in_mode(snapshot: &Snapshot, mode: Mode) -> Listed {
    listed(snapshot, &View::in_mode(mode), mode.to_string())
}

fn listed(snapshot: &Snapshot, view: &View, seen: String) -> Listed {
    let snapshot = snapshot.seen_by(view);
    let array = &snapshot.listing.tools;
    let definitions = elements(array, &(0..array.len()));
    let tokens = definitions.iter().map(|span| tokenizer::count(&counted(&array[span.clone()]))).sum();
    let longest = if view.mode == Mode::All { LONGEST_INSTRUCTIONS_OF_ALL } else { LONGEST_INSTRUCTIONS };
    let told = instructions(&snapshot, Some(&snapshot.listing), longest);
    Listed::new(seen, definitions.len(), tokens, tokenizer::count(&told))
}

/// The listing after a server was used.
fn used(snapshot: &Snapshot, mode: Mode, server: &ServerName) -> Option<[Listed; 2]> {
    match mode {
        Mode::All | Mode::Search | Mode::Code => None,
        Mode::Activate => Some(switched(snapshot, server)),
        Mode::Suite => introspected(snapshot, server),
    }
}

/// The listing while a server is activated, and after it is deactivated again.
fn switched(snapshot: &Snapshot, server: &ServerName) -> [Listed; 2] {
    let mut view = View::in_mode(Mode::Activate);
    let switch = Switch { server: server.clone(), extent: Extent::Whole };
    view.active.switch_on(&switch);
    let on = listed(snapshot, &view, format!("activate, {server} on"));
    view.active.switch_off(&switch, std::iter::empty());
    [on, listed(snapshot, &view, format!("activate, {server} off again"))]
}

/// A suite after it was introspected, and after one of its tools was called.
fn introspected(snapshot: &Snapshot, server: &ServerName) -> Option<[Listed; 2]> {
    let found = snapshot.names.of(server).next()?;
    let asked = json!({ "action": "introspect" }).to_string();
    let told = suite::introspect(server, snapshot, &Wanted::default());
    let called = json!({ "action": "call", "subtool": found.target.tool, "args": {} }).to_string();
    let Listed { tools, tokens, instructions, .. } = in_mode(snapshot, Mode::Suite);
    let introspected = tokens + tokenizer::count(&asked) + tokenizer::count(&told);
    let with_call = introspected + tokenizer::count(&called);
    let seen = |what: &str| format!("suite, {server} {what}");
    Some([
        Listed::new(seen("introspected"), tools, introspected, instructions),
        Listed::new(seen("introspected and called"), tools, with_call, instructions),
    ])
}

/// The server with the median number of tools.
fn typical(snapshot: &Snapshot) -> Option<ServerName> {
    let mut servers: Vec<(usize, ServerName)> =
        snapshot.catalog.iter().map(|(name, entry)| (entry.offer.tools.len(), name.clone())).collect();
    servers.sort();
    servers.get(servers.len() / 2).map(|(_, name)| name.clone())
}

fn conversation_costs(snapshot: &Snapshot, host: &Profile) -> ConversationCosts {
    let (sizes, usual) = (Sizes::of(snapshot), Conversation::POSSIBLE[0]);
    let chosen = |Row { profile, mode, why }| Chosen { name: profile.name, mode, why };
    ConversationCosts {
        host: host.name.clone(),
        request: host.request_tokens(),
        definitions: sizes.tokens,
        tools: usual.tools.min(sizes.tools),
        servers: usual.servers.min(sizes.servers),
        costs: estimates(host, sizes).into_iter().map(cost).collect(),
        hosts: rows(snapshot).into_iter().map(chosen).collect(),
    }
}

fn cost(Estimate { mode, first, extra_turns, costs, worst }: Estimate) -> Cost {
    let conversations = Conversation::POSSIBLE.iter().zip(costs).map(|(conversation, tokens)| {
        let Conversation { turns, cached, .. } = *conversation;
        ConversationCost { turns, cached, tokens }
    });
    Cost { mode: mode.to_string(), first, extra_turns, conversations: conversations.collect(), worst }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use plugbay_core::{
        catalog::{Catalog, Change, Offer, Tool},
        era::Era,
        surface::Layout,
    };

    use super::*;

    #[test]
    fn activate_and_code_mode_cost_little_whatever_is_behind() {
        for (mode, servers) in [Mode::Activate, Mode::Code]
            .into_iter()
            .flat_map(|mode| [4, 40, 400].map(|servers| (mode, servers)))
        {
            for words in [
                None,
                Some("Looks after the things of one department: reads, writes and moves them. And so on."),
            ] {
                let catalog = (0..servers).fold(Catalog::default(), |catalog, number| {
                    let tool = Tool::parse(Bytes::from_static(br#"{"name":"get_thing"}"#)).unwrap();
                    let offer = Offer::new(Era::Legacy, None, words.map(str::to_owned), vec![tool]);
                    let name = ServerName::parse(&format!("srv-{number}-x{}", number * 7919 % 997)).unwrap();
                    catalog.apply(Change::Listed(name, Arc::new(offer)))
                });
                let layout = Layout { mode: Some(mode), name_limit: 64, ..Layout::default() };
                let listed = in_mode(&Snapshot::new(Arc::new(catalog), Arc::new(layout), true), mode);
                let expected = if mode == Mode::Code { (2, 260) } else { (3, 350) };
                assert!(
                    (listed.tools, listed.total.max(expected.1)) == expected,
                    "{mode}, {servers}: {}",
                    listed.total
                );
            }
        }
    }
}
