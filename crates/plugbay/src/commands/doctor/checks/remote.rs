//! Checks of why a server behind a URL does not work.

use plugbay_core::failure::{Cause, Failure};

use super::{
    super::{
        examination::{Examination, ServerFacts},
        finding::{Code, Finding},
    },
    said::has,
};

const PROXIES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

pub fn check(examination: &Examination, facts: &ServerFacts) -> Option<Finding> {
    facts.http()?;
    let failure = facts.failure()?;
    let of = |code, message: &str, remedy: String| {
        Some(Finding::of(code, &facts.name, message, remedy).seen([failure.what.clone()]))
    };
    match failure.cause {
        Cause::NeedsLogin => {
            let command = || format!("run `plugbay auth login {}`", facts.name);
            let remedy = failure.remedy.clone().unwrap_or_else(command);
            of(Code::NotLoggedIn, "Nobody has logged in at the server, or the login has expired.", remedy)
        }
        Cause::HttpStatus(401 | 403) if facts.http()?.remote => {
            let remedy = failure.remedy.clone().unwrap_or_default();
            of(Code::NeedsLogin, "The remote does not accept plugbay.", remedy)
        }
        Cause::HttpStatus(401) => of(Code::NeedsLogin, "The server wants credentials.", login(facts)),
        Cause::HttpStatus(403) => {
            let remedy = "check that the credentials in \"headers\" may use this server";
            of(Code::NeedsLogin, "The server rejects these credentials.", remedy.to_owned())
        }
        Cause::HttpStatus(407) => {
            let remedy = "put the user and password of the proxy into HTTPS_PROXY";
            of(Code::Proxy, "The proxy wants credentials.", remedy.to_owned())
        }
        Cause::HttpStatus(300..=399 | 404 | 405) => {
            let remedy = failure.remedy.clone().unwrap_or_default();
            let message = match facts.http() {
                Some(http) if http.remote => "Neither `/mcp` nor `/tools` is there.",
                _ => "There is no MCP server at this path.",
            };
            of(Code::WrongUrl, message, remedy)
        }
        Cause::Unreachable => Some(unreachable(examination, facts, failure)),
        _ => None,
    }
}

fn login(facts: &ServerFacts) -> String {
    let sends = facts
        .http()
        .is_some_and(|http| http.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")));
    if sends {
        "renew the token in \"headers\": the server rejects the present one".to_owned()
    } else {
        "add \"headers\": { \"Authorization\": \"Bearer ${TOKEN}\" } with a token of this service".to_owned()
    }
}

fn unreachable(examination: &Examination, facts: &ServerFacts, failure: &Failure) -> Finding {
    let seen = [failure.what.clone()];
    if has(&failure.what, &["certificate", "UnknownIssuer", "self-signed"]) {
        let message = "Its certificate is not trusted.";
        let remedy = "give the certificate of its authority: \"plugbay\": { \"caFile\": \"ca.pem\" }";
        return Finding::of(Code::Certificate, &facts.name, message, remedy).seen(seen);
    }
    let local = facts.http().is_some_and(|http| has(&http.url, &["//localhost", "//127.", "//[::1]"]));
    if let Some(proxy) = proxy_variable(examination).filter(|_| !local) {
        let message = format!("It cannot be reached. {proxy} is set, so plugbay goes through a proxy.");
        let remedy = format!("check that the proxy in {proxy} runs, or name this server in NO_PROXY");
        return Finding::of(Code::Proxy, &facts.name, message, remedy).seen(seen);
    }
    let remedy = if local { "start the server, or correct \"url\"" } else { "check \"url\" and the network" };
    Finding::of(Code::Unreachable, &facts.name, "Nothing answers at its address.", remedy).seen(seen)
}

/// The variable that sends traffic through a proxy, if one is set.
pub fn proxy_variable(examination: &Examination) -> Option<&'static str> {
    PROXIES.into_iter().find(|name| examination.variables.names.contains(*name))
}
