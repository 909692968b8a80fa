//! Decides whether two entries are the same server, and which entries are gateways.

use std::{collections::BTreeMap, path::Path};

use plugbay_hosts::{Entry, Launch, Remote};

/// Programs that start a server from a package: it does not matter which copy of them is used.
const RUNNERS: [&str; 11] =
    ["npx", "bunx", "pnpm", "node", "bun", "deno", "uvx", "uv", "python", "python3", "docker"];

/// The relation of two entries, apart from their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// They start the same server.
    Same,
    /// They start the same program or use the same URL, but with other variables or headers, or in another
    /// folder.
    Similar,
    Different,
}

/// Compares how two entries launch their servers.
pub fn relation(one: &Entry, other: &Entry) -> Relation {
    let ((core, around), (other_core, other_around)) = (parts(&one.launch), parts(&other.launch));
    match (core == other_core, around == other_around) {
        (true, true) => Relation::Same,
        (true, false) => Relation::Similar,
        (false, _) => Relation::Different,
    }
}

/// Whether two entries start the same server.
pub fn is_same(one: &Entry, other: &Entry) -> bool {
    // Most entries differ here already, and the full comparison takes far longer.
    let may_be_same = match (&one.launch, &other.launch) {
        (Launch::Process { args, env, .. }, Launch::Process { args: other_args, env: other_env, .. }) => {
            env == other_env
                && args.last().is_none_or(|last| other_args.last().is_none_or(|other| last == other))
        }
        (Launch::Remote(one), Launch::Remote(other)) => one.headers.len() == other.headers.len(),
        _ => false,
    };
    may_be_same && relation(one, other) == Relation::Same
}

/// The program and its arguments, or the URL; and beside it the variables and the folder, or the headers and
/// the login. Differences in spelling without a meaning are removed.
fn parts(launch: &Launch) -> (Vec<String>, BTreeMap<String, String>) {
    match launch {
        Launch::Process { command, args, env, cwd } => {
            let mut around = env.clone();
            // No variable has such a name.
            around.extend(cwd.iter().map(|cwd| ("cwd=".to_owned(), cwd.trim_end_matches('/').to_owned())));
            (command_line(command, args), around)
        }
        Launch::Remote(remote) => {
            let headers = remote.headers.iter();
            let headers = headers.map(|(name, value)| (name.to_lowercase(), value.clone()));
            // No header has such a name.
            let login = remote.login.iter().map(|(key, value)| (format!("{key}="), value.to_string()));
            // No program has an empty name.
            (vec![String::new(), remote.url.trim_end_matches('/').to_owned()], headers.chain(login).collect())
        }
    }
}

fn command_line(command: &str, args: &[String]) -> Vec<String> {
    let mut words: Vec<String> = std::iter::once(command.to_owned()).chain(args.iter().cloned()).collect();
    // Windows needs its shell to start programs that npm has installed.
    if words.len() > 2 && program(&words[0]) == "cmd" && words[1].eq_ignore_ascii_case("/c") {
        words.drain(..2);
    }
    let name = program(&words[0]);
    if RUNNERS.contains(&name.as_str()) {
        words[0].clone_from(&name);
    }
    if name == "npx" || name == "bunx" {
        let rest = words.iter().skip(1).skip_while(|word| ["-y", "--yes"].contains(&word.as_str())).cloned();
        words = std::iter::once(name).chain(rest.collect::<Vec<_>>()).collect();
    }
    words
}

/// The name of a program without its folder and its Windows extension.
fn program(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word).to_lowercase();
    let name = [".exe", ".cmd"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    name.to_owned()
}

/// Whether this entry starts plugbay, or uses a running one. Looks through wrappers such as `env`, `sh -c`
/// and `npx`.
pub fn leads_to_plugbay(entry: &Entry) -> bool {
    match &entry.launch {
        Launch::Process { command, args, .. } => {
            let words = std::iter::once(command).chain(args).flat_map(|word| word.split_whitespace());
            let mut rest = words.skip_while(|word| !is_plugbay(word));
            rest.any(|word| word.trim_matches(['"', '\'']) == "serve")
        }
        Launch::Remote(remote) => entry.name.eq_ignore_ascii_case("plugbay") && is_local(remote),
    }
}

/// The other gateway that this entry starts, by the id of its format.
pub(super) fn other_gateway(entry: &Entry) -> Option<&'static str> {
    let Launch::Process { command, args, .. } = &entry.launch else { return None };
    let words: Vec<&str> = std::iter::once(command).chain(args).map(String::as_str).collect();
    let last = |word: &str, name: &str| Path::new(word).ends_with(name);
    if words.iter().any(|word| last(word, "mcpflip/gateway.js")) {
        return Some("mcpflip");
    }
    (program(command) == "mcpzip" && words.contains(&"serve")).then_some("mcpzip")
}

/// Whether the word is `plugbay`, possibly as a path, a package with a version, or an image with a tag.
fn is_plugbay(word: &str) -> bool {
    let name = program(word.trim_matches(['"', '\'']));
    name.split(['@', ':']).next() == Some("plugbay")
}

fn is_local(remote: &Remote) -> bool {
    let rest = remote.url.split_once("://").map_or("", |(_, rest)| rest);
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| rest.starts_with(host))
}

#[cfg(test)]
mod tests {
    use super::{
        super::plan::tests::{process, remote},
        *,
    };

    #[test]
    fn launches_are_compared_without_spellings_that_mean_nothing() {
        use Relation::{Different, Same, Similar};
        let in_folder = |folder: &str| {
            let mut entry = process("a", "npx -y x");
            let Launch::Process { cwd, .. } = &mut entry.launch else { unreachable!() };
            *cwd = Some(folder.to_owned());
            entry
        };
        let with_header = |name: &str, value: &str| {
            let mut entry = remote("a", "https://a.example/mcp/");
            let Launch::Remote(remote) = &mut entry.launch else { unreachable!() };
            remote.headers.insert(name.to_owned(), value.to_owned());
            entry
        };
        let rows = [
            (process("a", "npx -y x"), process("b", "npx x"), Same),
            (process("a", "/usr/bin/npx -y x"), process("a", "cmd /c npx.cmd x"), Same),
            (process("a", "/opt/tool x"), process("a", "tool x"), Different),
            (process("a", "npx x"), process("a", "npx x y"), Different),
            (process("a", "npx x"), process("a", "npx x -y"), Different),
            (process("a", "npx x KEY=1"), process("a", "npx x KEY=1"), Same),
            (process("a", "npx x KEY=1"), process("a", "npx x KEY=2"), Similar),
            (in_folder("/p/"), in_folder("/p"), Same),
            (in_folder("/p"), process("a", "npx x"), Similar),
            (remote("a", "https://a.example/mcp"), remote("b", "https://a.example/mcp/"), Same),
            (with_header("X-Key", "1"), with_header("x-key", "1"), Same),
            (with_header("X-Key", "1"), with_header("X-Key", "2"), Similar),
            (remote("a", "https://a.example/mcp"), process("a", "https://a.example/mcp"), Different),
        ];
        for (one, other, expected) in rows {
            assert_eq!(relation(&one, &other), expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn an_entry_that_leads_to_plugbay_is_found_behind_its_wrapper() {
        let own = [
            "plugbay serve",
            "/opt/bin/plugbay --config x serve",
            "plugbay.exe serve --http 8080",
            "npx -y plugbay@1.2.0 serve",
            "env A=b plugbay serve",
            "docker run -i ghcr.example/plugbay:latest serve",
        ];
        for line in own {
            assert!(leads_to_plugbay(&process("x", line)), "{line}");
        }
        let mut shell = process("x", "sh -c");
        let Launch::Process { args, .. } = &mut shell.launch else { unreachable!() };
        args.push("exec 'plugbay' serve 2>log".to_owned());
        assert!(leads_to_plugbay(&shell));
        assert!(leads_to_plugbay(&remote("plugbay", "http://127.0.0.1:8080/mcp")));
        for line in ["serve plugbay", "plugbay-notes serve", "npx plugbay-mcp serve", "plugbay __sample calc"]
        {
            assert!(!leads_to_plugbay(&process("x", line)), "{line}");
        }
        assert!(!leads_to_plugbay(&remote("plugbay", "https://plugbay.example/mcp")));
        assert!(!leads_to_plugbay(&remote("other", "http://127.0.0.1:8080/mcp")));
    }
}
