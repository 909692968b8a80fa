//! Turns the keys of an entry into the source of its server's credentials.

use std::path::{Path, PathBuf};

use jsonc_parser::common::Range;
use plugbay_core::{
    credentials::{
        ClientSettings, CredentialSource, EnterpriseSettings, Grant, HeadersCommand, OAuthSettings,
        Placement, SecretSource, SigningKey,
    },
    secret::Secret,
};

use super::{
    Env, LoginSettings,
    audit::absolute,
    diagnostic::quote,
    document::Document,
    entry::{Surroundings, fill},
    files::Origin,
    model::is_here,
    oauth::{Algorithm, CommandLine, GrantKind, IdentityProvider, OAuth, Scopes},
    raw::Server,
    read::At,
    remote::PROJECT_ROOT,
    report::Report,
    word::Word,
};

/// A file longer than this holds no client secret.
const LONGEST_SECRET: u64 = 64 * 1024;

/// A problem that is already in the report.
struct Reported;

/// A value that may be absent.
type Given<T> = Result<Option<T>, Reported>;

/// The login settings. A project's file is ignored: a repository must choose neither plugbay's identity nor
/// the token store.
pub(super) fn logins(used: &[(Document, Origin)], env: Env<'_>, reports: &mut [Report<'_>]) -> LoginSettings {
    let mut settings = LoginSettings::default();
    for ((document, origin), report) in used.iter().zip(reports) {
        let Some(logins) = &document.config.oauth else { continue };
        if *origin != Origin::Machine {
            let places = [
                logins.client_metadata_url.as_ref().map(|url| url.at),
                logins.store.as_ref().map(|store| store.at),
            ];
            for at in places.into_iter().flatten() {
                let help = "set it in your own configuration file";
                report.warning(at, "a project cannot set what holds for all logins", help);
            }
            continue;
        }
        let mut values = Values { folder: Path::new(""), env, report };
        if let Ok(Some(url)) = values.address(logins.client_metadata_url.as_ref()) {
            settings.client_metadata_url = Some(url);
        }
        settings.store = logins.store.as_ref().map_or(settings.store, |store| store.value.0);
    }
    settings
}

/// The source of this server's credentials. `has_authorization`: its configured headers contain some.
pub(super) fn source(
    server: &Server,
    has_authorization: bool,
    around: Surroundings<'_>,
    report: &mut Report<'_>,
) -> Option<CredentialSource> {
    let mut values = Values { folder: around.folder, env: around.env, report };
    let login = server.oauth.as_ref().and_then(|oauth| Some((oauth.value.settings()?, oauth.at)));
    let is_off = server.oauth.is_some() && login.is_none();
    match (login, &server.headers_command, &server.headers_file) {
        (_, Some(_), Some(file)) => {
            let help = "keep one of \"headersCommand\" and \"headersFile\"";
            values.report.error(file.at, "the headers are given in two places", help);
            None
        }
        (Some((_, at)), Some(_), None) | (Some((_, at)), None, Some(_)) => {
            let help = "keep \"oauth\", or the key for the headers";
            values.report.error(at, "a login and a source of headers exclude each other", help);
            None
        }
        (None, Some(command), None) => {
            values.command(command, server.cwd.as_ref()).ok().map(CredentialSource::Command)
        }
        (None, None, Some(file)) => Some(CredentialSource::File(values.path(Some(file)).ok()??)),
        (Some((_, at)), None, None) if has_authorization => {
            let help = "remove the header to let plugbay log in, or write \"oauth\": false";
            let message = "has no effect: the server gets the configured \"Authorization\" header";
            values.report.warning(at, message, help);
            Some(CredentialSource::Headers)
        }
        (None, None, None) if is_off || has_authorization => Some(CredentialSource::Headers),
        (login, None, None) => {
            let mut settings = match login {
                Some((oauth, at)) => values.login(oauth, at).ok()?,
                None => OAuthSettings::default(),
            };
            let scopes = server.scopes.as_ref().and_then(asked);
            settings.scopes = settings.scopes.or(scopes);
            let LoginSettings { client_metadata_url: document, store } = around.logins.clone();
            settings.client_metadata_url = settings.client_metadata_url.or(document);
            settings.placement = store;
            Some(CredentialSource::OAuth(Box::new(settings)))
        }
    }
}

/// The scopes to ask for. An empty list asks for none in particular.
fn asked(scopes: &Scopes) -> Option<Vec<String>> {
    Some(scopes.0.clone()).filter(|scopes| !scopes.is_empty())
}

/// Expands the values of an entry.
struct Values<'a, 'r, 's> {
    folder: &'a Path,
    env: Env<'a>,
    report: &'r mut Report<'s>,
}

impl Values<'_, '_, '_> {
    fn fail<T>(&mut self, at: Range, message: impl Into<String>, help: &str) -> Result<T, Reported> {
        self.report.error(at, message, help);
        Err(Reported)
    }

    /// A text; an empty one counts as absent.
    fn text(&mut self, value: Option<&At<String>>) -> Given<String> {
        let Some(value) = value else { return Ok(None) };
        let text = fill(value, self.env, self.report).ok_or(Reported)?;
        Ok(Some(text).filter(|text| !text.trim().is_empty()))
    }

    fn secret(&mut self, value: Option<&At<String>>) -> Given<Secret> {
        Ok(self.text(value)?.map(Secret::new))
    }

    fn path(&mut self, value: Option<&At<String>>) -> Given<PathBuf> {
        Ok(self.text(value)?.map(|path| absolute(&path, self.folder, self.env)))
    }

    /// An address to which secrets may be sent.
    fn address(&mut self, value: Option<&At<String>>) -> Given<String> {
        let (Some(At { at, .. }), Some(address)) = (value, self.text(value)?) else { return Ok(None) };
        let is_encrypted = ["https://", "${"].iter().any(|start| address.starts_with(start));
        if is_encrypted || address.strip_prefix("http://").is_some_and(is_here) {
            return Ok(Some(address));
        }
        self.fail(*at, "not an address to which plugbay sends secrets", "write it as https://HOST/PATH")
    }

    /// A secret that is written directly or in a file.
    fn secret_source(
        &mut self,
        key: &str,
        value: Option<&At<String>>,
        file: Option<&At<String>>,
    ) -> Given<SecretSource> {
        if let (Some(_), Some(file)) = (value, file) {
            let help = format!("keep one of {} and {}", quote(key), quote(&format!("{key}File")));
            return self.fail(file.at, format!("{} is given in two places", quote(key)), &help);
        }
        let value = self.secret(value)?.map(SecretSource::Value);
        Ok(value.or(self.path(file)?.map(SecretSource::File)))
    }

    /// The same for a secret that the settings hold directly.
    fn read_secret(
        &mut self,
        key: &str,
        value: Option<&At<String>>,
        file: Option<&At<String>>,
    ) -> Given<Secret> {
        match (self.secret_source(key, value, file)?, file) {
            (Some(SecretSource::File(path)), Some(At { at, .. })) => match content(&path) {
                Ok(secret) => Ok(Some(secret)),
                Err(reason) => {
                    let message = format!("{} cannot be read: {reason}", path.display());
                    self.fail(*at, message, "write the secret into that file, or correct the path")
                }
            },
            (Some(SecretSource::Value(secret)), _) => Ok(Some(secret)),
            _ => Ok(None),
        }
    }

    fn login(&mut self, oauth: &OAuth, at: Range) -> Result<OAuthSettings, Reported> {
        let client_metadata_url = self.address(oauth.client_metadata_url.as_ref());
        let client = self.client(oauth);
        let grant = self.grant(oauth, at);
        let callback_port = match oauth.callback_port {
            Some(port) => Ok(Some(port.0)),
            None => self.redirect_port(oauth),
        };
        let settings = OAuthSettings {
            client: client?,
            client_metadata_url: client_metadata_url?,
            scopes: oauth.scopes.as_ref().and_then(asked),
            callback_port: callback_port?,
            placement: Placement::default(), // the same for all servers
            private_network: oauth.private_network.unwrap_or_default(),
            grant: grant?,
        };
        let place = oauth.grant.as_ref().map_or(at, |grant| grant.at);
        let authenticates =
            settings.client.as_ref().is_some_and(|client| client.secret.is_some() || client.key.is_some());
        if settings.grant == Grant::ClientCredentials && !authenticates {
            let help = "give \"clientId\" with \"clientSecret\" or \"privateKeyFile\"";
            return self.fail(
                place,
                "the grant \"client_credentials\" needs a client with a secret or a key",
                help,
            );
        }
        Ok(settings)
    }

    fn client(&mut self, oauth: &OAuth) -> Given<ClientSettings> {
        let id = self.text(oauth.client_id.as_ref());
        let secret =
            self.read_secret("clientSecret", oauth.client_secret.as_ref(), oauth.client_secret_file.as_ref());
        let key = self.key(oauth);
        let issuer = self.issuer(oauth);
        let (id, secret, key, issuer) = (id?, secret?, key?, issuer?);
        if let Some(id) = id {
            return Ok(Some(ClientSettings { id, secret, key, issuer }));
        }
        let of_client = [
            ("clientSecret", &oauth.client_secret),
            ("clientSecretFile", &oauth.client_secret_file),
            ("privateKey", &oauth.private_key),
            ("privateKeyFile", &oauth.private_key_file),
        ];
        if let Some((key, Some(At { at, .. }))) = of_client.into_iter().find(|(_, value)| value.is_some()) {
            let message = format!("{} belongs to a client, and there is no \"clientId\"", quote(key));
            return self.fail(*at, message, "give the client's id: \"clientId\": \"…\"");
        }
        if let Some(At { at, .. }) = oauth.issuer.as_ref().or(oauth.metadata_url.as_ref()) {
            let message = "has no effect without \"clientId\": the server names its authorization server";
            self.report.warning(*at, message, "give the client's id, or remove this key");
        }
        Ok(None)
    }

    fn key(&mut self, oauth: &OAuth) -> Given<SigningKey> {
        let pem =
            self.secret_source("privateKey", oauth.private_key.as_ref(), oauth.private_key_file.as_ref())?;
        let id = self.text(oauth.key_id.as_ref())?;
        let Word(Algorithm(algorithm)) =
            oauth.algorithm.as_ref().map_or(Word(Algorithm("ES256")), |algorithm| algorithm.value);
        Ok(pem.map(|pem| SigningKey { pem, algorithm: algorithm.to_owned(), id }))
    }

    fn issuer(&mut self, oauth: &OAuth) -> Given<String> {
        if oauth.issuer.is_some() {
            return self.address(oauth.issuer.as_ref());
        }
        let Some(address) = self.address(oauth.metadata_url.as_ref())? else { return Ok(None) };
        let issuer = issuer_of(&address);
        if let (None, Some(At { at, .. })) = (&issuer, &oauth.metadata_url) {
            let help = "write the issuer of the authorization server instead: \"issuer\": \"https://HOST\"";
            self.report.warning(*at, "has no effect: plugbay cannot tell the issuer from this address", help);
        }
        Ok(issuer)
    }

    fn redirect_port(&mut self, oauth: &OAuth) -> Given<u16> {
        let uri = oauth.redirect_uri.as_ref();
        let (Some(At { at, .. }), Some(text)) = (uri, self.text(uri)?) else { return Ok(None) };
        let port = port_of(&text);
        if port.is_none() {
            let help = "write the port as \"callbackPort\", or remove the key";
            self.report.warning(*at, "has no effect: it names no port of this machine", help);
        }
        Ok(port)
    }

    fn grant(&mut self, oauth: &OAuth, at: Range) -> Result<Grant, Reported> {
        let (kind, at) =
            oauth.grant.as_ref().map_or((GrantKind::default(), at), |grant| (grant.value.0, grant.at));
        let assertion = oauth.assertion.as_ref().or(oauth.assertion_file.as_ref());
        if let Some(assertion) = assertion.filter(|_| kind != GrantKind::WorkloadIdentity) {
            let help = "add \"grant\": \"workload_identity\", or remove the assertion";
            return self.fail(assertion.at, "an assertion belongs to the grant \"workload_identity\"", help);
        }
        if let Some(idp) = oauth.idp.as_ref().filter(|_| kind != GrantKind::EnterpriseManaged) {
            let help = "add \"grant\": \"enterprise_managed\", or remove \"idp\"";
            return self.fail(idp.at, "\"idp\" belongs to the grant \"enterprise_managed\"", help);
        }
        match kind {
            GrantKind::AuthorizationCode => Ok(Grant::AuthorizationCode),
            GrantKind::ClientCredentials => Ok(Grant::ClientCredentials),
            GrantKind::WorkloadIdentity => {
                let given =
                    self.secret_source("assertion", oauth.assertion.as_ref(), oauth.assertion_file.as_ref())?;
                let Some(assertion) = given else {
                    let help = "give the file in which the platform puts it: \"assertionFile\": \"…\"";
                    return self.fail(at, "the grant \"workload_identity\" needs an assertion", help);
                };
                Ok(Grant::WorkloadIdentity { assertion })
            }
            GrantKind::EnterpriseManaged => {
                let Some(idp) = &oauth.idp else {
                    let help = "add \"idp\": { \"issuer\": …, \"clientId\": …, \"idTokenFile\": … }";
                    return self.fail(
                        at,
                        "the grant \"enterprise_managed\" needs an identity provider",
                        help,
                    );
                };
                Ok(Grant::EnterpriseManaged(Box::new(self.enterprise(idp)?)))
            }
        }
    }

    fn enterprise(&mut self, idp: &At<IdentityProvider>) -> Result<EnterpriseSettings, Reported> {
        let At { value: idp, at } = idp;
        let issuer = self.address(idp.issuer.as_ref());
        let token_endpoint = self.address(idp.token_endpoint.as_ref());
        let client_id = self.text(idp.client_id.as_ref());
        let client_secret = self.secret(idp.client_secret.as_ref());
        let id_token = self.secret_source("idToken", idp.id_token.as_ref(), idp.id_token_file.as_ref());
        let (issuer, token_endpoint, client_secret) = (issuer?, token_endpoint?, client_secret?);
        if issuer.is_none() && token_endpoint.is_none() {
            let help = "give its \"issuer\" or its \"tokenEndpoint\"";
            return self.fail(*at, "the identity provider has no address", help);
        }
        let Some(client_id) = client_id? else {
            let help = "give the id of plugbay's client there: \"clientId\": \"…\"";
            return self.fail(*at, "the identity provider has no client", help);
        };
        let Some(id_token) = id_token? else {
            let help = "give the user's ID token: \"idTokenFile\": \"…\"";
            return self.fail(*at, "the identity provider has no ID token", help);
        };
        Ok(EnterpriseSettings { issuer, token_endpoint, client_id, client_secret, id_token })
    }

    /// The command. Its program starts in the folder of the configuration, unless the entry says otherwise.
    fn command(
        &mut self,
        command: &At<CommandLine>,
        cwd: Option<&At<String>>,
    ) -> Result<HeadersCommand, Reported> {
        let CommandLine(written) = &command.value;
        let words: Vec<Option<String>> =
            written.iter().map(|word| fill(word, self.env, self.report)).collect();
        let folder = match self.text(cwd)? {
            Some(cwd) if cwd == PROJECT_ROOT => (self.env)("workspaceFolder").map(PathBuf::from),
            Some(cwd) => Some(absolute(&cwd, self.folder, self.env)),
            None => Some(self.folder.to_owned()).filter(|folder| !folder.as_os_str().is_empty()),
        };
        let mut words = words.into_iter().collect::<Option<Vec<_>>>().ok_or(Reported)?.into_iter();
        let program = words.next().ok_or(Reported)?;
        // `./headers.sh` means a file in that folder, wherever plugbay is started.
        let program = match &folder {
            Some(folder) if program.contains('/') && !program.starts_with("${") => {
                folder.join(program).to_string_lossy().into_owned()
            }
            _ => program,
        };
        let written = shown(written.iter().map(|word| word.value.as_str()));
        Ok(HeadersCommand { program, args: words.collect(), folder, written })
    }
}

/// A command for people: words that would be read as two are quoted.
pub(super) fn shown<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let is_plain = |word: &str| {
        !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"')
    };
    let words = words.map(|word| if is_plain(word) { word.to_owned() } else { format!("{word:?}") });
    words.collect::<Vec<_>>().join(" ")
}

/// The content of a file with one secret. A path that is not expanded is not read.
fn content(path: &Path) -> Result<Secret, String> {
    if path.to_string_lossy().contains("${") {
        return Ok(Secret::new(""));
    }
    let text = plugbay_files::read_text(path, LONGEST_SECRET).map_err(|error| error.to_string())?;
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        secret => Ok(Secret::new(secret)),
    }
}

/// The issuer whose metadata is at this address.
fn issuer_of(metadata: &str) -> Option<String> {
    let (start, end) = metadata.split_once("/.well-known/")?;
    let path = end.strip_prefix("oauth-authorization-server").or(end.strip_prefix("openid-configuration"))?;
    // The path of the issuer comes after the well-known part, or before it.
    (path.is_empty() || path.starts_with('/')).then(|| format!("{start}{path}"))
}

/// The port of a redirect URI on this machine, with or without its scheme.
fn port_of(uri: &str) -> Option<u16> {
    let place = uri.strip_prefix("http://").unwrap_or(uri);
    let (host, port) = place.split('/').next()?.rsplit_once(':')?;
    ["localhost", "127.0.0.1", "[::1]"].contains(&host).then(|| port.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_issuer_is_found_in_the_address_of_its_metadata() {
        let issuer = |address: &str| issuer_of(address).unwrap_or_default();
        assert_eq!(issuer("https://a.example/.well-known/oauth-authorization-server"), "https://a.example");
        assert_eq!(
            issuer("https://a.example/.well-known/oauth-authorization-server/t/1"),
            "https://a.example/t/1"
        );
        assert_eq!(issuer("https://a.example/t/.well-known/openid-configuration"), "https://a.example/t");
        assert_eq!(issuer("https://a.example/metadata.json"), "");
        assert_eq!(issuer("https://a.example/.well-known/openid-configurations"), "");
    }

    #[test]
    fn a_redirect_uri_on_this_machine_names_a_port() {
        assert_eq!(port_of("http://localhost:7777/oauth/callback"), Some(7777));
        assert_eq!(port_of("127.0.0.1:7778"), Some(7778));
        assert_eq!(port_of("http://[::1]:80/"), Some(80));
        for uri in ["http://localhost/callback", "https://h.example:443/x", "http://localhost:x", ""] {
            assert_eq!(port_of(uri), None, "{uri}");
        }
    }
}
