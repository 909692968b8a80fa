//! The pure heart of plugbay: no tokio, no files, no clock, no network.

pub mod ability;
pub mod audience;
pub mod auto;
pub mod catalog;
pub mod era;
pub mod exchange;
pub mod exposure;
pub mod extension;
pub mod failure;
pub mod level;
pub mod lifecycle;
pub mod model;
pub mod name;
pub mod pending;
pub mod policy;
pub mod profile;
pub mod repair;
pub mod search;
pub mod signature;
pub mod surface;
pub mod tally;
pub mod task;
pub mod tokens;
pub mod wire;
