//! `plugbay token`: tokens with names, for callers of `plugbay serve --http`.

use std::{path::PathBuf, process::ExitCode};

use plugbay_core::{
    limit::{CallLimits, Rate},
    policy::ToolGrant,
};
use serde::Serialize;

use super::{CommandError, Context};
use crate::{
    clock,
    token_store::{self, StoredToken, TokenStore},
};

/// Make, list and revoke tokens for `plugbay serve --http`.
///
/// plugbay stores digests of tokens only. A running gateway notices changes at once.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
    /// The store, if it is not the usual one; give the same to `plugbay serve`.
    #[arg(long, value_name = "FILE", global = true)]
    token_store: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  plugbay token create ci --tools 'git__*' --expires 30d
  plugbay token create ada --rate 60/min --quota 10000/day
  plugbay token revoke ci";

#[derive(Debug, clap::Subcommand)]
enum TokenCommand {
    /// Make a token and print it: it cannot be shown again.
    Create(CreateArgs),
    /// Show all tokens, without the tokens themselves.
    List,
    /// Make a token useless; sessions of its caller end.
    Revoke {
        /// The name of the token.
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct CreateArgs {
    /// Who uses the token; it is shown in the audit log.
    name: String,
    /// The tools that it is for, by the names that hosts see: `git__*`, `files__read_file`. The name of the token stands
    /// before this option. Default: all.
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    tools: Vec<String>,
    /// After which time it ends, such as 12h, 30d or 52w. Default: never.
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<u64>,
    /// How many calls it may make, such as 60/min.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// How many calls each of its sessions may make.
    #[arg(long, value_name = "RATE")]
    session_rate: Option<Rate>,
    /// How many calls it may make in a stretch of time, such as 10000/day.
    #[arg(long, value_name = "RATE")]
    quota: Option<Rate>,
}

/// A token that was made.
#[derive(Debug, Serialize)]
pub struct Created {
    pub name: String,
    pub token: String,
    pub expires: Option<u64>,
}

#[derive(Debug, Serialize)]
pub struct TokenList {
    pub tokens: Vec<StoredToken>,
    #[serde(skip)]
    pub now: u64,
}

pub fn token(context: &Context, args: TokenArgs) -> Result<ExitCode, CommandError> {
    let TokenArgs { command, token_store } = args;
    let usual = || token_store::usual(&context.source.paths);
    let file = token_store.or_else(usual);
    let missing =
        || CommandError::failed("there is no home folder for the store").hint("give --token-store FILE");
    let store = TokenStore(file.ok_or_else(missing)?);
    match command {
        TokenCommand::Create(args) => create(context, &store, args)?,
        TokenCommand::List => {
            context.output.show(&TokenList { tokens: store.list()?, now: clock::now() });
        }
        TokenCommand::Revoke { name } => {
            store.revoke(&name)?;
            context.output.note(format!("revoked the token of {name}"));
            if store.list()?.is_empty() {
                context.output.note("no token is left: a gateway that runs now lets nobody in by this store");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn create(context: &Context, store: &TokenStore, args: CreateArgs) -> Result<(), CommandError> {
    let CreateArgs { name, tools, expires, rate, session_rate, quota } = args;
    ToolGrant::compile(&tools)
        .map_err(|error| CommandError::usage(error.to_string()).hint("write it like 'git__*'"))?;
    let created = clock::now();
    let expires = expires.map(|lifetime| created.saturating_add(lifetime));
    let tools = (!tools.is_empty()).then_some(tools);
    let limits = CallLimits { rate, session_rate, quota };
    let digest = String::new(); // the store computes it
    let is_first = store.list()?.is_empty();
    let token = store.create(StoredToken { name: name.clone(), digest, tools, created, expires, limits })?;
    context.output.show(&Created { name, token, expires });
    context
        .output
        .note("keep it: it cannot be shown again; hosts send it as \"Authorization: Bearer TOKEN\"");
    if is_first {
        context.output.note("from now on, every host of a gateway with this store must send a token");
    }
    Ok(())
}

/// Parses `12h`, `30d` or `52w` as seconds.
fn lifetime(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        "w" => 7 * 24 * 3600,
        _ => 0,
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).unwrap_or_default();
    let is_sensible = (1..=100 * 366 * 24 * 3600).contains(&seconds);
    is_sensible
        .then_some(seconds)
        .ok_or_else(|| "write a number and a unit (m, h, d or w), for example 30d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lifetime_of_a_token_is_a_number_and_a_unit() {
        assert_eq!(
            ["30d", "12h", "2w", "5m"].map(|text| lifetime(text).ok()),
            [Some(2_592_000), Some(43200), Some(1_209_600), Some(300)]
        );
        for text in ["", "30", "0d", "d", "-1d", "1y", "99999999999d"] {
            assert!(lifetime(text).is_err(), "{text}");
        }
    }
}
