//! What a verification found, in words and as JSON.
//!
//! The checks themselves are [`sstable::verify`].

use std::fmt::Write as _;
use std::path::Path;

use sstable::component::Descriptor;
use sstable::verify::{Findings, Report};

use crate::facts::bytes_text;
use crate::json::{JsonWriter, Layout};

/// A report as text: what was read, a line for each problem and, if they are wanted, for each note.
pub fn report_text(report: &Report, with_notes: bool) -> String {
    let mut text = String::new();
    let verdict = if report.is_sound() { "sound" } else { "DAMAGED" };
    let notes = report.notes.listed().len() as u64 + report.notes.left_out();
    let hint = match notes {
        _ if with_notes => String::new(),
        0 => String::new(),
        1 => "; 1 note, see --notes".to_owned(),
        notes => format!("; {notes} notes, see --notes"),
    };
    let path = report.descriptor.dir.join(report.descriptor.to_string());
    writeln!(
        text,
        "{}: {verdict}{hint}: {} partitions, {} rows, {} static rows, {} range tombstones, {} cells, {}",
        path.display(),
        report.partitions,
        report.rows,
        report.static_rows,
        report.range_tombstones,
        report.cells,
        bytes_text(report.data_bytes),
    )
    .expect("a String can always be appended to");
    if report.unread_partitions > 0 {
        append(
            &mut text,
            format_args!("  problem: {} partitions could not be read", report.unread_partitions),
        );
    }
    append_findings(&mut text, "problem", &report.problems);
    if with_notes {
        append_findings(&mut text, "note", &report.notes);
    }
    text
}

fn append_findings(text: &mut String, kind: &str, findings: &Findings) {
    for finding in findings.listed() {
        append(text, format_args!("  {kind}: {finding}"));
    }
    if findings.left_out() > 0 {
        append(text, format_args!("  {kind}: and {} more", findings.left_out()));
    }
}

fn append(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a String can always be appended to");
}

/// A report as a JSON object on one line.
pub fn report_json(report: &Report) -> String {
    let mut json = JsonWriter::new(Layout::Line);
    json.begin_object();
    json.key("sstable");
    json.string(&report.descriptor.to_string());
    json.key("folder");
    json.string(&report.descriptor.dir.display().to_string());
    json.key("sound");
    json.boolean(report.is_sound());
    for (name, count) in [
        ("partitions", report.partitions),
        ("unread_partitions", report.unread_partitions),
        ("rows", report.rows),
        ("static_rows", report.static_rows),
        ("range_tombstones", report.range_tombstones),
        ("cells", report.cells),
        ("data_bytes", report.data_bytes),
        ("file_bytes", report.file_bytes),
        ("problems_left_out", report.problems.left_out()),
        ("notes_left_out", report.notes.left_out()),
    ] {
        json.key(name);
        json.integer(count);
    }
    write_findings("problems", &report.problems, &mut json);
    write_findings("notes", &report.notes, &mut json);
    json.end_object();
    json.end_line();
    json.into_text()
}

/// What could not be verified, and why, as a JSON object on one line: an SSTable, or a path that names none.
pub fn refusal_json(path: &Path, descriptor: Option<&Descriptor>, why: &str) -> String {
    let mut json = JsonWriter::new(Layout::Line);
    json.begin_object();
    match descriptor {
        Some(descriptor) => {
            json.key("sstable");
            json.string(&descriptor.to_string());
            json.key("folder");
            json.string(&descriptor.dir.display().to_string());
        }
        None => {
            json.key("path");
            json.string(&path.display().to_string());
        }
    }
    json.key("sound");
    json.boolean(false);
    json.key("error");
    json.string(why);
    json.end_object();
    json.end_line();
    json.into_text()
}

fn write_findings(name: &str, findings: &Findings, json: &mut JsonWriter) {
    json.key(name);
    json.begin_array();
    for finding in findings.listed() {
        json.begin_object();
        json.key("path");
        json.string(&finding.path.display().to_string());
        json.key("offset");
        match finding.offset {
            Some(offset) => json.integer(offset),
            None => json.null(),
        }
        json.key("what");
        json.string(&finding.what);
        json.end_object();
    }
    json.end_array();
}
