//! The things that an imported server still needs from the user.

use plugbay_hosts::{Entry, Launch, Remote};
use serde::Serialize;

use crate::config::{Env, unset_variables};

/// The things that a server needs before it can work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// Environment variables that are not set where plugbay is running.
    pub variables: Vec<String>,
    /// Whether it has no credentials, so that it may want a login.
    pub login: bool,
}

/// The needs of a server; none for a disabled one.
pub fn needs(entry: &Entry, env: Env<'_>) -> Needs {
    if entry.disabled {
        return Needs::default();
    }
    let texts: Vec<&String> = match &entry.launch {
        Launch::Process { command, args, env, cwd } => {
            std::iter::once(command).chain(args).chain(env.values()).chain(cwd).collect()
        }
        Launch::Remote(remote) => remote.texts(),
    };
    let mut variables: Vec<String> = texts.into_iter().flat_map(|text| unset_variables(text, env)).collect();
    // A pattern may match nothing.
    let passed = entry.pass_env.iter().filter(|name| !name.contains(['*', '?']));
    variables.extend(passed.filter(|name| env(name).is_none()).cloned());
    variables.sort();
    variables.dedup();
    let login = matches!(&entry.launch, Launch::Remote(remote) if lacks_credentials(remote));
    Needs { variables, login }
}

/// Whether the server is on another machine and gets nothing that could be a key.
fn lacks_credentials(remote: &Remote) -> bool {
    let host = remote.url.split_once("://").map_or("", |(_, rest)| rest);
    let local = ["127.", "localhost", "[::1]"].iter().any(|start| host.starts_with(start));
    let has_source = ["headersCommand", "headersFile"].iter().any(|key| remote.login.contains_key(*key));
    remote.headers.is_empty() && !has_source && !local && !remote.url.contains(['?', '@'])
}

#[cfg(test)]
mod tests {
    use super::{
        super::plan::tests::{process, remote},
        *,
    };

    #[test]
    fn variables_that_are_not_set_and_logins_are_needs() {
        let env = |name: &str| (name == "SET").then(String::new);
        let check = |entry: &Entry, variables: &[&str], login: bool| {
            let found = needs(entry, &env);
            assert_eq!(
                (found.variables.iter().map(String::as_str).collect(), found.login),
                (variables.to_vec(), login)
            );
        };
        check(&process("a", "npx ${B}${SET} ${A:-x} ${env:C} $D KEY=${B}"), &["B", "C"], false);
        let passing =
            Entry { pass_env: vec!["SET".into(), "Z".into(), "AWS_*".into()], ..process("a", "npx") };
        check(&passing, &["Z"], false);
        check(&remote("a", "https://a.example/mcp"), &[], true);
        check(&remote("a", "https://a.example/mcp?key=${KEY}"), &["KEY"], false);
        check(&remote("a", "http://localhost:1/mcp"), &[], false);
        check(&Entry { disabled: true, ..remote("a", "https://${A}/mcp") }, &[], false);
    }
}
