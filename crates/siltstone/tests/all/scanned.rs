//! All rows of a table, scanned page by page.

use siltstone::database::{Row, Scan, Table};

pub(crate) fn json(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| row.to_json().unwrap()).collect()
}

/// The rows of all pages, of which none has more than the limit.
pub(crate) fn scanned(table: &Table, limit: usize) -> Vec<String> {
    let (mut rows, mut next) = (Vec::new(), None);
    loop {
        let page = table.scan(Scan::all().limit(limit).resume(next)).wait().unwrap();
        assert!(page.rows.len() <= limit);
        rows.extend(json(&page.rows));
        next = page.next;
        if next.is_none() {
            return rows;
        }
    }
}
