//! `plugbay doctor`: each test breaks one thing and reads what `doctor` says about it.

mod clinic;
mod configuration;
mod files;
mod hosts;
mod left;
mod programs;
mod remote;
mod shown;
