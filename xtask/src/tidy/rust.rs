//! The size and shape of Rust files.

use super::Finding;
use super::mask::{group_end, is_word, words};
use super::source::Source;

/// A file has at most so many lines.
const FILE_LIMIT: usize = 800;

/// A function has at most so many lines.
const FUNCTION_LIMIT: usize = 70;

/// Files that may hold `unsafe`, each for a reason that its first lines tell.
const UNSAFE_FILES: [&str; 7] = [
    "crates/perf/src/allocations.rs",
    "crates/runtime/src/driving.rs",
    "crates/runtime/src/lending.rs",
    "crates/runtime/src/prefetch.rs",
    "crates/runtime/src/real.rs",
    "crates/siltstone/src/database/borrowing.rs",
    "crates/testkit/src/allocator.rs",
];

/// Files that may hold thread-locals outside of tests: a shard is lent to other threads, and what is not `Send` must not stay behind
/// in one of theirs. Those of the benchmarks never borrow one.
const THREAD_LOCAL_FILES: [&str; 8] = [
    "crates/perf/src/allocations.rs",
    "crates/perf/src/counters.rs",
    "crates/runtime/src/buffer.rs",
    "crates/runtime/src/in_place.rs",
    "crates/runtime/src/sim/executor.rs",
    "crates/siltstone/src/database/here.rs",
    "crates/siltstone/src/database/pending.rs",
    "crates/runtime/src/vital.rs",
];

/// Where versions of the format are compared.
const VERSIONS: &str = "crates/sstable/src/version.rs";

/// What belongs into tests only.
const TEST_ONLY_MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Checks a Rust file.
pub fn check(source: &Source<'_>, found: &mut Vec<Finding>) {
    check_head_and_length(source, found);
    check_functions(source, found);
    check_loose_ends(source, found);
    check_attributes(source, found);
    check_unsafe(source, &UNSAFE_FILES, found);
    check_thread_locals(source, &THREAD_LOCAL_FILES, found);
    check_versions(source, found);
}

fn check_head_and_length(source: &Source<'_>, found: &mut Vec<Finding>) {
    if !source.text.starts_with("//!") {
        found.push(Finding::new(source.path, 1, "a file begins with `//!` and its one idea"));
    }
    let lines = source.text.lines().count();
    if lines > FILE_LIMIT {
        found.push(Finding::new(source.path, 0, format!("{lines} lines, more than {FILE_LIMIT}")));
    }
}

fn check_functions(source: &Source<'_>, found: &mut Vec<Finding>) {
    for function in source.functions.iter().filter(|function| function.lines > FUNCTION_LIMIT) {
        let what = format!("`{}` has {} lines, more than {FUNCTION_LIMIT}", function.name, function.lines);
        found.push(Finding::new(source.path, function.line, what));
    }
}

fn check_loose_ends(source: &Source<'_>, found: &mut Vec<Finding>) {
    let code = &source.masked.code;
    let mut note = |at: usize, what: String| {
        if !source.is_test(at) {
            found.push(Finding::new(source.path, source.line(at), what));
        }
    };
    for (at, _) in code.match_indices(".unwrap()") {
        note(at, "`unwrap` outside of tests: `expect` with the reason, or an error".to_owned());
    }
    for name in TEST_ONLY_MACROS {
        for at in words(code, name).filter(|at| code[at + name.len()..].starts_with('!')) {
            note(at, format!("`{name}!` outside of tests"));
        }
    }
}

/// Lints are expected with a reason, never allowed.
fn check_attributes(source: &Source<'_>, found: &mut Vec<Finding>) {
    let code = &source.masked.code;
    for (at, _) in code.match_indices('#') {
        let open = at + 1 + usize::from(code[at + 1..].starts_with('!'));
        if !code[open..].starts_with('[') {
            continue;
        }
        let attribute = &code[open..group_end(code, open)];
        let has = |name: &str| words(attribute, name).any(|at| attribute[at + name.len()..].starts_with('('));
        if has("allow") {
            let what = "`allow`: `#[expect(lint, reason = \"…\")]` says when it is needed no more";
            found.push(Finding::new(source.path, source.line(at), what));
        } else if has("expect") && words(attribute, "reason").next().is_none() {
            found.push(Finding::new(source.path, source.line(at), "`expect` of a lint without a reason"));
        }
    }
}

/// Blocks and implementations promise something and say why it holds; an `unsafe fn` asks for a promise.
fn check_unsafe(source: &Source<'_>, listed: &[&str], found: &mut Vec<Finding>) {
    for at in words(&source.masked.code, "unsafe") {
        let line = source.line(at);
        if !listed.contains(&source.path) {
            found.push(Finding::new(source.path, line, "`unsafe` in a file that is not listed for it"));
        } else if !promises_nothing(&source.masked.code[at..]) && !has_safety_comment(source, line) {
            found.push(Finding::new(source.path, line, "`unsafe` without `// SAFETY:` before it"));
        }
    }
}

fn check_thread_locals(source: &Source<'_>, listed: &[&str], found: &mut Vec<Finding>) {
    for at in words(&source.masked.code, "thread_local") {
        if !listed.contains(&source.path) && !source.is_test(at) {
            let what = "a thread-local in a file that is not listed for it";
            found.push(Finding::new(source.path, source.line(at), what));
        }
    }
}

fn promises_nothing(code: &str) -> bool {
    code.trim_start_matches("unsafe").trim_start().starts_with("fn ")
}

/// Whether the comment that ends right above a line, attributes aside, says why it is safe.
fn has_safety_comment(source: &Source<'_>, line: usize) -> bool {
    let mut comments =
        source.masked.comments.lines().zip(source.masked.code.lines()).take(line).collect::<Vec<_>>();
    let own = comments.pop();
    let above = comments.into_iter().rev().take_while(|(comment, code)| {
        let code = code.trim();
        code.starts_with('#') || (code.is_empty() && !comment.trim().is_empty())
    });
    own.into_iter().chain(above).any(|(comment, _)| comment.contains("SAFETY:"))
}

fn check_versions(source: &Source<'_>, found: &mut Vec<Finding>) {
    let code = &source.masked.code;
    for at in words(code, "Version").filter(|at| source.path != VERSIONS && !source.is_test(*at)) {
        let Some(rest) = code[at + "Version".len()..].strip_prefix("::") else { continue };
        let name = &rest[..rest.bytes().take_while(|byte| is_word(*byte)).count()];
        // The versions have two letters; other names are functions and constants.
        if name.len() != 2 {
            continue;
        }
        if is_compared(&code[..at], &rest[name.len()..]) {
            let what = format!("a version is compared: give it a feature in {VERSIONS}");
            found.push(Finding::new(source.path, source.line(at), what));
        }
    }
}

/// Whether there is a comparison in front of something or after it.
fn is_compared(before: &str, after: &str) -> bool {
    let before = before.trim_end_matches(|c: char| c.is_whitespace() || c == '&' || c == '(');
    let ends = ["==", "!=", "<=", ">=", "<", ">"].iter().any(|operator| before.ends_with(operator));
    let is_arrow = before.ends_with("=>") || before.ends_with("->");
    let after = after.trim_start();
    let begins = ["==", "!=", "<", ">"].iter().any(|operator| after.starts_with(operator));
    let statement = &before[before.rfind([';', '{', '}']).unwrap_or(0)..];
    (ends && !is_arrow) || begins || before.ends_with(".cmp") || statement.contains("matches!(")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in a file of the product, with its line.
    fn found_in(path: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(&Source::new(path, text), &mut found);
        found.iter().map(|finding| format!("{}: {}", finding.line, finding.what)).collect()
    }

    #[track_caller]
    fn assert_found(text: &str, expected: &str) {
        let found = found_in("src/a.rs", &format!("//! A.\n{text}"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(expected), "{found:?}");
    }

    #[track_caller]
    fn assert_clean(text: &str) {
        assert_eq!(found_in("src/a.rs", &format!("//! A.\n{text}")), [""; 0]);
    }

    #[test]
    fn a_file_has_a_head_and_is_short() {
        assert_eq!(found_in("src/a.rs", "fn a() {}\n"), ["1: a file begins with `//!` and its one idea"]);
        assert_clean(&"\n".repeat(799));
        assert_found(&"\n".repeat(800), "0: 801 lines, more than 800");
    }

    #[test]
    fn a_function_is_short() {
        let function = |lines: usize| format!("fn a() {{\n{}}}\n", "    b();\n".repeat(lines - 2));
        assert_clean(&function(70));
        assert_found(&function(71), "2: `a` has 71 lines, more than 70");
    }

    #[test]
    fn loose_ends_are_for_tests() {
        assert_found("fn a() {\n    b().unwrap();\n}\n", "3: `unwrap` outside");
        assert_found("fn a() { todo!() }\n", "`todo!` outside");
        assert_found("fn a() { unimplemented!() }\n", "`unimplemented!` outside");
        assert_found("fn a() { dbg!(1); }\n", "`dbg!` outside");
        assert_clean("/// a.unwrap()\nfn a() { \"todo!()\".unwrap_or(1) }\n");
        assert_clean("#[cfg(test)]\nmod tests {\n    fn a() { dbg!(b().unwrap()) }\n}\n");
        assert_eq!(found_in("tests/a.rs", "//! A.\nfn a() { b().unwrap() }\n"), [""; 0]);
    }

    #[test]
    fn lints_are_expected_with_a_reason() {
        assert_found("#[allow(unused)]\nfn a() {}\n", "2: `allow`");
        assert_found("#![cfg_attr(test, allow(unused, reason = \"so\"))]\n", "`allow`");
        assert_found("#[expect(unused)]\nfn a() {}\n", "without a reason");
        assert_clean("#[expect(unused, reason = \"so\")]\nfn a() { b.allow(1).expect(\"c\") }\n");
    }

    #[test]
    fn thread_locals_are_listed() {
        assert_found("thread_local! {\n    static A: u8 = 1;\n}\n", "not listed");
        assert_clean("// thread_local!\n#[cfg(test)]\nmod tests {\n    thread_local! {}\n}\n");
    }

    #[test]
    fn unsafe_is_listed_and_explained() {
        assert_found("fn a() { unsafe { b() } }\n", "not listed");
        assert_clean("#[expect(unsafe_code, reason = \"unsafe\")]\n// unsafe\nfn a() {}\n");
        let listed = |text: &str| {
            let mut found = Vec::new();
            check_unsafe(&Source::new("a.rs", text), &["a.rs"], &mut found);
            found.len()
        };
        assert_eq!(listed("fn a() {\n    unsafe { b() }\n}\n"), 1);
        assert_eq!(listed("// SAFETY: far away.\n\nfn a() {\n    unsafe { b() }\n}\n"), 1);
        assert_eq!(
            listed("// SAFETY: b asks nothing,\n// nor does a.\n#[inline]\nunsafe impl A for B {}\n"),
            0
        );
        assert_eq!(listed("unsafe fn a() {}\n"), 0);
    }

    #[test]
    fn versions_are_compared_in_one_file() {
        for bad in [
            "v >= Version::Na",
            "v<Version::Oa",
            "Version::Me == v",
            "v.cmp(&Version::Me)",
            "matches!(v, Version::Me | Version::Nb)",
        ] {
            let found = found_in("src/a.rs", &format!("//! A.\nfn a() -> bool {{ {bad} }}\n"));
            assert!(!found.is_empty() && found[0].contains("a version is compared"), "{bad}: {found:?}");
            assert_eq!(found_in(VERSIONS, &format!("//! A.\nfn a() -> bool {{ {bad} }}\n")), [""; 0]);
        }
        assert_clean("fn a() { match v { Version::Me => 1, Version::Nb => b(Version::Oa) } }\n");
        assert_clean("fn a() -> bool { v == Version::parse(b) }\n");
    }
}
