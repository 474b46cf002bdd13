//! Pages that chores print into: text that people write, and between two comments each what a chore has measured.
//!
//! ```text
//! <!-- slices -->
//! | offset | rows | …                 a chore writes this anew, and nothing else
//! <!-- end of slices -->
//! ```

use std::fs;

use crate::Result;
use crate::workspace::root;

/// A part of a page with its comments, so that it is found again.
pub fn marked(part: &str, text: &str) -> String {
    format!("{}{text}{}", begin(part), end(part))
}

/// What stands in a part of a page; nothing if it is not there.
pub fn part_of<'a>(page: &'a str, part: &str) -> &'a str {
    let behind = page.split_once(&begin(part)).map(|(_, behind)| behind);
    behind.and_then(|behind| behind.split_once(&end(part))).map_or("", |(text, _)| text)
}

/// The page with another text in one part.
///
/// # Errors
/// If it has no such part.
pub fn with_part(page: &str, part: &str, text: &str) -> Result<String> {
    let parts = page.split_once(&begin(part)).and_then(|(before, behind)| {
        behind.split_once(&end(part)).map(|(_, after)| format!("{before}{}{after}", marked(part, text)))
    });
    parts.ok_or_else(|| format!("the page has no place between <!-- {part} --> and its end").into())
}

/// Writes these parts of a page anew, where it is in the project.
///
/// # Errors
/// If it is not there, or has no such part.
pub fn write<'a>(page: &str, parts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<()> {
    let path = root().join(page);
    let text = fs::read_to_string(&path)?;
    let text = parts.into_iter().try_fold(text, |text, (part, new)| with_part(&text, part, new))?;
    Ok(fs::write(path, text)?)
}

/// A table of Markdown. Columns of figures are aligned at the right.
pub fn table(heads: &[&str], lines: &[Vec<String>]) -> String {
    let is_figure =
        |cell: &String| cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || "-–".contains(c));
    let alignments = (0..heads.len()).map(|at| match lines.iter().all(|line| is_figure(&line[at])) {
        true => "---:",
        false => "---",
    });
    let alignments: Vec<&str> = alignments.collect();
    let mut text = format!("| {} |\n|{}|\n", heads.join(" | "), alignments.join("|"));
    for line in lines {
        text += &format!("| {} |\n", line.join(" | "));
    }
    text
}

/// A number with commas between its thousands, with so many decimals at the most, and no more than it needs.
pub fn grouped(number: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", number.abs());
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let rest = rest.trim_end_matches('0');
    let is_nothing = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let mut grouped = if number < 0.0 && !is_nothing { "-".to_owned() } else { String::new() };
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if rest.is_empty() { grouped } else { format!("{grouped}.{rest}") }
}

fn begin(part: &str) -> String {
    format!("<!-- {part} -->\n")
}

fn end(part: &str) -> String {
    format!("<!-- end of {part} -->\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_written_anew_by_itself() {
        let page = format!("# T\n{}{}text\n", marked("a", "| x |\n\n"), marked("b", ""));
        assert_eq!((part_of(&page, "a"), part_of(&page, "b"), part_of(&page, "c")), ("| x |\n\n", "", ""));
        let other = with_part(&page, "b", "new\n").unwrap();
        assert_eq!(other, format!("# T\n{}{}text\n", marked("a", "| x |\n\n"), marked("b", "new\n")));
        assert!(with_part(&page, "c", "").unwrap_err().to_string().contains("<!-- c -->"));
    }

    #[test]
    fn pages_have_the_places_of_their_chores() {
        for (page, parts) in [
            ("bloomfile", ["cases"].as_slice()),
            ("dump", &["settings", "files"]),
            ("growth", &["curves"]),
            ("instructions", &["operations"]),
            ("write", &["settings", "rows"]),
        ] {
            let text = fs::read_to_string(root().join(format!("docs/performance/{page}.md"))).unwrap();
            assert!(parts.iter().all(|part| !part_of(&text, part).is_empty()), "{page}");
            assert_eq!(text.matches("<!-- end of ").count(), parts.len(), "{page}");
        }
    }

    #[test]
    fn tables_align_figures_at_the_right() {
        let lines = [["a", "1"], ["b", "–"]].map(|line| line.map(str::to_owned).to_vec());
        assert_eq!(table(&["of", "x"], &lines), "| of | x |\n|---|---:|\n| a | 1 |\n| b | – |\n");
    }

    #[test]
    fn numbers_are_grouped() {
        let texts = [(7.0, 0), (999.6, 0), (123_456.0, 1), (1_966_805.5, 1), (-17_808.0, 0), (-0.04, 1)];
        let texts = texts.map(|(number, decimals)| grouped(number, decimals));
        assert_eq!(texts, ["7", "1,000", "123,456", "1,966,805.5", "-17,808", "0"]);
    }
}
