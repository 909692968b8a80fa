//! The settings that the publisher of the catalog needs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use plugbay_core::{
    arguments,
    failure::Failure,
    name::ServerName,
    surface::{AgentAccess, Layout, LiveSettings, OwnSkill},
};

use crate::{
    config::{ModelSource, ServerSettings, Settings, identity},
    publisher::CatalogConfig,
    skill_text,
};

pub(super) fn catalog_config(settings: &Settings, shared: BTreeSet<ServerName>) -> CatalogConfig {
    let exposures = settings.servers.iter().map(|server| (server.name.clone(), server.exposure.clone()));
    let layout = Layout {
        mode: settings.mode,
        exposures: exposures.collect(),
        name_limit: settings.limits.name_length,
        admin_tools: settings.admin_tools,
        split: settings.split_execute,
        hosts: settings.hosts.clone(),
        agents: match settings.natural_language.as_ref().map(|chosen| &chosen.model) {
            None => AgentAccess::Nobody,
            Some(ModelSource::Remote(_)) => AgentAccess::Everybody,
            Some(ModelSource::Host) => AgentAccess::Lenders,
        },
        agent_servers: settings.natural_language.as_ref().and_then(|chosen| chosen.servers.clone()),
        settings: live(settings),
        skill: OwnSkill::new(&skill_text::served()).map(Arc::new),
        problems: settings.problems(),
    };
    let servers = settings.servers.iter().map(|server| {
        let identity = server.spec.as_ref().ok().map(identity);
        (server.name.clone(), identity)
    });
    let is_unchanged = |server: &&ServerSettings| server.spec.as_ref().is_ok_and(|spec| !spec.sanitize);
    let unchanged = settings.servers.iter().filter(is_unchanged).map(|server| server.name.clone());
    CatalogConfig {
        layout: Arc::new(layout),
        servers: servers.collect(),
        unchanged: unchanged.collect(),
        shared,
        broken: broken(settings),
        list_wait: settings.list_wait,
    }
}

fn live(settings: &Settings) -> LiveSettings {
    LiveSettings {
        search_limit: settings.search.hits,
        repair: if settings.repair { arguments::Mode::Repair } else { arguments::Mode::CheckOnly },
        message_limit: settings.limits.message,
        learn: settings.learn,
        call_limits: settings.limits.calls,
        list_wait: settings.list_wait,
        drain: settings.limits.drain,
        code: settings.code,
    }
}

pub(super) fn broken(settings: &Settings) -> BTreeMap<ServerName, Arc<Failure>> {
    let reason = |server: &ServerSettings| {
        let failure = Failure::new(server.spec.as_ref().err()?, Vec::new());
        Some((server.name.clone(), Arc::new(failure)))
    };
    settings.servers.iter().filter_map(reason).collect()
}
