//! Combines the effective files into one set of settings.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::Duration,
};

use plugbay_core::{
    exposure::{Exposure, Mode},
    limit::CallLimits,
    name::{self, ServerName},
    profile::{Limits as HostLimits, Profile, Profiles},
    start::Warm,
    surface::CodeSettings,
};

use super::{
    Env, Limits, ServerSettings, Settings, SharingSettings, audit, authorization, credentials,
    diagnostic::quote,
    edit::{Editable, Layer},
    entry::{self, Surroundings},
    expand::with_folders,
    files::{Files, Origin},
    model,
    paths::Paths,
    raw::{self, Entry, EntryKind, Filter, Plugbay},
    read::Overlay,
    remote,
    report::Report,
    units::Wait,
    written::WrittenEntry,
};

const LIST_WAIT: Duration = Duration::from_secs(5);

/// Reads `explicit` alone if given, else the user's file, overridden by the project's.
pub fn load(explicit: Option<&Path>, paths: &Paths, env: Env<'_>) -> Settings {
    settings(Files::read(explicit, paths), &with_folders(paths, env))
}

/// The settings that a changed file would give, including the files it overrides, as if it were written and
/// approved.
pub fn preview(changed: &Editable, paths: &Paths, env: Env<'_>) -> Settings {
    let mut files = Files::with_draft(&changed.file, changed.content());
    match changed.layer {
        Layer::Explicit => files.explicit(&changed.file, paths),
        Layer::User => files.user(paths),
        Layer::Project => {
            files.user(paths);
            files.project(paths);
        }
    }
    settings(files, &with_folders(paths, env))
}

/// The effective entries as written, sorted by name.
pub fn entries(explicit: Option<&Path>, paths: &Paths) -> Vec<WrittenEntry> {
    let used = Files::read(explicit, paths).used;
    let mut reports: Vec<Report<'_>> =
        used.iter().map(|(document, _)| Report::new(&document.source)).collect();
    let entries =
        used.iter().map(|(document, _)| document.config.servers.iter().flat_map(|servers| &servers.0));
    let counting = effective(entries, &mut reports).into_iter();
    counting.map(|(index, entry, denied)| WrittenEntry::of(&used[index].0, entry, denied.as_ref())).collect()
}

fn settings(files: Files, env: Env<'_>) -> Settings {
    let Files { mut used, sources, folders, contents, mut diagnostics, unreadable, unwrapped, .. } = files;
    let configs: Vec<_> = used.iter().map(|(document, _)| &document.config).collect();
    let unwritten = remote::unwritten(&configs, env);
    used.extend(unwritten.map(|document| (document, Origin::Machine)));
    let common = Common::of(used.iter().map(|(document, _)| &document.config));
    let mut reports: Vec<Report<'_>> =
        used.iter().map(|(document, _)| Report::new(&document.source)).collect();
    let logins = credentials::logins(&used, env, &mut reports);
    let mut outcome = Outcome::default();
    let remote_tools = remote::remote_tools(used.iter().map(|(document, _)| &document.config));
    let mut has_remote = false;
    let entries =
        used.iter().map(|(document, _)| document.config.servers.iter().flat_map(|servers| &servers.0));
    for (index, entry, denied) in effective(entries, &mut reports) {
        let (document, origin) = &used[index];
        let around = Surroundings {
            defaults: &common.defaults,
            message_limit: common.limits.message,
            folder: document.source.path.parent().unwrap_or(Path::new("")),
            starts_in_folder: *origin == Origin::Project,
            denied: denied.as_ref(),
            remote_tools: remote_tools.map(|(_, tools)| &tools.value),
            logins: &logins,
            env,
        };
        has_remote |= entry.kind == EntryKind::Remote;
        outcome.add(entry, around, &mut reports[index]);
    }
    outcome.list_misnamed();
    if let (Some((index, tools)), false) = (remote_tools, has_remote)
        && used[index].1 != Origin::Unapproved
        && !matches!(&tools.value.0, Ok(patterns) if patterns.is_empty())
    {
        remote::report_no_remote(tools.at, &mut reports[index]);
    }
    let search = model::search(used.iter().map(|(document, _)| &document.config), env, &mut reports);
    let natural_language = model::natural_language(
        used.iter().map(|(document, _)| &document.config),
        &unwrapped,
        env,
        &mut reports,
        &mut diagnostics,
    );
    let audit = audit::settings(&used, env, &mut reports);
    let authorization = authorization::settings(&used, env, &mut reports);
    diagnostics.extend(reports.into_iter().flat_map(Report::finish));
    diagnostics
        .sort_by_key(|problem| (sources.iter().position(|path| *path == problem.file), problem.position));
    Settings {
        mode: common.mode,
        hosts: common.hosts.in_environment(env),
        admin_tools: common.admin_tools,
        split_execute: common.split_execute,
        repair: common.repair,
        learn: common.learn,
        code: common.code,
        search,
        natural_language,
        unasked: model::unasked(used.iter().map(|(document, _)| &document.config)),
        servers: outcome.servers,
        disabled: outcome.disabled,
        limits: common.limits,
        audit,
        logins,
        authorization,
        list_wait: common.list_wait,
        sources,
        folders,
        contents,
        unreadable,
        diagnostics,
    }
}

/// The settings for all servers: each file is laid over the previous one, key by key.
struct Common {
    mode: Option<Mode>,
    hosts: Profiles,
    admin_tools: bool,
    split_execute: bool,
    repair: bool,
    learn: usize,
    code: CodeSettings,
    limits: Limits,
    list_wait: Duration,
    defaults: Plugbay,
}

impl Common {
    fn of<'a>(configs: impl Iterator<Item = &'a raw::ConfigFile>) -> Self {
        let (mut mode, mut hosts) = (None, BTreeMap::new());
        let (mut admin_tools, mut split_execute, mut repair) = (false, false, true);
        let mut learn = 0;
        let mut code = CodeSettings::default();
        let mut list_wait = LIST_WAIT;
        let (mut starts, mut drain) = (None, None);
        let mut limits = raw::Limits::default();
        let mut defaults = Plugbay::default();
        for config in configs {
            mode = config.mode.map_or(mode, |mode| mode.0);
            admin_tools = config.admin_tools.unwrap_or(admin_tools);
            split_execute = config.split_execute.unwrap_or(split_execute);
            for (name, host) in config.hosts.iter().flatten() {
                hosts.insert(name.clone(), profile(name, host, &hosts));
                // The settings of a host also apply to its variants.
                for variant in Profiles::built_in_variants(name) {
                    let said = raw::Host { clients: None, ..host.clone() };
                    hosts.insert(variant.name.clone(), profile(&variant.name, &said, &hosts));
                }
            }
            learn = config.learn.map_or(learn, |count| count.0);
            code = config.code.as_ref().map_or(code, |choice| choice.over(code));
            repair = config.repair.unwrap_or(repair);
            list_wait = config.list_wait.map_or(list_wait, |wait| wait.0);
            drain = config.drain.map(|wait| wait.0).or(drain);
            starts = config.starts.map(|count| count.0).or(starts);
            limits = config.limits.clone().unwrap_or_default().over(limits);
            let own = config.defaults.clone().unwrap_or_default();
            // A project may deny more than its user does, never less.
            let deny = entry::denied_by_both(own.deny.clone(), defaults.deny.clone());
            defaults = Plugbay { deny, ..own.over(defaults) };
        }
        let standard = Limits::default();
        let limits = Limits {
            message: limits.message.map_or(standard.message, |size| size.0),
            name_length: limits.name_length.map_or(standard.name_length, |length| length.0),
            starts,
            calls: CallLimits {
                rate: limits.rate.map(|rate| rate.0),
                session_rate: limits.session_rate.map(|rate| rate.0),
                quota: limits.quota.map(|rate| rate.0),
            },
            drain,
        };
        let hosts = Profiles::new(hosts.into_values().collect());
        Self { mode, hosts, admin_tools, split_execute, repair, learn, code, limits, list_wait, defaults }
    }
}

/// The profile of a host: its keys, over an earlier file's keys, over the built-in profile.
fn profile(name: &str, said: &raw::Host, earlier: &BTreeMap<String, Profile>) -> Profile {
    let known = earlier.get(name).or_else(|| Profiles::built_in(name)).cloned();
    let known = known.unwrap_or_else(Profile::unknown);
    let milliseconds = |wait: Wait| u64::try_from(wait.0.as_millis()).unwrap_or(u64::MAX);
    Profile {
        name: name.to_owned(),
        clients: said.clients.clone().unwrap_or(known.clients),
        lists_again: said.lists_again.unwrap_or(known.lists_again),
        pause_ms: said.pause.map_or(known.pause_ms, milliseconds),
        settle_ms: said.settle.map_or(known.settle_ms, milliseconds),
        defers_from: said.defers_from.map(|count| count.0).or(known.defers_from),
        limits: HostLimits {
            tools: said.most_tools.map(|count| count.0).or(known.limits.tools),
            name: said.name_limit.map(|length| length.0).or(known.limits.name),
            instructions: said.instructions_limit.map(|count| count.0).or(known.limits.instructions),
            result: said.result_limit.map(|count| count.0).or(known.limits.result),
        },
        shows: said.shows.map_or(known.shows, |shows| shows.0),
        code_mode: said.code_mode.unwrap_or(known.code_mode),
        finds_by_title: said.finds_by_title.unwrap_or(known.finds_by_title),
        refuses_bare_json: known.refuses_bare_json,
        era: said.era.map(|era| era.0).or(known.era),
        request_tokens: said.request_tokens.map(|count| count.0).or(known.request_tokens),
        ..known
    }
}

/// The effective entries. Each has the index of its file, and the tools denied by the entries that it
/// replaces: a later file's entry replaces an earlier one's. Names that differ only in case mean the same
/// server, because hosts and file systems may not distinguish them.
fn effective<'a, I: Iterator<Item = &'a Entry>>(
    files: impl Iterator<Item = I>,
    reports: &mut [Report<'_>],
) -> Vec<(usize, &'a Entry, Option<Filter>)> {
    let mut chosen: BTreeMap<String, (usize, &Entry, Option<Filter>)> = BTreeMap::new();
    for (index, entries) in files.enumerate() {
        let mut here: BTreeMap<String, &str> = BTreeMap::new();
        for entry in entries {
            let key = &entry.key.value;
            let folded = key.to_lowercase();
            if let Some(other) = here.get(&folded) {
                let message = if key == other {
                    format!("two servers, or a server and a remote, have the name {}", quote(key))
                } else {
                    format!("{} and {} differ only in case", quote(key), quote(other))
                };
                reports[index].error(entry.key.at, message, "rename one of them");
                continue;
            }
            let denied = chosen.remove(&folded).and_then(|(_, replaced, denied)| {
                entry::denied_by_both(entry::tuning(&replaced.server).deny, denied)
            });
            chosen.insert(folded.clone(), (index, entry, denied));
            here.insert(folded, key);
        }
    }
    let chosen: Vec<_> = chosen.into_values().collect();
    warn_of_twins(&chosen, reports);
    chosen
}

/// Warns of similar names: models and hosts write names with other separators, and then the server is
/// ambiguous.
fn warn_of_twins(chosen: &[(usize, &Entry, Option<Filter>)], reports: &mut [Report<'_>]) {
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    let counts =
        |entry: &Entry| ServerName::parse(&entry.key.value).is_ok() && !entry::is_disabled(&entry.server);
    for (index, entry, _) in chosen.iter().filter(|(_, entry, _)| counts(entry)) {
        let key = &entry.key.value;
        if let Some(other) = known.insert(name::folded(key), key) {
            let message = format!("{} and {} differ only in separators", quote(key), quote(other));
            let help = "rename one of them: plugbay rejects a tool's name that could mean either";
            reports[*index].warning(entry.key.at, message, help);
        }
    }
}

#[derive(Default)]
struct Outcome {
    servers: Vec<ServerSettings>,
    disabled: Vec<ServerName>,
    misnamed: Vec<ServerSettings>,
}

impl Outcome {
    fn add(&mut self, entry: &Entry, around: Surroundings<'_>, report: &mut Report<'_>) {
        let key = &entry.key;
        let disabled = entry::is_disabled(&entry.server);
        match ServerName::parse(&key.value) {
            Ok(name) if disabled => self.disabled.push(name),
            Ok(name) => self.servers.push(entry::build(entry, name, around, report)),
            Err(_) if disabled => {}
            Err(error) => {
                let near = ServerName::suggest(&key.value);
                let help = near.as_ref().map_or("use letters, digits and `-`".into(), |near| {
                    format!("rename it, for example to {}", quote(near.as_str()))
                });
                let message = format!("server name {} {error}", quote(&key.value));
                let ((), reason) = report.watch(|report| report.error(key.at, message, help));
                self.misnamed.extend(near.zip(reason).map(|(name, reason)| ServerSettings {
                    name,
                    spec: Err(reason),
                    exposure: Exposure::default(),
                    sharing: SharingSettings::default(),
                    warm: Warm::default(),
                }));
            }
        }
    }

    /// Shows a server with an invalid name as failed, under the suggested name unless that is taken. A
    /// failure that is shown nowhere would look as if the server had never existed.
    fn list_misnamed(&mut self) {
        let names = self.servers.iter().map(|server| &server.name).chain(&self.disabled);
        let mut taken: BTreeSet<String> = names.map(|name| name.as_str().to_lowercase()).collect();
        let misnamed = std::mem::take(&mut self.misnamed);
        self.servers
            .extend(misnamed.into_iter().filter(|server| taken.insert(server.name.as_str().to_lowercase())));
        self.servers.sort_by(|one, other| one.name.cmp(&other.name));
        self.disabled.sort();
    }
}
