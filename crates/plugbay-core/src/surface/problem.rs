//! A problem of the configuration, as it is reported to hosts, models and people.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A problem of the configuration: what is wrong, where, and what to do. Contains no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    pub what: String,
    /// A file, with line and column if they are known.
    pub place: Option<String>,
    pub remedy: Option<String>,
    /// Servers or settings are missing because of it, so a model should know.
    pub urgent: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(place) = &self.place {
            write!(f, " ({place})")?;
        }
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}
