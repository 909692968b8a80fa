//! `plugbay auth`: logins at servers that ask for one.

mod browser;

use std::{io::BufRead as _, process::ExitCode, thread};

use plugbay_auth::{DiscoveryError, LoginError, LoginFlow, ServerLogin};
use plugbay_core::{credentials::CredentialSource, name::ServerName};
use plugbay_upstream::spec::{HttpSpec, Transport};
use serde::Serialize;
use tokio::sync::mpsc;

use super::{CommandError, Context, place::no_such_server};
use crate::{clock, config::Settings, settings};

/// Log in to servers that ask for it, log out, and show logins.
///
/// Gateways that run adopt a new login at once. plugbay renews tokens by itself.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct AuthArgs {
    #[command(subcommand)]
    command: AuthCommand,
}

const EXAMPLES: &str = "\
Examples:
  plugbay auth login linear                in the browser
  plugbay auth login linear --no-browser   over SSH: open the address elsewhere
  plugbay auth status
  plugbay auth logout linear";

#[derive(Debug, clap::Subcommand)]
enum AuthCommand {
    /// Log in to a server in the browser.
    Login(LoginArgs),
    /// Forget the login at a server, and tell its authorization server.
    Logout {
        /// The server; all servers if it is left out.
        server: Option<String>,
    },
    /// Show which servers you are logged in to.
    Status {
        /// Only this server.
        server: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
struct LoginArgs {
    /// The server; if it is left out, each that needs a login.
    server: Option<String>,
    /// Print the address instead of opening a browser, and take the address to which the browser was redirected.
    #[arg(long)]
    no_browser: bool,
    /// Ask for this scope too; may be given more than once.
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
}

/// A login that has been made.
#[derive(Debug, Serialize)]
pub struct LoggedIn {
    pub server: String,
    pub login: LoginRow,
}

/// Logins that have been forgotten.
#[derive(Debug, Serialize)]
pub struct LoggedOut {
    pub servers: Vec<String>,
}

/// All servers with logins.
#[derive(Debug, Serialize)]
pub struct LoginList {
    pub servers: Vec<LoginRow>,
    #[serde(skip)]
    pub now: u64,
}

/// The login at one server.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginRow {
    pub name: String,
    pub state: LoginState,
    /// The authorization server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    pub scopes: Vec<String>,
    /// When the access token ends, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Whether plugbay can renew the token without the user.
    pub renews: bool,
    /// The reason why the token cannot be renewed, or the login cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Whether the user is logged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum LoginState {
    #[serde(rename = "logged in")]
    LoggedIn,
    #[serde(rename = "needs login")]
    NeedsLogin,
    /// No login is known; the server may need none.
    #[serde(rename = "no login")]
    NoLogin,
}

/// A server whose entry allows a login.
struct Candidate {
    name: ServerName,
    login: ServerLogin,
}

pub async fn auth(context: &Context, args: AuthArgs) -> Result<ExitCode, CommandError> {
    let settings = context.settings_in_passing()?;
    match args.command {
        AuthCommand::Login(args) => login(context, &settings, args).await?,
        AuthCommand::Logout { server } => logout(context, &settings, server.as_deref()).await?,
        AuthCommand::Status { server } => status(context, &settings, server.as_deref()).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn login(context: &Context, settings: &Settings, args: LoginArgs) -> Result<(), CommandError> {
    let LoginArgs { server, no_browser, scopes } = args;
    let (named, candidates) = (server.is_some(), candidates(context, settings, server.as_deref())?);
    let browsers = if no_browser { Vec::new() } else { settings::browsers() };
    let (mut made, mut failures) = (0, 0);
    for candidate in candidates {
        if !named && row(&candidate).await.state == LoginState::LoggedIn {
            continue;
        }
        match log_in_to(context, &candidate, &scopes, &browsers).await {
            Ok(()) => made += 1,
            // Servers that need no login, or no login by a user.
            Err(
                LoginError::NotNeeded | LoginError::Machine | LoginError::Discovery(DiscoveryError::Nothing),
            ) if !named => {}
            Err(error) if named => return Err(failed(candidate.name.as_str(), &error)),
            Err(error) => {
                failures += 1;
                context.output.error(&failed(candidate.name.as_str(), &error));
            }
        }
    }
    if failures > 0 {
        return Err(CommandError::failed(format!("{failures} of the logins failed")));
    }
    if made == 0 && !named {
        context.output.note("no server needs a login");
    }
    Ok(())
}

async fn log_in_to(
    context: &Context,
    candidate: &Candidate,
    scopes: &[String],
    browsers: &[Vec<String>],
) -> Result<(), LoginError> {
    let (name, login) = (candidate.name.as_str(), &candidate.login);
    let flow =
        if browsers.is_empty() { login.begin_pasted(scopes).await? } else { login.begin(scopes).await? };
    follow(context, name, &flow, browsers).await?;
    context.output.show(&LoggedIn { server: name.to_owned(), login: row(candidate).await });
    Ok(())
}

/// Shows the user how to log in, and waits.
async fn follow(
    context: &Context,
    name: &str,
    flow: &LoginFlow,
    browsers: &[Vec<String>],
) -> Result<(), LoginError> {
    if browser::open(&flow.url, browsers) {
        context.output.note(format!("log in to {name} in the browser; if none has opened, go to"));
        context.output.note(&flow.url);
        return flow.finished().await;
    }
    context.output.note(format!("open this address in a browser to log in to {name}:"));
    if context.output.is_json() {
        context.output.note(&flow.url); // stdout has the result alone
    } else {
        context.output.raw(format!("{}\n", flow.url));
    }
    context.output.note(format!(
        "when the browser shows that it cannot open {}, copy the address from it and paste it here:",
        flow.redirect_uri
    ));
    let mut pasted = lines();
    let finished = flow.finished();
    tokio::pin!(finished);
    loop {
        tokio::select! {
            result = &mut finished => return result,
            Some(line) = pasted.recv() => {
                if !line.trim().is_empty() && !flow.paste(&line).await {
                    let hint = if line.contains("state=") { "it belongs to another login" } else { "it has no `state=`" };
                    context.output.note(format!("this is not the address at which this login ended: {hint}"));
                }
            }
        }
    }
}

/// Lines of stdin. A separate thread reads them, because it may wait for ever; nobody waits for that thread.
fn lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if line.is_err() || line.is_ok_and(|line| sender.send(line).is_err()) {
                return;
            }
        }
        // Keeps the channel open: the browser may still come back without any input here.
        thread::park();
    });
    receiver
}

fn failed(name: &str, error: &LoginError) -> CommandError {
    let failure = CommandError::failed(format!("not logged in to {name}: {error}"));
    match error.remedy() {
        None if error.is_retryable() => failure.hint(format!("try again: plugbay auth login {name}")),
        Some(remedy) => failure.hint(remedy),
        None => failure,
    }
}

async fn logout(context: &Context, settings: &Settings, server: Option<&str>) -> Result<(), CommandError> {
    let mut servers = Vec::new();
    for Candidate { name, login } in candidates(context, settings, server)? {
        let out = login.logout().await.map_err(|error| CommandError::failed(error.to_string()))?;
        if let Some(problem) = out.problem {
            context.output.note(format!("the authorization server of {name} was not told: {problem}"));
        }
        if out.was_logged_in {
            servers.push(name.as_str().to_owned());
        }
    }
    context.output.show(&LoggedOut { servers });
    Ok(())
}

/// Ends the logins at servers whose entries are removed: afterwards this would be impossible.
pub(super) async fn forget(context: &Context, names: &[String]) {
    let settings = context.source.load();
    for name in names {
        for Candidate { name, login } in candidates(context, &settings, Some(name)).unwrap_or_default() {
            if login.logout().await.is_ok_and(|out| out.was_logged_in) {
                context.output.note(format!("logged out of {name}"));
            }
        }
    }
}

async fn status(context: &Context, settings: &Settings, server: Option<&str>) -> Result<(), CommandError> {
    let mut servers = Vec::new();
    for candidate in candidates(context, settings, server)? {
        servers.push(row(&candidate).await);
    }
    context.output.show(&LoginList { servers, now: clock::now() });
    Ok(())
}

async fn row(candidate: &Candidate) -> LoginRow {
    let mut row = LoginRow {
        name: candidate.name.as_str().to_owned(),
        state: LoginState::NoLogin,
        issuer: None,
        client_id: None,
        scopes: Vec::new(),
        expires: None,
        renews: false,
        problem: None,
    };
    let logins = match candidate.login.logins().await {
        Ok(logins) => logins,
        Err(error) => return LoginRow { problem: Some(error.to_string()), ..row },
    };
    let Some(login) = logins.current() else { return row };
    let (issuer, client_id, problem) =
        (logins.current.clone(), Some(login.client.id.clone()), login.rejected.clone());
    row = LoginRow { issuer, client_id, problem, ..row };
    let Some(tokens) = &login.tokens else { return row };
    row.scopes.clone_from(&tokens.scopes);
    row.expires = tokens.expires_in.map(|life| tokens.issued_at.saturating_add(life));
    row.renews = tokens.refresh.is_some() && login.rejected.is_none();
    let expired = row.expires.is_some_and(|at| at <= clock::now());
    let is_over = login.rejected.is_some() || (expired && !row.renews);
    row.state = if is_over { LoginState::NeedsLogin } else { LoginState::LoggedIn };
    row
}

/// The servers that may have a login: all of them, or the one of this name.
fn candidates(
    context: &Context,
    settings: &Settings,
    server: Option<&str>,
) -> Result<Vec<Candidate>, CommandError> {
    let Some(places) = &context.environment.logins else {
        return Err(
            CommandError::failed("there is no home folder for logins").hint("set HOME or XDG_STATE_HOME")
        );
    };
    let mut found = Vec::new();
    for (name, http) in http_servers(settings) {
        if let CredentialSource::OAuth(oauth) = &http.credentials
            && server.is_none_or(|wanted| wanted == name.as_str())
        {
            let login = places.login(name, http, oauth);
            let login = login.map_err(|failure| CommandError::failed(format!("{name}: {failure}")))?;
            found.push(Candidate { name: name.clone(), login });
        }
    }
    match server {
        Some(name) if found.is_empty() => Err(not_a_candidate(settings, name)),
        _ => Ok(found),
    }
}

fn http_servers(settings: &Settings) -> impl Iterator<Item = (&ServerName, &HttpSpec)> {
    settings.servers.iter().filter_map(|server| match &server.spec.as_ref().ok()?.transport {
        Transport::Http(http) => Some((&server.name, http)),
        Transport::Stdio(_) => None,
    })
}

fn not_a_candidate(settings: &Settings, name: &str) -> CommandError {
    let Some(server) = settings.servers.iter().find(|server| server.name.as_str() == name) else {
        return no_such_server(name, settings.servers.iter().map(|server| server.name.as_str()));
    };
    match server.spec.as_ref().map(|spec| &spec.transport) {
        Err(reason) => CommandError::failed(format!("{name} cannot be used: {reason}")),
        Ok(Transport::Stdio(_)) => CommandError::failed(format!(
            "{name} is started by plugbay, and takes its credentials from its environment"
        ))
        .hint("logins are for servers with a `url`"),
        Ok(Transport::Http(http)) => {
            let (what, remedy) = match &http.credentials {
                CredentialSource::Command(_) => {
                    ("a program gives it its credentials", "remove \"headersCommand\"")
                }
                CredentialSource::File(_) => ("a file gives it its credentials", "remove \"headersFile\""),
                _ if http.headers.keys().any(|header| header.eq_ignore_ascii_case("authorization")) => {
                    ("its entry has an \"Authorization\" header", "remove the header")
                }
                _ => ("its entry says \"oauth\": false", "remove that"),
            };
            CommandError::failed(format!("{name} takes no login: {what}"))
                .hint(format!("{remedy} to log in instead"))
        }
    }
}
