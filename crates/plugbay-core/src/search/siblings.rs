//! Hits with the same purpose: each is described by what only it says.

use std::collections::{HashMap, HashSet};

use crate::{
    catalog::Tool,
    signature::{Signature, purpose, sentences},
};

/// How many others of the same purpose a tool is compared with.
const COMPARED: usize = 8;

/// Gives each signature a purpose that none before it has. A tool whose description says nothing else gets
/// none: then its parameters take the room.
pub(super) fn tell_apart(signatures: &mut [Signature], tools: &[&Tool]) {
    let common: Vec<String> = signatures.iter().map(|signature| plain(&signature.purpose)).collect();
    let mut first: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut said: Vec<Option<Vec<Sentence>>> = tools.iter().map(|_| None).collect();
    for (at, common) in common.iter().enumerate().filter(|(_, common)| !common.is_empty()) {
        let siblings = first.entry(common).or_default();
        if !siblings.is_empty() {
            for tool in siblings.iter().chain([&at]) {
                said[*tool]
                    .get_or_insert_with(|| sentences(tools[*tool]).into_iter().map(Sentence::new).collect());
            }
            let of = |tool: &usize| said[*tool].iter().flatten();
            let others: HashSet<&str> = siblings.iter().flat_map(of).map(|other| &*other.plain).collect();
            let own = of(&at).find(|own| !own.plain.is_empty() && !others.contains(&*own.plain));
            signatures[at].purpose = own.map(|own| purpose(&own.text)).unwrap_or_default();
        }
        if siblings.len() < COMPARED {
            siblings.push(at);
        }
    }
}

/// A sentence of a description.
struct Sentence {
    text: String,
    plain: String,
}

impl Sentence {
    fn new(text: String) -> Self {
        Self { plain: plain(&text), text }
    }
}

/// A text without what makes no difference: marks, blanks and capitals.
fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(descriptions: &[&str]) -> Vec<String> {
        let tool = |description: &&str| json!({ "name": "x", "description": description }).to_string();
        let tools: Vec<Tool> =
            descriptions.iter().map(|text| Tool::parse(tool(text).into()).unwrap()).collect();
        let tools: Vec<&Tool> = tools.iter().collect();
        let mut signatures: Vec<Signature> = tools.iter().map(|tool| Signature::of("x", tool)).collect();
        tell_apart(&mut signatures, &tools);
        signatures.into_iter().map(|signature| signature.purpose).collect()
    }

    #[test]
    fn tools_with_the_same_purpose_are_told_by_what_only_they_say() {
        let told = told(&[
            "Assign to an issue. Returns a link.",
            "Assign to an issue. Returns a link. Says why.",
            "Delete it.",
            "assign to an issue\n\nSays where.",
        ]);
        assert_eq!(told, ["Assign to an issue.", "Says why.", "Delete it.", "Says where."]);
    }

    #[test]
    fn what_all_say_alike_is_said_once() {
        assert_eq!(told(&["Plays it.", "Plays it.", "", ""]), ["Plays it.", "", "", ""]);
    }
}
