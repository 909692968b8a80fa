//! Formats numbers, sizes and times for people.

use std::time::Duration;

/// `12345` → `12,345`.
pub(super) fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 tool`, `2 tools`.
pub(super) fn plural(number: usize, thing: &str) -> String {
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A share in percent; `<1%` for anything above zero.
pub(super) fn percent(part: usize, whole: usize) -> String {
    match (part * 100).checked_div(whole) {
        Some(0) if part > 0 => "<1%".to_owned(),
        Some(share) => format!("{share}%"),
        None => String::new(),
    }
}

/// Three digits at most: `48 µs`, `1.2 ms`, `340 ms`, `2.41 s`.
pub(super) fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        ..0.000_999_5 => format!("{:.0} µs", seconds * 1e6),
        ..0.009_95 => format!("{:.1} ms", seconds * 1e3),
        ..0.999_5 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

/// A time span: `12 s`, `5 min`, `3 h`, `2 days`.
pub(super) fn age(seconds: u64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86400),
    }
}

/// `512 B`, `1.4 kB`, `12 MB`.
pub(super) fn size(bytes: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for reading, not for counting")]
    let number = bytes as f64;
    match bytes {
        ..1000 => format!("{bytes} B"),
        1000..100_000 => format!("{:.1} kB", number / 1e3),
        100_000..1_000_000 => format!("{:.0} kB", number / 1e3),
        _ => format!("{:.1} MB", number / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_well() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1, 2].map(|number| plural(number, "tool")), ["1 tool", "2 tools"]);
        let times =
            [48, 1_234, 9_970, 340_000, 999_600, 2_412_000].map(|micros| time(Duration::from_micros(micros)));
        assert_eq!(times, ["48 µs", "1.2 ms", "10 ms", "340 ms", "1.00 s", "2.41 s"]);
        let shares =
            [(0, 700), (1, 700), (7, 700), (700, 700), (1, 0)].map(|(part, whole)| percent(part, whole));
        assert_eq!(shares, ["0%", "<1%", "1%", "100%", ""]);
        assert_eq!([5, 300, 7200, 200_000].map(age), ["5 s", "5 min", "2 h", "2 days"]);
        assert_eq!([512, 1400, 250_000, 12_000_000].map(size), ["512 B", "1.4 kB", "250 kB", "12.0 MB"]);
    }
}
