//! Language models over HTTP: each provider in its own wire format, all of them with the interface
//! `core::model::Model`.

mod anthropic;
mod assembly;
mod client;
mod endpoint;
mod failure;
mod gemini;
mod key;
mod openai;
mod remote;

pub use endpoint::{Endpoint, Provider};
pub use key::Key;
pub use remote::RemoteModel;
