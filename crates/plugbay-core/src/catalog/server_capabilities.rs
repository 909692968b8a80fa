//! The capabilities that a server declares.

use super::ItemKind;
use crate::{
    era::Era,
    skill, task,
    wire::{Members, Span},
};

/// The capabilities that a server declares, as far as they concern a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each stands for itself in the protocol")]
pub struct ServerCapabilities {
    pub tools: bool,
    pub resources: bool,
    /// Sends a notification when a resource changes.
    pub subscribe: bool,
    pub prompts: bool,
    pub completions: bool,
    pub logging: bool,
    /// May answer a tool's call with a task.
    pub tasks: bool,
    /// Two capabilities that only legacy servers declare separately.
    pub tasks_list: bool,
    pub tasks_cancel: bool,
    /// Has skills, and lists the directories that their files are in.
    pub skills: bool,
    pub directory_read: bool,
}

impl ServerCapabilities {
    /// `capabilities` is the object of that name in a server's opening. Each era has its own way to declare
    /// tasks, which means nothing in the other.
    pub fn read(message: &[u8], capabilities: &Span, era: Era) -> Self {
        let mut read = Self::default();
        for member in Members::of(message, capabilities).flatten() {
            match &*member.key {
                "tools" => read.tools = true,
                "prompts" => read.prompts = true,
                "completions" => read.completions = true,
                "logging" => read.logging = true,
                "tasks" if era == Era::Legacy => read.read_tasks(message, &member.value),
                "extensions" if era == Era::Modern => read.tasks = task::is_known(message, capabilities),
                "resources" => {
                    read.resources = true;
                    let subscribe = Members::find(message, &member.value, "subscribe");
                    read.subscribe = subscribe.is_some_and(|span| &message[span] == b"true");
                }
                _ => {}
            }
        }
        if let Some(declared) = skill::Declared::read(message, capabilities) {
            (read.skills, read.directory_read) = (true, declared.directory_read);
        }
        read
    }

    fn read_tasks(&mut self, message: &[u8], tasks: &Span) {
        let requests = Members::find(message, tasks, "requests");
        let tools = requests.and_then(|requests| Members::find(message, &requests, "tools"));
        self.tasks = tools.is_some_and(|tools| Members::find(message, &tools, "call").is_some());
        self.tasks_list = Members::find(message, tasks, "list").is_some();
        self.tasks_cancel = Members::find(message, tasks, "cancel").is_some();
    }

    /// The kinds of items that can be listed, in the order in which they are requested.
    pub fn item_kinds(self) -> impl Iterator<Item = ItemKind> {
        let all = [
            (self.tools, ItemKind::Tool),
            (self.resources, ItemKind::Resource),
            (self.resources, ItemKind::Template),
            (self.prompts, ItemKind::Prompt),
            (self.skills, ItemKind::Skill),
        ];
        all.into_iter().filter_map(|(has, item_kind)| has.then_some(item_kind))
    }

    /// The capabilities that at least one of the two has.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            tools: self.tools | other.tools,
            resources: self.resources | other.resources,
            subscribe: self.subscribe | other.subscribe,
            prompts: self.prompts | other.prompts,
            completions: self.completions | other.completions,
            logging: self.logging | other.logging,
            tasks: self.tasks | other.tasks,
            tasks_list: self.tasks_list | other.tasks_list,
            tasks_cancel: self.tasks_cancel | other.tasks_cancel,
            skills: self.skills | other.skills,
            directory_read: self.directory_read | other.directory_read,
        }
    }
}
