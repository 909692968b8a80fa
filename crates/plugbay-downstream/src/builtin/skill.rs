//! `describe_tool` for a skill: returns its text, for a model whose host does not support skills.

use std::{borrow::Cow, fmt::Write};

use bytes::Bytes;
use plugbay_core::{
    name::ServerName,
    size_limit,
    surface::{BuiltinTool, Skill, SkillPlace, Snapshot},
    text::word,
    wire::{Members, elements, string_value},
};
use serde_json::json;

use super::call_arguments::Arguments;
use crate::{context::RequestContext, dispatch::InnerRequest, message::Request, route};

/// Limit of a skill's files that are listed.
const FILES: usize = 100;

/// The URI that a call names: of a skill or of one of its files. A skill's name also works, if no tool is
/// like it.
pub(super) fn wanted(snapshot: &Snapshot, request: &Request) -> Option<String> {
    let name = Arguments::of(request).text_within("name", size_limit::URI).ok()??;
    let name = name.trim();
    if name.contains("://") {
        return is_readable(snapshot, name).then(|| name.to_owned());
    }
    let mut named = snapshot.resources.skills.iter().filter(|skill| skill.name == name);
    let only = named.next().filter(|_| named.next().is_none())?;
    snapshot.names.alike(name).is_none().then(|| only.uri.clone())
}

/// Whether the URI belongs to a skill: other resources cannot be read this way.
fn is_readable(snapshot: &Snapshot, uri: &str) -> bool {
    match snapshot.skill_file_at(uri) {
        SkillPlace::Own | SkillPlace::Several(_) | SkillPlace::Perhaps(_) => true,
        SkillPlace::At(place) => snapshot.is_of_skill(uri, &place.server),
        SkillPlace::Nowhere => false,
    }
}

/// Reads the file at its server, as a host would.
pub(super) fn describe(context: RequestContext<'_>, snapshot: &Snapshot, uri: String) {
    let skill = snapshot.resources.skills.get(&uri).cloned();
    let origin = skill.as_ref().map(|skill| skill.server.clone()).or_else(|| owner(snapshot, &uri));
    let params = json!({ "uri": uri });
    let Some(reading) = InnerRequest::new(context, "resources/read", &params, route::resource) else {
        return context.text(&Err(format!("{} cannot be read", word(&uri))));
    };
    context.later(reading.result(), move |context, read| {
        let text = read.map(|result| text(&uri, &result));
        let text = text.map_err(|why| format!("{} cannot be read: {why}", word(&uri)));
        context.text(&text.map(|text| told(&text, &uri, skill.as_ref(), origin.as_ref())));
    });
}

fn owner(snapshot: &Snapshot, uri: &str) -> Option<ServerName> {
    match snapshot.skill_file_at(uri) {
        SkillPlace::At(place) => Some(place.server),
        _ => None,
    }
}

/// The file, preceded by its origin: text from a server must not look like text from plugbay.
fn told(text: &str, uri: &str, skill: Option<&Skill>, origin: Option<&ServerName>) -> String {
    let Some(origin) = origin else { return text.to_owned() };
    let mut told = format!("{}, as server {origin} wrote it:\n\n{text}", word(uri));
    let files = skill.and_then(|skill| skill.files.as_deref()).unwrap_or_default();
    let others: Vec<Cow<'_, str>> =
        files.iter().filter(|file| *file != uri).take(FILES).map(|file| word(file)).collect();
    if !others.is_empty() {
        let shown = others.join("\n");
        let _ =
            write!(told, "\n\nIts other files ({} reads them too):\n{shown}", BuiltinTool::Describe.name());
    }
    told
}

/// The texts in a result of `resources/read`.
fn text(uri: &str, result: &Bytes) -> String {
    let contents = Members::find(result, &(0..result.len()), "contents");
    let contents = contents.map(|contents| elements(result, &contents)).unwrap_or_default();
    let text = |content| string_value(&result[Members::find(result, content, "text")?]);
    let texts: Vec<String> =
        contents.iter().filter_map(|content| Some(text(content)?.into_owned())).collect();
    if texts.is_empty() { format!("{} is not text", word(uri)) } else { texts.join("\n") }
}
