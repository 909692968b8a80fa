//! The commands as people type them, with the samples in the binary.

mod add;
mod approve;
mod call;
mod demo;
mod doctor;
mod entries;
mod gateway;
mod harness;
mod import;
mod import_gateways;
mod list;
mod logs;
mod permissions;
mod run;
mod search;
mod secrets;
mod serve;
mod setup;
mod skill;
mod snapshot;
mod snapshots;
mod switchboard;
mod token;
mod tokens;
mod tools;
