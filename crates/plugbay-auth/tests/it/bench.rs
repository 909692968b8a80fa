//! The user's side of a test: a store, a clock, logins, requests to the MCP server, and a browser.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
};

use plugbay_auth::{LoginError, LoginFlow, LoginSettings, ServerLogin, store::Store};
use plugbay_core::{
    credentials::{Credentials, OAuthSettings, Rejection, Target, Verdict},
    failure::{Cause, Failure},
};
use reqwest::{Client, redirect};

use crate::scripted::{Site, Time};

/// The outcome of a request to an MCP server.
#[derive(Debug, Clone)]
pub enum Outcome {
    Done,
    NeedsLogin(Arc<Failure>),
    Failed(Arc<Failure>),
    /// The login says that it is not concerned.
    NotOurs,
}

impl Outcome {
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }

    /// The text of the failure.
    pub fn text(&self) -> String {
        match self {
            Self::NeedsLogin(failure) | Self::Failed(failure) => failure.to_string(),
            other => format!("{other:?}"),
        }
    }
}

/// A user on one machine.
pub struct Bench {
    pub folder: tempfile::TempDir,
    pub time: Time,
    pub url: String,
}

impl Bench {
    pub fn new(site: &Site) -> Self {
        // In memory if possible: the store syncs every file, and other programs use the disk too.
        let memory = tempfile::tempdir_in("/dev/shm");
        let folder = memory.or_else(|_| tempfile::tempdir()).unwrap();
        Self { folder, time: Arc::clone(&site.time), url: site.url() }
    }

    pub fn logins(&self) -> PathBuf {
        self.folder.path().join("logins")
    }

    pub fn settings(&self, oauth: OAuthSettings) -> LoginSettings {
        let time = Arc::clone(&self.time);
        LoginSettings {
            name: "site".to_owned(),
            url: self.url.clone(),
            oauth,
            ca_file: None,
            store: Store::new(self.logins(), None),
            mcp_remote: Some(self.folder.path().join("mcp-auth")),
            clock: Arc::new(move || time.load(Ordering::SeqCst)),
        }
    }

    /// The login, as one process of the user has it.
    pub fn login(&self) -> ServerLogin {
        self.login_with(OAuthSettings::default())
    }

    pub fn login_with(&self, oauth: OAuthSettings) -> ServerLogin {
        ServerLogin::new(self.settings(oauth)).unwrap()
    }

    /// A login that the user has completed.
    pub async fn logged_in(&self) -> ServerLogin {
        let login = self.login();
        log_in(&login).await.unwrap();
        login
    }

    /// The file with the tokens.
    pub fn file(&self) -> PathBuf {
        let mut files = std::fs::read_dir(self.logins()).unwrap().flatten().map(|entry| entry.path());
        files.find(|path| path.extension().is_some_and(|kind| kind == "json")).unwrap()
    }

    pub fn record(&self) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.file()).unwrap()).unwrap()
    }

    pub async fn call(&self, login: &ServerLogin) -> Outcome {
        call(login, &self.url).await
    }
}

/// Sends a request like the server side.
pub async fn call(login: &ServerLogin, url: &str) -> Outcome {
    call_with(&browser(), login, url).await
}

pub async fn call_with(client: &Client, login: &ServerLogin, url: &str) -> Outcome {
    for attempts in 1.. {
        let target = Target { method: "POST", url };
        let headers = match login.headers(target).await {
            Ok(headers) => headers,
            Err(failure) => return failed(failure),
        };
        let mut request = client.post(url).body("{}");
        for (name, value) in &headers.values {
            request = request.header(name, value.expose());
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        if status == 200 {
            return Outcome::Done;
        }
        let texts = |name: &str| {
            let values = response.headers().get_all(name).into_iter();
            values.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect::<Vec<_>>()
        };
        let rejection = Rejection {
            status,
            challenges: texts("www-authenticate"),
            dpop_nonce: texts("dpop-nonce").pop(),
            request: target,
            generation: headers.generation,
            attempts,
        };
        match login.rejected(rejection).await {
            Verdict::SendAgain => assert!(attempts < 20, "a request is sent again and again"),
            Verdict::NeedsLogin(failure) | Verdict::Final(failure) => return failed(failure),
            Verdict::NotOurs => return Outcome::NotOurs,
        }
    }
    unreachable!("the loop has no end")
}

fn failed(failure: Arc<Failure>) -> Outcome {
    if failure.cause == Cause::NeedsLogin { Outcome::NeedsLogin(failure) } else { Outcome::Failed(failure) }
}

/// A client that does not follow redirects.
pub fn browser() -> Client {
    // The crate under test installs the provider that this client needs.
    Client::builder().redirect(redirect::Policy::none()).no_proxy().tls_certs_only([]).build().unwrap()
}

/// Logs in like a user with a browser.
pub async fn log_in(login: &ServerLogin) -> Result<(), LoginError> {
    let flow = login.begin(&[]).await?;
    consent(&flow).await;
    flow.finished().await
}

/// Opens the login in a browser and agrees. Returns the page at its end.
pub async fn consent(flow: &LoginFlow) -> (u16, String) {
    let asked = browser().get(flow.url.clone()).send().await.unwrap();
    let location = asked.headers().get("location").expect("a redirect").to_str().unwrap().to_owned();
    let page = browser().get(location).send().await.unwrap();
    (page.status().as_u16(), page.text().await.unwrap())
}
