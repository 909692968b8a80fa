//! The HTTP side of a server against scripted answers.
