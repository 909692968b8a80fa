//! Dates and times of day on the Gregorian calendar, with fixed offsets from UTC and no leap seconds.

pub(super) const DAY: i64 = 86_400;
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
}

impl Date {
    pub(super) fn new(year: i64, month: i64, day: i64) -> Result<Self, String> {
        let date = Self { year, month, day };
        let exists = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day);
        exists.then_some(date).ok_or_else(|| format!("{date} is not a date of the calendar"))
    }

    /// `2026-03-01`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parts: Option<Vec<i64>> = text.trim().split('-').map(digits).collect();
        match parts.as_deref() {
            Some([year, month, day]) => Self::new(*year, *month, *day),
            _ => Err(format!("{text:?} is not a date; write it like 2026-03-01")),
        }
    }

    /// Days since 1970-01-01. Years begin in March here, so that the leap day comes last.
    pub(super) fn days(self) -> i64 {
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month = (self.month + 9) % 12;
        let day_of_year = (153 * month + 2) / 5 + self.day - 1;
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
    }

    pub(super) fn from_days(days: i64) -> Self {
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self { year: era * 400 + year_of_era + i64::from(month <= 2), month, day }
    }

    /// Monday is 0.
    pub(super) fn weekday_index(self) -> i64 {
        (self.days() + 3).rem_euclid(7)
    }

    pub(super) fn weekday(self) -> &'static str {
        WEEKDAYS[usize::try_from(self.weekday_index()).unwrap_or(0)]
    }

    pub(super) fn day_of_year(self) -> i64 {
        self.days() - Self { month: 1, day: 1, ..self }.days() + 1
    }

    /// The ISO week belongs to the year that holds its Thursday.
    pub(super) fn iso_week(self) -> (i64, i64) {
        let thursday = Self::from_days(self.days() - self.weekday_index() + 3);
        (thursday.year, (thursday.day_of_year() - 1) / 7 + 1)
    }
}

impl std::fmt::Display for Date {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Seconds east of UTC: `Z`, `UTC`, `+02:00`, `-0530`, `+2`.
pub(super) fn parse_offset(text: &str) -> Result<i64, String> {
    let wrong =
        || format!("{text:?} is not an offset; write Z or +02:00 (names of time zones are not known here)");
    let text = text.trim();
    if ["z", "utc", "gmt"].contains(&text.to_lowercase().as_str()) {
        return Ok(0);
    }
    let sign = match text.chars().next() {
        Some('+') => 1,
        Some('-') => -1,
        _ => return Err(wrong()),
    };
    let rest = &text[1..];
    let (hours, minutes) = match (rest.split_once(':'), rest.len()) {
        (Some(parts), _) => parts,
        (None, 4) if rest.is_ascii() => rest.split_at(2),
        _ => (rest, "0"),
    };
    let (hours, minutes) = digits(hours).zip(digits(minutes)).ok_or_else(wrong)?;
    let in_use = hours <= 14 && minutes < 60;
    in_use.then_some(sign * (hours * 3600 + minutes * 60)).ok_or_else(wrong)
}

/// `2026-03-01T09:30`, with seconds or without, with an offset or without: seconds since 1970 as if
/// in UTC, and the offset in seconds if there is one.
pub(super) fn parse_time(text: &str) -> Result<(i64, Option<i64>), String> {
    let wrong =
        || format!("{text:?} is not a time; write it like 2026-03-01T09:30 or 2026-03-01T09:30:00+02:00");
    let trimmed = text.trim();
    let (date, rest) = trimmed.split_once(['T', 't', ' ']).ok_or_else(wrong)?;
    let date = Date::parse(date)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(rest.len());
    let (clock, offset) = rest.split_at(end);
    let parts: Option<Vec<i64>> = clock.split(':').map(digits).collect();
    let seconds = match parts.as_deref() {
        Some([h @ 0..24, m @ 0..60]) => h * 3600 + m * 60,
        Some([h @ 0..24, m @ 0..60, s @ 0..60]) => h * 3600 + m * 60 + s,
        _ => return Err(wrong()),
    };
    let offset = if offset.is_empty() { None } else { Some(parse_offset(offset)?) };
    Ok((date.days() * DAY + seconds, offset))
}

/// An instant as a clock at `offset` shows it.
pub(super) fn format_time(instant: i64, offset: i64) -> String {
    let local = instant + offset;
    let (date, second) = (Date::from_days(local.div_euclid(DAY)), local.rem_euclid(DAY));
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    let (sign, size) = if offset < 0 { ('-', -offset) } else { ('+', offset) };
    let zone =
        if offset == 0 { "Z".to_owned() } else { format!("{sign}{:02}:{:02}", size / 3600, size / 60 % 60) };
    format!("{date}T{hours:02}:{minutes:02}:{seconds:02}{zone}")
}

fn digits(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree_over_centuries() {
        let mut days = Date::new(1600, 1, 1).unwrap().days();
        for year in 1600..2400 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month) {
                    let date = Date { year, month, day };
                    assert_eq!((date.days(), Date::from_days(days)), (days, date));
                    days += 1;
                }
            }
        }
    }

    #[test]
    fn weeks_belong_to_the_year_of_their_thursday() {
        let week = |text| Date::parse(text).unwrap().iso_week();
        assert_eq!(week("2024-12-30"), (2025, 1));
        assert_eq!(week("2027-01-01"), (2026, 53));
        assert_eq!(Date::parse("2026-03-01").unwrap().weekday(), "Sunday");
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(parse_time("1970-01-02T00:00:01Z"), Ok((DAY + 1, Some(0))));
        assert_eq!(parse_time("1970-01-01 01:30-05:30"), Ok((5400, Some(-19_800))));
        assert_eq!(parse_offset("+2"), Ok(7200));
        assert_eq!(parse_offset("-0530"), Ok(-19_800));
        for odd in ["2026-02-30T10:00", "2026-03-01", "2026-03-01T24:00", "2026-03-01T10:00 Berlin", "é"] {
            assert!(parse_time(odd).is_err(), "{odd}");
        }
        assert_eq!(format_time(0, -19_800), "1969-12-31T18:30:00-05:30");
    }
}
