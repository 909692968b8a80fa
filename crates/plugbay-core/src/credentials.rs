//! Credentials for the requests to one server: the interface between the server side and the login side.
//!
//! The server side asks for headers before each request, and reports when the server rejected them. The login
//! side refreshes tokens, and knows when only a login of the user can help.

use std::{fmt, path::PathBuf, pin::Pin, sync::Arc};

use crate::{failure::Failure, secret::Secret};

/// The future of a method whose implementation is not known here.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Gives the requests to one server their credentials.
pub trait Credentials: Send + Sync + fmt::Debug {
    /// The headers for a request. A token that is about to expire is refreshed first.
    ///
    /// No headers: the server gets the request without credentials, and may reject it. An error means that no request
    /// can succeed now; its cause is [`crate::failure::Cause::NeedsLogin`] if only the user can help.
    fn headers<'a>(&'a self, request: Target<'a>) -> Later<'a, Result<Headers, Arc<Failure>>>;

    /// The server rejected a request: with status 401, or with 403 because of its scopes. It has not carried it out.
    fn rejected<'a>(&'a self, rejection: Rejection<'a>) -> Later<'a, Verdict>;

    /// Begins a login in this process, or joins the one that is under way. The login goes on by itself;
    /// [`Credentials::changed`] ends when the user has logged in.
    fn login(&self) -> Later<'_, Result<LoginOffer, Arc<Failure>>>;

    /// Waits until a login that was begun has failed, and says why. It never ends if the user logs in.
    fn login_failed<'a>(&'a self, _id: &'a str) -> Later<'a, Arc<Failure>> {
        Box::pin(std::future::pending())
    }

    /// Waits until there are other credentials than in this generation, whichever process has got them.
    fn changed(&self, since: Generation) -> Later<'_, ()>;

    /// Waits until no credentials are being renewed: a process that ends meanwhile may lose the new ones.
    fn settled(&self) -> Later<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// The generation of the credentials that are known now.
    fn generation(&self) -> Generation;
}

/// Counts the credentials of one server in this process: others have another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Generation(pub u64);

/// Method and URL of a request: a proof of possession names both.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    pub method: &'a str,
    /// The URL with its path, without query and fragment.
    pub url: &'a str,
}

/// Headers with credentials.
#[derive(Debug, Clone, Default)]
pub struct Headers {
    pub values: Vec<(String, Secret)>,
    pub generation: Generation,
}

/// What a server said when it rejected a request.
#[derive(Debug, Clone)]
pub struct Rejection<'a> {
    pub status: u16,
    /// The values of its `WWW-Authenticate` headers.
    pub challenges: Vec<String>,
    /// A nonce for the next proof of possession.
    pub dpop_nonce: Option<String>,
    pub request: Target<'a>,
    /// The credentials that were rejected.
    pub generation: Generation,
    /// How often this request has been rejected, this time included.
    pub attempts: u32,
}

/// What to do with a request that was rejected.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// There are other credentials now: send it again.
    SendAgain,
    /// Only a login of the user can help. The cause of the failure is [`crate::failure::Cause::NeedsLogin`].
    NeedsLogin(Arc<Failure>),
    /// Other credentials would not help, or cannot be had now.
    Final(Arc<Failure>),
    /// The response says nothing about credentials that can be changed: treat it like any other error.
    NotOurs,
}

/// A login that is under way.
#[derive(Debug, Clone)]
pub struct LoginOffer {
    /// The page on which the user logs in: to be shown to the user and opened in a browser.
    pub url: String,
    /// Names this login to hosts.
    pub id: String,
    /// The question to the user, which names whom the user trusts there.
    pub message: String,
}

/// Where the credentials for a server come from, as configured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CredentialSource {
    /// From the configured headers alone.
    #[default]
    Headers,
    /// From an authorization server, if the server asks for it.
    OAuth(Box<OAuthSettings>),
    /// From a program that prints headers.
    Command(HeadersCommand),
    /// From a file with headers, which may change.
    File(PathBuf),
}

/// A program that prints headers as a JSON object, run without a shell. It runs again when the server rejects them.
#[derive(Clone, PartialEq, Eq)]
pub struct HeadersCommand {
    pub program: String,
    pub args: Vec<String>,
    /// The folder in which it starts.
    pub folder: Option<PathBuf>,
    /// The command as shown to the user, without the values of variables.
    pub written: String,
}

/// Shows the command as it is written: the values of variables may be secrets.
impl fmt::Debug for HeadersCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, written, .. } = self;
        f.debug_struct("HeadersCommand")
            .field("written", written)
            .field("folder", folder)
            .finish_non_exhaustive()
    }
}

/// The user's settings for the login at a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OAuthSettings {
    /// A client that is registered already.
    pub client: Option<ClientSettings>,
    /// The client id metadata document of plugbay, for authorization servers that read such documents.
    pub client_metadata_url: Option<String>,
    /// Replaces the scopes that the server asks for.
    pub scopes: Option<Vec<String>>,
    /// The port of the redirect URI, for clients that are registered with one.
    pub callback_port: Option<u16>,
    /// Where its secrets are written.
    pub placement: Placement,
    /// The authorization server may have an address in a private network.
    pub private_network: bool,
    pub grant: Grant,
}

/// Where secrets of logins are written. They are read wherever the file of the login says that they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// In the keychain, or in the file while the keychain cannot be used.
    #[default]
    Auto,
    /// In the keychain and nowhere else.
    Keychain,
    /// In a file that only its owner can read.
    File,
}

/// A client that the user has registered at an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSettings {
    pub id: String,
    pub secret: Option<Secret>,
    /// The key of a client that authenticates with signed assertions.
    pub key: Option<SigningKey>,
    /// The authorization server that knows this client. Otherwise the first one that the server names.
    pub issuer: Option<String>,
}

/// A private key for assertions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKey {
    pub pem: SecretSource,
    /// `ES256`, `RS256`, …
    pub algorithm: String,
    pub id: Option<String>,
}

/// A secret, or the file that has it and may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    Value(Secret),
    File(PathBuf),
}

/// How plugbay gets a token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Grant {
    /// The user logs in.
    #[default]
    AuthorizationCode,
    /// plugbay acts for itself.
    ClientCredentials,
    /// A workload identity: its assertion is exchanged for a token.
    WorkloadIdentity { assertion: SecretSource },
    /// The identity provider of the enterprise vouches for the user (ID-JAG).
    EnterpriseManaged(Box<EnterpriseSettings>),
}

/// The identity provider of an enterprise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnterpriseSettings {
    /// The issuer of the identity provider, or its token endpoint.
    pub issuer: Option<String>,
    pub token_endpoint: Option<String>,
    /// plugbay's client at the identity provider.
    pub client_id: String,
    pub client_secret: Option<Secret>,
    /// The user's ID token.
    pub id_token: SecretSource,
}
