//! The commands as people type them, on the samples that live in the binary.

mod approve;
mod call;
mod demo;
mod doctor;
mod harness;
mod import;
mod import_gateways;
mod list;
mod permissions;
mod search;
mod serve;
mod skill;
mod switchboard;
mod tokens;
mod tools;
