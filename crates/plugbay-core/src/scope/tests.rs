//! Which scope each launch gets, as a table.

use std::collections::BTreeSet;

use super::*;

fn chosen(line: &str) -> (Scope, String) {
    let mut words = line.split_whitespace().map(str::to_owned);
    let (command, args) = (words.next().unwrap(), words.collect::<Vec<_>>());
    let choice =
        choose(&Launch::Command { command: &command, args: &args, cwd: None }, None, "/home/ann/code");
    (choice.scope, choice.why)
}

#[test]
fn the_scope_of_known_servers_follows_from_the_package_in_their_launch() {
    use Scope::{Project, Session, Shared};
    for (line, scope) in [
        ("npx -y @playwright/mcp@latest --headless", Session),
        ("npx --yes --package=@playwright/mcp playwright-mcp", Session),
        ("npx -p @wonderwhy-er/desktop-commander desktop-commander", Session),
        ("/usr/bin/npx @modelcontextprotocol/server-sequential-thinking", Session),
        ("cmd /c npx -y chrome-devtools-mcp@0.6", Session),
        ("bunx @upstash/context7-mcp", Shared),
        ("pnpm dlx tavily-mcp@0.2.1", Shared),
        ("yarn dlx firecrawl-mcp", Shared),
        ("npm exec -- @sentry/mcp-server", Shared),
        ("uvx mcp-server-git", Project),
        ("uvx mcp_server_git", Project),
        ("uvx --from git+https://example.com/serena serena start-mcp-server", Project),
        ("uvx --python 3.12 mcp-server-fetch==2025.4.7", Shared),
        ("uv tool run mcp-server-time", Shared),
        ("uv run --directory /opt/s mcp-server-git", Project),
        ("uv run --with mcp-server-time[all] python -m whatever", Session),
        ("uvx --with mcp-server-fetch my-stateful-server", Session),
        ("uvx --with=mcp-server-fetch --with-editable mcp-server-time my-stateful-server", Session),
        ("uvx --with httpx mcp-server-git", Project),
        ("uvx awslabs.eks-mcp-server@latest", Shared),
        ("npx -y firebase-tools@latest mcp", Project),
        ("npx -y prisma mcp", Project),
        ("toolbox --stdio", Session),
        ("npx -y supergateway --stdio x", Session),
        ("uv --directory /opt/s run python -m mcp_server_git", Project),
        ("pipx run --spec mcp-server-git mcp-server-git", Project),
        ("python3.12 -m mcp_server_time --local-timezone UTC", Shared),
        ("python -m mcp_server_git.server", Project),
        ("node /usr/lib/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js /x", Project),
        ("docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server:latest", Shared),
        ("docker run --rm -i --mount type=bind,src=/a,dst=/b mcp/git", Project),
        ("podman run -i --init docker.io/mcp/playwright", Session),
        ("env A=b npx mcp-server-kubernetes", Shared),
        ("go run github.com/isaacphi/mcp-language-server@latest", Project),
        ("github-mcp-server stdio", Shared),
        ("/opt/bin/playwright-mcp.cmd", Session),
        ("my-own-server --port 3", Session),
        ("node /opt/mine/index.js", Session),
        ("npx", Session),
        ("", Session),
    ] {
        let line = if line.is_empty() { "x" } else { line };
        assert_eq!(chosen(line).0, scope, "{line}");
    }
}

#[test]
fn a_shared_server_with_files_of_the_project_has_scope_project() {
    for line in [
        "npx -y mcp-remote ./config.json",
        "npx -y @modelcontextprotocol/server-memory --file=/home/ann/code/m.json",
        "uvx --env-file ../x mcp-server-time",
    ] {
        assert_eq!(chosen(line).0, Scope::Project, "{line}");
    }
    assert_eq!(chosen("uvx mcp-server-time /home/ann/codebook").0, Scope::Shared);
    let inside = Launch::Command { command: "mcp-server-time", args: &[], cwd: Some("/home/ann/code/a") };
    assert_eq!(choose(&inside, None, "/home/ann/code/").scope, Scope::Project);
    assert_eq!(choose(&inside, None, "/").scope, Scope::Shared, "everything is inside the root");
}

#[test]
fn the_configured_scope_wins_and_every_scope_has_a_reason() {
    let playwright = ["-y".to_owned(), "@playwright/mcp".to_owned()];
    let launch = Launch::Command { command: "npx", args: &playwright, cwd: None };
    let choice = choose(&launch, Some(Scope::Shared), "/p");
    assert_eq!((choice.scope, &*choice.why), (Scope::Shared, "configured"));
    assert_eq!(choose(&launch, None, "/p").why, "browser");
    assert_eq!(choose(&Launch::Url, None, "/p").why, "a URL");
    assert_eq!(chosen("mine").1, "not a known server");
}

#[test]
fn a_session_file_variable_never_goes_to_a_container() {
    let variable = |command: &str, args: &[&str]| {
        let args: Vec<String> = args.iter().map(|&word| word.to_owned()).collect();
        choose(&Launch::Command { command, args: &args, cwd: None }, Some(Scope::Session), "/p").file_variable
    };
    let package = variable("npx", &["-y", "@modelcontextprotocol/server-memory"]);
    assert_eq!(package, Some("MEMORY_FILE_PATH"));
    assert_eq!(variable("docker", &["run", "-i", "--rm", "mcp/memory"]), None);
    assert_eq!(variable("npx", &["-y", "mcp-knowledge-graph"]), None, "it takes an argument instead");
}

#[test]
fn the_data_names_many_servers_and_each_once() {
    let names: Vec<&String> = FAMILIES.iter().flat_map(|family| &family.names).collect();
    assert!(names.len() >= 120, "{}", names.len());
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    assert!(names.iter().all(|name| **name == name.to_lowercase().replace('_', "-")));
    assert!(FAMILIES.iter().all(|family| !family.kind.is_empty()));
}
