//! The commands as people type them, on the samples that live in the binary.

mod add;
mod approve;
mod call;
mod demo;
mod entries;
mod harness;
mod list;
mod permissions;
mod search;
mod serve;
mod skill;
mod switchboard;
mod tokens;
mod tools;
