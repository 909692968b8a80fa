//! The parts of the plugbay binary.

mod app;
mod args;
mod cache;
mod commands;
pub mod config;
mod embeddings;
mod error;
mod files;
mod import;
mod journal;
mod log;
mod log_files;
mod output;
mod publisher;
mod sample;
mod settings;
mod status_file;
mod tokenizer;
mod usage;
mod watch;

pub use args::run;
