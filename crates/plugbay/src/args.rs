//! The command line.

use std::{io::IsTerminal, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use clap::{ArgAction, CommandFactory, Parser, Subcommand};
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
    config::parse_duration,
    log::Log,
    output::Output,
    sample,
    settings::{self, HttpFlags},
};

/// One plug panel for all your MCP servers.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, disable_help_subcommand = true)]
#[command(after_help = "New here? Run `plugbay demo`: it shows everything and changes nothing.")]
struct Args {
    /// Use only this configuration file.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Log more to stderr; give it twice to log everything.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve all configured servers as one MCP server: to one host on stdio, or to many over HTTP.
    Serve {
        /// Serve over HTTP at this address: 127.0.0.1:8080, a port, or unix:PATH. Port 0 picks a free port.
        #[arg(long, value_name = "ADDRESS")]
        http: Option<Address>,
        /// Also accept this name in the Host header of requests, with or without a port.
        #[arg(long, value_name = "NAME", requires = "http")]
        allow_host: Vec<String>,
        /// Accept requests of web pages from this origin, such as `https://example.com`.
        #[arg(long, value_name = "ORIGIN", requires = "http")]
        allow_origin: Vec<String>,
        /// A file of tokens, one per line; each host must send one of them, or that in `PLUGBAY_HTTP_TOKEN`.
        #[arg(long, value_name = "FILE", requires = "http")]
        token_file: Option<PathBuf>,
        /// Give every host this profile, whatever name it sends; `plugbay hosts` lists the profiles.
        #[arg(long, value_name = "NAME")]
        host: Option<String>,
    },
    /// Add a server: try it, then write its entry. Accepts what `claude mcp add` and others accept.
    Add(Box<commands::add::AddArgs>),
    /// Add servers from JSON, as READMEs show it.
    AddJson(commands::add::AddJsonArgs),
    /// Remove a server's entry.
    Remove(commands::remove::RemoveArgs),
    /// Show one server's entry, its tools and its state. Starts nothing.
    Get(commands::get::GetArgs),
    /// Use servers again that were disabled.
    Enable(commands::switch::SwitchArgs),
    /// Leave servers out without removing their entries.
    Disable(commands::switch::SwitchArgs),
    /// Start every server and show its state, its number of tools, and their cost in tokens.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show all tools, or those that match a query.
    Tools {
        /// Words that must all occur in a tool's name or description.
        query: Vec<String>,
        /// Show only the tools of this server.
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Print each tool as one line: its name, parameters and purpose.
        #[arg(long, conflicts_with = "json")]
        signature: bool,
        /// Print the definitions in JSON, as a host gets them.
        #[arg(long)]
        json: bool,
    },
    /// Count the tokens that each mode puts into a model's context.
    Tokens {
        /// The server that the examples of activate and suite mode use.
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Also estimate what each mode costs over a conversation, and which mode each host gets.
        #[arg(long)]
        explain: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show every running gateway with its hosts, their modes, and the states of its servers. Starts nothing.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the profiles of hosts, and which mode each host gets and why.
    Hosts {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Find tools in the cache by what they do. Starts no server.
    Search {
        /// What the tool should do, in words.
        #[arg(required = true)]
        query: Vec<String>,
        /// Show at most this many tools.
        #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
        /// Search only the tools of this server.
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Also show which words matched where, and how near the meaning is.
        #[arg(long)]
        explain: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Call one tool and print its result.
    #[command(after_help = CALL_EXAMPLES)]
    Call {
        /// The tool as server.tool, or by the name that hosts see: `server__tool`.
        #[arg(value_name = "SERVER.TOOL")]
        tool: String,
        /// key=value, key:=json, key=@file, one JSON object, or - to read the object from stdin.
        #[arg(value_name = "ARGUMENT")]
        arguments: Vec<String>,
        /// Give up after this much silence, such as 90s or 5m. Default: as configured.
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        timeout: Option<Duration>,
        /// Print the result in JSON, exactly as the server wrote it.
        #[arg(long)]
        json: bool,
    },
    /// Show everything at work with sample servers; needs no configuration and no network.
    Demo {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Allow a project's configuration file to start its servers.
    Approve {
        /// The configuration file. Default: the project file of this folder.
        path: Option<PathBuf>,
        /// Approve without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Print settings for Claude Code that apply its permission rules to tools called through `execute_tool`.
    Permissions {
        /// The host to print settings for.
        #[arg(long, value_parser = ["claude-code"], default_value = "claude-code")]
        host: String,
        /// The name of plugbay in that host's settings.
        #[arg(long, value_name = "NAME", default_value = "plugbay")]
        name: String,
        /// Allow tools that only read, according to their servers.
        #[arg(long)]
        allow_reading: bool,
        /// Run as the hook: read Claude Code's hook input from stdin and print a decision.
        #[arg(long)]
        hook: bool,
    },
    /// Print the skill that teaches Claude Code to use the gateway, or install it.
    Skill {
        /// Install it as a link in Claude Code's folder of skills.
        #[arg(long)]
        install: bool,
        /// Install it as a copy.
        #[arg(long)]
        copy: bool,
    },
    /// Write a plugin for Claude Code that contains the skill and plugbay as an MCP server.
    Plugin {
        /// The folder to write the plugin to.
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

Values get the types of the tool's schema; := takes JSON.
The exit code is 1 if the tool reports an error.";

/// Runs the program; `main` calls only this.
pub fn run() -> ExitCode {
    // The guard and the samples stay small processes: they parse no arguments and have no runtime and no log.
    let mut hidden = std::env::args_os().skip(1);
    let command = hidden.next().unwrap_or_default();
    let mut word = || hidden.next().unwrap_or_default().to_string_lossy().into_owned();
    if command == app::GUARD_COMMAND {
        return plugbay_upstream::process::guard_main(&word());
    }
    if command == sample::COMMAND {
        return sample::main(&word(), word().parse().ok());
    }
    let args = Args::parse_from(commands::add::canonical(Args::command, std::env::args_os().collect()));
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
                    .note("`plugbay serve` speaks MCP on stdin and stdout, for hosts; people use plugbay list, tools or call");
            }
            runtime.block_on(commands::serve::serve(&source, context.environment))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Add(args) => runtime.block_on(commands::add::add(&context, *args)),
        Command::AddJson(args) => runtime.block_on(commands::add::add_json(&context, args)),
        Command::Remove(args) => commands::remove::remove(&context, &args),
        Command::Get(args) => runtime.block_on(commands::get::get(&context, &args)),
        Command::Enable(args) => commands::switch::enable(&context, &args),
        Command::Disable(args) => commands::switch::disable(&context, &args),
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
                let (project, user) = settings::claude_code();
                let places = permissions::Places::new(project, user);
                runtime.block_on(permissions::hook(&context, &options, &places))
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

/// Sets up the log, which goes to stderr: stdout carries the protocol, or a command's result.
fn log(args: &Args, output: Output) -> Arc<Log> {
    use tracing::level_filters::LevelFilter;

    let level = match args.verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    // The mode of a host is logged once, and users often look for it.
    let host_view = level.max(LevelFilter::INFO);
    let mut targets =
        Targets::new().with_default(level).with_target("plugbay_downstream::host_view", host_view);
    if args.verbose == 0 && !matches!(args.command, Command::Serve { .. }) {
        // These commands show failed servers and name collisions themselves.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
