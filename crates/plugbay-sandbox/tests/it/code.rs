//! Scripts in a real child process, with scripted servers.

mod conversation;
mod corpus;
mod play;

use libtest_mimic::Trial;

pub(crate) use self::conversation::ALONE;

pub(crate) fn trials() -> Vec<Trial> {
    corpus::trials().into_iter().chain(conversation::trials()).collect()
}
