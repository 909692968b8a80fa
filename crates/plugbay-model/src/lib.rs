//! Language models over HTTP: each provider in its own wire format, all of them as a `core::model::Model`.

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
