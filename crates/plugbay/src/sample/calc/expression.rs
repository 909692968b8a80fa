//! Arithmetic expressions: read and evaluated in one go, by recursive descent.

/// Deeper than anyone writes, shallow enough for any stack.
const DEPTH_LIMIT: usize = 100;

pub(super) fn evaluate(text: &str) -> Result<f64, String> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let value = parser.sum()?;
    match parser.peek() {
        None if value.is_finite() => Ok(value),
        None => Err("the result is not a finite number".to_owned()),
        Some(_) => Err(parser.unexpected()),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    /// Terms joined by + and -.
    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            match self.peek() {
                Some('+') => value += self.behind(Self::product)?,
                Some('-') => value -= self.behind(Self::product)?,
                _ => return Ok(value),
            }
        }
    }

    /// Factors joined by *, / and %.
    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.signed()?;
        loop {
            let operator = self.peek();
            match operator {
                Some('*') => value *= self.behind(Self::signed)?,
                Some('/' | '%') => {
                    let divisor = self.behind(Self::signed)?;
                    if divisor == 0.0 {
                        return Err("division by zero".to_owned());
                    }
                    if operator == Some('/') { value /= divisor } else { value %= divisor }
                }
                _ => return Ok(value),
            }
        }
    }

    /// A sign binds less than a power: -2^2 is -4.
    fn signed(&mut self) -> Result<f64, String> {
        match self.peek() {
            Some('-') => self.behind(Self::signed).map(|value| -value),
            Some('+') => self.behind(Self::signed),
            _ => self.power(),
        }
    }

    /// From the right: 2^3^2 is 2^9.
    fn power(&mut self) -> Result<f64, String> {
        let base = self.atom()?;
        if self.peek() != Some('^') {
            return Ok(base);
        }
        let exponent = self.behind(Self::signed)?;
        Ok(base.powf(exponent))
    }

    fn atom(&mut self) -> Result<f64, String> {
        match self.peek() {
            Some('(') => self.parentheses(),
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.name(),
            _ => Err(self.unexpected()),
        }
    }

    fn parentheses(&mut self) -> Result<f64, String> {
        let value = self.behind(Self::sum)?;
        if self.peek() != Some(')') {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(value)
    }

    fn number(&mut self) -> Result<f64, String> {
        let rest = &self.text[self.at..];
        let mut end = length(rest, |c| c.is_ascii_digit() || c == '.');
        // 1e3, but not the constant in 2*e.
        let exponent =
            rest[end..].strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
        if let Some(digits) = exponent.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            end = rest.len() - digits.len() + length(digits, |c| c.is_ascii_digit());
        }
        let number = &rest[..end];
        self.at += end;
        number.parse().map_err(|_| format!("{number:?} is not a number"))
    }

    fn name(&mut self) -> Result<f64, String> {
        let rest = &self.text[self.at..];
        let name = &rest[..length(rest, |c| c.is_ascii_alphanumeric())];
        self.at += name.len();
        match name {
            "pi" => return Ok(std::f64::consts::PI),
            "e" => return Ok(std::f64::consts::E),
            _ => {}
        }
        let function: fn(f64) -> f64 = match name {
            "sqrt" => f64::sqrt,
            "abs" => f64::abs,
            "exp" => f64::exp,
            "ln" => f64::ln,
            "log" => f64::log10,
            "sin" => f64::sin,
            "cos" => f64::cos,
            "tan" => f64::tan,
            "floor" => f64::floor,
            "ceil" => f64::ceil,
            "round" => f64::round,
            _ => return Err(format!("{name:?} is neither a constant nor a function")),
        };
        if self.peek() != Some('(') {
            return Err(format!("{name} needs its argument in parentheses"));
        }
        self.parentheses().map(function)
    }

    /// What stands behind an operator or a parenthesis: one level deeper.
    fn behind(&mut self, read: fn(&mut Self) -> Result<f64, String>) -> Result<f64, String> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return Err("the expression is nested too deeply".to_owned());
        }
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// The next character that is not white space, left in place.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn unexpected(&mut self) -> String {
        match self.peek() {
            Some(odd) => {
                let place = self.text[..self.at].chars().count() + 1;
                format!("{odd:?} at position {place} was not expected")
            }
            None => "the expression ends too early".to_owned(),
        }
    }
}

/// How many bytes at the start of `text` are of a kind.
fn length(text: &str, kind: impl Fn(char) -> bool) -> usize {
    text.find(|c| !kind(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_rules_of_school() {
        let cases = [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("-2^2", -4.0),
            ("2^3^2", 512.0),
            ("2^-1", 0.5),
            ("10 % 4 - - 1", 3.0),
            ("7 - 2 - 1", 4.0),
            ("1e3 + .5", 1000.5),
            ("round(2*e)", 5.0),
            ("sqrt(16) + abs(-3)", 7.0),
        ];
        for (text, expected) in cases {
            assert_eq!(evaluate(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let deep = "(".repeat(10_000);
        let cases = [
            ("", "the expression ends too early"),
            ("1 +", "the expression ends too early"),
            ("2 $ 3", "'$' at position 3 was not expected"),
            ("é", "'é' at position 1 was not expected"),
            ("(1", "the expression ends too early"),
            ("1.2.3", "\"1.2.3\" is not a number"),
            ("5 % 0", "division by zero"),
            ("foo(1)", "\"foo\" is neither a constant nor a function"),
            ("sin 1", "sin needs its argument in parentheses"),
            ("sqrt(-1)", "the result is not a finite number"),
            (&deep, "the expression is nested too deeply"),
        ];
        for (text, expected) in cases {
            assert_eq!(evaluate(text), Err(expected.to_owned()));
        }
    }
}
