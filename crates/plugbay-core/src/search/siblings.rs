//! Hits with the same purpose: each is described by what only it says.

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
    for at in 1..signatures.len() {
        let is_sibling = |other: &usize| !common[at].is_empty() && common[*other] == common[at];
        let siblings: Vec<&Tool> =
            (0..at).filter(is_sibling).take(COMPARED).map(|other| tools[other]).collect();
        if !siblings.is_empty() {
            signatures[at].purpose = own_sentence(tools[at], &siblings).unwrap_or_default();
        }
    }
}

/// The first sentence of a tool that no sibling has.
fn own_sentence(tool: &Tool, siblings: &[&Tool]) -> Option<String> {
    let others: Vec<String> =
        siblings.iter().flat_map(|sibling| sentences(sibling)).map(|sentence| plain(&sentence)).collect();
    let own = sentences(tool).into_iter().find(|sentence| {
        let sentence = plain(sentence);
        !sentence.is_empty() && !others.contains(&sentence)
    })?;
    Some(purpose(&own))
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
