//! Words, addresses and paths that do not belong into the project's texts, and the white space around them.
//!
//! This file holds the list of these words and is therefore not looked at itself for words.

use super::Finding;
use super::mask::{is_word, words};

/// The file of the list.
const LIST: &str = "xtask/src/tidy/texts.rs";

/// Marks of what is unfinished: finish it, or say in a whole sentence what is absent.
const MARKS: [&str; 4] = ["TODO", "FIXME", "XXX", "HACK"];

/// Phrases, in lower case, of a conversation that the reader was not part of.
const PHRASES: [&str; 7] = [
    "issue #",
    "pull request",
    "as discussed",
    "as requested",
    "as suggested",
    "you asked",
    "the previous version of this",
];

/// The project refers to nothing on a network.
const SCHEMES: [&str; 6] = ["http://", "https://", "ftp://", "git://", "ssh://", "www."];

/// Files that are quoted as a whole.
const QUOTED: [&str; 1] = ["LICENSE"];

/// Folders of one machine.
const MACHINE_FOLDERS: [&str; 3] = ["/work/", "/root/", "/home/"];

/// Checks a text of any kind.
pub fn check(path: &str, text: &str, found: &mut Vec<Finding>) {
    if QUOTED.contains(&path) {
        return;
    }
    check_white_space(path, text, found);
    if path == LIST {
        return;
    }
    for (index, line) in text.lines().enumerate() {
        for what in odd_words(line) {
            found.push(Finding::new(path, index + 1, format!("`{what}` does not belong here")));
        }
    }
}

fn check_white_space(path: &str, text: &str, found: &mut Vec<Finding>) {
    for (index, line) in text.split('\n').enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            found.push(Finding::new(path, index + 1, "white space at the end of the line"));
        }
    }
    if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
        found.push(Finding::new(path, text.lines().count(), "a file ends with one line break"));
    }
}

fn odd_words(line: &str) -> Vec<&'static str> {
    let lower = line.to_lowercase();
    let marks = MARKS.into_iter().filter(|mark| words(line, mark).next().is_some());
    let phrases = PHRASES.into_iter().filter(|phrase| lower.contains(phrase));
    let schemes = SCHEMES.into_iter().filter(|scheme| lower.contains(scheme));
    let folders = MACHINE_FOLDERS.into_iter().filter(|folder| names_folder(line, folder));
    marks.chain(phrases).chain(schemes).chain(folders).collect()
}

/// Whether an absolute path begins with this folder; it may as well be the middle of a relative one.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].bytes().next_back();
        !before.is_some_and(|byte| is_word(byte) || b".-*}".contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(path: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(path, text, &mut found);
        found.iter().map(|finding| format!("{}: {}", finding.line, finding.what)).collect()
    }

    #[test]
    fn odd_words_are_found() {
        for (bad, word) in [
            ("// TODO: later", "TODO"),
            ("see Issue #7", "issue #"),
            ("As discussed, it", "as discussed"),
            ("<https://example.org>", "https://"),
            ("in \"/home/me/a\"", "/home/"),
            ("/work/x", "/work/"),
        ] {
            assert_eq!(
                found_in("a.md", &format!("\n{bad}\n")),
                [format!("2: `{word}` does not belong here")],
                "{bad}"
            );
        }
        for good in ["todo", "mktemp a.XXXXXX", "the network/work/flow", "./home/a", "an issue", "/backup/x"]
        {
            assert_eq!(found_in("a.md", &format!("{good}\n")), [""; 0], "{good}");
        }
        assert_eq!(found_in("LICENSE", "https://example.org\n"), [""; 0]);
    }

    #[test]
    fn white_space_is_kept_short() {
        assert_eq!(found_in("a.md", "a \nb\n"), ["1: white space at the end of the line"]);
        assert_eq!(found_in("a.md", "a\r\n"), ["1: white space at the end of the line"]);
        assert_eq!(found_in("a.md", "a\nb"), ["2: a file ends with one line break"]);
        assert_eq!(found_in("a.md", "a\n\n"), ["2: a file ends with one line break"]);
        assert_eq!(found_in("a.md", ""), [""; 0]);
    }
}
