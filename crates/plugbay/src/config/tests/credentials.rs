//! The sources of a server's credentials.

use plugbay_core::{
    credentials::{
        ClientSettings, CredentialSource, EnterpriseSettings, Grant, OAuthSettings, Placement, SecretSource,
        SigningKey,
    },
    secret::Secret,
};
use plugbay_upstream::spec::Transport;

use super::{Place, settings};
use crate::config::{Settings, entries, identity};

/// The credential source of the only server, which is behind a URL.
fn source(settings: &Settings) -> CredentialSource {
    assert!(settings.diagnostics.is_empty(), "{:?}", settings.diagnostics);
    let spec = settings.servers[0].spec.as_ref().unwrap();
    let Transport::Http(http) = &spec.transport else { panic!("{spec:?}") };
    http.credentials.clone()
}

fn of_entry(place: &Place, members: &str) -> Settings {
    place.write("project/c", format!(r#"{{"mcpServers": {{"s": {{"url": "https://h/mcp", {members}}}}}}}"#));
    place.load(Some("c"))
}

fn login(members: &str) -> OAuthSettings {
    match source(&of_entry(&Place::new(), members)) {
        CredentialSource::OAuth(settings) => *settings,
        other => panic!("{other:?}"),
    }
}

fn client(id: &str) -> ClientSettings {
    ClientSettings { id: id.to_owned(), secret: None, key: None, issuer: None }
}

#[test]
fn a_server_without_authorization_header_may_ask_for_a_login() {
    let place = Place::new();
    let source = |members: &str| source(&of_entry(&place, members));
    let standard = CredentialSource::OAuth(Box::default());
    for members in [
        r#""type": "http""#,
        r#""headers": {"X-Key": "k"}"#,
        r#""oauth": {}"#,
        r#""oauth": true"#,
        r#""oauth": {"enabled": true}"#,
        r#""auth": "oauth""#,
        r#""auth": {}, "authProviderType": "dynamic_discovery", "oauth_resource": "https://h""#,
    ] {
        assert_eq!(source(members), standard, "{members}");
    }
    for members in [
        r#""headers": {"authorization": "Bearer ${TOK}"}"#,
        r#""env_http_headers": {"Authorization": "TOK"}"#,
        r#""bearer_token_env_var": "TOK""#,
        r#""oauth": false"#,
        r#""oauth": {"enabled": false, "clientId": "x"}"#,
        r#""oauth": false, "bearer_token_env_var": "TOK""#,
    ] {
        assert_eq!(source(members), CredentialSource::Headers, "{members}");
    }
}

#[test]
fn the_oauth_keys_of_hosts_can_be_pasted() {
    let secret = Some(Secret::new(super::TOKEN));
    let scopes = Some(vec!["a".to_owned(), "b:c".to_owned()]);
    let known = ClientSettings { secret: secret.clone(), ..client("me") };
    let claude = r#""type": "http", "oauth": {"clientId": "me", "callbackPort": 8080, "scopes": "a b:c",
        "authServerMetadataUrl": "https://as.example/.well-known/openid-configuration"}"#;
    let issuer = Some("https://as.example".to_owned());
    let expected = OAuthSettings {
        client: Some(ClientSettings { issuer, ..client("me") }),
        scopes: scopes.clone(),
        callback_port: Some(8080),
        ..OAuthSettings::default()
    };
    assert_eq!(login(claude), expected);
    let gemini = r#""oauth": {"enabled": true, "clientId": "me", "clientSecret": "${TOK}", "scopes": ["a", "b:c"],
        "authorizationUrl": "https://as.example/a", "redirectUri": "http://localhost:7777/oauth/callback"}"#;
    let expected = OAuthSettings {
        client: Some(known.clone()),
        scopes: scopes.clone(),
        callback_port: Some(7777),
        ..OAuthSettings::default()
    };
    assert_eq!(login(gemini), expected);
    let expected = OAuthSettings { callback_port: None, ..expected };
    let opencode =
        r#""type": "remote", "oauth": {"clientId": "me", "clientSecret": "${TOK}", "scope": "a b:c"}"#;
    assert_eq!(login(opencode), expected);
    let cursor = r#""auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "${env:TOK}", "scopes": ["a", "b:c"]}"#;
    assert_eq!(login(cursor), expected);
    let zed = r#""oauth": {"client_id": "me", "client_secret": "${TOK}"}, "scopes": ["a", "b:c"]"#;
    assert_eq!(login(zed), expected);
    let codex = r#""scopes": ["a", "b:c"]"#;
    assert_eq!(login(codex), OAuthSettings { scopes, ..OAuthSettings::default() });
}

#[test]
fn each_oauth_grant_is_read_with_its_files_beside_the_configuration() {
    let place = Place::new();
    place.write("project/secret.txt", "s3cr3t\n");
    let login = |members: &str| match source(&of_entry(&place, &format!(r#""oauth": {members}"#))) {
        CredentialSource::OAuth(settings) => *settings,
        other => panic!("{other:?}"),
    };
    let key = |pem, algorithm: &str, id: Option<&str>| SigningKey {
        pem,
        algorithm: algorithm.to_owned(),
        id: id.map(str::to_owned),
    };
    let machine = login(
        r#"{"grant": "client_credentials", "clientId": "me", "clientSecretFile": "secret.txt", "issuer": "https://as.example/t"}"#,
    );
    assert_eq!(machine.grant, Grant::ClientCredentials);
    let issuer = Some("https://as.example/t".to_owned());
    assert_eq!(
        machine.client,
        Some(ClientSettings { secret: Some(Secret::new("s3cr3t")), issuer, ..client("me") })
    );
    let signing = login(r#"{"grant": "client_credentials", "clientId": "me", "privateKeyFile": "key.pem"}"#);
    let pem = SecretSource::File(place.path("project/key.pem"));
    assert_eq!(signing.client, Some(ClientSettings { key: Some(key(pem, "ES256", None)), ..client("me") }));
    let signing = login(r#"{"clientId": "me", "privateKey": "${TOK}", "algorithm": "RS256", "keyId": "k1"}"#);
    let pem = SecretSource::Value(Secret::new(super::TOKEN));
    assert_eq!(
        signing.client,
        Some(ClientSettings { key: Some(key(pem, "RS256", Some("k1"))), ..client("me") })
    );
    let workload = login(r#"{"grant": "workload_identity", "assertionFile": "/var/run/token"}"#);
    assert_eq!(
        workload.grant,
        Grant::WorkloadIdentity { assertion: SecretSource::File("/var/run/token".into()) }
    );
    let enterprise = login(
        r#"{"grant": "enterprise_managed", "clientId": "me",
            "idp": {"tokenEndpoint": "https://idp.example/token", "clientId": "there", "clientSecret": "${TOK}", "idTokenFile": "id.jwt"}}"#,
    );
    let expected = EnterpriseSettings {
        issuer: None,
        token_endpoint: Some("https://idp.example/token".to_owned()),
        client_id: "there".to_owned(),
        client_secret: Some(Secret::new(super::TOKEN)),
        id_token: SecretSource::File(place.path("project/id.jwt")),
    };
    assert_eq!(enterprise.grant, Grant::EnterpriseManaged(Box::new(expected)));
    assert!(!format!("{machine:?} {signing:?} {enterprise:?}").contains(super::TOKEN));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn oauth_settings_that_cannot_work_name_place_and_remedy() {
    let check = |members: &str, expected: &str| {
        let text = format!("{{\"mcpServers\": {{\"s\": {{\"url\": \"https://h/mcp\",\n{members}}}}}}}");
        let settings = settings(&text, &[]);
        let spec = &settings.servers[0].spec;
        let problem = super::line(&settings.diagnostics[0]).replace('`', "\"");
        assert!(problem.starts_with(expected), "{members}\n{problem}");
        assert_eq!(spec.is_err(), expected.starts_with("error"), "{members}");
        assert_eq!(settings.diagnostics.len(), 1, "{:?}", settings.diagnostics);
    };
    for (members, expected) in [
        (
            r#""oauth": {"clientId": "x"}, "headers": {"Authorization": "b"}"#,
            "warning 2:10: has no effect: the server gets the configured \"Authorization\" header",
        ),
        (r#""oauth": 1"#, "error 2:10: \"oauth\": expected an object or false"),
        (
            r#""oauth": {"clientid": "x"}"#,
            "warning 2:11: unknown key \"clientid\"; did you mean \"clientId\"?",
        ),
        (
            r#""oauth": {"clientSecret": "x"}"#,
            "error 2:27: \"clientSecret\" belongs to a client, and there is no \"clientId\"; give",
        ),
        (
            r#""oauth": {"clientId": "x", "clientSecret": "${NO}"}"#,
            "error 2:45: the variable \"NO\" is not set",
        ),
        (
            r#""oauth": {"clientId": "x", "clientSecretFile": "/no/such"}"#,
            "error 2:48: /no/such cannot be read: No such file",
        ),
        (
            r#""oauth": {"clientId": "x", "clientSecret": "a", "clientSecretFile": "b"}"#,
            "error 2:69: \"clientSecret\" is given in two places; keep one of",
        ),
        (r#""oauth": {"issuer": "https://as.example"}"#, "warning 2:21: has no effect without \"clientId\""),
        (
            r#""oauth": {"clientId": "x", "issuer": "http://as.example"}"#,
            "error 2:38: not an address to which plugbay sends secrets; write it as https",
        ),
        (
            r#""oauth": {"clientId": "x", "authServerMetadataUrl": "https://as.example/m"}"#,
            "warning 2:53: has no effect: plugbay cannot tell the issuer",
        ),
        (
            r#""oauth": {"callbackPort": 0}"#,
            "error 2:27: \"callbackPort\": \"0\" is not a whole number in range; write a port",
        ),
        (
            r#""oauth": {"redirectUri": "https://h/cb"}"#,
            "warning 2:26: has no effect: it names no port of this machine; write the port",
        ),
        (r#""oauth": {"scopes": ["a\"b"]}"#, "error 2:22: \"scopes\": "),
        (r#""oauth": {"grant": "password"}"#, "error 2:20: \"grant\": unknown value \"password\"; available"),
        (
            r#""oauth": {"grant": "client_credentials"}"#,
            "error 2:20: the grant \"client_credentials\" needs a client with a secret or a key; give \"clientId\"",
        ),
        (
            r#""oauth": {"grant": "client_credentials", "clientId": "x"}"#,
            "error 2:20: the grant \"client_credentials\" needs",
        ),
        (
            r#""oauth": {"grant": "workload_identity"}"#,
            "error 2:20: the grant \"workload_identity\" needs an assertion; give",
        ),
        (
            r#""oauth": {"assertion": "x"}"#,
            "error 2:24: an assertion belongs to the grant \"workload_identity\"; add \"grant\"",
        ),
        (
            r#""oauth": {"grant": "enterprise_managed"}"#,
            "error 2:20: the grant \"enterprise_managed\" needs an identity provider; add \"idp\"",
        ),
        (r#""oauth": {"idp": {}}"#, "error 2:18: \"idp\" belongs to the grant \"enterprise_managed\""),
        (
            r#""oauth": {"grant": "enterprise_managed", "idp": {"clientId": "x", "idToken": "t"}}"#,
            "error 2:49: the identity provider has no address; give its \"issuer\"",
        ),
        (
            r#""oauth": {"grant": "enterprise_managed", "idp": {"issuer": "https://i", "idToken": "t"}}"#,
            "error 2:49: the identity provider has no client",
        ),
        (
            r#""oauth": {"grant": "enterprise_managed", "idp": {"issuer": "https://i", "clientId": "x"}}"#,
            "error 2:49: the identity provider has no ID token",
        ),
        (
            r#""headersCommand": ["a"], "headersFile": "b""#,
            "error 2:41: the headers are given in two places; keep one of",
        ),
        (
            r#""oauth": {}, "headersFile": "b""#,
            "error 2:10: a login and a source of headers exclude each other",
        ),
        (
            r#""headersHelper": "echo $TOKEN""#,
            "error 2:18: \"headersHelper\": \"$\" needs a shell; plugbay uses no shell",
        ),
        (r#""headersCommand": []"#, "error 2:19: \"headersCommand\": names no program"),
    ] {
        check(members, expected);
    }
}

#[test]
fn headers_come_from_a_command_or_a_file_beside_the_configuration() {
    let place = Place::new();
    let command = |members: &str| match source(&of_entry(&place, members)) {
        CredentialSource::Command(command) => command,
        other => panic!("{other:?}"),
    };
    let helper = command(r#""headersHelper": "./headers.sh --key ${TOK} 'a b'""#);
    assert_eq!(helper.program, place.path("project/./headers.sh").to_string_lossy());
    assert_eq!(helper.args, ["--key", super::TOKEN, "a b"]);
    assert_eq!(helper.folder, Some(place.path("project")));
    assert_eq!(helper.written, "./headers.sh --key ${TOK} \"a b\"");
    assert!(!format!("{helper:?}").contains(super::TOKEN));
    let listed = command(r#""headersCommand": ["op", "read", "x"], "cwd": "sub", "oauth": false"#);
    assert_eq!((listed.program.as_str(), listed.folder), ("op", Some(place.path("project/sub"))));
    let file = |name: &str| source(&of_entry(&place, &format!(r#""headersFile": "{name}""#)));
    assert_eq!(file("h.json"), CredentialSource::File(place.path("project/h.json")));
    assert_eq!(file("/h.json"), CredentialSource::File("/h.json".into()));
}

#[test]
fn what_holds_for_all_logins_is_not_for_projects() {
    let place = Place::new();
    let general = |url: &str, store: &str| {
        format!(
            r#"{{"oauth": {{"clientMetadataUrl": "{url}", "store": "{store}"}},
                "mcpServers": {{"s": {{"url": "https://h/mcp"}}, "t": {{"url": "https://t/mcp", "oauth": {{"clientMetadataUrl": "https://own.example/c"}}}}}}}}"#
        )
    };
    place.write("home/config.jsonc", general("https://me.example/client", "file"));
    let documents = |settings: &Settings| -> Vec<Option<String>> {
        let specs = settings.servers.iter().map(|server| &server.spec.as_ref().unwrap().transport);
        let document = |transport: &Transport| match transport {
            Transport::Http(http) => match &http.credentials {
                CredentialSource::OAuth(login) => login.client_metadata_url.clone(),
                other => panic!("{other:?}"),
            },
            Transport::Stdio(_) => panic!(),
        };
        specs.map(document).collect()
    };
    let mine = place.load(None);
    assert!(mine.diagnostics.is_empty(), "{:?}", mine.diagnostics);
    assert_eq!(mine.logins.store, Placement::File);
    let expected = ["https://me.example/client", "https://own.example/c"].map(|url| Some(url.to_owned()));
    assert_eq!(documents(&mine), expected);

    place.write(
        "project/.plugbay.jsonc",
        r#"{"oauth": {"clientMetadataUrl": "https://evil.example/c", "store": "keychain"}}"#,
    );
    place.approve(".plugbay.jsonc");
    let ours = place.load(None);
    assert_eq!(ours.logins, mine.logins);
    assert_eq!(documents(&ours), expected);
    let problems: Vec<String> = ours.diagnostics.iter().map(super::line).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].contains("a project cannot set what holds for all logins; set it in your own"),
        "{problems:?}"
    );
    let insecure = settings(&general("http://h.example/c", "auto"), &[]);
    assert!(super::line(&insecure.diagnostics[0]).contains("not an address to which plugbay sends secrets"));
}

#[test]
fn other_credentials_are_another_server_for_the_cache() {
    let place = Place::new();
    let identities = [
        r#""type": "http""#,
        r#""oauth": {"clientId": "a"}"#,
        r#""oauth": {"clientId": "b"}"#,
        r#""scopes": ["a"]"#,
        r#""headersCommand": ["a"]"#,
        r#""headersCommand": ["a", "b"]"#,
        r#""headersFile": "a""#,
    ];
    let identities =
        identities.map(|members| identity(of_entry(&place, members).servers[0].spec.as_ref().unwrap()));
    let different: std::collections::BTreeSet<&String> = identities.iter().collect();
    assert_eq!(different.len(), identities.len());
    let same = of_entry(&place, r#""oauth": {"callbackPort": 1}"#);
    assert_eq!(identity(same.servers[0].spec.as_ref().unwrap()), identities[0]);
}

#[test]
fn a_written_login_shows_no_secret() {
    let place = Place::new();
    place.write(
        "project/c",
        r#"{"mcpServers": {"s": {"url": "https://h/mcp", "oauth": {"CLIENT_ID": "me", "clientSecret": "s3cr3t-1", "privateKey": "s3cr3t-2",
            "issuer": "https://u:s3cr3t-3@as.example/t?k=s3cr3t-4", "scope": "a b", "callbackPort": 1, "grant": "enterprise_managed",
            "idp": {"clientSecret": "s3cr3t-5", "idToken": "s3cr3t-6", "idTokenFile": "f"}}}}}"#,
    );
    let written = &entries(Some("c".as_ref()), &place.paths())[0];
    let text = serde_json::to_string(written).unwrap();
    assert!(!text.contains("s3cr3t"), "{text}");
    let expected = serde_json::json!({ "clientId": "me", "clientSecret": "…", "privateKey": "…",
        "issuer": "https://as.example/t?…", "scopes": ["a", "b"], "callbackPort": 1, "grant": "enterprise_managed",
        "idp": { "clientSecret": "…", "idToken": "…", "idTokenFile": "f" } });
    assert_eq!(written.oauth, Some(expected));
}
