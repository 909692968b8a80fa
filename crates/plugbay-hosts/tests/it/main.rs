//! The files of all hosts, read and edited as a whole.

mod dialects;
mod files;
mod identity;
mod page;
