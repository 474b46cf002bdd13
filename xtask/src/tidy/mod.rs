//! The habits of the house, as far as they can be measured: `cargo xtask tidy`.
//!
//! | module | keeps |
//! |---|---|
//! | [`rust`] | the size and shape of Rust files |
//! | [`arrows`] | which crate may know which |
//! | [`unused`] | that no dependency is left over |
//! | [`texts`] | words, addresses and paths that do not belong here; white space |
//! | [`links`] | that Markdown links lead somewhere |
//! | [`modules`] | that lists of modules, as this one, are whole |
//!
//! Everything is text scanning: `tree` has the texts, `mask` tells code from comments and literals, `source` finds functions and tests.

pub mod arrows;
pub mod links;
pub mod mask;
pub mod modules;
pub mod rust;
pub mod source;
pub mod texts;
pub mod tree;
pub mod unused;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use self::source::Source;
use self::tree::Tree;

/// The workspace's median function may have so many lines; about 10 is what is aimed at.
const MEDIAN_LIMIT: usize = 15;

/// Something that is not as the house wants it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the root on.
    pub path: String,
    /// The line, from 1 on; 0 if all of the file is meant.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl Finding {
    /// A finding in a line of a file.
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// All that is not as the house wants it, by file and line; a tree that cannot be read is a finding too.
pub fn tidy(root: &Path) -> Vec<Finding> {
    match Tree::read(root) {
        Ok(tree) => findings(&tree),
        Err(error) => vec![Finding::new(&root.display().to_string(), 0, error.to_string())],
    }
}

/// All that is not as the house wants it in a tree, by file and line.
pub fn findings(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let sources = sources(tree);
    for source in &sources {
        rust::check(source, &mut found);
        modules::check(source, &mut found);
    }
    unused::check(tree, &sources, &mut found);
    arrows::check(tree, &mut found);
    for (path, text) in tree.texts() {
        texts::check(path, text, &mut found);
        links::check(tree, path, text, &mut found);
    }
    let median = Sizes::of(&sources).median;
    if median > MEDIAN_LIMIT {
        let what = format!("the median function has {median} lines, more than {MEDIAN_LIMIT}");
        found.push(Finding::new("Cargo.toml", 0, what));
    }
    found.sort();
    found
}

/// All Rust files. Those of a module that is declared for tests only are tests as a whole.
pub fn sources(tree: &Tree) -> Vec<Source<'_>> {
    let rust = tree.texts().filter(|(path, _)| path.ends_with(".rs"));
    let mut sources: Vec<Source<'_>> = rust.map(|(path, text)| Source::new(path, text)).collect();
    let test_modules: BTreeSet<String> = sources.iter().flat_map(Source::test_modules).collect();
    for source in &mut sources {
        source.is_test_file |= test_modules.contains(source.path);
    }
    sources
}

/// How large functions are.
#[derive(Debug, PartialEq, Eq)]
pub struct Sizes {
    /// How many files of Rust there are.
    pub files: usize,
    /// How many functions with a body there are, tests included.
    pub functions: usize,
    /// The lines of the median function.
    pub median: usize,
    /// The lines of the longest.
    pub longest: usize,
}

impl Sizes {
    /// The sizes of all functions.
    pub fn of(sources: &[Source<'_>]) -> Sizes {
        let functions = sources.iter().flat_map(|source| &source.functions);
        let mut lines: Vec<usize> = functions.map(|function| function.lines).collect();
        lines.sort_unstable();
        Sizes {
            files: sources.len(),
            functions: lines.len(),
            median: lines.get(lines.len() / 2).copied().unwrap_or(0),
            longest: lines.last().copied().unwrap_or(0),
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sizes { files, functions, median, longest } = self;
        write!(f, "{files} files of Rust, {functions} functions: median {median} lines, longest {longest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_where() {
        assert_eq!(Finding::new("a.rs", 3, "odd").to_string(), "a.rs:3: odd");
        assert_eq!(Finding::new("a.rs", 0, "odd").to_string(), "a.rs: odd");
    }

    #[test]
    fn long_functions_show_in_the_median() {
        let long = format!(
            "//! A.\n\nfn a() {{\n{}}}\nfn b() {{\n{}}}\n",
            "    x();\n".repeat(20),
            "    x();\n".repeat(30)
        );
        let tree = Tree::of(&[("src/a.rs", &long)]);
        assert_eq!(Sizes::of(&sources(&tree)), Sizes { files: 1, functions: 2, median: 32, longest: 32 });
        let found = findings(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "Cargo.toml: the median function has 32 lines, more than 15");
    }

    #[test]
    fn modules_for_tests_are_tests() {
        let lib = "//! L.\n\n#[cfg(test)]\npub(crate) mod samples;\nmod parts;\n";
        let file = "//! F.\n\nfn a() {\n    b().unwrap();\n}\n";
        let tree = Tree::of(&[("src/lib.rs", lib), ("src/samples.rs", file), ("src/parts.rs", file)]);
        let found: Vec<String> = findings(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["src/parts.rs"]);
    }

    #[test]
    fn a_missing_root_is_a_finding() {
        assert_eq!(tidy(Path::new("no/such/folder")).len(), 1);
    }
}
