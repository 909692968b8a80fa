//! Large results of tasks.
