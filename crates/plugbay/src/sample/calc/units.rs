//! Units of measurement, each as a multiple of the first of its kind.

/// Symbol, and how many of the first unit of its kind it is.
type Unit = (&'static str, f64);

const KINDS: &[(&str, &[Unit])] = &[
    (
        "length",
        &[
            ("m", 1.0),
            ("mm", 0.001),
            ("cm", 0.01),
            ("km", 1000.0),
            ("in", 0.0254),
            ("ft", 0.3048),
            ("yd", 0.9144),
            ("mi", 1609.344),
            ("nmi", 1852.0),
        ],
    ),
    (
        "mass",
        &[
            ("kg", 1.0),
            ("mg", 1e-6),
            ("g", 0.001),
            ("t", 1000.0),
            ("oz", 0.028_349_523_125),
            ("lb", 0.453_592_37),
        ],
    ),
    (
        "time",
        &[("s", 1.0), ("ms", 0.001), ("min", 60.0), ("h", 3600.0), ("d", 86_400.0), ("week", 604_800.0)],
    ),
    ("speed", &[("m/s", 1.0), ("km/h", 1.0 / 3.6), ("mph", 0.447_04), ("kn", 1852.0 / 3600.0)]),
    (
        "data",
        &[
            ("B", 1.0),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("KiB", 1024.0),
            ("MiB", 1_048_576.0),
            ("GiB", 1_073_741_824.0),
        ],
    ),
    // These do not share a zero: see `kelvin` and `from_kelvin`.
    ("temperature", &[("K", 1.0), ("C", 1.0), ("F", 1.0)]),
];

pub(super) fn list() -> String {
    let line = |(kind, units): &(&str, &[Unit])| {
        let symbols: Vec<&str> = units.iter().map(|(symbol, _)| *symbol).collect();
        format!("{kind}: {}", symbols.join(", "))
    };
    KINDS.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub(super) fn convert(value: f64, from: &str, to: &str) -> Result<f64, String> {
    let ((from_kind, from_size), (to_kind, to_size)) = (find(from)?, find(to)?);
    if from_kind != to_kind {
        return Err(format!("{from} is a {from_kind} and {to} is a {to_kind}"));
    }
    if from_kind == "temperature" {
        return Ok(from_kelvin(kelvin(value, from), to));
    }
    Ok(value * from_size / to_size)
}

fn find(symbol: &str) -> Result<(&'static str, f64), String> {
    let found = KINDS.iter().find_map(|(kind, units)| {
        let (_, size) = units.iter().find(|(own, _)| *own == symbol)?;
        Some((*kind, *size))
    });
    found.ok_or_else(|| format!("the unit {symbol:?} is not known; list_units names those that are"))
}

fn kelvin(value: f64, unit: &str) -> f64 {
    match unit {
        "C" => value + 273.15,
        "F" => (value + 459.67) / 1.8,
        _ => value,
    }
}

fn from_kelvin(value: f64, unit: &str) -> f64 {
    match unit {
        "C" => value - 273.15,
        "F" => value * 1.8 - 459.67,
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_there_and_back() {
        for (_, units) in KINDS {
            for (from, _) in *units {
                for (to, _) in *units {
                    let there = convert(12.5, from, to).unwrap();
                    let back = convert(there, to, from).unwrap();
                    assert!((back - 12.5).abs() < 1e-9, "{from} {to} {back}");
                }
            }
        }
        assert!(convert(1.0, "furlong", "m").unwrap_err().contains("list_units"));
    }
}
