//! Lines that people write, and what is wrong with some.

use model::time::NO_DELETION_TIME;
use model::types::UserType;
use model::{Cell, CellValue, Clustering, Column, CqlType, Liveness};

use super::*;

const SECOND: i64 = 1_700_000_000;
const MICROS: i64 = SECOND * 1_000_000;

fn schema() -> Schema {
    let column = |(name, data_type): (&str, CqlType)| Column { name: name.as_bytes().into(), data_type };
    let addr = UserType {
        keyspace: "ks".to_owned(),
        name: "addr".to_owned(),
        fields: vec![("street".to_owned(), CqlType::Text), ("zip".to_owned(), CqlType::Int)],
        frozen: false,
    };
    let regulars = vec![
        ("v", CqlType::Int),
        ("Txt", CqlType::Text),
        ("f", CqlType::Float),
        ("m", CqlType::map(CqlType::Text, CqlType::Int, false)),
        ("s", CqlType::set(CqlType::Int, false)),
        ("a", CqlType::Udt(Box::new(addr))),
    ];
    Schema::new(
        CqlType::Int,
        vec![CqlType::Int, CqlType::Text],
        vec![column(("st", CqlType::Int))],
        regulars.into_iter().map(column).collect(),
    )
}

/// The place of a regular column.
fn place(name: &str) -> u16 {
    schema().regulars.iter().position(|column| column.name_text() == name).unwrap() as u16
}

fn parse_with(line: &str, default_timestamp: Option<i64>) -> Result<Option<Piece>> {
    JsonRows::new(Path::new("rows"), Rc::new(schema()), default_timestamp).parse_line(line)
}

fn part(line: &str) -> Part {
    parse_with(line, None).unwrap().unwrap().part
}

fn row_of(part: Part) -> Row {
    match part {
        Part::Row(row) | Part::Static(row) => row,
        other => panic!("{other:?}"),
    }
}

/// A row of clustering 1, "x" with these members more.
fn row(members: &str) -> Row {
    row_of(part(&format!(r#"{{"type":"row","key":["7"],"clustering":[1,"x"],{members}}}"#)))
}

/// The cells of a row that was written at the second.
fn cells(cells: &str) -> Vec<Cell> {
    row(&format!(r#""liveness_info":{{"tstamp":{MICROS}}},"cells":[{cells}]"#)).cells
}

fn clustering(number: i32, text: &str) -> Clustering {
    [number.to_be_bytes().to_vec(), text.as_bytes().to_vec()].into_iter().collect()
}

fn cell(column: &str, path: Option<&[u8]>, value: &[u8]) -> Cell {
    Cell {
        column: place(column),
        ttl: 0,
        timestamp: MICROS,
        local_deletion_time: NO_DELETION_TIME,
        path: path.map(Bytes::from),
        value: CellValue::Value(value.into()),
    }
}

fn deletion(at: i64, local: i64) -> DeletionTime {
    DeletionTime { marked_for_delete_at: at, local_deletion_time: local }
}

#[test]
fn a_short_line_is_enough() {
    let line = r#"{"key": [7], "type":"row", "clustering":[1, "x"], "cells":[{"name":"v","value":7}],
                   "liveness_info":{"tstamp":"2023-11-14T22:13:20Z"}}"#;
    let mut rows = JsonRows::new(Path::new("rows"), Rc::new(schema()), None);
    assert_eq!(rows.parse_line(" \n").unwrap(), None);
    let piece = rows.parse_line(line).unwrap().unwrap();
    assert_eq!((piece.line, &*piece.key.bytes), (2, &[0, 0, 0, 7][..]));
    let expected = Row {
        liveness: Liveness { timestamp: MICROS, ..Liveness::NONE },
        cells: vec![cell("v", None, &[0, 0, 0, 7])],
        ..Row::new(clustering(1, "x"))
    };
    assert_eq!(piece.part, Part::Row(expected));
}

#[test]
fn what_has_no_timestamp_gets_the_default() {
    let line = r#"{"type":"row","key":["7"],"clustering":[1,"x"],"cells":[{"name":"v","value":7}]}"#;
    let read = row_of(parse_with(line, Some(5)).unwrap().unwrap().part);
    assert_eq!((read.liveness, read.cells[0].timestamp), (Liveness::NONE, 5));
    let error = parse_with(line, None).unwrap_err().to_string();
    assert_eq!(error, "rows:1: cells: \"v\": tstamp is missing, and no default is given");
    let marker = r#"{"type":"row","key":["7"],"clustering":[1,"x"],"liveness_info":{}}"#;
    assert_eq!(row_of(parse_with(marker, Some(5)).unwrap().unwrap().part).liveness.timestamp, 5);
}

#[test]
fn a_time_to_live_begins_with_the_timestamp_and_is_inherited() {
    let row = row(&format!(
        r#""liveness_info":{{"tstamp":{MICROS},"ttl":60}},"cells":[{{"name":"v","value":1}},{{"name":"\"Txt\"","value":"a",
        "ttl":0}},{{"name":"f","value":1,"tstamp":{},"ttl":10,"expires_at":{},"expired":true}}]"#,
        MICROS + 1,
        SECOND + 12
    ));
    let ttl = |name: &str| {
        let cell = row.cells.iter().find(|cell| cell.column == place(name)).unwrap();
        (cell.ttl, cell.local_deletion_time)
    };
    assert_eq!((row.liveness.ttl, row.liveness.local_expiration_time), (60, SECOND + 60));
    assert_eq!(
        [ttl("v"), ttl("Txt"), ttl("f")],
        [(60, SECOND + 60), (0, NO_DELETION_TIME), (10, SECOND + 12)]
    );
}

#[test]
fn cells_are_put_in_order() {
    let read = cells(
        r#"{"name":"s","path":["9"]},{"name":"m","path":["b"],"value":2},{"name":"v","value":3},
           {"name":"m","path":["a"],"value":1},{"name":"a","path":["zip"],"value":4},{"name":"s","path":["-1"],"value":""}"#,
    );
    let expected = [
        cell("v", None, &3i32.to_be_bytes()),
        cell("a", Some(&[0, 1]), &4i32.to_be_bytes()),
        cell("m", Some(b"a"), &1i32.to_be_bytes()),
        cell("m", Some(b"b"), &2i32.to_be_bytes()),
        cell("s", Some(&(-1i32).to_be_bytes()), b""),
        cell("s", Some(&9i32.to_be_bytes()), b""),
    ];
    assert_eq!(read, expected);
}

#[test]
fn bytes_win_over_what_is_printed() {
    let nan = 0x7fc0_0001u32.to_be_bytes();
    assert_eq!(cells(r#"{"name":"f","value":null,"bytes":"0x7fc00001"}"#), [cell("f", None, &nan)]);
    assert_eq!(cells(r#"{"name":"f","value":"NaN"}"#), [cell("f", None, &f32::NAN.to_be_bytes())]);
    let line = r#"{"type":"row","key":["7"],"key_bytes":"0x00000008","clustering":[1,"*"],
                   "clustering_bytes":["0x00000002","0x2a"],"deletion_info":{"marked_deleted":5}}"#;
    let piece = parse_with(line, None).unwrap().unwrap();
    assert_eq!(&*piece.key.bytes, [0, 0, 0, 8]);
    assert_eq!(row_of(piece.part).clustering, clustering(2, "*"));
}

#[test]
fn deletions_of_all_kinds() {
    let read = row(&format!(
        r#""deletion_info":{{"marked_deleted":{MICROS}}},"shadowable_deletion_info":{{"marked_deleted":7,"local_delete_time":8}},
        "cells":[{{"name":"m","deletion_info":{{"marked_deleted":"1970-01-01T00:00:01.5Z"}}}},
                 {{"name":"m","path":["k"],"deletion_info":{{"local_delete_time":9}},"tstamp":6}},
                 {{"name":"v","deletion_info":{{}},"tstamp":3000000}}]"#
    ));
    assert_eq!((read.deletion, read.shadowable), (deletion(MICROS, SECOND), deletion(7, 8)));
    assert_eq!(read.complex_deletions, [(place("m"), deletion(1_500_000, 1))]);
    let times: Vec<_> = read.cells.iter().map(|cell| (cell.timestamp, cell.local_deletion_time)).collect();
    assert_eq!(times, [(3_000_000, 3), (6, 9)]);
    let line =
        r#"{"type":"partition","key":["7"],"deletion_info":{"marked_deleted":-5,"local_delete_time":1}}"#;
    assert_eq!(part(line), Part::Partition(deletion(-5, 1)));
    assert_eq!(part(r#"{"type":"partition","key":["7"],"position":3}"#), Part::Partition(DeletionTime::LIVE));
}

#[test]
fn ends_of_ranges_are_positions() {
    let bound = |kind: &str, end: &str, type_: &str| {
        part(&format!(
            r#"{{"type":"range_tombstone_{kind}","key":["7"],"{end}":{{"type":"{type_}","clustering":[1,"*"],
            "deletion_info":{{"marked_deleted":5,"local_delete_time":6}}}}}}"#
        ))
    };
    let prefix: Clustering = [1i32.to_be_bytes().to_vec()].into_iter().collect();
    let (before, after) = (Position::before(prefix.clone()), Position::after(prefix));
    let (live, of) = (DeletionTime::LIVE, deletion(5, 6));
    let change =
        |position: &Position, closes, opens| Part::Change { position: position.clone(), closes, opens };
    assert_eq!(bound("bound", "start", "inclusive"), change(&before, live, of));
    assert_eq!(bound("bound", "start", "exclusive"), change(&after, live, of));
    assert_eq!(bound("bound", "end", "inclusive"), change(&after, of, live));
    assert_eq!(bound("bound", "end", "exclusive"), change(&before, of, live));
    let both = r#"{"type":"range_tombstone_boundary","key":["7"],
        "start":{"type":"exclusive","clustering":[1,"*"],"deletion_info":{"marked_deleted":7,"local_delete_time":6}},
        "end":{"type":"inclusive","clustering":[1,"*"],"deletion_info":{"marked_deleted":5,"local_delete_time":6}}}"#;
    assert_eq!(part(both), change(&after, of, deletion(7, 6)));
    let range = r#"{"type":"range_tombstone","key":["7"],"start":{"type":"exclusive","clustering":[1]},
        "deletion_info":{"marked_deleted":5,"local_delete_time":6}}"#;
    assert_eq!(part(range), Part::Range { start: after, end: Position::end(), deletion: of });
}

#[test]
fn what_is_wrong_is_named_with_what_was_expected() {
    let of_row = |members: &str| format!(r#"{{"type":"row","key":["7"],"clustering":[1,"x"],{members}}}"#);
    let of_cell = |cell: &str| of_row(&format!(r#""cells":[{{{cell},"tstamp":1}}]"#));
    let wrong = [
        ("{\"a\":1".to_owned(), "rows:1:7: ',' or '}' was expected"),
        ("[]".to_owned(), "rows:1:1: an object was expected"),
        ("{\"key\":[\"7\"]}".to_owned(), "rows:1: it has no type, which is one of row, static_block, partition, range_"),
        (r#"{"type":"rows","key":["7"]}"#.to_owned(), "rows:1: the type rows is none of row, static_block,"),
        (r#"{"type":"row"}"#.to_owned(), "rows:1: key: it is missing"),
        (r#"{"type":"row","key":["x"]}"#.to_owned(), "rows:1: key: key [\"x\"]: x is not an int: an integer of 32 bits was expected; expected a partition key of type int"),
        (of_row(r#""colour":1,"deletion_info":{"marked_deleted":5}"#), "rows:1: colour is not a member of row"),
        (of_row(r#""cells":[]"#), "rows:1: the row has neither liveness_info nor deletion_info nor cells"),
        (of_row(r#""type":"row""#), "rows:1: the member type is there twice"),
        (of_row(r#""liveness_info":{"tstamp":"yesterday"}"#), "rows:1: liveness_info: tstamp: yesterday is no time: one as 2023-11-14T22:13:20.001970Z was expected, or microseconds"),
        (of_row(r#""liveness_info":{"tstamp":1,"ttl":-1}"#), "rows:1: liveness_info: ttl: -1 is not between 0 and 2147483647 seconds"),
        (of_row(r#""liveness_info":{"tstamp":1,"ttl":100,"expires_at":50}"#), "rows:1: liveness_info: ttl: 100 seconds are not over at 50"),
        (of_row(r#""liveness_info":{"tstamp":1,"ttl":0,"expires_at":50}"#), "rows:1: liveness_info: ttl: what does not expire has no expires_at"),
        (of_row(r#""liveness_info":{"tstamp":1,"expires_at":1}"#), "rows:1: liveness_info: there is expires_at, but no ttl"),
        (of_row(r#""deletion_info":{"marked_deleted":1,"local_delete_time":-1}"#), "rows:1: deletion_info: local_delete_time: it is not between the years 1970 and 2106"),
        (of_cell(r#""name":"w","value":1"#), "rows:1: cells: \"w\": there is no column w here"),
        (of_cell(r#""name":"st","value":1"#), "rows:1: cells: \"st\": there is no column st here"),
        (of_cell(r#""name":"v","value":"x""#), "rows:1: cells: \"v\": value: x is not an int: an integer of 32 bits was expected"),
        (of_cell(r#""name":"v","value":null"#), "rows:1: cells: \"v\": value: null is no value; a deleted cell has deletion_info"),
        (of_cell(r#""name":"v","bytes":"0x00""#), "rows:1: cells: \"v\": bytes: 1 bytes where a int has 4"),
        (of_cell(r#""name":"v""#), "rows:1: cells: \"v\": value is missing; a deleted cell has deletion_info"),
        (of_cell(r#""name":"v","path":["a"],"value":1"#), "rows:1: cells: \"v\": path: a int has but one cell"),
        (of_cell(r#""name":"m","value":1"#), "rows:1: cells: \"m\": path is missing: each cell of a map<text, int> has one"),
        (of_cell(r#""name":"a","path":["city"],"value":1"#), "rows:1: cells: \"a\": path: there is no field city"),
        (of_cell(r#""name":"a","path_bytes":"0xffff","deletion_info":{"local_delete_time":5}"#), "rows:1: cells: \"a\": path: there is no such field"),
        (of_cell(r#""name":"a","path_bytes":"0x00","value":1"#), "rows:1: cells: \"a\": path: there is no such field"),
        (of_cell(r#""name":"v","value":1,"size":2"#), "rows:1: cells: \"v\": size is not a member of a cell"),
        (of_row(r#""cells":[{"name":"v","value":1,"tstamp":1},{"name":"v","value":1,"tstamp":1}]"#), "rows:1: cells: a cell is there twice"),
        (r#"{"type":"row","key":["7"],"clustering":[1]}"#.to_owned(), "rows:1: clustering: it has 1 values; expected a clustering of types (int, text)"),
        (r#"{"type":"row","key":["7"],"clustering":["a","b"]}"#.to_owned(), "rows:1: clustering: a is not an int: an integer of 32 bits was expected; expected"),
        (r#"{"type":"row","key":["7"],"clustering":[1,"x",2]}"#.to_owned(), "rows:1: clustering: it has more values than there are clustering columns; expected"),
        (r#"{"type":"range_tombstone_bound","key":["7"]}"#.to_owned(), "rows:1: either start or end was expected"),
        (r#"{"type":"range_tombstone_bound","key":["7"],"start":{"type":"inclusive"}}"#.to_owned(), "rows:1: start: deletion_info is missing"),
        (r#"{"type":"range_tombstone","key":["7"],"start":{"type":"inclusive","clustering":[2]},"end":{"type":"inclusive","clustering":[1]},"deletion_info":{"marked_deleted":5}}"#.to_owned(), "rows:1: the range ends before it begins"),
        (r#"{"type":"row","key_bytes":"0x"}"#.to_owned(), "rows:1: key: it has no bytes, or more than 65535"),
        (r#"{"type":"partition","key":["7"],"cells":[]}"#.to_owned(), "rows:1: cells is not a member of partition"),
    ];
    for (line, message) in wrong {
        let error = parse_with(&line, None).unwrap_err().to_string();
        assert!(error.starts_with(message), "{line}\n  {error}\n  {message}");
    }
}

#[test]
fn a_line_cut_anywhere_is_refused() {
    let line = r#"{"type":"row","key":["7"],"clustering":[1,"ż"],"liveness_info":{"tstamp":1,"ttl":5},"cells":[{"name":"m","path":["\u00fc"],"value":1}]}"#;
    assert!(parse_with(line, None).is_ok());
    for (end, _) in line.char_indices().skip(1) {
        assert!(parse_with(&line[..end], None).is_err(), "{}", &line[..end]);
    }
}
