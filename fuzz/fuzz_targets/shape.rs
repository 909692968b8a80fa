//! Shapes stay within their limits and survive storage, and merging loses nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plugbay_core::shape::Shape;

// Two values, each on a line.
fuzz_target!(|text: &str| {
    let (one, two) = text.split_once('\n').unwrap_or((text, text));
    // A shape from a file may be anything.
    if let Ok(stored) = serde_json::from_str::<Shape>(one) {
        check(&stored.bounded());
    }
    let (Some(one), Some(two)) = (Shape::of(one.as_bytes()), Shape::of(two.as_bytes())) else { return };
    check(&one);
    let merged = one.clone().merge(two.clone());
    check(&merged);
    assert_eq!(merged.clone().merge(one).merge(two), merged, "what is known changes nothing");
});

fn check(shape: &Shape) {
    let stored = serde_json::to_string(shape).expect("a shape can be stored");
    assert!(stored.len() <= 1 << 20, "{} bytes", stored.len());
    assert_eq!(serde_json::from_str::<Shape>(&stored).as_ref().ok(), Some(shape));
    assert!(shape.line(60).len() <= 4096);
}
