//! Servers behind URLs that cannot be used.

use plugbay_testkit::{Endpoint, Play};
use serde_json::{Value, json};

use super::clinic::Clinic;

fn answering(status: u16) -> (Endpoint, Value) {
    let endpoint = Endpoint::start(std::iter::repeat_n(Play::json(status, &json!({})), 20));
    let entry = json!({ "url": format!("{}/mcp", endpoint.url()) });
    (endpoint, entry)
}

#[test]
fn a_server_that_wants_a_login_is_found() {
    let (_endpoint, entry) = answering(401);
    let finding = Clinic::of(&entry).finds("needs-login");
    finding.about("server", "it").seen("HTTP 401").remedy("\"Authorization\"");
}

#[test]
fn a_token_that_is_rejected_is_told_from_one_that_is_missing() {
    let (_endpoint, mut entry) = answering(401);
    entry["headers"] = json!({ "Authorization": "Bearer old" });
    Clinic::of(&entry).finds("needs-login").remedy("renew the token");
}

#[test]
fn an_address_where_nothing_answers_is_found() {
    let entry = json!({ "url": "http://127.0.0.1:9/mcp" });
    Clinic::of(&entry).finds("unreachable").seen("http://127.0.0.1:9: ").remedy("start the server");
}

#[test]
fn a_wrong_path_of_an_address_is_found() {
    let (_endpoint, entry) = answering(404);
    Clinic::of(&entry).finds("wrong-url").seen("HTTP 404").remedy("\"url\"");
}

#[test]
fn an_address_without_an_mcp_server_is_checked_and_not_run_by_hand() {
    let (_endpoint, entry) = answering(501);
    Clinic::of(&entry).finds("server-failed").about("server", "it").remedy("check \"url\"");
}

#[test]
fn a_proxy_that_does_not_answer_is_found() {
    let entry = json!({ "url": "https://mcp.example/mcp" });
    let clinic = Clinic::of(&entry).variable("HTTPS_PROXY", "http://127.0.0.1:9");
    clinic.finds("proxy").says("HTTPS_PROXY is set").remedy("NO_PROXY");
}

#[test]
fn a_proxy_that_wants_credentials_is_found() {
    let (_endpoint, entry) = answering(407);
    Clinic::of(&entry).finds("proxy").says("The proxy wants credentials");
}
