//! Towards servers: one task per server, its transport and its process.

pub mod spec;
