//! The parts of the plugbay binary.

mod args;
mod cache;
mod catalogue;
mod commands;
pub mod config;
mod log;
mod meaning;
mod output;
mod panel;
mod running;
mod sample;
mod settings;
mod tokenizer;
mod usage;
mod watch;

pub use args::run;
