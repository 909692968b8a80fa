//! The command line.

mod help;
mod parse;

use std::{path::PathBuf, process::ExitCode};

use clap::{ArgAction, Parser, Subcommand};

use crate::{
    app::{self, Environment},
    commands::{self, CommandError, Context},
    daemon,
    log::Logs,
    log_files::LogFiles,
    output::{Color, Output},
    sample, settings,
};

/// One plug panel for all your MCP servers.
#[derive(Debug, Parser)]
#[command(name = "plugbay", version, propagate_version = true, max_term_width = help::WIDTH)]
#[command(subcommand_required = true, arg_required_else_help = true)]
struct Args {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

/// The options that every command takes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
struct GlobalArgs {
    /// Use only this configuration file.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON: the result on stdout, notes and errors on stderr.
    ///
    /// An error is an object on one line of stderr: {"error": {"message": …, "hints": […]}}. The exit code is
    /// the same as without this option.
    #[arg(long, global = true)]
    json: bool,
    /// Colour the output: auto, always or never.
    ///
    /// auto colours what a terminal shows, unless `NO_COLOR` is set or TERM is dumb.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    #[arg(hide_possible_values = true)]
    color: Color,
    /// Log more to stderr; give it twice to log everything.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
}

/// The commands; `help` puts them into groups.
#[derive(Debug, Subcommand)]
enum Command {
    Setup(commands::setup::SetupArgs),
    Import(commands::import::ImportArgs),
    Add(Box<commands::add::AddArgs>),
    AddJson(commands::add::AddJsonArgs),
    Remove(commands::remove::RemoveArgs),
    Get(commands::get::GetArgs),
    /// Use servers again that were disabled.
    Enable(commands::switch::SwitchArgs),
    /// Leave servers out without removing their entries.
    Disable(commands::switch::SwitchArgs),
    Init(commands::init::InitArgs),
    Migrate(commands::migrate::MigrateArgs),
    Wire(commands::setup::wire::WireArgs),
    Unwire(commands::setup::wire::UnwireArgs),
    Serve(Box<commands::serve::ServeArgs>),
    Auth(commands::auth::AuthArgs),
    Token(commands::token::TokenArgs),
    List(commands::list::ListArgs),
    Tools(commands::tools::ToolsArgs),
    Search(commands::search::SearchArgs),
    Forget(commands::forget::ForgetArgs),
    Call(commands::call::CallArgs),
    Run(commands::run::RunArgs),
    Status(commands::status::StatusArgs),
    Daemon(commands::daemon::DaemonArgs),
    Doctor(commands::doctor::DoctorArgs),
    Logs(commands::logs::LogsArgs),
    Tokens(commands::tokens::TokensArgs),
    Hosts(commands::hosts::HostsArgs),
    Approve(commands::approve::ApproveArgs),
    Permissions(commands::permissions::PermissionsArgs),
    Skill(commands::skill::SkillArgs),
    Plugin(commands::plugin::PluginArgs),
    Demo(commands::demo::DemoArgs),
    Schema(commands::schema::SchemaArgs),
    Completions(commands::completions::CompletionsArgs),
    Man(commands::man::ManArgs),
}

/// Runs the program; `main` calls only this.
pub fn run() -> ExitCode {
    // The guard, the samples and sandboxes stay small processes: they parse no arguments and have no runtime and no log.
    let mut hidden = std::env::args_os().skip(1);
    let command = hidden.next().unwrap_or_default();
    if command == plugbay_sandbox::COMMAND {
        return plugbay_sandbox::child_main();
    }
    settings::note_program();
    if command == daemon::COMMAND {
        return daemon::main(&hidden.next().unwrap_or_default(), &hidden.next().unwrap_or_default());
    }
    let mut word = || hidden.next().unwrap_or_default().to_string_lossy().into_owned();
    if command == app::GUARD_COMMAND {
        return plugbay_upstream::process::guard_main(&word());
    }
    if command == sample::COMMAND {
        return sample::main(&word(), word().parse().ok());
    }
    let args = match parse::parse() {
        Ok(args) => args,
        Err(code) => return code,
    };
    let output = Output::new(args.global.color, args.global.json, settings::columns());
    let mut source = settings::Source::new(args.global.config.clone());
    if let Command::Serve(serve) = &args.command
        && serve.may_use_daemon()
    {
        if let Some(reason) = serve.observed() {
            return run_command(args, source.observed(reason), output);
        }
        let (verbose, paths) = (args.global.verbose, source.paths.clone());
        let start_logs = move || Logs::start(verbose, true, output, &paths);
        match commands::serve::serve_through_daemon(&source, serve, start_logs) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(reason) => source = source.without_daemon(reason),
        }
    }
    run_command(args, source, output)
}

fn run_command(args: Args, source: settings::Source, output: Output) -> ExitCode {
    let is_gateway = matches!(args.command, Command::Serve(_));
    let logs = Logs::start(args.global.verbose, is_gateway, output, &source.paths);
    let code = execute(args.command, source, output, logs.files.clone()).unwrap_or_else(|error| {
        output.error(&error);
        error.exit_code()
    });
    logs.finish();
    code
}

fn execute(
    command: Command,
    source: settings::Source,
    output: Output,
    logs: Option<LogFiles>,
) -> Result<ExitCode, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let environment = Environment { logs, ..settings::environment()? };
    let context = Context { source, environment, output };
    match command {
        Command::Setup(args) => runtime.block_on(commands::setup::setup(&context, &args)),
        Command::Import(args) => commands::import::import(&context, &args),
        Command::Add(args) => runtime.block_on(commands::add::add(&context, *args)),
        Command::AddJson(args) => runtime.block_on(commands::add::add_json(&context, args)),
        Command::Remove(args) => runtime.block_on(commands::remove::remove(&context, &args)),
        Command::Get(args) => runtime.block_on(commands::get::get(&context, &args)),
        Command::Enable(args) => commands::switch::enable(&context, &args),
        Command::Disable(args) => commands::switch::disable(&context, &args),
        Command::Init(args) => commands::init::init(&context, &args),
        Command::Migrate(args) => runtime.block_on(commands::migrate::migrate(&context, &args)),
        Command::Wire(args) => runtime.block_on(commands::setup::wire::wire(&context, &args)),
        Command::Unwire(args) => commands::setup::wire::unwire(&context, &args),
        Command::Serve(args) => runtime.block_on(commands::serve::serve(context, *args)),
        Command::Auth(args) => runtime.block_on(commands::auth::auth(&context, args)),
        Command::Token(args) => commands::token::token(&context, args),
        Command::List(args) => runtime.block_on(commands::list::list(&context, &args)),
        Command::Tools(args) => runtime.block_on(commands::tools::tools(&context, &args)),
        Command::Search(args) => runtime.block_on(commands::search::search(&context, &args)),
        Command::Forget(args) => commands::forget::forget(&context, &args),
        Command::Call(args) => runtime.block_on(commands::call::call(&context, args)),
        Command::Run(args) => runtime.block_on(commands::run::run(&context, args)),
        Command::Status(args) => runtime.block_on(commands::status::status(&context, &args)),
        Command::Daemon(args) => commands::daemon::daemon(&context, &args),
        Command::Doctor(args) => runtime.block_on(commands::doctor::doctor(&context, &args)),
        Command::Logs(args) => runtime.block_on(commands::logs::logs(&context, &args)),
        Command::Tokens(args) => runtime.block_on(commands::tokens::tokens(&context, &args)),
        Command::Hosts(_) => runtime.block_on(commands::hosts::hosts(&context)),
        Command::Approve(args) => commands::approve::approve(&context, &args),
        Command::Permissions(args) => runtime.block_on(commands::permissions::permissions(&context, args)),
        Command::Skill(args) => commands::skill::skill(&context, &args),
        Command::Plugin(args) => commands::plugin::plugin(&context, &args),
        Command::Demo(_) => runtime.block_on(commands::demo::demo(&context)),
        Command::Schema(_) => Ok(commands::schema::schema(output)),
        Command::Completions(args) => Ok(commands::completions::completions(output, &args, help::command())),
        Command::Man(args) => commands::man::man(&context, &args, help::command()),
    }
}
