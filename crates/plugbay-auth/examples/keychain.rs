//! Uses the system's keychain like plugbay, for `tests-e2e/keychain.sh`.
//!
//! Usage: keychain find | check | put ENTRY | get ENTRY | remove ENTRY | load FOLDER | save FOLDER auto|keychain|file
//!
//! `put` reads the secret from stdin and `get` prints it. `load` and `save` are for the logins of the server `sample` at
//! `https://mcp.example/mcp`: `load` prints its access token, `save` loads and writes them. Exit code 1: the keychain fails.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program of its own")]

use std::{env, io, path::PathBuf, process::ExitCode, sync::Arc};

use plugbay_auth::{
    keychain::{SessionBus, SystemKeychain},
    store::{Keychain, ServerKey, Store},
};
use plugbay_core::credentials::Placement;
use tokio::task::spawn_blocking;

fn main() -> ExitCode {
    // As in plugbay: a runtime with one thread, and calls from other threads.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let ended = runtime.block_on(async {
        let beside = spawn_blocking(run).await.expect("it does not panic");
        // A call from inside the runtime must not panic either.
        let _ = SystemKeychain::find(&bus());
        beside
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let words: Vec<_> = env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let keychain = || SystemKeychain::at(&bus()).ok_or_else(|| "there is no keychain".to_owned());
    let text = |error: io::Error| error.to_string();
    match words[..] {
        ["find"] => {
            println!("{}", if SystemKeychain::find(&bus()).is_some() { "found" } else { "none" });
            Ok(())
        }
        ["check"] => keychain()?.check().map_err(text),
        ["put", entry] => {
            let secret = io::read_to_string(io::stdin()).map_err(text)?;
            keychain()?.put(entry, &secret).map_err(text)
        }
        ["get", entry] => {
            println!("{}", keychain()?.get(entry).map_err(text)?.unwrap_or_else(|| "no entry".to_owned()));
            Ok(())
        }
        ["remove", entry] => keychain()?.remove(entry).map_err(text),
        ["load", folder] => {
            let logins = store(folder, Placement::Auto).load(&key()).map_err(|error| error.to_string())?;
            let tokens = logins.current().and_then(|login| login.tokens.as_ref());
            println!("{}", tokens.map_or("logged out", |tokens| tokens.access.expose()));
            Ok(())
        }
        ["save", folder, placement] => {
            let placement = match placement {
                "keychain" => Placement::Keychain,
                "file" => Placement::File,
                _ => Placement::Auto,
            };
            let store = store(folder, placement);
            let logins = store.load(&key()).map_err(|error| error.to_string())?;
            store.save(&key(), &logins).map_err(|error| error.to_string())
        }
        _ => Err("see the first lines of examples/keychain.rs".to_owned()),
    }
}

fn bus() -> SessionBus {
    SessionBus {
        address: env::var("DBUS_SESSION_BUS_ADDRESS").ok(),
        runtime_folder: env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
    }
}

fn store(folder: &str, placement: Placement) -> Store {
    let keychain = SystemKeychain::at(&bus()).map(|keychain| Arc::new(keychain) as Arc<dyn Keychain>);
    Store::new(folder.into(), keychain).with_placement(placement)
}

fn key() -> ServerKey {
    ServerKey { name: "sample".to_owned(), url: "https://mcp.example/mcp".to_owned() }
}
