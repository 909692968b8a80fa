//! Lines, matches and pages.

use proptest::prelude::*;

use super::super::*;

fn numbered(count: usize) -> String {
    let lines: Vec<String> = (1..=count).map(|n| format!("line {n} of the text\n")).collect();
    lines.concat()
}

#[test]
fn lines_end_with_the_budget_and_say_what_remains() {
    let text = numbered(1000);
    let some = lines(&text, 10, Some(12), 1000);
    assert_eq!(some.text, "line 10 of the text\nline 11 of the text\nline 12 of the text\n");
    assert_eq!((some.note.as_str(), some.next), ("lines 10-12 of 1,000", None));
    let part = lines(&text, 1, None, 60);
    assert_eq!((part.note.as_str(), part.next), ("lines 1-10 of 1,000; next: lines 11-1000", Some(11)));
    assert_eq!(lines(&text, 2000, None, 60).note, "no lines 2000-2000: there are 1,000 lines");
    let last = lines(&text, 999, Some(5000), 60);
    assert_eq!(last.text, "line 999 of the text\nline 1000 of the text\n");
    let long = lines(&"word ".repeat(1000), 1, None, 50);
    assert!(long.note.contains("cut; page reads it whole") && estimate(&long.text) <= 50, "{long:?}");
}

#[test]
fn matches_come_with_their_lines_and_context() {
    let text = numbered(100);
    let found = grep(&text, "line 5[01] ", 1, 1000).unwrap();
    let expected = "49- line 49 of the text\n50: line 50 of the text\n51: line 51 of the text\n52- line 52 of the text\n";
    assert_eq!(found.text, expected);
    assert_eq!(found.note, "2 matches of \"line 5[01] \"");
    let plain = grep(&text, "line 9", 0, 1000).unwrap();
    assert_eq!(plain.text.lines().nth(1), Some("--"));
    let many = grep(&text, "text", 0, 60).unwrap();
    assert_eq!(
        (many.note.as_str(), many.next),
        ("100 matches of \"text\"; shown: the first 7; next match: line 8", Some(8))
    );
    assert!(grep(&text, "(", 0, 60).is_err());
    assert!(grep(&text, "(a{1000}){1000}", 0, 60).is_err());
    let long = format!("{}needle{}", "x".repeat(100_000), "y".repeat(100_000));
    let around = grep(&long, "needle", 0, 500).unwrap();
    assert!(
        around.text.starts_with("1: …xxx") && around.text.contains("needle") && around.text.len() < 600,
        "{around:?}"
    );
}

#[test]
fn pages_of_one_long_line_end_behind_elements() {
    let rows: Vec<String> = (0..500).map(|n| format!("{{\"id\":{n},\"name\":\"x\"}}")).collect();
    let json = format!("[{}]", rows.join(","));
    let first = page(&json, 1, 200);
    assert!(first.text.ends_with("},"), "{}", first.text);
    assert_eq!(
        page(&json, 999, 200).note,
        format!("no page 999: there are {} pages", pages(&json, 200).len())
    );
}

fn pages(text: &str, tokens: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut next = Some(1);
    while let Some(number) = next.filter(|_| !text.is_empty()) {
        let excerpt = page(text, number, tokens);
        all.push(excerpt.text);
        next = excerpt.next;
    }
    all
}

proptest! {
    #[test]
    fn pages_together_are_the_text(text in "([a-z,{}天 ]{0,60}\n?){0,80}", tokens in 0usize..120) {
        let pages = pages(&text, tokens);
        prop_assert_eq!(pages.concat(), text);
        for page in pages {
            prop_assert!(estimate(&page) <= tokens.max(32));
        }
    }

    #[test]
    fn excerpts_fit(text in "([a-z\\[\\]. 天]{0,60}\n?){0,80}", pattern in "[a-z.*+\\[\\]()]{0,6}", tokens in 0usize..120) {
        prop_assert!(estimate(&lines(&text, 3, None, tokens).text) <= tokens.max(32));
        if let Ok(found) = grep(&text, &pattern, 2, tokens) {
            prop_assert!(estimate(&found.text) <= tokens.max(32));
        }
    }
}
