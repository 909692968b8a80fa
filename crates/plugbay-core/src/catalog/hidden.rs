//! Definitions of a server without hidden characters, and what was taken out.

use std::{fmt, sync::Arc};

use bytes::Bytes;

use super::{Item, ItemKind, Offer, Tool, Tools};
use crate::text::{self, Cleaned, HiddenKinds};

/// How many places of one server are remembered.
const MOST: usize = 50;
/// How many characters of a name are remembered.
const LONGEST: usize = 80;

/// The hidden characters in the definitions of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HiddenText {
    pub places: Vec<HiddenPlace>,
    /// How many more there are.
    pub more: usize,
}

/// A definition with hidden characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenPlace {
    /// The kind of the definition, and its name: `tool echo`.
    pub what: String,
    /// The kinds of characters that were taken out.
    pub stripped: HiddenKinds,
    /// The kinds of those that stay, because calls must repeat them.
    pub kept: HiddenKinds,
    /// It is not listed: its URI has such characters.
    pub left_out: bool,
}

impl fmt::Display for HiddenPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.left_out {
            return write!(f, ": left out, its URI has hidden characters ({})", self.kept);
        }
        if !self.stripped.is_empty() {
            write!(f, ": removed {}", self.stripped)?;
        }
        if !self.kept.is_empty() {
            write!(f, ": left {} in names and values that calls repeat", self.kept)?;
        }
        Ok(())
    }
}

impl HiddenText {
    /// A line for each place.
    pub fn lines(&self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("and {} more", self.more));
        self.places.iter().map(ToString::to_string).chain(more).collect()
    }

    fn add(&mut self, place: HiddenPlace) {
        if self.places.len() < MOST {
            self.places.push(place);
        } else {
            self.more += 1;
        }
    }

    /// Cleans a text in which no hidden character has to stay.
    fn text(&mut self, what: &str, text: String) -> String {
        let stripped = text::hidden_in(&text);
        if stripped.is_empty() {
            return text;
        }
        self.add(HiddenPlace {
            what: what.to_owned(),
            stripped,
            kept: HiddenKinds::default(),
            left_out: false,
        });
        text::stripped(&text).into_owned()
    }

    fn definition(
        &mut self,
        what: impl FnOnce() -> String,
        json: &Bytes,
        identity: &[&str],
    ) -> Option<Bytes> {
        let Cleaned { definition, stripped, kept } = text::clean_definition(json, identity);
        if !stripped.is_empty() || !kept.is_empty() {
            self.add(HiddenPlace { what: what(), stripped, kept, left_out: false });
        }
        definition
    }

    /// Notes the places of other definitions too.
    fn extend(&mut self, other: Self) {
        other.places.into_iter().for_each(|place| self.add(place));
        self.more += other.more;
    }

    /// A tool without hidden characters.
    pub fn tool(&mut self, tool: Tool) -> Tool {
        let what = || named(ItemKind::Tool, &tool.name);
        let cleaned = self.definition(what, &tool.definition, &[ItemKind::Tool.key()]);
        cleaned.and_then(Tool::parse).unwrap_or(tool)
    }

    /// An item without hidden characters. `None`: it is not listed. Hosts see a cleaned name of a prompt, but ask for
    /// resources by their URIs as they are.
    pub fn item(&mut self, item: Item, item_kind: ItemKind) -> Option<Item> {
        let what = || named(item_kind, &item.key);
        let kept = text::hidden_in(&item.key);
        if item_kind != ItemKind::Prompt && !kept.is_empty() {
            self.add(HiddenPlace { what: what(), stripped: HiddenKinds::default(), kept, left_out: true });
            return None;
        }
        let cleaned = self.definition(what, &item.definition, &[item_kind.key()]);
        Some(cleaned.and_then(|definition| Item::parse(definition, item_kind)).unwrap_or(item))
    }
}

fn named(item_kind: ItemKind, key: &str) -> String {
    let short: String = key.chars().take(LONGEST).collect();
    let more = if short.len() < key.len() { "…" } else { "" };
    format!("{} {}{more}", item_kind.noun(), text::visible(&short))
}

impl ItemKind {
    fn noun(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Template => "resource template",
            Self::Prompt => "prompt",
            Self::Skill => "skill",
        }
    }
}

impl Tools {
    /// Whether some definition has hidden characters.
    pub fn have_hidden(&self) -> bool {
        let mut hidden = HiddenText::default();
        self.iter().any(|tool| {
            hidden.tool(tool.clone());
            !hidden.places.is_empty()
        })
    }
}

impl Offer {
    /// The same without hidden characters, and with the places where some were.
    #[must_use]
    pub fn without_hidden(mut self) -> Self {
        let mut hidden = HiddenText::default();
        if !self.tools.are_visible() {
            let tools: Vec<Tool> = self.tools.iter().map(|tool| hidden.tool(tool.clone())).collect();
            self.tools = tools.into();
        }
        for (items, item_kind) in [
            (&mut self.resources, ItemKind::Resource),
            (&mut self.templates, ItemKind::Template),
            (&mut self.prompts, ItemKind::Prompt),
            (&mut self.skills, ItemKind::Skill),
        ] {
            let all = std::mem::take(items).into_iter();
            *items = all.filter_map(|item| hidden.item(item, item_kind)).collect();
        }
        self.with_cleaned_definitions(hidden)
    }

    /// The same without hidden characters, for definitions that are clean; `definitions` tells where some
    /// were.
    #[must_use]
    pub fn with_cleaned_definitions(mut self, definitions: HiddenText) -> Self {
        let mut hidden = HiddenText::default();
        self.instructions = self.instructions.map(|text| hidden.text("instructions", text));
        let cleaned =
            self.info.as_ref().and_then(|info| hidden.definition(|| "serverInfo".to_owned(), info, &[]));
        self.info = cleaned.or(self.info);
        hidden.extend(definitions);
        self.hidden = (!hidden.places.is_empty()).then(|| Arc::new(hidden));
        self
    }
}
