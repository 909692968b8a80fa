//! Numbers as they are written: compared digit by digit, however many there are.

use std::cmp::Ordering;

/// `digits` × 10^`exponent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    /// Without zeros at either end; empty for zero.
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// Reads a JSON number. `None` if it is too long, or if its exponent alone is too large to count.
    pub(super) fn read(json: &[u8]) -> Option<Self> {
        const LONGEST: usize = 1_000;
        if json.len() > LONGEST {
            return None;
        }
        let text = std::str::from_utf8(json).ok()?;
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = whole.bytes().chain(fraction.bytes());
        let mut digits: Vec<u8> = all.skip_while(|digit| *digit == b'0').collect();
        if whole.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let written = digits.len();
        digits.truncate(digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1));
        if digits.is_empty() {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        let zeros = i64::try_from(written - digits.len()).ok()? - i64::try_from(fraction.len()).ok()?;
        let exponent = exponent.parse::<i64>().ok()?.checked_add(zeros)?;
        Some(Self { negative, digits, exponent })
    }

    /// Whether it is a whole number, as `5`, `5.0` and `5e2` are.
    pub(super) fn is_whole(&self) -> bool {
        self.exponent >= 0
    }

    /// `None` if that would take too long to find out.
    pub(super) fn is_multiple_of(&self, step: &Self) -> Option<bool> {
        const ZEROS: i64 = 10_000;
        let divisor: u64 = std::str::from_utf8(&step.digits).ok()?.parse().ok()?;
        let zeros = self.exponent.checked_sub(step.exponent)?;
        if self.digits.is_empty() || zeros < 0 {
            // A multiple of the step would end with zeros, which have been cut off.
            return Some(self.digits.is_empty());
        }
        let zeros = (zeros <= ZEROS).then_some(usize::try_from(zeros).ok()?)?;
        let digits = self.digits.iter().copied().chain(std::iter::repeat_n(b'0', zeros));
        let rest =
            digits.fold(0u128, |rest, digit| (rest * 10 + u128::from(digit - b'0')) % u128::from(divisor));
        Some(rest == 0)
    }

    /// The position of the first digit.
    fn magnitude(&self) -> i128 {
        i128::from(self.exponent) + self.digits.len() as i128
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.digits.is_empty(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let by_size =
            || self.magnitude().cmp(&other.magnitude()).then_with(|| self.digits.cmp(&other.digits));
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            0 => Ordering::Equal,
            1 => by_size(),
            _ => by_size().reverse(),
        })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::read(text.as_bytes()).expect(text)
    }

    #[test]
    fn compares_what_floating_point_cannot() {
        for (less, more) in [
            ("9007199254740992", "9007199254740993"),
            ("-9007199254740993", "-9007199254740992"),
            ("-1e400", "-1"),
            ("0", "1e-400"),
            ("12.5", "12.50000000000000000001"),
            ("9e400", "1e401"),
            ("-0.1", "0.0"),
        ] {
            assert!(number(less) < number(more), "{less} {more}");
        }
        for (one, other) in [("5", "5.0"), ("500", "5e2"), ("0.50", "5E-1"), ("-0", "0.0")] {
            assert_eq!(number(one), number(other), "{one} {other}");
        }
    }

    #[test]
    fn knows_whole_numbers_and_multiples() {
        assert!(number("5.0").is_whole() && number("1e400").is_whole() && !number("5e-1").is_whole());
        for (value, step, expected) in [
            ("10", "5", Some(true)),
            ("7", "5", Some(false)),
            ("0.3", "0.1", Some(true)),
            ("0.35", "0.1", Some(false)),
            ("-1.5", "0.5", Some(true)),
            ("0", "7", Some(true)),
            ("12345678901234567890123", "3", Some(true)),
            ("12345678901234567890124", "3", Some(false)),
            ("5", "0", None),
            ("1e99999", "3", None),
        ] {
            assert_eq!(number(value).is_multiple_of(&number(step)), expected, "{value} {step}");
        }
    }
}
