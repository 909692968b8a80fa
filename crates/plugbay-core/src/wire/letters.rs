//! Keys as the laxest reader compares them.

/// Whether some reader takes `key` for `name`, which is ASCII. Readers that ignore case do so with Unicode's tables (Go's
/// `encoding/json`, Java's `equalsIgnoreCase`), and there a few other letters fold to ASCII ones.
pub fn folds_to(key: &str, name: &str) -> bool {
    // The letters that fold to ASCII ones have two or three bytes, so a key of the same length has none of them.
    if key.len() <= name.len() {
        return key.eq_ignore_ascii_case(name);
    }
    key.len() <= 3 * name.len()
        && !key.is_ascii()
        && key.chars().map(folded).eq(name.bytes().map(|byte| byte.to_ascii_lowercase().into()))
}

fn folded(letter: char) -> char {
    match letter {
        'ſ' => 's',
        '\u{212a}' => 'k', // the sign for kelvin
        'ı' | 'İ' => 'i',
        other => other.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_fold_to_a_name_are_found() {
        for key in ["params", "PARAMS", "paramſ", "Paramſ"] {
            assert!(folds_to(key, "params"), "{key}");
        }
        assert!(folds_to("tas\u{212a}Id", "taskId") && folds_to("ıd", "id") && folds_to("İD", "id"));
        for key in ["", "param", "paramss", "parämſ", "раrams"] {
            assert!(!folds_to(key, "params"), "{key}");
        }
    }

    /// The table is complete: no other letter has an ASCII letter as its upper or lower case.
    #[test]
    fn every_letter_with_an_ascii_case_is_folded() {
        for letter in ('\u{80}'..=char::MAX).filter(|letter| folded(*letter) == *letter) {
            let is_ascii = |mut cased: std::vec::IntoIter<char>| {
                cased.next().is_some_and(|first| first.is_ascii_alphabetic()) && cased.next().is_none()
            };
            let lower: Vec<char> = letter.to_lowercase().collect();
            let upper: Vec<char> = letter.to_uppercase().collect();
            assert!(!is_ascii(lower.into_iter()) && !is_ascii(upper.into_iter()), "{letter:?}");
        }
    }
}
