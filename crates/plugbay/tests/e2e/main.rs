//! Real servers with real clients: the output of the gateway must equal that of the server itself.
//!
//! `tests-e2e/setup.sh` installs the programs that are pinned beside it. A test whose programs are missing
//! prints `skipped`; with `PLUGBAY_E2E=required` it fails. `PLUGBAY_E2E=off` skips all of them.

mod agent;
mod check;
mod clients;
mod finding;
mod gateway;
mod installed;
mod lists;
mod peers;
mod remote;
mod renewed;
mod resources;
mod results;
mod scopes;
mod scripts;
mod skills;
mod suites;
mod tasks;
mod world;

use crate::{
    agent::check_agent,
    check::{Route, check, check_growth, check_peers},
    clients::{
        Client::{Inspector, Python1, Python2, TypeScript1, TypeScript2},
        Era::{Legacy, Modern},
    },
    finding::check_finding,
    gateway::Transport::{Http, Stdio},
    lists::check_lists_of_hosts,
    remote::check_remote,
    renewed::{After, check_renewed},
    resources::{check_definitions, check_shelf},
    results::check_handles,
    scopes::check_memory_of_sessions,
    scripts::check_script,
    skills::check_skills,
    suites::check_suites,
    tasks::{check_driven, check_tasks},
};

/// Defines a test for each name.
macro_rules! tests {
    ($($name:ident: $check:expr;)*) => {$(
        #[test]
        fn $name() {
            $check;
        }
    )*};
}

/// Every feature of the protocol between hosts and servers of both eras, with the table that is printed. The
/// other tests add third-party servers, whose results are compared byte by byte.
mod whole_protocol {
    use super::*;

    tests! {
        the_matrix: check_script("matrix.sh", &[]);
        the_plain_api: check_script("api.sh", &[]);
        as_a_client_of_the_official_suite: check_script("conformance.sh", &["--client"]);
    }
}

/// A scripted model in a third-party host: activated tools are there in its next turn.
mod real_hosts {
    use super::*;

    tests! {
        claude_code: check_script("hosts.sh", &["--host", "claude-code", "--scenario", "activate"]);
        claude_code_does_what_its_profile_says: check_script(
            "hosts.sh",
            &["--measure", "--pinned", "--host", "claude-code", "--part", "opening", "--part", "deferral"],
        );
        claude_code_and_gemini_cli_pass_a_result_on: check_script(
            "hosts.sh",
            &["--host", "claude-code", "--host", "gemini-cli", "--scenario", "handle"],
        );
        the_plugin_for_claude_code: check_script("plugin.sh", &[]);
        setup_of_four_hosts_and_back: check_script("setup-hosts.sh", &["--host", "claude-code"]);
    }
}

/// Tasks over six real servers, each done with calls and with scripts: all answers must be correct.
mod code_mode {
    use super::*;

    tests! {
        tasks_with_calls_and_with_code: check_script("code.sh", &[]);
        claude_code_and_gemini_cli_run_a_script: check_script(
            "hosts.sh",
            &["--host", "claude-code", "--host", "gemini-cli", "--scenario", "run-code"],
        );
    }
}

/// OAuth logins at a real authorization server, with a real browser.
mod logins {
    use super::*;

    tests! {
        oauth_at_oidc_provider: check_script("oauth.sh", &["--quick"]);
    }
}

/// MCP Apps: pages of two servers in a real browser.
mod apps {
    use super::*;

    tests! {
        two_servers_with_one_page: check_script("apps.sh", &[]);
    }
}

/// The packages of a release, installed and used. The build from packed crates takes minutes and is not
/// included.
mod packaging {
    use super::*;

    tests! {
        every_package_works_as_an_mcp_server: check_script("../packaging/check.sh", &[]);
    }
}

/// A result of 300 KB is passed from one tool to the next by its handle.
mod handles {
    use super::*;

    tests! {
        typescript_sdk_1: check_handles(TypeScript1, Legacy);
        typescript_sdk_2_modern: check_handles(TypeScript2, Modern);
    }
}

/// Each server as one tool.
mod servers_as_suites {
    use super::*;

    tests! {
        typescript_sdk_1: check_suites(TypeScript1, Legacy);
        typescript_sdk_2_modern: check_suites(TypeScript2, Modern);
    }
}

/// A list for each kind of host.
mod lists_by_capabilities {
    use super::*;

    tests! {
        server_everything: check_lists_of_hosts();
    }
}

mod stdio_to_stdio {
    use super::*;

    const ROUTE: Route = Route { host: Stdio, servers: Stdio };

    tests! {
        typescript_sdk_1: check(TypeScript1, Legacy, ROUTE);
        typescript_sdk_2_legacy: check(TypeScript2, Legacy, ROUTE);
        typescript_sdk_2_modern: check(TypeScript2, Modern, ROUTE);
        python_sdk_1: check(Python1, Legacy, ROUTE);
        python_sdk_2_legacy: check(Python2, Legacy, ROUTE);
        python_sdk_2_modern: check(Python2, Modern, ROUTE);
        inspector_modern: check(Inspector, Modern, ROUTE);
    }
}

/// Servers over HTTP: the clients show only whether the gateway understood these servers.
mod stdio_to_http {
    use super::*;

    const ROUTE: Route = Route { host: Stdio, servers: Http };

    tests! {
        typescript_sdk_2_legacy: check(TypeScript2, Legacy, ROUTE);
        typescript_sdk_2_modern: check(TypeScript2, Modern, ROUTE);
        python_sdk_1: check(Python1, Legacy, ROUTE);
        a_list_that_grows: check_growth(TypeScript2, Legacy, Stdio);
    }
}

/// Hosts over HTTP: every client uses it in its own way. Clients that are missing here are in the matrix.
mod http_to_stdio {
    use super::*;

    const ROUTE: Route = Route { host: Http, servers: Stdio };

    tests! {
        typescript_sdk_2_legacy: check(TypeScript2, Legacy, ROUTE);
        python_sdk_2_legacy: check(Python2, Legacy, ROUTE);
        inspector_legacy: check(Inspector, Legacy, ROUTE);
        inspector_modern: check(Inspector, Modern, ROUTE);
    }
}

mod http_to_http {
    use super::*;

    const ROUTE: Route = Route { host: Http, servers: Http };

    tests! {
        typescript_sdk_1: check(TypeScript1, Legacy, ROUTE);
        typescript_sdk_2_modern: check(TypeScript2, Modern, ROUTE);
        python_sdk_2_modern: check(Python2, Modern, ROUTE);
        a_list_that_grows: check_growth(TypeScript2, Modern, Http);
    }
}

/// Servers that now speak both eras, and are still treated as before.
mod renewed_in_place {
    use super::*;

    tests! {
        typescript_sdk_2: check_renewed(After::TypeScript2);
        python_sdk_2: check_renewed(After::Python2);
    }
}

/// Without a gateway: if these fail, the gateway is not the cause.
mod peers_themselves {
    use super::*;

    tests! {
        typescript_sdk_2_modern: check_peers(TypeScript2, Modern);
        python_sdk_1: check_peers(Python1, Legacy);
    }
}

/// Resources, prompts and completions of two servers that have the same ones.
mod shelves {
    use super::*;

    tests! {
        typescript_sdk_2_modern: check_shelf(TypeScript2, Modern, Http);
        definitions_by_python_sdk_1: check_definitions(Python1, Legacy);
    }
}

/// Two servers with the same skill.
mod skills_of_servers {
    use super::*;

    tests! {
        legacy_through_stdio: check_skills(Legacy, Stdio);
        modern_through_stdio: check_skills(Modern, Stdio);
        modern_through_http: check_skills(Modern, Http);
    }
}

/// Tasks, which outlive their calls.
mod tasks_of_servers {
    use super::*;

    tests! {
        legacy_through_stdio: check_tasks(Legacy, Stdio);
        legacy_through_http: check_tasks(Legacy, Http);
        modern_through_http: check_tasks(Modern, Http);
        of_the_other_era: check_driven();
    }
}

/// Local servers and a remote gateway.
mod remotes {
    use super::*;

    tests! {
        memory_behind_a_remote_that_is_killed: check_remote();
    }
}

/// Natural language that becomes calls.
mod natural_language {
    use super::*;

    tests! {
        typescript_sdk_1: check_agent(TypeScript1, Legacy);
        python_sdk_2_modern: check_agent(Python2, Modern);
    }
}

/// Search mode.
mod finding_tools {
    use super::*;

    tests! {
        typescript_sdk_2_modern: check_finding(TypeScript2, Modern);
        python_sdk_1: check_finding(Python1, Legacy);
    }
}

/// The scopes of servers.
mod scopes_of_servers {
    use super::*;

    tests! {
        memory_of_two_sessions: check_memory_of_sessions();
    }
}
