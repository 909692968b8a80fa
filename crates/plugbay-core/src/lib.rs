//! The pure heart of plugbay: no tokio, no files, no clock, no network.

pub mod exposure;
pub mod name;
pub mod policy;
