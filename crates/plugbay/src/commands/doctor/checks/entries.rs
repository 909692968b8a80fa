//! Checks of servers' entries.

use std::path::Path;

use plugbay_upstream::spec::StdioSpec;

use super::super::{
    examination::{EntryPlace, Examination, ServerFacts},
    finding::{Code, Finding},
    fix::Fix,
};

const COMMAND_KEYS: [&str; 2] = ["command", "cmd"];
const URL_KEYS: [&str; 4] = ["url", "serverUrl", "uri", "httpUrl"];

/// An entry with both a program and an address: plugbay uses the address, unless `type` says otherwise.
pub fn both_launches(examination: &Examination, facts: &ServerFacts) -> Option<Finding> {
    let entry = examination.entry(&facts.name)?;
    let key = |keys: &[&'static str]| keys.iter().copied().find(|key| entry.value.get(key).is_some());
    let (command, url) = (key(&COMMAND_KEYS)?, key(&URL_KEYS)?);
    let (used, unused) = if facts.http().is_some() { (url, command) } else { (command, url) };
    let message = format!("Its entry has both \"{command}\" and \"{url}\"; plugbay uses \"{used}\".");
    let remedy = format!("remove \"{unused}\" if \"{used}\" is meant, else \"{used}\"");
    // If the server works, or `type` decides, there is no doubt.
    let settled = entry.text("type").or(entry.text("transport")).is_some() || facts.offered().is_some();
    let fix = settled.then(|| Fix::Remove { file: entry.file.clone(), path: entry.key(unused), host: None });
    Some(Finding::of(Code::CommandAndUrl, &facts.name, message, remedy).fixed_by(fix))
}

/// An entry that starts plugbay with the very configuration that contains it.
pub fn itself(examination: &Examination, facts: &ServerFacts) -> Option<Finding> {
    let sources = examination.sources();
    let is_ours = |file: &Path| sources.iter().any(|known| known.ends_with(file));
    if !facts.stdio().is_some_and(|stdio| runs_itself(stdio, &is_ours)) {
        return None;
    }
    let message = "This entry starts plugbay itself, with the same servers.";
    let remedy = "remove it: plugbay is a server of your hosts, not of plugbay";
    let fix = examination.entry(&facts.name).map(remove);
    Some(Finding::of(Code::RunsItself, &facts.name, message, remedy).fixed_by(fix))
}

fn remove(entry: &EntryPlace) -> Fix {
    Fix::Remove { file: entry.file.clone(), path: entry.path.clone(), host: None }
}

/// Whether a server is a gateway with this same configuration. With another file it is another gateway.
pub fn runs_itself(stdio: &StdioSpec, is_ours: &dyn Fn(&Path) -> bool) -> bool {
    let words = || [&stdio.command].into_iter().chain(&stdio.args);
    let mut after = words().skip_while(|word| Path::new(word).file_name() != Some("plugbay".as_ref()));
    let serves = after.any(|word| word == "serve");
    let given = words().skip_while(|word| *word != "--config").nth(1);
    let joined = words().find_map(|word| word.strip_prefix("--config="));
    let config = given.map(String::as_str).or(joined);
    serves && config.is_none_or(|file| is_ours(Path::new(file)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plugbay_upstream::spec::Framing;

    use super::*;

    #[test]
    fn a_gateway_with_another_configuration_is_a_server_like_any_other() {
        let check = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let command = words.next().unwrap();
            let args = words.collect();
            let stdio = StdioSpec {
                command,
                args,
                env: BTreeMap::new(),
                pass_env: vec![],
                cwd: None,
                framing: Framing::default(),
                origin: plugbay_upstream::spec::Origin::default(),
                references: plugbay_core::secret::KnownSecrets::default(),
            };
            runs_itself(&stdio, &|file| file == Path::new("ours.json"))
        };
        assert!(check("plugbay serve"));
        assert!(check("npx -y plugbay serve"));
        assert!(check("/usr/bin/plugbay serve --config ours.json"));
        assert!(check("plugbay --config=ours.json serve"));
        assert!(!check("plugbay serve --config other.json"));
        assert!(!check("plugbay __sample calc"));
        assert!(!check("node serve"));
    }
}
