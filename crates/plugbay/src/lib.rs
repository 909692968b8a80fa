//! The parts of the plugbay binary.

mod args;
mod cache;
mod catalogue;
mod commands;
pub mod config;
mod panel;
mod settings;
mod watch;

pub use args::run;
