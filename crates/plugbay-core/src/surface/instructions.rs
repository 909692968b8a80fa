//! The instructions: what a model is told of the servers behind the gateway, as short as hosts require.

use std::fmt::Write;

use super::{
    Listing, Snapshot,
    notice::{DETAILS, does_not_work, failed_unlisted, is_blank},
};
use crate::{
    catalog::Offer,
    name::ServerName,
    signature::first_sentence,
    text::is_line_break,
    wire::{Members, string_value},
};

/// The longest instructions beside the three tools of activate mode, which are to cost next to nothing,
/// however many servers there are.
const LONGEST_BESIDE_SWITCHES: usize = 440;
/// The same beside the two of code mode.
const LONGEST_BESIDE_SCRIPTS: usize = 260;
/// The possible lengths of one server's line: the longest that leaves room for all servers is taken.
const LINES: [usize; 5] = [240, 160, 110, 80, SHORTEST_LINE];
const SHORTEST_LINE: usize = 60;

/// The longest lines of problems beside working servers, in bytes: all together, and each.
const LONGEST_PROBLEMS: usize = 900;
const LONGEST_PROBLEM: usize = 400;
/// The longest that a server's own words on how to use it may be, in bytes.
const LONGEST_WORDS: usize = 4096;
const PROBLEMS: &str = "plugbay has a problem. Tell the user:";

const SEVERAL: &str = "Several MCP servers behind one.";
const ONE: &str = "One MCP server behind plugbay.";

/// How tools are reached: with several servers, and with one.
#[derive(Clone, Copy)]
struct How {
    several: &'static str,
    one: &'static str,
}

const ALL: How = How {
    several: "Several MCP servers behind one. A tool or prompt named server__name belongs to that server.",
    one: ONE,
};

const SEARCH: How = How {
    several: "Several MCP servers behind one. Find their tools with search_tools, call them with execute_tool.",
    one: "One MCP server behind plugbay. Find its tools with search_tools, call them with execute_tool.",
};

const SPLIT: How = How {
    several: "Several MCP servers behind one. Find their tools with search_tools, call them with execute_tool, those marked [reads] with execute_read_tool.",
    one: "One MCP server behind plugbay. Find its tools with search_tools, call them with execute_tool, those marked [reads] with execute_read_tool.",
};

const CODE: How = How {
    several: "Several MCP servers behind one. Find their tools with search_tools, call them in run_code.",
    one: "One MCP server behind plugbay. Find its tools with search_tools, call them in run_code.",
};

const ACTIVATE: How = How {
    several: "Several MCP servers behind one. gateway_activate shows the tools of one.",
    one: "One MCP server behind plugbay. gateway_activate shows its tools.",
};

const SUITE: How = How {
    several: "Several MCP servers behind one, a tool each: introspect shows what it has (query narrows it, detail shows schemas), call runs a subtool with args.",
    one: "One MCP server as one tool: introspect shows what it has (query narrows it, detail shows schemas), call runs a subtool with args.",
};

const UNDECIDED: How = How { several: SEVERAL, one: ONE };

/// Says what is wrong, how tools are reached, unless that is still undecided, and what each server is for, in its own
/// words.
pub fn instructions(snapshot: &Snapshot, listing: Option<&Listing>, longest: usize) -> String {
    let problems = problems(snapshot, longest);
    if is_blank(snapshot) {
        return problems;
    }
    let separator = if problems.is_empty() { "" } else { "\n\n" };
    let room = longest.saturating_sub(problems.len() + separator.len());
    let servers = of_servers(snapshot, listing, room);
    if servers.is_empty() { problems } else { format!("{problems}{separator}{servers}") }
}

/// The problems that a model should tell its user, as far as there is room: most of it is for the servers.
fn problems(snapshot: &Snapshot, longest: usize) -> String {
    let urgent: Vec<_> = snapshot.layout.problems.iter().filter(|problem| problem.urgent).collect();
    let room = if is_blank(snapshot) { longest } else { LONGEST_PROBLEMS.min(longest / 2) };
    let frame = PROBLEMS.len() + DETAILS.len() + 1;
    let Some(mut room) = room.checked_sub(frame).filter(|_| !urgent.is_empty()) else {
        return String::new();
    };
    let mut text = PROBLEMS.to_owned();
    for problem in urgent {
        let line = shortened(&format!("\n- {}", one_line(&problem.to_string())), room.min(LONGEST_PROBLEM));
        // A shorter line says nothing.
        if line.len() < SHORTEST_LINE / 2 {
            break;
        }
        room -= line.len();
        text.push_str(&line);
    }
    format!("{text}\n{DETAILS}")
}

fn of_servers(snapshot: &Snapshot, listing: Option<&Listing>, longest: usize) -> String {
    let how = listing.map_or(UNDECIDED, |listing| match listing {
        listing if listing.is_for_scripts() => CODE,
        listing if listing.is_searchable() && snapshot.layout.split => SPLIT,
        listing if listing.is_searchable() => SEARCH,
        listing if listing.is_switchable() => ACTIVATE,
        listing if listing.has_suites() => SUITE,
        _ => ALL,
    });
    if listing.is_some_and(Listing::is_plain)
        && let Some(text) = whole(snapshot, how, longest)
    {
        return text;
    }
    let purpose = |server: ServerName| {
        let offer = snapshot.catalog.get(&server).map(|entry| &entry.offer);
        let tools = || snapshot.names.first_own_names(&server);
        let purpose = offer.map(|offer| purpose(offer, tools));
        let failure = || failed_unlisted(snapshot, &server).map(|failure| one_line(&does_not_work(failure)));
        let mut purpose = purpose.or_else(failure).unwrap_or_default();
        purpose.truncate(purpose.floor_char_boundary(2 * LINES[0])); // no line shows more
        (server, purpose)
    };
    let servers: Vec<_> = snapshot.servers().into_iter().map(purpose).collect();
    let switched = listing.is_some_and(|listing| listing.is_switchable() && !listing.is_searchable());
    let longest = match listing {
        Some(listing) if listing.is_for_scripts() => longest.min(LONGEST_BESIDE_SCRIPTS),
        _ if switched => longest.min(LONGEST_BESIDE_SWITCHES),
        _ => longest,
    };
    let how = shortened(if servers.len() == 1 { how.one } else { how.several }, longest);
    let lines = lines(&servers, longest.saturating_sub(how.len()));
    how + &lines
}

/// All that servers say, in their own words: those of a single server are all that a model gets. `None` if
/// there is too little room to say something about each.
fn whole(snapshot: &Snapshot, how: How, longest: usize) -> Option<String> {
    let servers = snapshot.servers();
    let mut said = Vec::new();
    let mut lines = String::new();
    for server in &servers {
        let offer = snapshot.catalog.get(server).map(|entry| &entry.offer);
        let failure = failed_unlisted(snapshot, server).map(|failure| one_line(&does_not_work(failure)));
        match offer.and_then(|offer| offer.instructions.as_deref()).map(str::trim) {
            Some(text) if !text.is_empty() => said.push((server, text)),
            _ => {
                let words = offer.and_then(|offer| told(offer, "description")).or(failure);
                let line = words.map(|words| shortened(&format!("\n- {server}: {words}"), LINES[0]));
                lines.push_str(&line.unwrap_or_default());
            }
        }
    }
    if let ([(_, text)], true) = (&said[..], servers.len() == 1) {
        return Some(shortened(text, longest));
    }
    let how = shortened(if servers.len() == 1 { how.one } else { how.several }, longest);
    let lines = shortened(&lines, longest.saturating_sub(how.len()));
    let head = |server: &ServerName| format!("\n\n# {server}\n");
    let heads: usize = said.iter().map(|(server, _)| head(server).len()).sum();
    let room = longest.checked_sub(how.len() + lines.len() + heads)?;
    let share = fair_share(said.iter().map(|(_, text)| text.len()), room);
    if said.iter().any(|(_, words)| share < SHORTEST_LINE.min(words.len())) {
        return None;
    }
    let sections = said.iter().map(|(server, words)| head(server) + &shortened(words, share));
    Some(how + &lines + &sections.collect::<String>())
}

/// The most that each may have so that all fit: those that need less leave the rest to the others.
fn fair_share(lengths: impl Iterator<Item = usize>, mut room: usize) -> usize {
    let mut lengths: Vec<usize> = lengths.collect();
    lengths.sort_unstable();
    for (done, length) in lengths.iter().enumerate() {
        let share = room / (lengths.len() - done);
        if *length > share {
            return share;
        }
        room -= length;
    }
    usize::MAX
}

/// A line for each server that says something, as long as that leaves room for the names of the others.
fn lines(servers: &[(ServerName, String)], room: usize) -> String {
    let mut all = LINES.into_iter().map(|line| listed(servers, line, servers.len()));
    if let Some(lines) = all.find(|lines| lines.len() <= room) {
        return lines;
    }
    // The more servers have a line, the longer the text: a binary search finds the most that fit.
    let (mut fitting, mut low, mut high) = (None, 0, servers.len());
    while low < high {
        let count = usize::midpoint(low, high);
        let lines = listed(servers, SHORTEST_LINE, count);
        if lines.len() <= room {
            (fitting, low) = (Some(lines), count + 1);
        } else {
            high = count;
        }
    }
    fitting.unwrap_or_else(|| some_names(servers, room))
}

/// The first `count` servers with a line each, all others by their names alone.
fn listed(servers: &[(ServerName, String)], longest: usize, count: usize) -> String {
    let (mut text, mut names) = (String::new(), Vec::new());
    for (at, (server, purpose)) in servers.iter().enumerate() {
        let head = format!("\n- {server}: ");
        let line = shortened(&format!("{head}{purpose}"), longest);
        if at < count && line.len() > head.len() {
            text.push_str(&line);
        } else {
            names.push(server.as_str());
        }
    }
    if !names.is_empty() {
        let also = if text.is_empty() { "Servers" } else { "Also" };
        let _ = write!(text, "\n{also}: {}", names.join(", "));
    }
    text
}

fn some_names(servers: &[(ServerName, String)], room: usize) -> String {
    if room < SHORTEST_LINE {
        return String::new();
    }
    let mut text = "\nServers: ".to_owned();
    for (done, (server, _)) in servers.iter().enumerate() {
        if text.len() + server.as_str().len() + 20 > room {
            let _ = write!(text, "and {} more", servers.len() - done);
            break;
        }
        let _ = write!(text, "{server}, ");
    }
    text
}

/// A server's own words on how to use it, if the instructions of the gateway have no room for them: they come
/// with the server's tools.
pub fn words_of(server: &ServerName, snapshot: &Snapshot) -> Option<String> {
    let text = snapshot.catalog.get(server)?.offer.instructions.as_deref()?.trim();
    let is_cut = without_headings(text).len() + server.as_str().len() > LINES[0];
    is_cut.then(|| format!("Instructions of {server}:\n{}", indented(&shortened(text, LONGEST_WORDS))))
}

/// Lines of a server within a reply: a line without indent would look like one of plugbay's own.
fn indented(text: &str) -> String {
    let lines = text.split(is_line_break).map(str::trim_end);
    lines
        .map(|line| if line.is_empty() { String::new() } else { format!("  {line}") })
        .collect::<Vec<_>>()
        .join("\n")
}

/// What a server is for: its instructions, or what it calls itself, or those of its tools that may be used.
pub(super) fn purpose(offer: &Offer, tools: impl FnOnce() -> Vec<String>) -> String {
    let instructions = offer.instructions.as_deref().map(without_headings).filter(|text| !text.is_empty());
    instructions
        .or_else(|| told(offer, "description"))
        .or_else(|| told(offer, "title"))
        .unwrap_or_else(|| tools().join(", "))
}

/// What a server says of itself, the most informative first.
pub(super) fn own_words(offer: &Offer) -> impl Iterator<Item = String> {
    let first = |text: &String| first_sentence(&without_headings(text));
    let instructions = offer.instructions.as_ref().map(first).filter(|text| !text.is_empty());
    [instructions, told(offer, "description"), told(offer, "title")].into_iter().flatten()
}

fn told(offer: &Offer, key: &str) -> Option<String> {
    let info = offer.info.as_ref()?;
    let span = Members::find(info, &(0..info.len()), key)?;
    Some(one_line(&string_value(&info[span])?)).filter(|text| !text.is_empty())
}

/// The text without headings: they only repeat whose words these are.
fn without_headings(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    one_line(&lines.collect::<Vec<_>>().join(" "))
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text cut at the end of a sentence or line if there is one late enough, else at a word or anywhere.
pub(super) fn shortened(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let Some(room) = room.checked_sub("…".len()) else { return String::new() };
    let end = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let cut = &text[..end];
    // A short line may end with its first sentence; of a long text as little as possible is lost.
    let early = if room < LINES[0] * 2 { room / 4 } else { room / 5 * 4 };
    let sentence = [". ", ".\n", "\n", "。"].into_iter().filter_map(|mark| {
        let behind = cut.rfind(mark)? + mark.trim_end().len();
        (behind >= early.max(1)).then_some(behind)
    });
    if let Some(end) = sentence.max() {
        return cut[..end].trim_end().to_owned();
    }
    let word = cut.rfind(char::is_whitespace).filter(|at| *at >= early).unwrap_or(cut.len());
    format!("{}…", cut[..word].trim_end_matches([',', ';', ':', ' ', '\n']))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::profile::{LONGEST_INSTRUCTIONS, LONGEST_INSTRUCTIONS_OF_ALL};
    use crate::{
        catalog::{Catalog, Change, Tool},
        era::Era,
        exposure::{Exposure, Mode},
        surface::Layout,
    };

    fn with(catalog: &Catalog, name: &str, info: Option<&'static str>, words: Option<&str>) -> Catalog {
        let tools = vec![Tool::parse(Bytes::from_static(br#"{"name":"spin"}"#)).unwrap()];
        let info = info.map(|info| Bytes::from_static(info.as_bytes()));
        let offer = Offer::new(Era::Legacy, info, words.map(str::to_owned), tools);
        catalog.apply(Change::Listed(ServerName::parse(name).unwrap(), Arc::new(offer)))
    }

    fn seen(catalog: &Catalog, layout: Layout) -> String {
        let snapshot = Snapshot::new(Arc::new(catalog.clone()), Arc::new(layout), true);
        instructions(&snapshot, Some(&snapshot.listing), LONGEST_INSTRUCTIONS)
    }

    fn searched() -> Layout {
        Layout { mode: Some(Mode::Search), name_limit: 64, ..Layout::default() }
    }

    #[test]
    fn each_server_says_what_it_is_for() {
        let catalog = with(&Catalog::default(), "a", None, Some("# A server\nDoes  this.\nThen that."));
        let catalog = with(&catalog, "b", Some(r#"{"name":"b","title":"Bee keeper"}"#), None);
        let catalog = with(&catalog, "c", Some(r#"{"name":"c"}"#), Some(" "));
        let text = seen(&catalog, searched());
        assert!(text.ends_with("\n- a: Does this. Then that.\n- b: Bee keeper\n- c: spin"), "{text}");
    }

    fn passed_through(catalog: &Catalog, longest: usize) -> String {
        let layout = Layout { mode: Some(Mode::All), name_limit: 64, ..Layout::default() };
        let snapshot = Snapshot::new(Arc::new(catalog.clone()), Arc::new(layout), true);
        instructions(&snapshot, Some(&snapshot.listing), longest)
    }

    #[test]
    fn where_every_tool_is_listed_servers_say_all_they_have_to_say() {
        let words = "# Rules\n\n1. Read first.\n2. ".to_owned() + &"Then write. ".repeat(200);
        let one = with(&Catalog::default(), "a", None, Some(&words));
        assert_eq!(passed_through(&one, LONGEST_INSTRUCTIONS_OF_ALL), words.trim());
        let both = with(&one, "b", Some(r#"{"name":"b","description":"Keeps bees"}"#), None);
        let three = with(&both, "c", None, Some("Be brief."));
        let text = passed_through(&with(&three, "d", None, None), LONGEST_INSTRUCTIONS_OF_ALL);
        let sections = format!("\n- b: Keeps bees\n\n# a\n{}\n\n# c\nBe brief.", words.trim());
        assert!(text.ends_with(&sections), "{text}");
        assert!(!text.contains("spin"), "tools are listed anyway: {text}");
        for longest in 0..700 {
            let text = passed_through(&three, longest);
            assert!(text.len() <= longest, "{longest}: {text}");
            assert!(
                longest < 300 || text.contains("\n# c\nBe brief."),
                "the long leave room for the short: {text}"
            );
        }
    }

    #[test]
    fn a_long_text_is_cut_near_its_limit_whatever_it_is_made_of() {
        let list =
            "# Memory\n\nStores facts. Use it so:\n\n".to_owned() + &"- one rule of many\n".repeat(300);
        let prose = "Use it. ".to_owned() + &"no end of this sentence in sight ".repeat(300);
        for text in [list.as_str(), &prose, &"使用服务器".repeat(900), &"这是一句话。".repeat(900)]
        {
            let cut = shortened(text, 4096);
            assert!(cut.len() <= 4096 && cut.len() > 3200, "{}: {cut}", cut.len());
        }
        let line = shortened(&format!("- s: {}", "機能".repeat(200)), 240);
        assert!(line.len() > 200, "{line}");
    }

    #[test]
    fn many_servers_are_named_where_there_is_no_room_for_their_words() {
        let words = "Looks after the things of one department. ".repeat(20);
        let name = |number: usize| format!("server-{number}");
        let add = |catalog: Catalog, number: usize| with(&catalog, &name(number), None, Some(&words));
        let text = passed_through(&(0..100).fold(Catalog::default(), add), 4096);
        assert!(text.len() <= 4096 && (0..100).all(|number| text.contains(&name(number))), "{text}");
    }

    #[test]
    fn a_share_is_fair() {
        assert_eq!(fair_share([5, 5].into_iter(), 10), usize::MAX);
        assert_eq!(fair_share([100, 2, 100].into_iter(), 42), 20);
        assert_eq!(fair_share([7].into_iter(), 0), 0);
        assert_eq!(fair_share([].into_iter(), 0), usize::MAX);
    }

    #[test]
    fn servers_that_were_never_met_are_named() {
        let new = ["x", "y"].map(|name| (ServerName::parse(name).unwrap(), Exposure::default()));
        let layout = Layout { exposures: new.into(), ..searched() };
        assert!(seen(&Catalog::default(), layout.clone()).ends_with("\nServers: x, y"));
        let text = seen(&with(&Catalog::default(), "b", None, None), layout);
        assert!(text.ends_with("\n- b: spin\nAlso: x, y"), "{text}");
    }

    #[test]
    fn a_way_of_their_own_is_told_for_tools_that_only_read() {
        assert!(!seen(&Catalog::default(), searched()).contains("execute_read_tool"));
        let split = Layout { split: true, ..searched() };
        assert!(seen(&Catalog::default(), split).ends_with("those marked [reads] with execute_read_tool."));
    }

    #[test]
    fn it_is_never_too_long_and_no_server_is_left_out_for_anothers_words() {
        let words = "One sentence is short. ".repeat(50);
        let mut catalog = Catalog::default();
        for number in 0..200 {
            catalog = with(&catalog, &format!("server-{number}"), None, Some(&words));
            let text = seen(&catalog, searched());
            assert!(text.len() <= LONGEST_INSTRUCTIONS, "{number}: {}", text.len());
            let named = catalog.iter().all(|(server, _)| text.contains(server.as_str()));
            assert!(named || number > 130, "{number}: {text}");
            assert!(!text.contains("…"), "a line that says nothing: {text}");
        }
        assert!(seen(&catalog, searched()).ends_with(" more"));
        let snapshot = Snapshot::new(Arc::new(catalog), Arc::new(searched()), true);
        for longest in 0..200 {
            let text = instructions(&snapshot, Some(&snapshot.listing), longest);
            assert!(text.len() <= longest, "{longest}: {text}");
        }
        let few = seen(&with(&Catalog::default(), "a", None, Some(&words)), searched());
        assert!(few.ends_with("One sentence is short."), "{few}");
    }
}
