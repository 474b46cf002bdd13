//! Types, against real SSTables as Cassandra's `sstabledump` printed them.
//!
//! The dumps hold no bytes. What is checked: every key, clustering value, cell path and cell value can be
//! read, and is then printed as it was; and rows stand in the order that the types give them.
//!
//! Those of the project are checked, and a larger collection beside it where it is there.

#![expect(clippy::unwrap_used, reason = "a test may fail where it likes")]

use std::cmp::Ordering;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;
use siltstone_model::CqlType;

const FIXTURES: [&str; 2] = [
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/cassandra"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/fixtures/cassandra"),
];

const ADDR: &str =
    "UserType(ks,61646472,737472656574:UTF8Type,7a6970:Int32Type,74616773:FrozenType(SetType(UTF8Type)))";

/// The types of a table: key, clustering columns, other columns by name.
struct Table {
    key: CqlType,
    clustering: Vec<CqlType>,
    columns: Vec<(&'static str, CqlType)>,
}

#[test]
fn dumps_are_read_and_printed_as_they_were() {
    let mut values = 0;
    for dump in dumps() {
        let name = dump.file_name().unwrap().to_str().unwrap().split("__").next().unwrap().to_owned();
        if let Some(table) = Table::named(&name) {
            values += table.check(&dump);
        }
    }
    assert!(values > 8000, "only {values} values were found");
}

fn dumps() -> Vec<PathBuf> {
    let list = |dir: &Path| -> Vec<PathBuf> {
        fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    };
    let versions = FIXTURES.iter().flat_map(|folder| list(Path::new(folder)));
    versions.flat_map(|version| list(&version.join("small/dump"))).collect()
}

impl Table {
    fn named(name: &str) -> Option<Table> {
        let parse = |name: &str| CqlType::parse(name).unwrap();
        if let Some(cql) = name.strip_prefix("t_") {
            let kind = native(cql)?;
            let descending = CqlType::Reversed(Box::new(kind.clone()));
            return Some(Table {
                key: kind.clone(),
                clustering: vec![kind.clone(), descending],
                columns: vec![("v", kind)],
            });
        }
        let person = format!(
            "UserType(ks,706572736f6e,6e616d65:UTF8Type,686f6d65:FrozenType({ADDR}),74:TupleType(Int32Type,UTF8Type))"
        );
        let columns: Vec<(&str, String)> = match name {
            "alltypes" => return Some(Table::of_all_types()),
            "coll" => vec![
                ("fl", "FrozenType(ListType(Int32Type))".into()),
                ("fm", "FrozenType(MapType(Int32Type,UTF8Type))".into()),
                ("fs", "FrozenType(SetType(Int32Type))".into()),
                ("l", "ListType(Int32Type)".into()),
                ("lt", "ListType(TimeUUIDType)".into()),
                ("m", "MapType(UTF8Type,Int32Type)".into()),
                ("nest", "MapType(Int32Type,ListType(SetType(UTF8Type)))".into()),
                ("s", "SetType(UTF8Type)".into()),
                ("sl", "SetType(LongType)".into()),
            ],
            "udts" => vec![
                ("a", ADDR.into()),
                ("fa", format!("FrozenType({ADDR})")),
                ("la", format!("ListType({ADDR})")),
                ("ma", format!("MapType(UTF8Type,{person})")),
                ("p", format!("FrozenType({person})")),
                ("t", "TupleType(Int32Type,UTF8Type,DoubleType)".into()),
                ("tt", format!("TupleType({ADDR},ListType(Int32Type))")),
            ],
            "vectors" => {
                vec![("tv", "VectorType(UTF8Type , 2)".into()), ("v", "VectorType(FloatType , 3)".into())]
            }
            "frozenkeys" => {
                return Some(Table {
                    key: parse("FrozenType(ListType(Int32Type))"),
                    clustering: vec![
                        parse("TupleType(Int32Type,UTF8Type)"),
                        CqlType::Reversed(Box::new(parse("FrozenType(SetType(UTF8Type))"))),
                        parse(&format!("FrozenType({ADDR})")),
                    ],
                    columns: vec![],
                });
            }
            _ => return None,
        };
        let columns = columns.into_iter().map(|(name, class)| (name, parse(&class))).collect();
        Some(Table { key: CqlType::Int, clustering: vec![CqlType::Int], columns })
    }

    fn of_all_types() -> Table {
        let natives = [
            "c_ascii",
            "c_bigint",
            "c_blob",
            "c_boolean",
            "c_date",
            "c_decimal",
            "c_double",
            "c_duration",
            "c_float",
            "c_inet",
            "c_int",
            "c_smallint",
            "c_text",
            "c_time",
            "c_timestamp",
            "c_timeuuid",
            "c_tinyint",
            "c_uuid",
            "c_varint",
        ];
        let columns = natives.map(|name| (name, native(&name[2..]).unwrap())).to_vec();
        Table { key: CqlType::Int, clustering: vec![CqlType::Int], columns }
    }

    /// Checks a dump; how many values it has.
    fn check(&self, dump: &Path) -> usize {
        let mut json = String::new();
        GzDecoder::new(fs::File::open(dump).unwrap()).read_to_string(&mut json).unwrap();
        let partitions: Value = serde_json::from_str(&json).unwrap();
        let mut values = 0;
        for partition in partitions.as_array().unwrap() {
            check_text(&self.key, &partition["partition"]["key"][0]);
            let mut last: Option<Vec<Vec<u8>>> = None;
            for row in partition["rows"].as_array().into_iter().flatten() {
                let clustering = self.check_clustering(row);
                if let (Some(last), Some(clustering)) = (&last, &clustering) {
                    assert_ne!(self.compare(last, clustering), Ordering::Greater, "{dump:?} {row}");
                }
                last = clustering.or(last);
                for cell in row["cells"].as_array().into_iter().flatten() {
                    values += self.check_cell(cell);
                }
            }
        }
        values
    }

    /// The values of a row's clustering; `None` where they have no JSON that tells them apart.
    fn check_clustering(&self, row: &Value) -> Option<Vec<Vec<u8>>> {
        let values = row.get("clustering")?.as_array()?;
        values.iter().zip(&self.clustering).map(|(value, kind)| check_json(kind, value)).collect()
    }

    fn compare(&self, a: &[Vec<u8>], b: &[Vec<u8>]) -> Ordering {
        let orders = self.clustering.iter().zip(a).zip(b).map(|((kind, a), b)| kind.compare(a, b));
        orders.fold(Ordering::Equal, Ordering::then)
    }

    fn check_cell(&self, cell: &Value) -> usize {
        let Some((_, column)) = self.columns.iter().find(|column| cell["name"] == column.0) else { return 0 };
        let path = match (cell.get("path"), column) {
            (None, _) => None,
            (Some(path), CqlType::Udt(udt)) => {
                let field = udt.fields.iter().position(|field| path[0] == field.0.as_str()).unwrap();
                Some((field as u16).to_be_bytes().to_vec())
            }
            (Some(path), _) => Some(check_text(column.cell_path_type().unwrap(), &path[0])),
        };
        let Some(value) = cell.get("value") else { return 0 };
        check_json(column.cell_value_type(path.as_deref()).unwrap(), value);
        1
    }
}

fn native(cql: &str) -> Option<CqlType> {
    let classes = "AsciiType BooleanType BytesType ByteType DecimalType DoubleType DurationType FloatType \
        InetAddressType Int32Type IntegerType LongType ShortType SimpleDateType TimestampType TimeType \
        TimeUUIDType UTF8Type UUIDType";
    classes.split_whitespace().map(|class| CqlType::parse(class).unwrap()).find(|kind| kind.cql_name() == cql)
}

fn check_text(kind: &CqlType, text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    let bytes = kind.from_text(text).unwrap();
    assert_eq!(kind.to_text(&bytes).unwrap(), text);
    kind.validate(&bytes).unwrap();
    bytes
}

/// The bytes of a value; `None` for what is not a number.
fn check_json(kind: &CqlType, json: &Value) -> Option<Vec<u8>> {
    if json.is_null() {
        return None;
    }
    let bytes = match kind.unreversed() {
        // An empty value of these is printed as an empty text, which is read as something else.
        CqlType::Boolean | CqlType::Date | CqlType::Time if json == "" => return None,
        _ => kind.from_json(json).unwrap(),
    };
    let printed: Value = serde_json::from_str(&kind.to_json(&bytes).unwrap()).unwrap();
    assert_eq!(printed, *json, "{kind}");
    Some(bytes)
}
