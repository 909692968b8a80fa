//! The lists that a host knows, so that it is notified only of changes.

use bytes::Bytes;
use plugbay_core::{
    catalog::ItemKind,
    surface::Snapshot,
    wire::{Members, Span},
};

/// The kind of a `list_changed` notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tools,
    Resources,
    Prompts,
    /// A skill's files are resources, and the protocol has no notification for skills.
    Skills,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Prompts, Self::Skills];
    /// The kinds that `subscriptions/listen` has a name for.
    pub(crate) const NAMED: [Self; 3] = [Self::Tools, Self::Resources, Self::Prompts];

    pub(crate) fn of(item_kind: ItemKind) -> Self {
        match item_kind {
            ItemKind::Tool => Self::Tools,
            ItemKind::Resource | ItemKind::Template => Self::Resources,
            ItemKind::Prompt => Self::Prompts,
            ItemKind::Skill => Self::Skills,
        }
    }

    pub(crate) fn changed_method(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Resources | Self::Skills => "notifications/resources/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
        }
    }

    /// The key in the filter of `subscriptions/listen`.
    pub(crate) fn filter_key(self) -> &'static str {
        match self {
            Self::Tools => "toolsListChanged",
            Self::Resources | Self::Skills => "resourcesListChanged",
            Self::Prompts => "promptsListChanged",
        }
    }
}

/// The definitions of one kind, as they are sent; for skills without the brackets of the list.
pub(crate) fn definitions(snapshot: &Snapshot, item_kind: ItemKind) -> &Bytes {
    match item_kind {
        ItemKind::Tool => &snapshot.listing.tools,
        ItemKind::Resource => &snapshot.resources.resources,
        ItemKind::Template => &snapshot.resources.templates,
        ItemKind::Prompt => &snapshot.listing.prompts,
        ItemKind::Skill => &snapshot.resources.skills.entries,
    }
}

/// The lists as the host last got them or was notified of them.
#[derive(Debug, Default)]
pub(crate) struct KnownLists([Option<[Bytes; 2]>; 4]);

impl KnownLists {
    /// All lists in their current state.
    pub(crate) fn all(snapshot: &Snapshot) -> Self {
        Self(Kind::ALL.map(|kind| Some(definitions_of(snapshot, kind))))
    }

    pub(crate) fn note(&mut self, snapshot: &Snapshot, kind: Kind) {
        self.0[kind as usize] = Some(definitions_of(snapshot, kind));
    }

    /// Whether the host knows another list than the current one. A list that it never requested counts as
    /// unchanged.
    pub(crate) fn differs(&self, snapshot: &Snapshot, kind: Kind) -> bool {
        self.0[kind as usize].as_ref().is_some_and(|known| *known != definitions_of(snapshot, kind))
    }
}

fn definitions_of(snapshot: &Snapshot, kind: Kind) -> [Bytes; 2] {
    let list = |item_kind| definitions(snapshot, item_kind).clone();
    match kind {
        Kind::Tools => [list(ItemKind::Tool), Bytes::new()],
        Kind::Resources => [list(ItemKind::Resource), list(ItemKind::Template)],
        Kind::Prompts => [list(ItemKind::Prompt), Bytes::new()],
        Kind::Skills => {
            let own = snapshot.own_skill().map(|own| own.entry.clone());
            [list(ItemKind::Skill), own.unwrap_or_default()]
        }
    }
}

/// The list changes that a `subscriptions/listen` request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ListFilter([bool; 4]);

impl ListFilter {
    /// `filter` is the value at `notifications`.
    pub(crate) fn read(message: &[u8], filter: Option<&Span>) -> Self {
        let wants = |kind: Kind| {
            let wanted = filter.and_then(|filter| Members::find(message, filter, kind.filter_key()));
            wanted.is_some_and(|span| &message[span] == b"true")
        };
        Self(Kind::ALL.map(wants))
    }

    pub(crate) fn has(self, kind: Kind) -> bool {
        self.0[kind as usize]
    }
}
