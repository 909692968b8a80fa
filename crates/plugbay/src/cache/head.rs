//! The head of a cache file: everything that a session needs at its start, and the place of the tools.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    catalog::{Dialect, Item, ItemKind, Items, KnownList, LeftOut, Offer, ServerCapabilities, Tools},
    declaration::Declaration,
    extension::Extensions,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::stored_tools::ToolsPlace;

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Head<'a> {
    pub(super) server: String,
    /// Empty for a server that never answered.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub(super) lists: Vec<StoredList<'a>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredList<'a> {
    /// The place of its tools.
    pub(super) tools: ToolsPlace,
    #[serde(borrow)]
    pub(super) offer: StoredOffer<'a>,
}

/// A list without its tools.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredOffer<'a> {
    /// The client capabilities and extensions of the hosts that the list is for.
    #[serde(borrow, default)]
    declared: Vec<&'a RawValue>,
    /// Absent in files of earlier versions.
    #[serde(default)]
    confirmed: u64,
    dialect: Dialect,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    info: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(default)]
    capabilities: ServerCapabilities,
    /// An object with the members of the server's `capabilities` that hold extensions.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    extensions: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    resources: Vec<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    templates: Vec<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    prompts: Vec<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    skills: Vec<&'a RawValue>,
    /// Unknown in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOut>,
}

/// The parts of a list as texts for the file.
pub(super) struct Texts {
    declared: Vec<String>,
    extensions: String,
}

impl Texts {
    pub(super) fn of(list: &KnownList) -> Self {
        Self {
            declared: list.declared.iter().map(Declaration::kind).collect(),
            extensions: list.offer.extensions.added_to("{}".to_owned()),
        }
    }
}

impl<'a> StoredOffer<'a> {
    pub(super) fn of(KnownList { offer, confirmed, .. }: &'a KnownList, texts: &'a Texts) -> Self {
        Self {
            declared: texts.declared.iter().filter_map(|kind| raw(kind.as_bytes())).collect(),
            confirmed: *confirmed,
            dialect: offer.dialect,
            info: offer.info.as_deref().and_then(raw),
            instructions: offer.instructions.clone(),
            capabilities: offer.capabilities,
            extensions: raw(texts.extensions.as_bytes())
                .filter(|_| offer.extensions != Extensions::default()),
            resources: definitions(&offer.resources),
            templates: definitions(&offer.templates),
            prompts: definitions(&offer.prompts),
            skills: definitions(&offer.skills),
            left_out: offer.left_out,
        }
    }

    pub(super) fn known_list(self, tools: Tools) -> Option<KnownList> {
        let items = |raw: Vec<&RawValue>, item_kind| {
            raw.into_iter().map(|raw| Item::parse(bytes(raw), item_kind)).collect::<Option<Vec<_>>>()
        };
        let stock = Items {
            resources: items(self.resources, ItemKind::Resource)?,
            templates: items(self.templates, ItemKind::Template)?,
            prompts: items(self.prompts, ItemKind::Prompt)?,
            skills: items(self.skills, ItemKind::Skill)?,
        };
        let offer = Offer::new(self.dialect, self.info.map(bytes), self.instructions, Vec::new());
        let read = |raw: &RawValue| (raw.get().as_bytes().to_vec(), 0..raw.get().len());
        let declared = self.declared.into_iter().map(|raw| {
            let (text, object) = read(raw);
            Declaration::read(&text, &object)
        });
        let extensions = self.extensions.map(|raw| {
            let (text, object) = read(raw);
            Extensions::read(&text, &object)
        });
        let offer = offer.with_tools(tools).with_items(self.capabilities, stock).without(self.left_out);
        let offer = Arc::new(offer.extended(extensions.unwrap_or_default()));
        Some(KnownList { declared: declared.collect(), offer, confirmed: self.confirmed })
    }
}

pub(super) fn bytes(raw: &RawValue) -> Bytes {
    Bytes::copy_from_slice(raw.get().as_bytes())
}

fn definitions(items: &[Item]) -> Vec<&RawValue> {
    items.iter().filter_map(|item| raw(&item.definition)).collect()
}

fn raw(json: &[u8]) -> Option<&RawValue> {
    serde_json::from_slice(json).ok()
}
