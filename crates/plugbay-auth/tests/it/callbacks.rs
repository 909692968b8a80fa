//! Requests to the redirect URI, by the user's browser and by others.

use std::time::Duration;

use plugbay_auth::{LoginError, LoginFlow};
use plugbay_core::credentials::{Credentials as _, OAuthSettings};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};
use url::Url;

use crate::{
    bench::{Bench, consent, log_in},
    log,
    scripted::{Answer, Reply, SECRET, Site},
};

/// The page for a raw HTTP request.
async fn send(flow: &LoginFlow, request: &str) -> String {
    let port = Url::parse(&flow.redirect_uri).unwrap().port().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = Vec::new();
    let _ = stream.read_to_end(&mut page).await;
    String::from_utf8_lossy(&page).into_owned()
}

/// A query, its effect (`stranger`: the login goes on; `over`: it has failed), and whether the issuer names
/// itself.
const QUERIES: [(&str, &str, bool); 34] = [
    ("", "stranger", false),
    ("code=c", "stranger", false),
    ("code=c&state=", "stranger", false),
    ("code=c&state=wrong", "stranger", false),
    ("code=c&state=$STATEx", "stranger", false),
    ("code=c&state=x$STATE", "stranger", false),
    ("code=c&State=$STATE", "stranger", false),
    ("code=c&state=$STATE&state=$STATE", "stranger", false),
    ("code=c&state=x&state=$STATE", "stranger", false),
    ("code=c&state[]=$STATE", "stranger", false),
    ("code=c;state=$STATE", "stranger", false),
    ("code=c%26state=$STATE", "stranger", false),
    ("code=c&code=d", "stranger", false),
    ("a=1&a=2", "stranger", false),
    ("error=access_denied", "stranger", false),
    ("error=access_denied&state=wrong", "stranger", false),
    ("error=<script>alert(1)</script>&state=wrong", "stranger", false),
    ("state=%00&code=c", "stranger", false),
    ("state=%ff%fe&code=c", "stranger", false),
    ("&&&&", "stranger", false),
    ("=", "stranger", false),
    ("state=$STATE", "over", false),
    ("state=$STATE&code=", "over", false),
    ("state=$STATE&code=c&code=c", "over", false),
    ("state=$STATE&code=c&x=1&x=1", "over", false),
    ("state=$STATE&code=c&iss=https://evil.example", "over", false),
    ("state=$STATE&code=c&iss=", "over", false),
    ("state=$STATE&code=c&iss=$ISSUER/", "over", false),
    ("state=$STATE&code=c&iss=$ISSUER&iss=$ISSUER", "over", false),
    ("state=$STATE&code=c", "over", true),
    ("state=$STATE&code=c&iss=$ISSUER%20", "over", true),
    ("state=$STATE&error=access_denied", "over", false),
    (
        "state=$STATE&error=%3Cscript%3Ealert(1)%3C/script%3E&error_description=%22%27%3E%3Cimg%20src=x%3E%0d%0a%1b[31m",
        "over",
        false,
    ),
    ("state=$STATE&code=unknown&iss=$ISSUER", "over", true),
];

#[tokio::test]
async fn an_answer_of_the_authorization_server_counts_only_with_its_state_and_issuer() {
    for (query, expected, names_itself) in QUERIES {
        let site = Site::start().await;
        site.script().server = json!({"authorization_response_iss_parameter_supported": names_itself});
        let bench = Bench::new(&site);
        let login = bench.login();
        let flow = login.begin(&[]).await.unwrap();
        let state = flow.url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
        let query = query.replace("$STATE", &state).replace("$ISSUER", &site.origin);
        let host = flow.redirect_uri.trim_start_matches("http://").trim_end_matches("/callback").to_owned();
        let query = query.replace('<', "%3C").replace('>', "%3E").replace(' ', "%20");
        let page = send(&flow, &format!("GET /callback?{query} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert!(page.starts_with("HTTP/1.1 400"), "{query}: {page}");
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{1b}'), "{page}");
        assert!(page.contains("default-src 'none'") && page.contains("no-store"), "{page}");
        if expected == "over" {
            let error = timeout(Duration::from_secs(20), flow.finished()).await.unwrap().unwrap_err();
            assert!(
                matches!(error, LoginError::Answer { .. } | LoginError::Token { .. }),
                "{query}: {error}"
            );
            assert!(flow.is_over() && login.logins().await.unwrap().current.is_none());
        } else {
            assert!(!flow.is_over(), "{query}: a stranger must not end the login");
            if !names_itself {
                assert_eq!(consent(&flow).await.0, 200, "{query}");
                flow.finished().await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn other_paths_methods_and_hosts_do_not_reach_the_login() {
    let site = Site::start().await;
    let login = Bench::new(&site).login();
    let flow = login.begin(&[]).await.unwrap();
    let host = flow.redirect_uri.trim_start_matches("http://").trim_end_matches("/callback").to_owned();
    let port = host.rsplit(':').next().unwrap().to_owned();
    let state = flow.url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let target = format!("/callback?code=c&state={state}");
    let cases = [
        (format!("GET {target} HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "403"),
        (format!("GET {target} HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n"), "403"),
        (format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), "403"),
        (format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n"), "403"),
        (format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1.evil.example:{port}\r\n\r\n"), "403"),
        (format!("GET {target} HTTP/1.1\r\nHost: localhost.evil.example:{port}\r\n\r\n"), "403"),
        (format!("GET {target} HTTP/1.1\r\nHost: {host}@evil.example\r\n\r\n"), "403"),
        (format!("GET {target} HTTP/1.1\r\nHost: 0.0.0.0:{port}\r\n\r\n"), "403"),
        (format!("GET {target} HTTP/1.1\r\nHost:\r\n\r\n"), "403"),
        (format!("GET {target} HTTP/1.1\r\n\r\n"), "403"),
        (format!("GET {target} HTTP/1.0\r\n\r\n"), "403"),
        (format!("POST {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"), "405"),
        (format!("PUT {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"), "405"),
        (format!("OPTIONS {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"), "405"),
        (format!("DELETE {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"), "405"),
        (format!("HEAD {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"), "405"),
        (format!("GET /callback/?code=c&state={state} HTTP/1.1\r\nHost: {host}\r\n\r\n"), "404"),
        (format!("GET /?code=c&state={state} HTTP/1.1\r\nHost: {host}\r\n\r\n"), "404"),
        (format!("GET /CALLBACK?code=c&state={state} HTTP/1.1\r\nHost: {host}\r\n\r\n"), "404"),
        (format!("GET //callback?code=c&state={state} HTTP/1.1\r\nHost: {host}\r\n\r\n"), "404"),
        (format!("GET /%63allback?code=c&state={state} HTTP/1.1\r\nHost: {host}\r\n\r\n"), "404"),
        (format!("GET /favicon.ico HTTP/1.1\r\nHost: {host}\r\n\r\n"), "404"),
        ("rubbish\r\n\r\n".to_owned(), "400"),
    ];
    for (request, status) in cases {
        let page = send(&flow, &request).await;
        assert!(
            page.is_empty()
                || page.starts_with(&format!("HTTP/1.1 {status}"))
                || page.starts_with(&format!("HTTP/1.0 {status}")),
            "{request}: {page}"
        );
        assert!(!flow.is_over(), "{request}");
    }
    assert_eq!(consent(&flow).await.0, 200);
    flow.finished().await.unwrap();
}

#[tokio::test]
async fn a_thousand_connections_do_not_stop_the_login() {
    let site = Site::start().await;
    let login = Bench::new(&site).login();
    let flow = login.begin(&[]).await.unwrap();
    let port = Url::parse(&flow.redirect_uri).unwrap().port().unwrap();
    let mut open = Vec::new();
    for number in 0..1000 {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
        let _ = stream.write_all(b"GET /callback?code=c&state=x HTTP/1.1\r\n").await;
        if number % 2 == 0 {
            open.push(stream); // half of them stay
        }
    }
    drop(open);
    // The browser tries again when its connection is refused.
    let asked = crate::bench::browser().get(flow.url.clone()).send().await.unwrap();
    let location = asked.headers()["location"].to_str().unwrap().to_owned();
    while !flow.is_over() {
        let _ = crate::bench::browser().get(&location).send().await;
        sleep(Duration::from_millis(10)).await;
    }
    flow.finished().await.unwrap();
}

#[tokio::test]
async fn a_redirect_that_the_user_pastes_logs_in() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let flow = bench.login().begin(&[]).await.unwrap();
    for text in
        ["", "x", "http://127.0.0.1/callback", "http://127.0.0.1/callback?code=a&state=b", "?&&", "\u{0}"]
    {
        assert!(!flow.paste(text).await, "{text}");
    }
    let asked = crate::bench::browser().get(flow.url.clone()).send().await.unwrap();
    let location = asked.headers()["location"].to_str().unwrap().to_owned();
    assert!(flow.paste(&format!("  {location}#x\n")).await);
    flow.finished().await.unwrap();
    assert!(!flow.paste(&location).await, "it was used already");
    assert!(!format!("{flow:?}").contains(SECRET) && !log::text().contains(SECRET));
}

#[tokio::test]
async fn a_login_that_nobody_completes_ends_and_frees_its_port() {
    let site = Site::start().await;
    let login = Bench::new(&site).login();
    let flow = login.begin(&[]).await.unwrap();
    let port = Url::parse(&flow.redirect_uri).unwrap().port().unwrap();
    tokio::time::pause();
    assert!(matches!(flow.finished().await, Err(LoginError::OutOfTime)));
    tokio::time::resume();
    assert!(flow.is_over());
    while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_next_login_can_have_the_same_fixed_port() {
    let site = Site::start().await;
    let bench = Bench::new(&site);
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let login = bench.login_with(OAuthSettings { callback_port: Some(free), ..OAuthSettings::default() });
    for _ in 0..3 {
        log_in(&login).await.unwrap();
        let offer = login.login().await;
        assert!(offer.is_ok(), "{offer:?}");
        let asked = crate::bench::browser().get(offer.unwrap().url).send().await.unwrap();
        let before = login.generation();
        crate::bench::browser().get(asked.headers()["location"].to_str().unwrap()).send().await.unwrap();
        login.changed(before).await;
        while TcpStream::connect(("127.0.0.1", free)).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}

/// Each request of a login can be slow, but none makes the login hang.
#[tokio::test]
async fn a_site_that_does_not_answer_ends_the_login_in_time() {
    let paths = [
        "/mcp",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/register",
        "/token",
    ];
    for path in paths {
        let site = Site::start().await;
        let login = Bench::new(&site).login();
        let mut answer = Answer::text(200, "application/json", "");
        answer.reply = Reply::Hanging("{".into());
        site.always(path, answer);
        let begun = tokio::spawn(async move {
            let flow = login.begin(&[]).await?;
            consent(&flow).await;
            flow.finished().await
        });
        while !site.paths().iter().any(|asked| asked == path) {
            sleep(Duration::from_millis(1)).await;
        }
        tokio::time::pause(); // the timeout is next
        let error = begun.await.unwrap().unwrap_err();
        tokio::time::resume();
        assert!(error.to_string().contains("did not answer"), "{path}: {error}");
    }
}
