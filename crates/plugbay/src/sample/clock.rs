//! A server that knows the time, without a database of time zones: offsets from UTC are fixed.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{
    arguments::Arguments,
    calendar::{DAY, Date, days_in_month, format_time, parse_offset, parse_time},
    server::{About, Outcome, Tool},
};

pub(super) const ABOUT: About = About {
    name: "clock",
    instructions: "Times and dates. Offsets from UTC are fixed (+02:00); daylight saving is not known here.",
};

pub(super) fn tools() -> Vec<Tool<()>> {
    vec![
        Tool {
            name: "now",
            description: "The present date and time at a fixed offset from UTC. \
                Names of time zones are not known: find the offset first, daylight saving included.",
            read_only: true,
            properties: json!({ "offset": offset("Where to read the clock; UTC if absent.") }),
            required: &[],
            run: |(), arguments| now(arguments),
        },
        Tool {
            name: "convert_time",
            description: "What a clock at one offset from UTC shows when a clock at another shows the given \
                time. Useful for meetings across time zones once both offsets are known.",
            read_only: true,
            properties: json!({
                "time": text("Local date and time, for example 2026-03-01T09:30."),
                "from": offset("The offset of the clock that shows this time."),
                "to": offset("The offset of the clock to convert to."),
            }),
            required: &["time", "from", "to"],
            run: |(), arguments| convert_time(arguments),
        },
        Tool {
            name: "add_duration",
            description: "The time that lies a duration after the given one, or before it if the duration \
                is negative. Days have 24 hours.",
            read_only: true,
            properties: json!({
                "time": text("Date and time, with an offset or without: 2026-03-01T09:30+01:00."),
                "duration": text("Weeks, days, hours, minutes and seconds in this order: 1w2d, 36h, -90m, 1h30m5s."),
            }),
            required: &["time", "duration"],
            run: |(), arguments| add_duration(arguments),
        },
        Tool {
            name: "difference",
            description: "How much time lies between two moments, in days, hours, minutes and seconds, and \
                in seconds altogether. Negative if the second comes first.",
            read_only: true,
            properties: json!({
                "start": text("The earlier moment, for example 2026-03-01T09:30Z."),
                "end": text("The later moment. Without an offset both are taken to be at the same one."),
            }),
            required: &["start", "end"],
            run: |(), arguments| difference(arguments),
        },
        Tool {
            name: "weekday",
            description: "The day of the week of a date, with the day of the year and the ISO week number.",
            read_only: true,
            properties: json!({ "date": text("A date of the Gregorian calendar: 2026-03-01.") }),
            required: &["date"],
            run: |(), arguments| weekday(arguments),
        },
        Tool {
            name: "month",
            description: "A month as a small calendar, one line per week, weeks beginning on Monday.",
            read_only: true,
            properties: json!({
                "year": { "type": "integer", "minimum": 1, "maximum": 9999, "description": "The year: 2026." },
                "month": { "type": "integer", "minimum": 1, "maximum": 12, "description": "The month: 1 is January." },
            }),
            required: &["year", "month"],
            run: |(), arguments| month(arguments),
        },
        Tool {
            name: "unix_time",
            description: "Converts between a time and the seconds since 1970-01-01T00:00:00Z, in either \
                direction: give one of the two.",
            read_only: true,
            properties: json!({
                "time": text("Date and time with an offset; UTC is assumed if it has none."),
                "seconds": { "type": "integer", "description": "Seconds since 1970, negative before." },
            }),
            required: &[],
            run: |(), arguments| unix_time(arguments),
        },
    ]
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn offset(description: &str) -> Value {
    json!({ "type": "string", "description": description, "examples": ["Z", "+02:00", "-05:30"] })
}

fn now(arguments: &Arguments<'_>) -> Outcome {
    let offset = parse_offset(arguments.text_or("offset", "Z")?)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
    let now = i64::try_from(since.as_secs()).map_err(|error| error.to_string())?;
    let day = Date::from_days((now + offset).div_euclid(DAY)).weekday();
    Ok(format!("{} ({day})", format_time(now, offset)).into())
}

fn convert_time(arguments: &Arguments<'_>) -> Outcome {
    let (local, own) = parse_time(arguments.text("time")?)?;
    let (from, to) = (parse_offset(arguments.text("from")?)?, parse_offset(arguments.text("to")?)?);
    if own.is_some_and(|own| own != from) {
        return Err("\"time\" has an offset of its own that differs from \"from\"".to_owned());
    }
    Ok(format_time(local - from, to).into())
}

fn add_duration(arguments: &Arguments<'_>) -> Outcome {
    let (local, offset) = parse_time(arguments.text("time")?)?;
    let later = local + parse_duration(arguments.text("duration")?)?;
    let text = match offset {
        Some(offset) => format_time(later - offset, offset),
        None => format_time(later, 0).trim_end_matches('Z').to_owned(),
    };
    Ok(text.into())
}

fn difference(arguments: &Arguments<'_>) -> Outcome {
    let start = parse_time(arguments.text("start")?)?;
    let end = parse_time(arguments.text("end")?)?;
    let seconds = match (start.1, end.1) {
        (Some(from), Some(to)) => (end.0 - to) - (start.0 - from),
        (None, None) => end.0 - start.0,
        _ => return Err("give both moments with an offset, or both without".to_owned()),
    };
    let size = seconds.abs();
    let parts = [(size / DAY, "d"), (size / 3600 % 24, "h"), (size / 60 % 60, "min"), (size % 60, "s")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count} {unit}")).collect();
    let sign = if seconds < 0 { "-" } else { "" };
    let text = if parts.is_empty() { "0 s".to_owned() } else { parts.join(" ") };
    Ok(format!("{sign}{text} ({seconds} seconds)").into())
}

fn weekday(arguments: &Arguments<'_>) -> Outcome {
    let date = Date::parse(arguments.text("date")?)?;
    let (year, week) = date.iso_week();
    let day = date.day_of_year();
    Ok(format!("{date} is a {}, day {day} of the year, ISO week {year}-W{week:02}", date.weekday()).into())
}

fn month(arguments: &Arguments<'_>) -> Outcome {
    let first = Date::new(arguments.integer("year")?, arguments.integer("month")?, 1)?;
    // Empty places before the first day, so that it stands below its weekday.
    let places = (0..first.weekday_index()).map(|_| "  ".to_owned());
    let days = (1..=days_in_month(first.year, first.month)).map(|day| format!("{day:>2}"));
    let places: Vec<String> = places.chain(days).collect();
    let weeks = places.chunks(7).map(|week| week.join(" "));
    let lines: Vec<String> = ["Mo Tu We Th Fr Sa Su".to_owned()].into_iter().chain(weeks).collect();
    Ok(lines.join("\n").into())
}

fn unix_time(arguments: &Arguments<'_>) -> Outcome {
    match (arguments.has("time"), arguments.has("seconds")) {
        (true, false) => {
            let (local, offset) = parse_time(arguments.text("time")?)?;
            Ok((local - offset.unwrap_or(0)).to_string().into())
        }
        (false, true) => {
            let seconds = arguments.integer("seconds")?;
            let in_calendar = (-62_135_596_800..253_402_300_800).contains(&seconds);
            in_calendar
                .then(|| format_time(seconds, 0).into())
                .ok_or_else(|| "\"seconds\" lies outside the years 1 to 9999".to_owned())
        }
        _ => Err("give either \"time\" or \"seconds\"".to_owned()),
    }
}

/// `1w2d3h4m5s`, any part of it, with a sign or without.
fn parse_duration(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is not a duration; write it like 90m, 1h30m or -2d");
    let trimmed = text.trim();
    let (sign, mut rest) = trimmed.strip_prefix('-').map_or((1, trimmed), |rest| (-1, rest));
    let mut total = 0;
    for (unit, seconds) in [('w', 7 * DAY), ('d', DAY), ('h', 3600), ('m', 60), ('s', 1)] {
        let Some((count, behind)) = rest.split_once(unit) else { continue };
        let count: u32 = count.parse().map_err(|_| wrong())?;
        let count = i64::from(count);
        if count > 5_000_000 {
            return Err(wrong());
        }
        total += count * seconds;
        rest = behind;
    }
    if rest.is_empty() && trimmed.len() > 1 { Ok(sign * total) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::{super::server::try_tool, *};

    #[track_caller]
    fn check(tool: &str, arguments: Value, expected: &str) {
        let outcome = try_tool(tools(), (), &[(tool, arguments)]).remove(0);
        assert_eq!(outcome.unwrap_or_else(|refusal| format!("refused: {refusal}")), expected);
    }

    #[test]
    fn tells_times() {
        let convert = json!({ "time": "2026-03-01T09:30", "from": "+01:00", "to": "-05:00" });
        check("convert_time", convert, "2026-03-01T03:30:00-05:00");
        check(
            "add_duration",
            json!({ "time": "2026-02-28T23:00", "duration": "1h30m" }),
            "2026-03-01T00:30:00",
        );
        check(
            "add_duration",
            json!({ "time": "2026-03-01T00:00Z", "duration": "-1d" }),
            "2026-02-28T00:00:00Z",
        );
        let apart = json!({ "start": "2026-03-01T10:00Z", "end": "2026-03-02T12:00+01:00" });
        check("difference", apart, "1 d 1 h (90000 seconds)");
        check(
            "weekday",
            json!({ "date": "2026-03-01" }),
            "2026-03-01 is a Sunday, day 60 of the year, ISO week 2026-W09",
        );
        check("unix_time", json!({ "seconds": 86_400 }), "1970-01-02T00:00:00Z");
        check("unix_time", json!({ "time": "1970-01-02T00:00+01:00" }), "82800");
        let may = "Mo Tu We Th Fr Sa Su\n             1  2  3\n 4  5  6  7  8  9 10\n11 12 13 14 15 16 17\n\
            18 19 20 21 22 23 24\n25 26 27 28 29 30 31";
        check("month", json!({ "year": 2026, "month": 5 }), may);
        assert!(try_tool(tools(), (), &[("now", json!({}))])[0].as_ref().unwrap().contains("Z ("));
    }

    #[test]
    fn refuses_in_words() {
        let zone = json!({ "offset": "Europe/Berlin" });
        check(
            "now",
            zone,
            "refused: \"Europe/Berlin\" is not an offset; write Z or +02:00 (names of time zones are not known here)",
        );
        check(
            "weekday",
            json!({ "date": "2026-02-29" }),
            "refused: 2026-02-29 is not a date of the calendar",
        );
        check("unix_time", json!({}), "refused: give either \"time\" or \"seconds\"");
        check(
            "add_duration",
            json!({ "time": "2026-03-01T00:00", "duration": "soon" }),
            "refused: \"soon\" is not a duration; write it like 90m, 1h30m or -2d",
        );
    }
}
