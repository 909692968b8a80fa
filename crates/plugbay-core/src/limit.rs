//! How many calls a caller or a session may make, as people write it: `60/min`, `10000/day`.

use std::{fmt, num::NonZeroU32, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of calls per period of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    pub count: NonZeroU32,
    pub per: Period,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Period {
    Second,
    Minute,
    Hour,
    Day,
}

/// The limits of calls that reach servers; an absent one means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CallLimits {
    /// The rate of one caller. Calls may come in a burst of this many; they are replenished evenly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The rate of one session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_rate: Option<Rate>,
    /// The quota of one caller in one window of time, which begins with its first call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<Rate>,
}

impl CallLimits {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// These limits where they are given, else those of `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            rate: self.rate.or(others.rate),
            session_rate: self.session_rate.or(others.session_rate),
            quota: self.quota.or(others.quota),
        }
    }
}

/// Why a text is no rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a limit is a number of calls and a period: 60/min, 5/s, 1000/hour, 10000/day")]
pub struct RateError;

impl Period {
    pub fn length(self) -> Duration {
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3600,
            Self::Day => 24 * 3600,
        })
    }

    fn word(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let (count, per) = text.split_once('/').ok_or(RateError)?;
        let per = match per.trim() {
            "s" | "sec" | "second" => Period::Second,
            "m" | "min" | "minute" => Period::Minute,
            "h" | "hour" => Period::Hour,
            "d" | "day" => Period::Day,
            _ => return Err(RateError),
        };
        Ok(Self { count: count.trim().parse().map_err(|_| RateError)?, per })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.per.word())
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_calls_are_a_number_and_a_period() {
        let written = |text: &str| text.parse::<Rate>().map(|rate| rate.to_string()).ok();
        for (text, rate) in
            [("60/min", "60/min"), (" 5 / second", "5/s"), ("1/h", "1/hour"), ("9/d", "9/day")]
        {
            assert_eq!(written(text).as_deref(), Some(rate));
            assert_eq!(written(rate).as_deref(), Some(rate));
        }
        for text in ["", "60", "0/min", "-1/min", "1.5/min", "60/fortnight", "99999999999/s", "/min"] {
            assert_eq!(text.parse::<Rate>(), Err(RateError), "{text}");
        }
    }

    #[test]
    fn own_limits_of_calls_go_before_general_ones() {
        let rate = |text: &str| text.parse().ok();
        let own = CallLimits { rate: rate("1/s"), ..CallLimits::default() };
        let general = CallLimits { rate: rate("2/s"), quota: rate("3/day"), ..CallLimits::default() };
        let both = CallLimits { rate: rate("1/s"), quota: rate("3/day"), session_rate: None };
        assert_eq!(own.or(general), both);
        assert!(CallLimits::default().is_none() && !own.is_none());
    }
}
