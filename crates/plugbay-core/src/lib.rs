//! The pure heart of plugbay: no tokio, no files, no clock, no network.

pub mod arguments;
pub mod auto;
pub mod capabilities;
pub mod catalog;
pub mod era;
pub mod exchange;
pub mod exposure;
pub mod extension;
pub mod failure;
pub mod host_registry;
pub mod level;
pub mod lifecycle;
pub mod model;
pub mod name;
pub mod pending;
pub mod policy;
pub mod profile;
pub mod search;
pub mod signature;
pub mod surface;
pub mod suspended;
pub mod task;
pub mod tokens;
pub mod usage_counts;
pub mod wire;
