//! `plugbay doctor`: each test breaks one thing and checks the findings.

mod clinic;
mod configuration;
mod files;
mod hosts;
mod left;
mod programs;
mod remote;
mod shown;
