//! What a model is told of the servers behind the gateway, in as few words as hosts let through.

use super::Listing;
use crate::{
    catalog::{Catalog, Offer},
    signature::first_sentence,
    wire::{Members, string_value},
};

/// Most hosts show as much, in bytes; some cut off the rest in the middle of a word.
pub const LONGEST_INSTRUCTIONS: usize = 2000;
/// Beside the three tools of activate mode, which are to cost next to nothing, however many servers there are.
const LONGEST_BESIDE_SWITCHES: usize = 440;
/// One server's line; less if there are many.
const LONGEST_LINE: usize = 240;
const SHORTEST_LINE: usize = 40;

const ALL: &str =
    "Several MCP servers behind one. A tool or prompt named server__name belongs to that server.";

const SEARCH: &str =
    "Several MCP servers behind one. Find their tools with search_tools, call them with execute_tool.";

const ACTIVATE: &str = "Several MCP servers behind one. gateway_activate shows the tools of one.";

const SUITE: &str = "Several MCP servers behind one, a tool each: introspect shows what it has (query narrows it, detail shows schemas), call runs a subtool with args.";

const UNDECIDED: &str = "Several MCP servers behind one.";

/// Says how tools are reached, unless that is still undecided, and what each server is for, in its own words.
pub fn instructions(catalog: &Catalog, listing: Option<&Listing>, longest: usize) -> String {
    let how = listing.map_or(UNDECIDED, |listing| match listing {
        listing if listing.is_searchable() => SEARCH,
        listing if listing.is_switchable() => ACTIVATE,
        listing if listing.has_suites() => SUITE,
        _ => ALL,
    });
    let longest = if how == ACTIVATE { longest.min(LONGEST_BESIDE_SWITCHES) } else { longest };
    let mut text = shortened(how, longest);
    let count = catalog.iter().count();
    let room = longest
        .saturating_sub(how.len())
        .checked_div(count)
        .unwrap_or_default()
        .clamp(SHORTEST_LINE, LONGEST_LINE);
    for (done, (server, entry)) in catalog.iter().enumerate() {
        let purpose = purpose(&entry.offer);
        let line = shortened(&format!("\n- {server}: {purpose}"), room);
        if text.len() + line.len() + 20 > longest {
            let more = format!("\n- {} more", count - done);
            if text.len() + more.len() <= longest {
                text.push_str(&more);
            }
            break;
        }
        text.push_str(&line);
    }
    text
}

/// Its instructions, or what it calls itself, or what it has.
pub(super) fn purpose(offer: &Offer) -> String {
    let instructions = offer.instructions.as_deref().map(without_headings).filter(|text| !text.is_empty());
    instructions.or_else(|| told(offer, "description")).or_else(|| told(offer, "title")).unwrap_or_else(
        || {
            let names: Vec<&str> = offer.tools.iter().take(8).map(|tool| tool.name.as_str()).collect();
            names.join(", ")
        },
    )
}

/// What a server says of itself, the most telling first.
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

/// A heading only says again whose words these are.
fn without_headings(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    one_line(&lines.collect::<Vec<_>>().join(" "))
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Cut at the end of a sentence if there is one in time, else at a word.
pub(super) fn shortened(line: &str, room: usize) -> String {
    if line.len() <= room {
        return line.to_owned();
    }
    let Some(room) = room.checked_sub("…".len()) else { return String::new() };
    let end = (0..=room).rev().find(|at| line.is_char_boundary(*at)).unwrap_or_default();
    let cut = &line[..end];
    if let Some(end) = cut.rfind(". ") {
        return cut[..=end].to_owned();
    }
    let word = cut.rfind(' ').unwrap_or(cut.len());
    format!("{}…", cut[..word].trim_end_matches([',', ';', ':', ' ']))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::{
        catalog::{Change, Tool},
        era::Era,
        name::ServerName,
    };

    fn with(catalog: &Catalog, name: &str, info: Option<&'static str>, words: Option<&str>) -> Catalog {
        let tools = vec![Tool::parse(Bytes::from_static(br#"{"name":"spin"}"#)).unwrap()];
        let info = info.map(|info| Bytes::from_static(info.as_bytes()));
        let offer = Offer::new(Era::Legacy, info, words.map(str::to_owned), tools);
        catalog.apply(Change::Listed(ServerName::parse(name).unwrap(), Arc::new(offer)))
    }

    #[test]
    fn each_server_says_what_it_is_for() {
        let catalog = with(&Catalog::default(), "a", None, Some("# A server\nDoes  this.\nThen that."));
        let catalog = with(&catalog, "b", Some(r#"{"name":"b","title":"Bee keeper"}"#), None);
        let catalog = with(&catalog, "c", Some(r#"{"name":"c"}"#), Some(" "));
        let text = instructions(&catalog, Some(&Listing::default()), LONGEST_INSTRUCTIONS);
        assert!(text.ends_with("\n- a: Does this. Then that.\n- b: Bee keeper\n- c: spin"), "{text}");
    }

    #[test]
    fn it_is_never_too_long() {
        let words = "One sentence is short. ".repeat(50);
        let mut catalog = Catalog::default();
        for number in 0..200 {
            catalog = with(&catalog, &format!("server-{number}"), None, Some(&words));
            let text = instructions(&catalog, Some(&Listing::default()), LONGEST_INSTRUCTIONS);
            assert!(text.len() <= LONGEST_INSTRUCTIONS, "{number}: {}", text.len());
        }
        assert!(instructions(&catalog, Some(&Listing::default()), LONGEST_INSTRUCTIONS).ends_with(" more"));
        for longest in 0..200 {
            let text = instructions(&catalog, Some(&Listing::default()), longest);
            assert!(text.len() <= longest, "{longest}: {text}");
        }
        let few = instructions(
            &with(&Catalog::default(), "a", None, Some(&words)),
            Some(&Listing::default()),
            LONGEST_INSTRUCTIONS,
        );
        assert!(few.ends_with("One sentence is short."), "{few}");
    }
}
