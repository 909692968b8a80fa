//! The functions that filters may call, and those that are left out.

/// Functions of jaq that read only their input and arguments. `now` also reads the clock, which the system
/// does not deny anyway.
#[rustfmt::skip]
const ALLOWED: [&str; 206] = [
    "@base64", "@base64d", "@html", "@htmld", "@json", "@sh", "@text", "@uri", "@urid", "abs", "acos",
    "acosh", "add", "all", "any", "arrays", "ascii_downcase", "ascii_upcase", "asin", "asinh", "atan",
    "atan2", "atanh", "booleans", "bsearch", "capture", "capture_of_match", "cbrt", "ceil", "combinations",
    "contains", "copysign", "cos", "cosh", "decode_base64", "decode_uri", "del", "delpaths", "drem",
    "empty", "encode_base64", "encode_uri", "endswith", "erf", "erfc", "error", "error_empty",
    "escape_html", "escape_sh", "exp", "exp10", "exp2", "explode", "expm1", "fabs", "false", "fdim",
    "finites", "first", "flatten", "floor", "fma", "fmax", "fmin", "fmod", "frexp", "from_entries",
    "fromdate", "fromdateiso8601", "fromjson", "gamma", "getpath", "gmtime", "group_by", "gsub", "has",
    "hypot", "ilogb", "implode", "in", "index", "indices", "infinite", "inside", "isarray", "isboolean",
    "isempty", "isfinite", "isinfinite", "isnan", "isnormal", "isnumber", "isobject", "isstring",
    "iterables", "j0", "j1", "jn", "join", "key_values", "keys", "keys_unsorted", "last", "ldexp", "length",
    "lgamma", "limit", "log", "log10", "log1p", "log2", "logb", "ltrim", "ltrimstr", "map", "map_values",
    "match", "matches", "max", "max_by", "max_by_or_empty", "min", "min_by", "min_by_or_empty", "mktime",
    "modf", "nan", "nearbyint", "nextafter", "nexttoward", "normals", "not", "now", "nth", "null", "nulls",
    "numbers", "objects", "path", "path_value", "paths", "pick", "pow", "pow10", "range", "recurse",
    "remainder", "repeat", "reverse", "rindex", "rint", "round", "rtrim", "rtrimstr", "scalars", "scalb",
    "scalbln", "scan", "scan_", "select", "setpath", "significand", "sin", "sinh", "skip", "sort",
    "sort_by", "split", "split_", "split_matches", "splits", "sqrt", "startswith", "strftime", "strings",
    "strptime", "sub", "tan", "tanh", "test", "tgamma", "to_entries", "toboolean", "todate",
    "todateiso8601", "tojson", "tonumber", "tostring", "totype", "transpose", "trim", "true", "trunc",
    "type", "unescape_html", "unique", "unique_by", "until", "utf8bytelength", "values", "walk", "while",
    "with_entries", "y0", "y1", "yn",
];

/// jq's functions that need more than their input, with the reason for the author of a filter.
const LEFT_OUT: [(&str, &str); 22] = [
    ("env", NO_ENVIRONMENT),
    ("$ENV", NO_ENVIRONMENT),
    ("$__prog_args", "a filter has no arguments"),
    ("$__loc__", "there is no place to tell"),
    ("input", ONE_INPUT),
    ("inputs", ONE_INPUT),
    ("input_filename", ONE_INPUT),
    ("input_line_number", ONE_INPUT),
    ("debug", NO_MESSAGES),
    ("debug_empty", NO_MESSAGES),
    ("stderr", NO_MESSAGES),
    ("stderr_empty", NO_MESSAGES),
    ("halt", "write `empty`, or `error` with a message"),
    ("halt_error", "write `error` with a message"),
    ("localtime", UTC),
    ("strflocaltime", UTC),
    ("modulemeta", NO_MODULES),
    ("get_search_list", NO_MODULES),
    ("import", NO_MODULES),
    ("include", NO_MODULES),
    ("tobytes", "values are JSON"),
    ("jq", "write the filter alone"),
];

const NO_ENVIRONMENT: &str = "a filter sees only its input, no environment variables";
const ONE_INPUT: &str = "a filter has one input, which is `.`";
const NO_MESSAGES: &str = "a filter returns values and writes no messages";
const NO_MODULES: &str = "there are no modules";
const UTC: &str = "times are UTC: use `gmtime` or `strftime`";

pub(super) fn is_allowed(name: &str) -> bool {
    ALLOWED.binary_search(&name).is_ok()
}

/// The reason why a function of jq does not exist here.
pub(super) fn left_out(name: &str) -> Option<&'static str> {
    LEFT_OUT.iter().find(|(left_out, _)| *left_out == name).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_have_nothing_in_common() {
        assert!(ALLOWED.is_sorted_by(|left, right| left < right));
        assert!(LEFT_OUT.iter().all(|(name, _)| !is_allowed(name)));
    }
}
