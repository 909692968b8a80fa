//! The command line.

use std::{io::IsTerminal, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use clap::{ArgAction, Parser, Subcommand};
use plugbay_downstream::http::Address;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{
    app,
    commands::{
        self, CommandError, Context,
        call::CallOptions,
        permissions, search,
        skill::SkillAction,
        tools::{Format, Query},
    },
    log::Log,
    output::Output,
    sample,
    settings::{self, HttpFlags},
};

/// One plug panel for all your MCP servers.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, disable_help_subcommand = true)]
#[command(after_help = "New here? `plugbay demo` shows everything and changes nothing.")]
struct Args {
    /// Use this configuration file alone.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say more on stderr; twice for everything.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Stand between hosts and all configured servers: one on stdin and stdout, or many over HTTP.
    Serve {
        /// Serve many hosts at this address: 127.0.0.1:8080, a port alone, or unix:PATH. Port 0 is any.
        #[arg(long, value_name = "ADDRESS")]
        http: Option<Address>,
        /// A further name by which hosts reach this gateway, with or without a port.
        #[arg(long, value_name = "NAME", requires = "http")]
        allow_host: Vec<String>,
        /// The origin of a web page that may use this gateway, scheme and all.
        #[arg(long, value_name = "ORIGIN", requires = "http")]
        allow_origin: Vec<String>,
        /// Tokens that hosts must present, one per line, beside the one in `PLUGBAY_HTTP_TOKEN`.
        #[arg(long, value_name = "FILE", requires = "http")]
        token_file: Option<PathBuf>,
        /// Take every host for this one, whatever it calls itself; `plugbay hosts` lists them.
        #[arg(long, value_name = "NAME")]
        host: Option<String>,
    },
    /// Start every server and show how it is, what it has and what that costs.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the tools that a host sees, or those that match a query.
    Tools {
        /// Words that all occur in a tool's name or description.
        query: Vec<String>,
        /// Only the tools of this server.
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Print each tool as one line: its parameters with their types, and its purpose.
        #[arg(long, conflicts_with = "json")]
        signature: bool,
        /// Print the definitions as the host gets them.
        #[arg(long)]
        json: bool,
    },
    /// Count what each mode puts into a model's context.
    Tokens {
        /// The server that is switched on in the example of activate mode.
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Reckon what each mode costs over a conversation.
        #[arg(long)]
        explain: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what runs: every gateway, its hosts with their modes and why, and how its servers are. Starts nothing.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what is known of hosts, which mode each of them gets, and why.
    Hosts {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Find tools by what they are for, among all that are remembered. No server is started.
    Search {
        /// What is wanted, in words.
        #[arg(required = true)]
        query: Vec<String>,
        /// At most so many hits.
        #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
        /// Only tools of this server.
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Tell which words were found where, and what meaning added.
        #[arg(long)]
        explain: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Call one tool and print what it answers.
    #[command(after_help = CALL_EXAMPLES)]
    Call {
        /// The tool; the name that the host sees will do too: `server__tool`.
        #[arg(value_name = "SERVER.TOOL")]
        tool: String,
        /// key=value, key:=json, key=@file, one JSON object, or - for one on stdin.
        #[arg(value_name = "ARGUMENT")]
        arguments: Vec<String>,
        /// Give up when nothing is heard for this long (90s, 5m; otherwise as configured).
        #[arg(long, value_name = "TIME", value_parser = duration)]
        timeout: Option<Duration>,
        /// Print the result exactly as the server wrote it.
        #[arg(long)]
        json: bool,
    },
    /// See everything at work on sample servers: no configuration, no network.
    Demo {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let a project's configuration file start its servers.
    Approve {
        /// The file; otherwise the project file of this folder.
        path: Option<PathBuf>,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Print permission rules and a hook for a host, so that its rules hold for tools called through `execute_tool`.
    Permissions {
        /// The host whose settings these are.
        #[arg(long, value_parser = ["claude-code"], default_value = "claude-code")]
        host: String,
        /// What plugbay is called in that host's settings.
        #[arg(long, value_name = "NAME", default_value = "plugbay")]
        name: String,
        /// Let tools pass of which their servers say that they only read.
        #[arg(long)]
        allow_reading: bool,
        /// Answer as that hook: the server request comes on stdin.
        #[arg(long)]
        hook: bool,
    },
    /// Print the skill that teaches Claude Code to use the gateway, or install it.
    Skill {
        /// Link it into Claude Code's folder of skills.
        #[arg(long)]
        install: bool,
        /// Copy it there instead.
        #[arg(long)]
        copy: bool,
    },
    /// Write a plugin for Claude Code: the skill, and plugbay as its MCP server.
    Plugin {
        /// The folder to write it to.
        folder: PathBuf,
    },
    /// Print the JSON Schema of the configuration file.
    Schema,
}

const CALL_EXAMPLES: &str = "\
Examples:
  plugbay call calc.evaluate expression='(17 + 4) * 2'
  plugbay call notes.add title=Milk tags:='[\"shop\"]' text=@note.txt
  plugbay call notes__search '{\"query\": \"milk\"}' --json
  echo '{\"numbers\": [1, 2, 3]}' | plugbay call calc.statistics -

Values become what the tool's schema asks for; := takes JSON as it is.
The exit code is 1 if the tool reports an error.";

/// Runs the program: the whole of `main`.
pub fn run() -> ExitCode {
    // The guard and the samples are kept tiny: no arguments to parse, no runtime, no log.
    let mut hidden = std::env::args_os().skip(1);
    let command = hidden.next().unwrap_or_default();
    let mut word = || hidden.next().unwrap_or_default().to_string_lossy().into_owned();
    if command == app::GUARD_COMMAND {
        return plugbay_upstream::process::guard_main(&word());
    }
    if command == sample::COMMAND {
        return sample::main(&word(), word().parse().ok());
    }
    let args = Args::parse();
    let output = Output::detect();
    let log = log(&args, output);
    let code = execute(args, output).unwrap_or_else(|error| {
        output.error(&error);
        error.exit_code()
    });
    log.finish();
    code
}

fn execute(args: Args, output: Output) -> Result<ExitCode, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let source = settings::Source::new(args.config);
    let context = Context { source, environment: settings::environment()?, output };
    match args.command {
        Command::Serve { http: Some(address), allow_host, allow_origin, token_file, host } => {
            let context = Context { source: context.source.with_host(host)?, ..context };
            let hosts = HttpFlags { address, allow_host, allow_origin, token_file };
            let http = settings::http(hosts)?;
            runtime.block_on(commands::serve::serve_http(&context, http))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Serve { host, .. } => {
            let source = context.source.with_host(host)?;
            if std::io::stdin().is_terminal() {
                output
                    .note("this speaks MCP on stdin and stdout, for hosts; try plugbay list, tools or call");
            }
            runtime.block_on(commands::serve::serve(&source, context.environment))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::List { json } => runtime.block_on(commands::list::list(&context, json)),
        Command::Tools { query, server, signature, json } => {
            let format = match (signature, json) {
                (true, _) => Format::Signatures,
                (false, true) => Format::Definitions,
                (false, false) => Format::Table,
            };
            runtime.block_on(commands::tools::tools(&context, &Query { words: query, server }, format))
        }
        Command::Tokens { server, explain, json } => {
            runtime.block_on(commands::tokens::tokens(&context, server.as_deref(), explain, json))
        }
        Command::Status { json } => commands::status::status(&context, json),
        Command::Hosts { json } => runtime.block_on(commands::hosts::hosts(&context, json)),
        Command::Search { query, limit, server, explain, json } => {
            let options =
                search::SearchOptions { query: query.join(" "), limit: limit.into(), server, explain };
            runtime.block_on(commands::search::search(&context, &options, json))
        }
        Command::Call { tool, arguments, timeout, json } => {
            let options = CallOptions { tool, arguments, timeout, raw: json };
            runtime.block_on(commands::call::call(&context, options))
        }
        Command::Demo { json } => runtime.block_on(commands::demo::demo(&context, json)),
        Command::Approve { path, yes } => commands::approve::approve(&context, path.as_deref(), yes),
        Command::Permissions { name, allow_reading, hook, .. } => {
            let options = permissions::PermissionsOptions { entry: name, allow_reading };
            if hook {
                runtime.block_on(permissions::hook(&context, &options, &settings::claude_code()))
            } else {
                runtime.block_on(permissions::fragment(&context, &options))
            }
        }
        Command::Skill { install, copy } => {
            let action = match (install, copy) {
                (_, true) => SkillAction::Copy,
                (true, false) => SkillAction::Link,
                (false, false) => SkillAction::Print,
            };
            commands::skill::skill(&context, action, settings::home().as_deref())
        }
        Command::Plugin { folder } => commands::skill::plugin(&context, &folder),
        Command::Schema => {
            commands::schema::schema(output);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The log goes to stderr: stdout is the protocol, or a command's result.
fn log(args: &Args, output: Output) -> Arc<Log> {
    use tracing::level_filters::LevelFilter;

    let level = match args.verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    // Which mode was chosen for a host is told once for each, and asked about often.
    let told = level.max(LevelFilter::INFO);
    let mut targets = Targets::new().with_default(level).with_target("plugbay_downstream::host_view", told);
    if args.verbose == 0 && !matches!(args.command, Command::Serve { .. }) {
        // These commands show failing servers and colliding names themselves.
        targets = targets.with_target("plugbay_upstream", LevelFilter::OFF);
        targets = targets.with_target("plugbay::publisher", LevelFilter::OFF);
    }
    let log = Arc::new(Log::default());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(Arc::clone(&log))
        .with_ansi(output.coloured_log())
        .without_time()
        .with_target(false);
    tracing_subscriber::registry().with(targets).with(lines).init();
    log
}

/// `90s`, `5m`, `250ms`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit.trim() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("use ms, s, m or h, for example 90s".to_owned()),
    };
    let seconds: f64 = number.parse().map_err(|_| "write a number and a unit, for example 90s".to_owned())?;
    let duration = Duration::try_from_secs_f64(seconds * scale).map_err(|error| error.to_string())?;
    let sensible = !duration.is_zero() && duration <= Duration::from_secs(365 * 24 * 3600);
    sensible.then_some(duration).ok_or_else(|| "must be more than nothing and less than a year".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let read = |text| duration(text).ok().map(|duration| duration.as_millis());
        assert_eq!(
            ["250ms", "90", "1.5s", "5m", "1h"].map(read),
            [250, 90_000, 1500, 300_000, 3_600_000].map(Some)
        );
        assert_eq!(["", "0s", "soon", "5 years", "-1s", "9999999h"].map(read), [None; 6]);
    }
}
