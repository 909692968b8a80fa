//! The process that a simulation starts: it makes requests with the shared login.

use std::{
    env, fs,
    io::Write as _,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use plugbay_auth::{LoginSettings, ServerLogin, store::Store};
use plugbay_core::credentials::OAuthSettings;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::bench::{self, Outcome};

pub const TEST: &str = "days::child::a_process_of_the_simulation";
pub const CLOCK: &str = "PLUGBAY_TEST_CLOCK";
pub const FOLDER: &str = "PLUGBAY_TEST_FOLDER";
pub const URL: &str = "PLUGBAY_TEST_URL";
/// The prefix of replies.
pub const MARK: &str = "@@";

/// Does nothing unless a simulation has started it.
#[tokio::test]
async fn a_process_of_the_simulation() {
    let (Ok(clock), Ok(folder), Ok(url)) = (env::var(CLOCK), env::var(FOLDER), env::var(URL)) else { return };
    let login = login(Path::new(&clock), PathBuf::from(folder), &url);
    let client = bench::browser();
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(command)) = commands.next_line().await {
        let mut reply = "done".to_owned();
        if command.starts_with("call") {
            reply = match bench::call_with(&client, &login, &url).await {
                Outcome::Done => "done".to_owned(),
                Outcome::NeedsLogin(why) => format!("login {why}"),
                other => format!("failed {}", other.text()),
            };
        }
        if command.ends_with("settle") {
            login.settled().await;
        }
        let _ = writeln!(std::io::stdout().lock(), "{MARK}{}", reply.replace('\n', " "));
    }
}

fn login(clock: &Path, folder: PathBuf, url: &str) -> ServerLogin {
    let clock = fs::File::open(clock).unwrap();
    let clock = move || {
        let mut now = [0; 8];
        clock.read_exact_at(&mut now, 0).unwrap();
        u64::from_le_bytes(now)
    };
    ServerLogin::new(LoginSettings {
        name: "site".to_owned(),
        url: url.to_owned(),
        oauth: OAuthSettings::default(),
        ca_file: None,
        store: Store::new(folder, None),
        mcp_remote: None,
        clock: Arc::new(clock),
    })
    .unwrap()
}
