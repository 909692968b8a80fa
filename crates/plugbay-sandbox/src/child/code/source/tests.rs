//! The text that is compiled instead of the author's.

use super::*;

/// The compiled code without the text around it.
#[track_caller]
fn compiled(code: &str) -> String {
    let source = Source::parse(code).unwrap_or_else(|message| panic!("{code}: {message}"));
    let inside = source.compiled.strip_prefix(BEFORE).and_then(|rest| rest.strip_suffix(AFTER));
    inside.unwrap().to_owned()
}

/// Checks the compiled code; `·` stands for a blank.
#[track_caller]
fn check(code: &str, expected: &str) {
    assert_eq!(compiled(code), expected.replace('·', " "), "{code}");
}

#[test]
fn javascript_stays_untouched() {
    for code in [
        "let a = b < c > (d);",
        "for (const type of declare) { abstract(type) }",
        "let as = 1, satisfies = 2; let x = as;",
        "const f = async (a, b = 1, ...c) => { await a };",
        "class A { static #x = 1; get y() { return 1 } static async *z() {} }",
        "label: while (1) break label;",
        "if (a) return 1; else { b }",
    ] {
        assert_eq!(compiled(code), code);
    }
}

#[test]
fn types_become_blanks() {
    check("let a: number = 1;", "let a········ = 1;");
    check("let a!: number;", "let a·········;");
    check("function f(a?: T, ...b: U[]): V {}", "function f(a····, ...b·····)··· {}");
    check("function f(this: T, a) {}", "function f(········ a) {}");
    check("let a = <T>b;", "let a = ···b;");
    check("let a = b as unknown as T;", "let a = b················;");
    check("let a = b! + c!.d!.e;", "let a = b· + c·.d·.e;");
    check("let a = { b } satisfies T;", "let a = { b }············;");
    check("let a = f<T>(b), m = new Map<K, V>();", "let a = f···(b), m = new Map······();");
    check("let f = <T,>(a: T): a is T => a;", "let f = ····(a···)········ => a;");
    check("try {} catch (e: any) {}", "try {} catch (e·····) {}");
    check("for (const a of b as T[]) {}", "for (const a of b·······) {}");
    check("let ä: Größe = 1", "let ä······· = 1");
    check("let a: {\n  b: string;\n} = c;", "let a···\n············\n· = c;");
}

#[test]
fn declarations_of_types_leave_a_semicolon() {
    check("a\ninterface B { c: D }\n(e);", "a\n;···················\nreturn (e);");
    check("type A = B; a = 1;", ";·········· return a = 1;");
    check("declare const a: B; let c;", ";·················· let c;");
    check("declare function f(): void; let c;", ";·························· let c;");
    check("import type { A } from 'b'; let c;", ";·························· let c;");
    check("function f(a: 1): 1;\nfunction f(a) {}", ";···················\nfunction f(a) {}");
}

#[test]
fn classes_lose_their_modifiers() {
    check("class A<T> extends B<T> implements C, D {}", "class A··· extends B··· ··············· {}");
    check("abstract class A { abstract b(): C; }", "········ class A { ;··············· }");
    check("class A { private readonly a?: B = 1; }", "class A { ;······ ········ a···· = 1; }");
    check("class A { public static async b(c: D) {} }", "class A { ;····· static async b(c···) {} }");
    check("class A { static override b!: C; }", "class A { static ········ b····; }");
    check(
        "class A { declare a: B; [k: string]: C; d = 1 }",
        "class A { ;············ ;·············· d = 1 }",
    );
    check("class A { a = 1\nprivate ['b'] = 2 }", "class A { a = 1\n;······ ['b'] = 2 }");
}

#[test]
fn blanks_that_would_change_the_rest_are_other_signs() {
    check("let a = b as C\n(d);", "let a = b····;\nreturn (d);");
    check("let f = (a): {\n  b: C\n} => a;", "let f = (a····\n······\n) => a;");
    check("let f = async <\n  T\n>(a: T) => a;", "let f = async (\n···\n· a···) => a;");
}

#[test]
fn the_last_expression_is_returned() {
    check("a; b", "a; return b");
    check("a;\n  b; // c\n", "a;\n  return b; // c\n");
    check("b()\nfunction b() {}\ntype C = 1;", "return b()\nfunction b() {}\n;··········");
    check("'use strict'", "return 'use strict'");
    check("async () => { a };", "return (async () => { a })();");
    check("(function () { a })", "return ((function () { a }))()");
    check("let a = 1; () => a", "let a = 1; return () => a");
    check("if (a) { b }", "if (a) { b }");
    check("", "");
    check("#!/bin/node\na", "···········\nreturn a");
}

#[test]
fn fences_are_blanked() {
    check("```js\na = 1;\n```", "     \nreturn a = 1;\n");
    check("\n ```\nlet a;\n```\n", "\n    \nlet a;\n");
    check("```ts\nlet a: B;\n``` ", "     \nlet a···;\n");
}

#[test]
fn places_are_those_of_the_author() {
    let source = Source::parse("let a: B = 1;\n  a.b.c").unwrap();
    assert_eq!(source.place(1, 5), None, "the wrapping");
    assert_eq!(source.place(2, 5), Some((1, 5)));
    assert_eq!(source.place(3, 3), Some((2, 3)), "before the return");
    assert_eq!(source.place(3, 12), Some((2, 5)), "behind it");
    assert_eq!(source.complaint("x.", 2, 3), "x (line 2, column 3)\n  a.b.c\n  ^");
}

#[test]
fn a_script_that_leaves_the_wrapping_does_not_parse() {
    for code in ["}); a(); (async function () {", "} a()", "*/ a", "\0", "'\0'"] {
        assert!(Source::parse(code).is_err(), "{code}");
    }
}
