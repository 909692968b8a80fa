//! Logins of `mcp-remote`: found, used, and never changed.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use md5::{Digest as _, Md5};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, Outcome},
    scripted::{SECRET, START, Site},
};

/// Files in the format of `mcp-remote`.
struct Remote {
    folder: PathBuf,
    name: String,
}

impl Remote {
    fn new(bench: &Bench, version: &str, url: &str) -> Self {
        let folder = bench.folder.path().join("mcp-auth").join(format!("mcp-remote-{version}"));
        fs::create_dir_all(&folder).unwrap();
        let name = format!("{:x}", Md5::digest(url));
        Self { folder, name }
    }

    fn write(&self, kind: &str, content: &Value) {
        let path = self.folder.join(format!("{}_{kind}.json", self.name));
        fs::write(&path, content.to_string()).unwrap();
        // By the test's clock it was written just now.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(START);
        fs::File::options().write(true).open(path).unwrap().set_modified(now).unwrap();
    }

    fn all(&self) -> BTreeMap<PathBuf, (String, SystemTime)> {
        let files = fs::read_dir(&self.folder).unwrap().flatten().map(|entry| entry.path());
        let read = |path: &PathBuf| {
            (fs::read_to_string(path).unwrap(), fs::metadata(path).unwrap().modified().unwrap())
        };
        files.map(|path| (path.clone(), read(&path))).collect()
    }
}

/// The tokens of a login made at this site.
async fn tokens(site: &Site) -> (String, String, String) {
    let bench = Bench::new(site);
    bench.logged_in().await;
    let login = bench.record()["logins"][&site.origin].clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&login["client_id"]), text(&login["tokens"]["access"]), text(&login["tokens"]["refresh"]))
}

#[tokio::test]
async fn tokens_of_mcp_remote_are_used_and_its_files_stay() {
    let site = Site::start().await;
    let (client, access, refresh) = tokens(&site).await;
    let bench = Bench::new(&site);
    let remote = Remote::new(&bench, "0.1.29", &bench.url);
    remote.write("client_info", &json!({"client_id": client, "redirect_uris": ["http://localhost:1/cb"]}));
    remote.write(
        "tokens",
        &json!({"access_token": access, "refresh_token": refresh, "expires_in": 600, "token_type": "Bearer"}),
    );
    let before = remote.all();
    let login = bench.login();
    assert!(bench.call(&login).await.is_done());
    site.script().grants.expire_all();
    assert!(bench.call(&login).await.is_done(), "its refresh token is used at the server itself");
    assert!(bench.call(&bench.login()).await.is_done());
    assert_eq!(remote.all(), before);
    let grants = &site.script().grants;
    assert_eq!((grants.logins, grants.refreshed.len()), (1, 1));
}

#[tokio::test]
async fn broken_files_of_mcp_remote_are_ignored() {
    for text in
        ["", "[]", "{\"access_token\": 5}", "{\"access_token\": \"a\\r\\nX: b\"}", "{\"access_token\":\"ä\"}"]
    {
        let site = Site::start().await;
        let bench = Bench::new(&site);
        let remote = Remote::new(&bench, "0.1.29", &bench.url);
        remote.write("client_info", &json!({"client_id": "c"}));
        fs::write(remote.folder.join(format!("{}_tokens.json", remote.name)), text).unwrap();
        assert!(matches!(bench.call(&bench.login()).await, Outcome::NeedsLogin(_)), "{text}");
    }
}

/// The server or its metadata names an authorization server that cannot have issued the tokens.
#[tokio::test]
async fn a_refresh_token_of_mcp_remote_is_not_sent_to_a_foreign_issuer() {
    let jwt = |issuer: &str| {
        let claims = URL_SAFE_NO_PAD.encode(json!({"iss": issuer, "note": SECRET}).to_string());
        format!("e30.{claims}.x")
    };
    for case in ["issuer", "endpoint", "jwt", "registration"] {
        let (site, evil) = (Site::start().await, Site::start().await);
        let bench = Bench::new(&site);
        let remote = Remote::new(&bench, "0.1.29", &bench.url);
        let (mut access, mut info) =
            ("opaque".to_owned(), json!({"client_id": "c", "client_secret": SECRET}));
        match case {
            "issuer" => site.script().resource = json!({"authorization_servers": [evil.origin]}),
            "endpoint" => site.script().server = json!({"token_endpoint": format!("{}/token", evil.origin)}),
            "jwt" => access = jwt("https://accounts.example"),
            _ => info["registration_client_uri"] = "https://accounts.example/clients/c".into(),
        }
        remote.write("client_info", &info);
        remote.write("tokens", &json!({"access_token": access, "refresh_token": format!("{SECRET}-remote")}));
        let login = bench.login();
        for _ in 0..3 {
            assert!(!bench.call(&login).await.is_done());
            site.pass(70);
        }
        assert!(!evil.everything().contains(SECRET), "{case}");
        assert!(site.bodies("/token").is_empty(), "{case}: {:?}", site.bodies("/token"));
    }
}
