//! All scenarios, by class.

mod answers;
mod clients;
mod files;
mod kills;
mod memory;
mod names;
mod sessions;
mod soak;
mod streams;
mod time;
mod work;

use crate::scenario::Scenario;

pub(crate) fn all() -> Vec<Scenario> {
    let classes = [
        kills::ALL,
        streams::ALL,
        clients::ALL,
        sessions::ALL,
        answers::ALL,
        work::ALL,
        memory::ALL,
        names::ALL,
        files::ALL,
        time::ALL,
        soak::ALL,
    ];
    classes.concat()
}
