//! The options of `add` and `add-json`.

use std::time::Duration;

use clap::{
    Args, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};

use crate::config::parse_duration;

/// Try a server, then add its entry to the configuration.
///
/// It accepts the lines that READMEs give for `claude mcp add`, `codex mcp add` and `gemini mcp add`.
#[derive(Debug, Args)]
#[command(override_usage = USAGE, after_help = EXAMPLES, args_override_self = true)]
pub struct AddArgs {
    /// The name of the server.
    pub name: String,
    /// The address of the server, or the program that starts it, with its arguments.
    #[arg(value_name = "URL or COMMAND")]
    pub launch: Vec<String>,
    #[command(flatten)]
    pub connection: ConnectionFlags,
    #[command(flatten)]
    pub tools: ToolFlags,
    #[command(flatten)]
    pub write: WriteFlags,
    #[command(flatten)]
    pub without_effect: WithoutEffect,
}

/// How the server is reached.
#[derive(Debug, Args)]
pub struct ConnectionFlags {
    /// How the server is reached. Default: http or sse for a URL, whichever it speaks; otherwise stdio.
    #[arg(short, long, visible_alias = "type", value_name = "TRANSPORT", value_parser = transport())]
    pub transport: Option<Transport>,
    /// An environment variable for the program; several may follow.
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = assignment)]
    pub env: Vec<(String, String)>,
    /// A header for every request to the URL; several may follow.
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = header)]
    pub header: Vec<(String, String)>,
    /// The address of the server.
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The environment variable that holds a bearer token for the URL.
    #[arg(long, value_name = "VAR")]
    pub bearer_token_env_var: Option<String>,
    #[command(flatten)]
    pub login: LoginFlags,
    /// The folder to start the program in.
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<String>,
}

/// The client with which plugbay logs in, for servers whose authorization server registers none by itself.
#[derive(Debug, Args)]
pub struct LoginFlags {
    /// The id of a client that is registered for the login at the URL.
    #[arg(long, visible_alias = "oauth-client-id", value_name = "ID")]
    pub client_id: Option<String>,
    /// The client has a secret, in the variable `MCP_CLIENT_SECRET`.
    #[arg(long)]
    pub client_secret: bool,
    /// The secret of the client; better '${VAR}' than the secret itself.
    #[arg(long, value_name = "SECRET")]
    pub oauth_client_secret: Option<String>,
    /// The port of the client's redirect URI.
    #[arg(long, value_name = "PORT")]
    pub callback_port: Option<u16>,
}

/// What becomes of the server's tools.
#[derive(Debug, Args)]
pub struct ToolFlags {
    /// Only these tools, separated by commas; `get_*` is a pattern.
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub include_tools: Vec<String>,
    /// Not these tools.
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub exclude_tools: Vec<String>,
    /// How long a call may be silent: in milliseconds, or like 90s.
    #[arg(long, value_name = "TIME", value_parser = milliseconds)]
    pub timeout: Option<u64>,
    /// A remark about the server, for readers of the file.
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
}

/// Where and how an entry is written.
#[derive(Debug, Default, Args)]
pub struct WriteFlags {
    #[command(flatten)]
    pub scope: ScopeFlag,
    /// Change the server if it exists: given keys replace its own, variables and headers are merged.
    #[arg(long)]
    pub update: bool,
    /// Do not start the server first.
    #[arg(long, visible_alias = "force")]
    pub no_check: bool,
}

#[derive(Debug, Default, Args)]
pub struct ScopeFlag {
    /// The configuration file to change: yours, or the project's.
    #[arg(short, long, value_name = "SCOPE")]
    pub scope: Option<Scope>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Your file.
    User,
    /// The project's file.
    Project,
    /// Claude Code's word for you and this project; here it is your file.
    Local,
}

/// Options of other programs that have no counterpart here.
#[derive(Debug, Args)]
pub struct WithoutEffect {
    #[arg(long, hide = true)]
    trust: bool,
    #[arg(long, hide = true)]
    oauth_client_registration: Option<String>,
    #[arg(long, hide = true)]
    oauth_resource: Option<String>,
}

impl WithoutEffect {
    /// Notes, one for each kind of option that was given.
    pub fn notes(&self) -> Vec<String> {
        let oauth = [
            (self.oauth_client_registration.is_some(), "--oauth-client-registration"),
            (self.oauth_resource.is_some(), "--oauth-resource"),
        ];
        let oauth: Vec<&str> = oauth.iter().filter(|(given, _)| *given).map(|(_, name)| *name).collect();
        let mut notes = Vec::new();
        if self.trust {
            notes.push("--trust has no effect: the host asks its user for consent, not plugbay".to_owned());
        }
        if !oauth.is_empty() {
            let verb = if oauth.len() == 1 { "has" } else { "have" };
            notes.push(format!("{} {verb} no effect: plugbay finds that out at the login", oauth.join(", ")));
        }
        notes
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    Http,
    Sse,
}

fn transport() -> impl TypedValueParser<Value = Transport> {
    use clap::builder::PossibleValue;

    let http = PossibleValue::new("http").aliases(["streamable-http", "streamable_http", "streamableHttp"]);
    let words = [PossibleValue::new("stdio"), PossibleValue::new("sse"), http];
    PossibleValuesParser::new(words).map(|word| match word.as_str() {
        "stdio" => Transport::Stdio,
        "sse" => Transport::Sse,
        _ => Transport::Http,
    })
}

/// The hint if an option of the program may have been taken for one of plugbay's.
const FOR_THE_PROGRAM: &str = "an option for the program must stand behind `--`";

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err(format!("write it as KEY=VALUE; {FOR_THE_PROGRAM}")),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("write it as \"NAME: VALUE\"; {FOR_THE_PROGRAM}")),
    }
}

/// Parses a time. A bare number means milliseconds, as in Gemini CLI.
fn milliseconds(text: &str) -> Result<u64, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let time: Duration = parse_duration(text)?;
    u64::try_from(time.as_millis()).map_err(|_| "too long".to_owned())
}

const USAGE: &str =
    "plugbay add [OPTIONS] NAME -- COMMAND [ARGUMENT]…\n       plugbay add [OPTIONS] NAME URL";

const EXAMPLES: &str = "\
Examples:
  plugbay add time -- uvx mcp-server-time
  plugbay add github -e GITHUB_TOKEN='${GITHUB_TOKEN}' -- \\
    npx -y @modelcontextprotocol/server-github
  plugbay add docs https://docs.example/mcp \\
    -H 'Authorization: Bearer ${DOCS_TOKEN}'

A line for `claude mcp add`, `codex mcp add` or `gemini mcp add` works as it is
behind `plugbay add`. plugbay starts the server first, and writes nothing if it
fails. It never overwrites a server without --update.";
