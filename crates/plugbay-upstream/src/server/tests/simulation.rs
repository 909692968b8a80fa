//! Random schedules of everything at once.
