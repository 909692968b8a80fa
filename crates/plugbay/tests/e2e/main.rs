//! Real servers through real clients: what comes out of the gateway equals what the server itself says.
//!
//! The programs are pinned in `tests-e2e/` and installed by its `setup.sh` when they are missing.
//! `PLUGBAY_E2E=off` skips all of this.

mod check;
mod clients;
mod installed;
mod world;

use crate::{
    check::check,
    clients::{Client, Era},
};

#[test]
fn typescript_sdk_1() {
    check(Client::TypeScript1, Era::Legacy);
}

#[test]
fn typescript_sdk_2_legacy() {
    check(Client::TypeScript2, Era::Legacy);
}

#[test]
fn typescript_sdk_2_modern() {
    check(Client::TypeScript2, Era::Modern);
}

#[test]
fn python_sdk_1() {
    check(Client::Python1, Era::Legacy);
}

#[test]
fn python_sdk_2_legacy() {
    check(Client::Python2, Era::Legacy);
}

#[test]
fn python_sdk_2_modern() {
    check(Client::Python2, Era::Modern);
}

#[test]
fn inspector_legacy() {
    check(Client::Inspector, Era::Legacy);
}

#[test]
fn inspector_modern() {
    check(Client::Inspector, Era::Modern);
}
