//! `plugbay run`: runs a script that calls tools, like one that a model writes for `run_code`.

use std::{collections::BTreeMap, fs, io::Read as _, path::PathBuf, process::ExitCode, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    exposure::Mode,
    surface::{BuiltinTool, CodeSettings, Effect},
    wire::write,
};
use plugbay_downstream::{Gateway, stdio};
use serde_json::{Value, json, value::RawValue};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};

use super::{CommandError, Context, call::CallResult, tools::learn};
use crate::{app::App, output::Output};

/// Run a script that calls tools, and print what it returns.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct RunArgs {
    /// A file with JavaScript or TypeScript, or - to read it from stdin.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The value of `input` in the script, as JSON.
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Print the calls that the script would make, checked against their schemas, and make none.
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  plugbay run report.js
  plugbay run report.js --input '{\"days\": 7}'
  echo 'await tools.calc.evaluate({ expression: \"6 * 7\" })' | plugbay run -

A script calls tools as tools.server.tool({…}), and runs in a sandbox without
network, files and clock. docs/code.md says what else it can do. The exit code
is 1 if the script fails.";

/// People may wait as long as they like.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// Buffer size for each direction of the conversation.
const PIPE: usize = 64 << 10;

pub async fn run(context: &Context, args: RunArgs) -> Result<ExitCode, CommandError> {
    let mut settings = context.settings_in_passing()?;
    // A user who runs a script by hand has read it.
    settings.code = CodeSettings { offered: true, unasked: Effect::Destroys, patience: PATIENCE };
    settings.mode = Some(Mode::All); // nobody lists
    let arguments = arguments(&args)?;
    let app = App::assemble(&settings, context.environment.clone());
    learn(context, &settings, &app, None).await;
    let result = converse(app.gateway(), &arguments, context.output).await;
    context.output.progress_done();
    app.shut_down().await;
    let tool = args.name();
    let result = CallResult { tool, result: result?, saved: BTreeMap::new() };
    let succeeded = context.output.call_result(&result);
    Ok(if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl RunArgs {
    /// The script's name in messages.
    fn name(&self) -> String {
        if self.is_from_stdin() { "stdin".to_owned() } else { self.file.display().to_string() }
    }

    fn is_from_stdin(&self) -> bool {
        self.file.as_os_str() == "-"
    }
}

fn arguments(args: &RunArgs) -> Result<Value, CommandError> {
    let code = if args.is_from_stdin() {
        let mut code = String::new();
        std::io::stdin().read_to_string(&mut code)?;
        code
    } else {
        fs::read_to_string(&args.file).map_err(|error| {
            CommandError::failed(format!("{} cannot be read: {error}", args.file.display()))
        })?
    };
    let mut arguments = json!({ "code": code });
    if let Some(input) = &args.input {
        arguments["input"] = serde_json::from_str(input)
            .map_err(|error| CommandError::usage(format!("--input is not JSON: {error}")))?;
    }
    if args.dry_run {
        arguments["dry_run"] = true.into();
    }
    Ok(arguments)
}

/// Calls `run_code` as a host would, in this process.
async fn converse(gateway: Gateway, arguments: &Value, output: Output) -> Result<Bytes, CommandError> {
    let (host, served) = duplex(PIPE);
    let (input, answers) = tokio::io::split(served);
    let serving = stdio::serve(gateway, input, answers, std::future::pending());
    tokio::select! {
        result = ask(host, arguments, output) => result,
        ended = serving => Err(match ended {
            Ok(()) => CommandError::failed("the gateway has ended"),
            Err(error) => error.into(),
        }),
    }
}

async fn ask(host: DuplexStream, arguments: &Value, output: Output) -> Result<Bytes, CommandError> {
    let (answers, mut requests) = tokio::io::split(host);
    // A gateway gets results whole.
    let client = json!({ "name": "plugbay", "version": env!("CARGO_PKG_VERSION") });
    let initialize = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let call = json!({
        "name": BuiltinTool::RunCode.name(), "arguments": arguments, "_meta": { "progressToken": 1 },
    });
    let messages = [
        write::request(b"0", "initialize", initialize.to_string().as_bytes()),
        write::notification("notifications/initialized", None),
        write::request(b"1", "tools/call", call.to_string().as_bytes()),
    ];
    let written: Vec<u8> = messages.iter().flat_map(|message| [message, &b"\n"[..]].concat()).collect();
    let writing = async {
        let written = requests.write_all(&written).await;
        written.map_err(CommandError::from)?;
        std::future::pending().await
    };
    tokio::select! {
        never = writing => never,
        answer = answer(BufReader::new(answers), output) => answer,
    }
}

/// Reads messages until the call is answered.
async fn answer(
    mut answers: BufReader<tokio::io::ReadHalf<DuplexStream>>,
    output: Output,
) -> Result<Bytes, CommandError> {
    #[derive(serde::Deserialize)]
    struct Message<'a> {
        id: Option<u64>,
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        error: Option<Value>,
        params: Option<Value>,
    }
    let mut line = Vec::new();
    loop {
        line.clear();
        if answers.read_until(b'\n', &mut line).await? == 0 {
            return Err(CommandError::failed("the gateway has ended"));
        }
        let Ok(message) = serde_json::from_slice::<Message<'_>>(&line) else { continue };
        match message {
            Message { id: Some(1), result: Some(result), .. } => {
                return Ok(Bytes::copy_from_slice(result.get().as_bytes()));
            }
            Message { id: Some(_), error: Some(error), .. } => {
                let words = error["message"].as_str().unwrap_or("the gateway has refused the call");
                return Err(CommandError::failed(words.to_owned()));
            }
            Message { id: None, params: Some(params), .. } => {
                if let Some(words) = params["message"].as_str() {
                    output.progress(words);
                }
            }
            _ => {}
        }
    }
}
