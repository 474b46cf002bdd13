//! Types, against the answers that Cassandra 5.0.5 itself gave: `types/golden.tsv`.
//!
//! The answers are worked out anew by `types/Oracle.java`, which says how.

#![expect(clippy::unwrap_used, reason = "a test may fail where it likes")]

use siltstone_model::CqlType;
use siltstone_model::types::{TypeError, instant_micros, instant_seconds};

const GOLDEN: &str = include_str!("types/golden.tsv");

#[test]
fn everything_is_as_cassandra_says() {
    let mut wrong = Vec::new();
    for (number, line) in GOLDEN.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let (asked, expected) = line.rsplit_once('\t').unwrap();
        let asked: Vec<&str> = asked.split('\t').collect();
        let found = answer(&asked).unwrap_or_else(|_| "ERR".to_owned());
        if found != expected {
            wrong.push(format!("line {}: {line}\n   found {found}", number + 1));
        }
    }
    assert!(wrong.is_empty(), "{} of the answers differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn answer(asked: &[&str]) -> Result<String, TypeError> {
    let mut out = String::new();
    match asked[0] {
        "double" => return CqlType::Double.to_text(&bytes(asked[1])),
        "float" => return CqlType::Float.to_text(&bytes(asked[1])),
        "micros" => instant_micros(asked[1].parse().unwrap(), &mut out),
        "seconds" => instant_seconds(asked[1].parse().unwrap(), &mut out),
        _ => return answer_of_type(asked, &CqlType::parse(asked[1])?),
    }
    Ok(out)
}

fn answer_of_type(asked: &[&str], kind: &CqlType) -> Result<String, TypeError> {
    match asked[0] {
        "name" => {
            let len = kind.fixed_len().map_or("-1".to_owned(), |len| len.to_string());
            Ok(format!("{kind} {} {} {len} {}", kind.cql_name(), kind.is_multi_cell(), kind.allows_empty()))
        }
        "json" => kind.to_json(&bytes(asked[2])),
        "text" => kind.to_text(&bytes(asked[2])),
        "read" => CqlType::Blob.to_text(&kind.from_text(asked[2])?),
        "order" => Ok((kind.compare(&bytes(asked[2]), &bytes(asked[3])) as i8).to_string()),
        "valid" => kind.validate(&bytes(asked[2])).map(|()| "yes".to_owned()),
        other => panic!("what is {other}?"),
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    CqlType::Blob.from_text(hex).unwrap()
}

#[test]
fn names_are_read_back() {
    for line in GOLDEN.lines().filter(|line| line.starts_with("name\t")) {
        if let Ok(kind) = CqlType::parse(line.split('\t').nth(1).unwrap()) {
            assert_eq!(CqlType::parse(&kind.to_string()), Ok(kind), "{line}");
        }
    }
}
