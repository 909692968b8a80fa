//! Programs that cannot be started, or do not become servers. Fake programs print the messages of the real
//! ones.

use std::path::Path;

use plugbay_testkit::{Script, scripted_server_path, write_program};
use serde_json::{Value, json};

use super::clinic::{Clinic, serve, shell};
use crate::harness::program;

const NPM_404: &str = r"cat >&2 <<'END'
npm error code E404
npm error 404 Not Found - GET https://registry.example/no-such-mcp-server
npm error 404
npm error 404  The requested resource 'no-such-mcp-server@*' could not be found or you do not have permission to access it.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm notice
npm notice New minor version of npm available! 11.19.1 -> 11.21.1
npm notice To update run: npm install -g npm@11.21.1
npm notice
npm error A complete log of this run can be found in: /home/u/.npm/_logs/2026-debug-0.log
END
exit 1";

const UVX_404: &str = r"cat >&2 <<'END'
error: No solution found when resolving tool dependencies
  cause: Because no-such-mcp was not found in the package registry and you require no-such-mcp, we can conclude that your requirements are unsatisfiable.
END
exit 1";

const UVX_PROXY: &str = r"cat >&2 <<'END'
error: Request failed after 3 retries in 7.2s
  cause: Failed to fetch: https://index.example/simple/mcp-server-time/
  cause: error sending request for url (https://index.example/simple/mcp-server-time/)
  cause: client error (Connect)
  cause: tunnel error: failed to create underlying connection
  cause: tcp connect error
  cause: Connection refused (os error 111)
END
exit 2";

const NODE_PORT: &str = r"cat >&2 <<'END'
node:events:502
      throw er; // Unhandled 'error' event
      ^

Error: listen EADDRINUSE: address already in use :::3000
    at Server.setupListenHandle [as _listen2] (node:net:1908:16)
    at listenInCluster (node:net:1965:12)
    at Server.listen (node:net:2067:7)
    at Server.<anonymous> ([eval]:1:78)
    at Object.onceWrapper (node:events:638:28)
    at Server.emit (node:events:524:28)
    at emitListeningNT (node:net:1951:10)
    at process.processTicksAndRejections (node:internal/process/task_queues:81:21)
Emitted 'error' event on Server instance at:
    at emitErrorNT (node:net:1944:8)
    at process.processTicksAndRejections (node:internal/process/task_queues:82:21) {
  code: 'EADDRINUSE',
  errno: -98,
  syscall: 'listen',
  address: '::',
  port: 3000
}

Node.js v20.20.2
END
exit 1";

/// An entry that runs a package.
fn package(runner: &str) -> Value {
    json!({ "command": runner, "args": ["no-such-mcp"] })
}

/// A clinic whose PATH has only the test's programs.
fn without_tools(entry: Value) -> Clinic {
    let mut entry = entry;
    let clinic = Clinic::new(&json!({}));
    entry["env"] = json!({ "PATH": clinic.path("bin") });
    clinic.harness.configure(&json!({ "mcpServers": { "it": entry } }).to_string());
    clinic
}

#[test]
fn a_missing_runtime_is_named_with_the_way_to_install_it() {
    for (runner, install) in [
        ("npx", "https://nodejs.org"),
        ("uvx", "https://docs.astral.sh/uv"),
        ("docker", "https://docs.docker.com"),
        ("python3", "https://www.python.org"),
    ] {
        // If this machine has it outside of PATH, doctor reports that instead.
        if ["/usr/local/bin", "/opt/homebrew/bin", "/snap/bin"]
            .iter()
            .any(|folder| Path::new(folder).join(runner).exists())
        {
            continue;
        }
        let says = format!("`{runner}` is in none of the folders of PATH");
        without_tools(package(runner))
            .finds("missing-runtime")
            .about("server", "it")
            .says(&says)
            .remedy(install);
    }
}

#[test]
fn python_is_replaced_by_python3_where_only_that_exists() {
    let clinic = without_tools(json!({ "command": "python", "args": ["x"] })).program("python3", &serve());
    clinic.mends("missing-runtime").remedy("\"python3\"");
}

#[test]
fn a_runtime_outside_of_path_is_found_in_its_usual_folder() {
    let clinic = without_tools(package("uvx")).file(".local/bin/uvx", "");
    write_program(&clinic.path(".local/bin/uvx"), &format!("#!/bin/sh\n{}\n", serve()));
    clinic.mends("missing-runtime").seen(".local/bin/uvx");
}

#[test]
fn a_command_that_is_no_runtime_and_not_on_path_is_found() {
    Clinic::of(&package("my-own-server")).finds("command-not-found").says("`my-own-server`");
}

#[test]
fn a_program_that_may_not_be_executed_is_made_executable() {
    let clinic = Clinic::new(&json!({})).file("server.sh", &format!("#!/bin/sh\n{}\n", serve()));
    let entry = json!({ "command": clinic.path("server.sh") });
    clinic.harness.configure(&json!({ "mcpServers": { "it": entry } }).to_string());
    clinic.mends("not-executable").says("server.sh exists");
}

#[test]
fn a_wrong_path_of_the_program_is_corrected_where_one_file_is_near() {
    let clinic = Clinic::new(&json!({})).program("my-server", &serve());
    let entry = json!({ "command": clinic.path("bin/my-sever") });
    clinic.harness.configure(&json!({ "mcpServers": { "it": entry } }).to_string());
    clinic.mends("wrong-path").says("my-sever does not exist").remedy("bin/my-server, which exists");
}

#[test]
fn a_wrong_path_in_args_is_corrected_where_one_file_is_near() {
    let clinic = Clinic::new(&json!({})).file("build/index.sh", &serve());
    let entry = json!({ "command": "sh", "args": [clinic.path("dist/index.sh")] });
    clinic.harness.configure(&json!({ "mcpServers": { "it": entry } }).to_string());
    clinic.mends("wrong-path").says("dist/index.sh in \"args\" does not exist").remedy("build/index.sh");
}

#[test]
fn a_tilde_in_args_is_replaced_by_the_home_folder() {
    let clinic = Clinic::of(&json!({ "command": "sh", "args": ["~/server.sh"] })).file("server.sh", &serve());
    clinic.mends("wrong-path").says("plugbay uses no shell");
}

#[test]
fn a_working_folder_that_does_not_exist_is_found() {
    Clinic::of(&json!({ "command": "sh", "cwd": "nowhere" })).finds("wrong-path").remedy("correct \"cwd\"");
}

#[test]
fn a_package_that_npm_does_not_know_is_found() {
    let clinic = Clinic::of(&package("npx")).program("npx", NPM_404);
    clinic
        .finds("package-unknown")
        .about("server", "it")
        .seen("npm error code E404")
        .remedy("name of the package");
}

#[test]
fn a_package_that_pypi_does_not_know_is_found() {
    let clinic = Clinic::of(&package("uvx")).program("uvx", UVX_404);
    clinic.finds("package-unknown").seen("not found in the package registry");
}

#[test]
fn a_package_that_still_downloads_gets_more_time() {
    let mut entry = package("npx");
    entry["plugbay"] = json!({ "start": "300ms" });
    // The download ends once more time is allowed.
    let script = |clinic: &Clinic| {
        let config = clinic.harness.user_file();
        format!("grep -q 300ms '{}' && exec sleep 60\n{}", config.display(), serve())
    };
    let clinic = Clinic::of(&entry);
    let script = script(&clinic);
    let clinic = clinic.program("npx", &script);
    clinic.mends("package-downloading").says("`npx` was not ready within 0.3 s");
    assert!(clinic.text().contains("120s"), "{}", clinic.text());
}

#[test]
fn a_server_that_answers_nothing_is_found() {
    let script = Script::new().set("mute", true).text();
    let entry =
        json!({ "command": scripted_server_path(), "args": [script], "plugbay": { "start": "300ms" } });
    Clinic::of(&entry).finds("slow-start").says("did not answer within 0.3 s").remedy("\"start\"");
}

#[test]
fn a_variable_that_is_set_here_but_not_passed_on_is_passed_on() {
    let entry = shell(&format!(
        "test -n \"$MY_API_KEY\" || {{ echo 'Error: MY_API_KEY is required' >&2; exit 1; }}\n{}",
        serve()
    ));
    let clinic = Clinic::of(&entry).variable("MY_API_KEY", "hunter2");
    let unnamed = clinic.run(&["--fix", "--yes"]);
    assert!(unnamed.err.contains("run `plugbay doctor it --fix --yes`"), "{}", unnamed.err);
    let finding = clinic.mends_when_named("variable-not-passed", &["it"]);
    finding
        .says("The variable is set here")
        .seen("MY_API_KEY is required")
        .remedy("\"passEnv\": [\"MY_API_KEY\"]");
    assert!(!clinic.text().contains("hunter2"));
}

#[test]
fn a_variable_that_is_set_nowhere_is_named() {
    let entry = shell("echo \"KeyError: 'MY_API_KEY'\" >&2; exit 1");
    Clinic::of(&entry).finds("missing-variable").says("MY_API_KEY, which is not set").seen("KeyError");
}

#[test]
fn a_missing_module_is_found() {
    let entry = shell("echo \"ModuleNotFoundError: No module named 'mcp'\" >&2; exit 1");
    Clinic::of(&entry).finds("missing-module").seen("No module named 'mcp'");
}

#[test]
fn text_on_stdout_that_is_not_mcp_is_told_from_stderr() {
    let finding = Clinic::of(&shell("echo 'usage: server [stdio|http]'")).finds("not-mcp");
    finding.about("server", "it").seen("usage: server").remedy("`stdio`");
    let listens = shell("echo 'listening on http://localhost:3000/mcp'; exec sleep 60");
    let mut entry = listens;
    entry["plugbay"] = json!({ "start": "300ms" });
    Clinic::of(&entry).finds("not-mcp").remedy("\"url\"");
}

#[test]
fn a_port_in_use_is_found_in_a_long_stack_trace() {
    Clinic::of(&package("node")).program("node", NODE_PORT).finds("port-in-use").seen("EADDRINUSE");
}

#[test]
fn docker_without_its_daemon_is_found() {
    let said = "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?";
    let clinic = Clinic::of(&package("docker")).program("docker", &format!("echo '{said}' >&2; exit 125"));
    clinic.finds("docker-not-running").remedy("start Docker");
}

#[test]
fn a_download_that_fails_behind_a_proxy_is_found() {
    let clinic = Clinic::of(&package("uvx")).program("uvx", UVX_PROXY);
    clinic
        .variable("HTTPS_PROXY", "http://127.0.0.1:9")
        .finds("proxy")
        .says("HTTPS_PROXY is set")
        .seen("cause");
}

#[test]
fn a_certificate_that_a_program_does_not_trust_is_found() {
    let said = "npm error code SELF_SIGNED_CERT_IN_CHAIN";
    let clinic = Clinic::of(&package("npx")).program("npx", &format!("echo '{said}' >&2; exit 1"));
    clinic.finds("certificate").seen(said).remedy("NODE_EXTRA_CA_CERTS");
}

#[test]
fn credentials_that_a_service_rejects_are_found() {
    let entry = shell("echo 'HttpError: Bad credentials' >&2; exit 1");
    Clinic::of(&entry).finds("needs-login").seen("Bad credentials").remedy("\"env\"");
}

#[test]
fn another_failure_is_shown_with_what_the_server_said() {
    let finding = Clinic::of(&shell("echo boom >&2; exit 3")).finds("server-failed");
    finding.says("Exit code 3 before it answered").seen("boom");
}

#[test]
fn a_server_that_names_a_variable_and_works_is_left_alone() {
    let clinic = Clinic::of(&json!({ "command": program(), "args": ["__sample", "calc"] }));
    clinic.variable("MY_API_KEY", "x").is_quiet();
}

#[test]
fn a_command_that_is_a_folder_is_found() {
    let finding = Clinic::of(&json!({ "command": "/tmp" })).finds("wrong-path");
    finding.about("server", "it").says("/tmp is a folder, not a program.").remedy("\"command\"");
}
