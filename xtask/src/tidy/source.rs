//! A Rust file as the rules see it: its functions, and which of its lines are tests.

use std::ops::Range;

use super::mask::{Masked, group_end, is_word, words};

/// A Rust file, masked and looked through.
#[derive(Debug)]
pub struct Source<'a> {
    /// Where it is, from the root on.
    pub path: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Its text without comments and literals, and its comments alone.
    pub masked: Masked,
    /// All functions that have a body.
    pub functions: Vec<Function>,
    /// Whether all of it is tests.
    pub is_test_file: bool,
    /// Where tests are otherwise, in bytes.
    tests: Vec<Range<usize>>,
    line_starts: Vec<usize>,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its name, from 1 on.
    pub line: usize,
    /// How many lines it has, from its name to its closing brace.
    pub lines: usize,
}

impl<'a> Source<'a> {
    /// Looks through a Rust file.
    pub fn new(path: &'a str, text: &'a str) -> Source<'a> {
        let masked = Masked::new(text);
        let line_starts = [0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let tests = test_items(&masked.code);
        let is_test_file = is_test_path(path);
        let mut source =
            Source { path, text, masked, functions: Vec::new(), is_test_file, tests, line_starts };
        source.functions = source.find_functions();
        source
    }

    /// The line of an offset, from 1 on.
    pub fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    /// Whether there is a test at this offset.
    pub fn is_test(&self, offset: usize) -> bool {
        self.is_test_file || self.tests.iter().any(|range| range.contains(&offset))
    }

    /// The files that may hold the modules which are declared for tests only, `#[cfg(test)] mod name;`.
    pub fn test_modules(&self) -> Vec<String> {
        let (folder, name) = self.path.rsplit_once('/').unwrap_or(("", self.path));
        let folder = match name.trim_end_matches(".rs") {
            "lib" | "main" | "mod" => folder.to_owned(),
            stem => format!("{folder}/{stem}"),
        };
        let items = self.tests.iter().map(|range| &self.masked.code[range.clone()]);
        let names = items.filter_map(|item| {
            let at = words(item, "mod").next()?;
            item[at + "mod".len()..].trim().strip_suffix(';')
        });
        names.flat_map(|name| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")]).collect()
    }

    fn find_functions(&self) -> Vec<Function> {
        let code = &self.masked.code;
        let mut functions = Vec::new();
        for at in words(code, "fn") {
            let name = code[at + 2..].trim_start();
            let name = &name[..name.bytes().take_while(|byte| is_word(*byte)).count()];
            let item = item_body(code, at);
            if !name.is_empty() && code[item.clone()].starts_with('{') {
                let (line, last) = (self.line(at), self.line(item.end - 1));
                functions.push(Function { name: name.to_owned(), line, lines: last - line + 1 });
            }
        }
        functions
    }
}

/// Whether all of a file is tests: by its folder or its name.
fn is_test_path(path: &str) -> bool {
    let mut folders = path.split('/').rev();
    let name = folders.next().unwrap_or_default();
    name.ends_with("tests.rs") || folders.any(|folder| ["tests", "benches", "fuzz"].contains(&folder))
}

/// The items under `#[cfg(test)]`.
fn test_items(code: &str) -> Vec<Range<usize>> {
    let attribute = "#[cfg(test)]";
    let items = code.match_indices(attribute);
    items.map(|(at, _)| at..item_body(code, at + attribute.len()).end).collect()
}

/// The body in braces of the item that begins at `start`, or the semicolon that it ends with.
fn item_body(code: &str, start: usize) -> Range<usize> {
    let mut at = start;
    while let Some(byte) = code.as_bytes().get(at) {
        match byte {
            b'{' => return at..group_end(code, at),
            b';' => return at..at + 1,
            b'(' | b'[' => at = group_end(code, at),
            _ => at += 1,
        }
    }
    start..code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_their_lines() {
        let text = "trait T {\n    fn no(a: [u8; 2]);\n}\nfn one() {}\nfn three(a: [u8; 2]) -> fn() {\n    \"}\"\n}\n";
        let source = Source::new("a.rs", text);
        let expected = [("one", 4, 1), ("three", 5, 3)];
        let expected = expected.map(|(name, line, lines)| Function { name: name.to_owned(), line, lines });
        assert_eq!(source.functions, expected);
    }

    #[test]
    fn tests_are_told_from_the_product() {
        let text = "fn a() {}\n#[cfg(test)]\n#[path = \"b.rs\"]\nmod b;\n#[cfg(test)]\nmod tests {\n    c();\n}\nd();\n";
        let source = Source::new("src/a.rs", text);
        let is_test = |what: &str| source.is_test(text.find(what).unwrap());
        assert_eq!(["a()", "mod b", "c()", "d()"].map(is_test), [false, true, true, false]);
        assert_eq!(source.test_modules(), ["src/a/b.rs", "src/a/b/mod.rs"]);
        for (path, expected) in [
            ("a/tests/b.rs", true),
            ("src/shard_tests.rs", true),
            ("src/tests/c.rs", true),
            ("src/contests/c.rs", false),
        ] {
            assert_eq!(Source::new(path, "x").is_test(0), expected, "{path}");
        }
    }
}
