//! A server that calculates.

mod expression;
mod units;

use serde_json::{Value, json};

use super::{
    arguments::Arguments,
    server::{About, Outcome, Reply, Tool},
};

pub(super) const ABOUT: About =
    About { name: "calc", instructions: "Arithmetic with 64-bit floating point numbers." };

/// Beyond this, trial division would keep a caller waiting.
const LARGEST_FACTORED: i64 = 1_000_000_000_000;

pub(super) fn tools() -> Vec<Tool<()>> {
    vec![
        Tool {
            name: "evaluate",
            description: "The value of an arithmetic expression with + - * / % ^, parentheses, the constants \
                pi and e, and the functions sqrt, abs, exp, ln, log, sin, cos, tan, floor, ceil and round. \
                Angles are in radians, log has base 10.",
            read_only: true,
            properties: json!({ "expression": text("For example (17 + 4) * 2 or sqrt(2)^2.") }),
            required: &["expression"],
            run: |(), arguments| {
                expression::evaluate(arguments.text("expression")?).map(|value| number(value).into())
            },
        },
        Tool {
            name: "convert_units",
            description: "Converts a quantity from one unit to another of the same kind: length, mass, time, \
                speed, temperature, data. Call list_units for the symbols.",
            read_only: true,
            properties: json!({
                "value": { "type": "number", "description": "How much of the first unit." },
                "from": text("The symbol of the unit to convert from, for example mi."),
                "to": text("The symbol of the unit to convert to, for example km."),
            }),
            required: &["value", "from", "to"],
            run: |(), arguments| convert(arguments),
        },
        Tool {
            name: "list_units",
            description: "The symbols of all units that convert_units knows, one line per kind of quantity.",
            read_only: true,
            properties: json!({}),
            required: &[],
            run: |(), _| Ok(units::list().into()),
        },
        Tool {
            name: "statistics",
            description: "Count, sum, smallest, largest, mean, median and sample standard deviation of a list \
                of numbers, as text and as structured content.",
            read_only: true,
            properties: json!({
                "numbers": {
                    "type": "array", "items": { "type": "number" }, "minItems": 1,
                    "description": "The numbers, in any order.",
                },
            }),
            required: &["numbers"],
            run: |(), arguments| arguments.numbers("numbers").map(|numbers| statistics(&numbers)),
        },
        Tool {
            name: "factorize",
            description: "The prime factors of a whole number between 2 and 1,000,000,000,000, smallest first.",
            read_only: true,
            properties: json!({
                "number": {
                    "type": "integer", "minimum": 2, "maximum": LARGEST_FACTORED,
                    "description": "The number to take apart.",
                },
            }),
            required: &["number"],
            run: |(), arguments| factorize(arguments.integer("number")?),
        },
        Tool {
            name: "convert_base",
            description: "Writes a whole number in another base, from 2 to 36, with the digits 0-9 and a-z.",
            read_only: true,
            properties: json!({
                "number": text("The number as it is written in its own base, for example ff."),
                "from": base("The base in which the number is written."),
                "to": base("The base to write it in."),
            }),
            required: &["number", "from", "to"],
            run: |(), arguments| convert_base(arguments),
        },
    ]
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn base(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 2, "maximum": 36, "description": description })
}

fn convert(arguments: &Arguments<'_>) -> Outcome {
    let (from, to) = (arguments.text("from")?, arguments.text("to")?);
    let value = units::convert(arguments.number("value")?, from, to)?;
    Ok(format!("{} {to}", number(value)).into())
}

#[expect(clippy::cast_precision_loss, reason = "nobody lists 2^53 numbers")]
fn statistics(numbers: &[f64]) -> Reply {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let (smallest, largest) = (sorted[0], sorted[count - 1]);
    let sum: f64 = sorted.iter().sum();
    let mean = sum / count as f64;
    let median = f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]);
    let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
    let named = [
        ("sum", sum),
        ("smallest", smallest),
        ("largest", largest),
        ("mean", mean),
        ("median", median),
        ("deviation", deviation),
    ];
    let parts: Vec<String> = named.iter().map(|(name, value)| format!("{name} {}", number(*value))).collect();
    let mut values: serde_json::Map<String, Value> =
        named.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    values.insert("count".to_owned(), count.into());
    Reply::structured(format!("count {count}, {}", parts.join(", ")), values.into())
}

fn factorize(number: i64) -> Outcome {
    if !(2..=LARGEST_FACTORED).contains(&number) {
        return Err(format!("\"number\" must lie between 2 and {LARGEST_FACTORED}"));
    }
    let mut rest = number;
    let mut factors = Vec::new();
    let mut candidate = 2;
    while candidate * candidate <= rest {
        while rest % candidate == 0 {
            factors.push(candidate.to_string());
            rest /= candidate;
        }
        candidate += if candidate == 2 { 1 } else { 2 };
    }
    if rest > 1 {
        factors.push(rest.to_string());
    }
    Ok(match factors.as_slice() {
        [_] => format!("{number} is prime").into(),
        _ => format!("{number} = {}", factors.join(" × ")).into(),
    })
}

fn convert_base(arguments: &Arguments<'_>) -> Outcome {
    let base = |key| {
        let base = u32::try_from(arguments.integer(key)?).ok().filter(|base| (2..=36).contains(base));
        base.ok_or_else(|| format!("\"{key}\" must lie between 2 and 36"))
    };
    let (text, from, to) = (arguments.text("number")?, base("from")?, base("to")?);
    let value = i64::from_str_radix(text.trim(), from)
        .map_err(|_| format!("{text:?} is not a 64-bit whole number in base {from}"))?;
    let mut digits = Vec::new();
    let mut rest = value.unsigned_abs();
    while rest > 0 || digits.is_empty() {
        let digit = u32::try_from(rest % u64::from(to)).unwrap_or(0);
        digits.extend(char::from_digit(digit, to));
        rest /= u64::from(to);
    }
    if value < 0 {
        digits.push('-');
    }
    Ok(digits.iter().rev().collect::<String>().into())
}

/// Twelve digits hide what binary fractions add: 0.1 + 0.2 is 0.3.
fn number(value: f64) -> String {
    if value != 0.0 && !(1e-6..1e15).contains(&value.abs()) {
        return format!("{value:e}");
    }
    let whole_digits = format!("{:.0}", value.abs()).len();
    let text = format!("{value:.*}", 12usize.saturating_sub(whole_digits));
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
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
    fn calculates() {
        check("evaluate", json!({ "expression": "0.1 + 0.2" }), "0.3");
        check("convert_units", json!({ "value": 26.2, "from": "mi", "to": "km" }), "42.1648128 km");
        check("convert_units", json!({ "value": 100, "from": "F", "to": "C" }), "37.7777777778 C");
        check("factorize", json!({ "number": 360_360 }), "360360 = 2 × 2 × 2 × 3 × 3 × 5 × 7 × 11 × 13");
        check("factorize", json!({ "number": 999_999_999_989_i64 }), "999999999989 is prime");
        check("convert_base", json!({ "number": "-ff", "from": 16, "to": 2 }), "-11111111");
        let expected =
            "count 4, sum 10, smallest 1, largest 4, mean 2.5, median 2.5, deviation 1.29099444874";
        check("statistics", json!({ "numbers": [3, 1, 4, 2] }), expected);
    }

    #[test]
    fn refuses_in_words() {
        check("evaluate", json!({ "expression": "1 / 0" }), "refused: division by zero");
        check(
            "convert_units",
            json!({ "value": 1, "from": "kg", "to": "m" }),
            "refused: kg is a mass and m is a length",
        );
        check(
            "factorize",
            json!({ "number": 1 }),
            "refused: \"number\" must lie between 2 and 1000000000000",
        );
        check("statistics", json!({ "numbers": [] }), "refused: \"numbers\" must be an array of numbers");
        check(
            "convert_base",
            json!({ "number": "12", "from": 2, "to": 10 }),
            "refused: \"12\" is not a 64-bit whole number in base 2",
        );
    }

    #[test]
    fn numbers_are_written_as_people_do() {
        let cases = [(42.0, "42"), (-0.0, "0"), (1e20, "1e20"), (2.0 / 3.0, "0.66666666667"), (1e-9, "1e-9")];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
    }
}
