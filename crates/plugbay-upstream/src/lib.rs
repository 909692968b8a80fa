//! The server side of the gateway: one actor per server, with its transport and its process.

mod http;
mod instances;
mod link;
mod listers;
mod observers;
mod pool;
pub mod process;
mod server;
mod session_pool;
mod slots;
pub mod spec;
mod starts;

pub use instances::{Attached, Instances, SessionFile, Sharing, User};
pub use link::{
    Launched, Launcher, StderrSinks,
    connection::{Reader, Writer},
    launcher,
};
pub use observers::{Observer, Observers, Reports};
pub use pool::{Pool, ServerSet};
pub use server::{Condition, CredentialsFor, ListTerms, Report, ServerContext, ServerHandle, Status};
pub use session_pool::{SessionGroup, SessionLabel, SessionPool};
pub use starts::{Starts, Vitals};
