//! The parts of the plugbay binary.

mod app;
mod args;
mod authorization;
mod bridge;
mod cache;
mod clock;
mod commands;
pub mod config;
mod daemon;
mod embeddings;
mod error;
mod files;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gateway_run;
mod import;
mod journal;
mod log;
mod log_files;
mod logins;
mod output;
mod publisher;
mod sample;
mod search_memory;
mod sessions;
mod settings;
mod shapes;
mod skill_text;
mod status_file;
mod telemetry;
mod token_store;
mod tokenizer;
mod usage;
mod warmth;
mod watch;

pub use args::run;
