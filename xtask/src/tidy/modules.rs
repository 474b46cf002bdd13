//! A file that lists its modules lists all of them, and no others.
//!
//! ```text
//! //! | module | idea |          the list: what the first column of such a table names
//! //! | [`one`], `two` | … |
//!
//! mod one;                      what there is; modules of tests need not be listed
//! ```

use std::collections::BTreeSet;

use super::Finding;
use super::mask::words;
use super::source::Source;

/// Compares the list of a file with its modules, where it has one.
pub fn check(source: &Source<'_>, found: &mut Vec<Finding>) {
    let head: Vec<&str> = source.text.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let Some(table) = head.iter().position(|line| line.trim_start().starts_with("| module |")) else {
        return;
    };
    let lines = head[table..].iter().map_while(|line| line.trim_start().strip_prefix('|'));
    let listed: BTreeSet<&str> = lines
        .flat_map(|line| line.split('|').next().unwrap_or_default().split('`').skip(1).step_by(2))
        .map(|name| name.trim_start_matches("mod@"))
        .collect();
    let declared: BTreeSet<&str> = declared(source).collect();
    // One may be named beside the table too, where it has no idea of its own.
    let is_named = |name: &&&str| head.iter().any(|line| line.contains(&format!("`{name}`")));
    for name in declared.difference(&listed).filter(|name| !is_named(name)) {
        found.push(Finding::new(source.path, table + 1, format!("the list of modules lacks `{name}`")));
    }
    for name in listed.difference(&declared) {
        found.push(Finding::new(source.path, table + 1, format!("there is no module `{name}`")));
    }
}

/// The modules that have files of their own, but for tests.
fn declared<'a>(source: &'a Source<'_>) -> impl Iterator<Item = &'a str> {
    let code = &source.masked.code;
    words(code, "mod").filter(|at| !source.is_test(*at)).filter_map(|at| {
        let (name, _) = code[at + "mod".len()..].split_once(';')?;
        Some(name.trim()).filter(|name| !name.contains(['{', ' ', '\n']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(&Source::new("src/lib.rs", text), &mut found);
        found.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn lists_and_modules_agree() {
        let head =
            "//! Idea.\n//!\n//! | module | idea |\n//! |---|---|\n//! | [`one`], `two` | a `word` |\n";
        let with = |rest: &str| found_in(&format!("{head}{rest}"));
        assert!(with("\npub mod one;\npub(crate) mod two;\n#[cfg(test)]\nmod tests;\n").is_empty());
        assert!(with("//!\n//! And `three`.\n\nmod one;\nmod two;\nmod three;\n").is_empty());
        assert_eq!(with("\nmod one;\nmod two;\nmod three;\n"), ["the list of modules lacks `three`"]);
        assert_eq!(with("\nmod one;\n"), ["there is no module `two`"]);
    }

    #[test]
    fn who_lists_nothing_need_not() {
        assert!(found_in("//! Idea.\n\nmod one;\n").is_empty());
        assert!(found_in("//! | word | meaning |\n//! |---|---|\n//! | `a` | b |\n\nmod one;\n").is_empty());
    }
}
