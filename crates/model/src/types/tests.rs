//! Tables of values: their bytes, JSON and text; and lists of values in their order.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    crate::hex::parse_hex(&hex.replace(' ', "")).unwrap()
}

fn parse(name: &str) -> CqlType {
    CqlType::parse(name).unwrap()
}

/// A value that is printed and read back in both forms.
#[track_caller]
fn check(kind: &CqlType, hex: &str, json: &str, text: &str) {
    let value = bytes(hex);
    kind.validate(&value).unwrap();
    assert_eq!(kind.to_json(&value).unwrap(), json);
    assert_eq!(kind.to_text(&value).unwrap(), text);
    assert_eq!(kind.from_json(&serde_json::from_str(json).unwrap()).unwrap(), value, "from {json}");
    assert_eq!(kind.from_text(text).unwrap(), value, "from {text}");
}

#[test]
fn natives() {
    check(&CqlType::Ascii, "6122", r#""a\"""#, "a\"");
    check(&CqlType::BigInt, "ffffffffffff0000", "-65536", "-65536");
    check(&CqlType::Blob, "00ff", r#""0x00ff""#, "00ff");
    check(&CqlType::Boolean, "01", "true", "true");
    check(&CqlType::Date, "80000000", r#""1970-01-01""#, "1970-01-01");
    check(&CqlType::Date, "00000000", r#""-5877641-06-23""#, "-5877641-06-23");
    check(&CqlType::Decimal, "00000002 0096", "1.50", "1.50");
    check(&CqlType::Decimal, "fffffff6 01", "1E+10", "1E+10");
    check(&CqlType::Double, "3ff8000000000000", "1.5", "1.5");
    check(&CqlType::Duration, "1c06 fc06c5a8a99510", r#""1y2mo3d1h2m3s4ms5us""#, "1y2mo3d1h2m3s4ms5us");
    check(&CqlType::Duration, "000100", r#""-1d""#, "-1d");
    check(&CqlType::Empty, "", r#""""#, "");
    check(&CqlType::Float, "f149f2ca", "-1.0E30", "-1.0E30");
    check(&CqlType::Inet, "7f000001", r#""127.0.0.1""#, "127.0.0.1");
    check(
        &CqlType::Inet,
        "20010db8000000000000ff0000428329",
        r#""2001:db8:0:0:0:ff00:42:8329""#,
        "2001:db8:0:0:0:ff00:42:8329",
    );
    check(&CqlType::Int, "00000100", "256", "256");
    check(&CqlType::SmallInt, "8000", "-32768", "-32768");
    check(&CqlType::TinyInt, "ff", "-1", "-1");
    check(&CqlType::Text, "c5bc f09d849e 01", "\"ż𝄞\\u0001\"", "ż𝄞\u{1}");
    check(&CqlType::Time, "00004e94914effff", r#""23:59:59.999999999""#, "23:59:59.999999999");
    check(
        &CqlType::Timestamp,
        "0000018bcfe5687b",
        r#""2023-11-14 22:13:20.123Z""#,
        "2023-11-14T22:13:20.123Z",
    );
    check(
        &CqlType::LegacyTimestamp,
        "ffffffffffffffff",
        r#""1969-12-31 23:59:59.999Z""#,
        "1969-12-31T23:59:59.999Z",
    );
    let uuid = "50554d6e29bb11e5b345feff819cdc9f";
    for kind in [CqlType::TimeUuid, CqlType::Uuid, CqlType::LexicalUuid] {
        check(
            &kind,
            uuid,
            r#""50554d6e-29bb-11e5-b345-feff819cdc9f""#,
            "50554d6e-29bb-11e5-b345-feff819cdc9f",
        );
    }
    check(&CqlType::VarInt, "ff7f", "-129", "-129");
    check(&parse("ReversedType(Int32Type)"), "00000005", "5", "5");
}

#[test]
fn composed_types() {
    let list = parse("FrozenType(ListType(Int32Type))");
    check(&list, "00000001 00000004 00000007", "[7]", "000000010000000400000007");
    let map = parse("FrozenType(MapType(Int32Type,FrozenType(SetType(UTF8Type))))");
    let text = "0000000100000004000000010000000900000001000000016 1".replace(' ', "");
    check(&map, &text, r#"{"1": ["a"]}"#, &text);
    check(&parse("VectorType(FloatType , 2)"), "3f800000 bf800000", "[1.0, -1.0]", "3f800000bf800000");
    check(&parse("VectorType(UTF8Type , 2)"), "0161 026235", r#"["a", "b5"]"#, "0161026235");
    let tuple = parse("TupleType(Int32Type,UTF8Type)");
    check(&tuple, "00000004 00000001 00000003 613a40", r#"[1, "a:@"]"#, "1:a\\:\\@");
    check(&tuple, "ffffffff 00000001 61", r#"[null, "a"]"#, "@:a");
    let udt = parse("FrozenType(UserType(ks,74,61:Int32Type,4263:UTF8Type))");
    check(&udt, "00000004 00000001 ffffffff", r#"{"a": 1, "\"Bc\"": null}"#, "1:@");
}

#[test]
fn fields_that_are_missing_at_the_end_are_null() {
    let tuple = parse("TupleType(Int32Type,UTF8Type)");
    assert_eq!(tuple.to_json(&bytes("0000000400000001")).unwrap(), "[1, null]");
    assert_eq!(
        tuple.compare(&bytes("0000000400000001"), &bytes("0000000400000001ffffffff")),
        std::cmp::Ordering::Equal
    );
}

#[test]
fn empty_values_have_json() {
    for kind in [
        "Int32Type",
        "BooleanType",
        "DecimalType",
        "InetAddressType",
        "TimestampType",
        "UUIDType",
        "DurationType",
    ] {
        assert_eq!(parse(kind).to_json(&[]).unwrap(), "\"\"", "{kind}");
    }
    assert_eq!(CqlType::Blob.to_json(&[]).unwrap(), "\"0x\"");
    assert_eq!(CqlType::Time.to_json(&[]).unwrap(), "\"null\"");
}

#[test]
fn what_is_no_number_is_null_in_json_only() {
    assert_eq!(CqlType::Double.to_json(&f64::NAN.to_be_bytes()).unwrap(), "null");
    assert_eq!(CqlType::Float.to_json(&f32::NEG_INFINITY.to_be_bytes()).unwrap(), "null");
    assert_eq!(CqlType::Float.to_text(&f32::NEG_INFINITY.to_be_bytes()).unwrap(), "-Infinity");
}

#[test]
fn digits_do_not_become_infinite() {
    let json = |kind: &CqlType, json: &str| kind.from_json(&serde_json::from_str(json).unwrap());
    for (kind, most, beyond) in [(CqlType::Float, "3.4e38", "1e39"), (CqlType::Double, "1.7e308", "1e400")] {
        assert!(json(&kind, most).is_ok() && json(&kind, "\"-Infinity\"").is_ok());
        for beyond in [beyond.to_owned(), format!("\"-{beyond}\"")] {
            let error = json(&kind, &beyond).unwrap_err().to_string();
            assert!(error.contains("it is beyond what can be held"), "{error}");
        }
    }
}

#[test]
fn rows_tell_what_a_dump_does_not() {
    let doubles = CqlType::list(CqlType::Double, true);
    let (nan, zero) = (f64::NAN.to_be_bytes(), [0_u8; 3]);
    let list = [&1_u32.to_be_bytes()[..], &8_u32.to_be_bytes(), &nan].concat();
    for (kind, bytes, dumped, of_row) in [
        (CqlType::Double, &nan[..], "null", r#""NaN""#),
        (CqlType::Float, &f32::NEG_INFINITY.to_be_bytes(), "null", r#""-Infinity""#),
        (CqlType::Duration, &zero, r#""""#, r#""0s""#),
        (doubles, &list, "[null]", r#"["NaN"]"#),
    ] {
        let mut json = String::new();
        kind.write_row_json(bytes, &mut json).unwrap();
        assert_eq!((&*kind.to_json(bytes).unwrap(), &*json), (dumped, of_row));
        assert_eq!(kind.from_json(&serde_json::from_str(&json).unwrap()).unwrap(), bytes);
    }
}

#[test]
fn a_counter_prints_the_first_bytes_of_its_context() {
    let context = bytes("0001 8000 e1e51616e54011f1a502c17e50275fdf 0000000000000001 0000000000000005");
    assert_eq!(CqlType::Counter.to_json(&context).unwrap(), "422216254952982");
    CqlType::Counter.validate_cell(&context).unwrap();
    assert_eq!(counter::CounterContext::parse(&context).unwrap().total(), 5);
}

#[test]
fn composites_are_keys_of_several_values() {
    let kind = parse("CompositeType(Int32Type,UTF8Type)");
    let value = bytes("0004 00000001 00 0003 613a62 00");
    assert_eq!(kind.to_text(&value).unwrap(), "1:a\\:b");
    assert_eq!(kind.from_text("1:a\\:b").unwrap(), value);
    kind.validate(&value).unwrap();
    assert!(kind.validate(&value[..6]).is_err());
    let dynamic = parse("DynamicCompositeType(a=>Int32Type,b=>UTF8Type)");
    let value = dynamic.from_text("a@1:UTF8Type@x").unwrap();
    assert_eq!(value, bytes("8061 0004 00000001 00 0008 5554463854797065 0001 78 00"));
    assert_eq!(dynamic.to_text(&value).unwrap(), "a@1:UTF8Type@x");
}

#[test]
fn cells_of_columns_with_many_have_paths_and_values() {
    let map = parse("MapType(UTF8Type,Int32Type)");
    assert!(map.is_multi_cell());
    assert_eq!(map.cell_path_type(), Some(&CqlType::Text));
    assert_eq!(map.cell_value_type(None), Some(&CqlType::Int));
    let list = parse("ListType(Int32Type)");
    assert_eq!(
        (list.cell_path_type(), list.cell_value_type(None)),
        (Some(&CqlType::TimeUuid), Some(&CqlType::Int))
    );
    let set = parse("SetType(Int32Type)");
    assert_eq!(
        (set.cell_path_type(), set.cell_value_type(None)),
        (Some(&CqlType::Int), Some(&CqlType::Empty))
    );
    let udt = parse("UserType(ks,74,61:Int32Type,62:UTF8Type)");
    assert_eq!(udt.cell_path_type(), Some(&CqlType::SmallInt));
    assert_eq!(udt.cell_value_type(Some(&[0, 1])), Some(&CqlType::Text));
    assert_eq!(udt.cell_value_type(Some(&[0, 2])), None);
    assert_eq!(udt.clone().freeze().cell_value_type(None), Some(&udt.freeze()));
}

#[test]
fn what_is_inside_a_frozen_type_is_frozen() {
    let frozen = parse("FrozenType(UserType(ks,74,61:ListType(Int32Type)))");
    let said = parse("FrozenType(UserType(ks,74,61:FrozenType(ListType(Int32Type))))");
    assert_eq!(frozen, said);
    let CqlType::Udt(udt) = frozen else { panic!("not a user type") };
    assert!(udt.frozen && !udt.fields[0].1.is_multi_cell());
}

#[test]
fn bad_names_are_refused_where_they_are_bad() {
    for (name, at) in [
        ("ListType", 8),
        ("ListType(Int32Type", 18),
        ("MapType(Int32Type)", 18),
        ("VectorType(FloatType , 0)", 24),
        ("UserType(ks,7,61:Int32Type)", 13),
        ("UserType(ks,74,61=Int32Type)", 17),
        ("Int32Type x", 10),
        ("(Int32Type)", 0),
        ("ListType(,,Int32Type)", 10),
    ] {
        match CqlType::parse(name) {
            Err(TypeError::Syntax { at: found, .. }) => assert_eq!(found, at, "{name}"),
            other => panic!("{name} is {other:?}"),
        }
    }
}

#[test]
fn other_classes_are_kept_as_they_are() {
    for name in
        ["com.example.Own", "com.example.Own(a=b, (c))", "OwnType", "org.apache.cassandra.db.marshal.New(x)"]
    {
        assert_eq!(parse(name).to_string(), name);
        assert_eq!(parse(&format!("ReversedType({name})")).unreversed().to_string(), name);
    }
}

/// Checks that values, given as text, stand in their order, and that empty and reversed ones do.
#[track_caller]
fn check_order(kind: &CqlType, texts: &[&str]) {
    let values: Vec<Vec<u8>> = texts.iter().map(|text| kind.from_text(text).unwrap()).collect();
    let reversed = CqlType::Reversed(Box::new(kind.clone()));
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate() {
            assert_eq!(kind.compare(a, b), i.cmp(&j), "{} and {}", texts[i], texts[j]);
            assert_eq!(reversed.compare(a, b), j.cmp(&i), "{} and {}", texts[i], texts[j]);
        }
        assert_eq!(kind.compare(&[], a), 0.cmp(&a.len()), "empty and {}", texts[i]);
    }
}

/// The lists are the clustering columns of tables that Cassandra wrote.
#[test]
fn natives_stand_in_order() {
    check_order(
        &CqlType::Float,
        &["-Infinity", "-1.0E30", "-0.0", "0.0", "1.0E-30", "1.5", "Infinity", "NaN"],
    );
    check_order(
        &CqlType::Double,
        &["-Infinity", "-1.0E300", "-0.0", "0.0", "1.0E-300", "1.5", "Infinity", "NaN"],
    );
    let decimals =
        ["-1.5", "-0.001", "0", "1E-10", "1.5", "1E+10", "123456789012345678901234567890.123456789"];
    check_order(&CqlType::Decimal, &decimals);
    let integers = [
        "-99999999999999999999999999",
        "-129",
        "-1",
        "0",
        "1",
        "127",
        "128",
        "123456789012345678901234567890123456789",
    ];
    check_order(&CqlType::VarInt, &integers);
    check_order(&CqlType::Int, &["-2147483648", "-1", "0", "1", "255", "256", "2147483647"]);
    check_order(&CqlType::SmallInt, &["-32768", "-1", "0", "1", "32767"]);
    check_order(&CqlType::TinyInt, &["-128", "-1", "0", "1", "127"]);
    check_order(&CqlType::Boolean, &["false", "true"]);
    check_order(
        &CqlType::Inet,
        &["0:0:0:0:0:0:0:1", "2001:db8:0:0:0:ff00:42:8329", "127.0.0.1", "255.255.255.255"][..2],
    );
    check_order(&CqlType::Inet, &["0:0:0:0:0:0:0:1", "127.0.0.1", "255.255.255.255"]);
    check_order(&CqlType::Date, &["0001-01-01", "1969-12-31", "1970-01-01", "2026-11-20", "9999-12-31"]);
    let times = [
        "0001-01-01 00:00:00.000Z",
        "1969-12-31 23:59:59.999Z",
        "1970-01-01 00:00:00.000Z",
        "9999-12-31 23:59:59.999Z",
    ];
    check_order(&CqlType::Timestamp, &times);
    check_order(&CqlType::LegacyTimestamp, &[times[2], times[3], times[0], times[1]]);
}

#[test]
fn uuids_stand_in_order() {
    let zero = "00000000-0000-0000-0000-000000000000";
    let random = "123e4567-e89b-42d3-a456-426614174000";
    let highest = "ffffffff-ffff-4fff-bfff-ffffffffffff";
    let time = "50554d6e-29bb-11e5-b345-feff819cdc9f";
    check_order(&CqlType::Uuid, &[zero, time, random, highest]);
    check_order(&CqlType::LexicalUuid, &[highest, zero, random, time]);
    let times = [
        "00000000-0000-1000-8080-808080808080",
        "d2177dd0-eaa2-11de-a572-001b779c76e3",
        time,
        "ffffffff-ffff-1fff-7f7f-7f7f7f7f7f7f",
    ];
    check_order(&CqlType::TimeUuid, &times);
    let signed = [
        "50554d6e-29bb-11e5-8000-000000000000",
        "50554d6e-29bb-11e5-0080-000000000000",
        "50554d6e-29bb-11e5-0000-000000000000",
    ];
    check_order(&CqlType::TimeUuid, &signed);
}

#[test]
fn composed_types_stand_in_order() {
    let list = parse("FrozenType(ListType(Int32Type))");
    let values = ["[]", "[-1]", "[1]", "[1, -5]", "[1, 0]", "[2]"];
    let read = |kind: &CqlType, json: &str| kind.from_json(&serde_json::from_str(json).unwrap()).unwrap();
    for pair in values.windows(2) {
        assert!(list.compare(&read(&list, pair[0]), &read(&list, pair[1])).is_lt(), "{pair:?}");
    }
    let tuple = parse("TupleType(Int32Type,UTF8Type)");
    let values = ["[null, null]", "[null, \"a\"]", "[-1, \"b\"]", "[0, null]", "[0, \"\"]", "[0, \"a\"]"];
    for pair in values.windows(2) {
        assert!(tuple.compare(&read(&tuple, pair[0]), &read(&tuple, pair[1])).is_lt(), "{pair:?}");
    }
    assert!(tuple.compare(&[], &read(&tuple, values[0])).is_lt());
}

#[test]
fn keys_stand_in_the_order_of_their_tokens() {
    let kind = parse("PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner)");
    let mut keys: Vec<[u8; 4]> = (0..100i32).map(i32::to_be_bytes).collect();
    keys.sort_by(|a, b| kind.compare(a, b));
    assert!(keys.is_sorted_by_key(|key| crate::key::token_of(key)));
}

#[test]
fn names_are_quoted_where_cql_needs_it() {
    let names = [
        ("plain_1", "plain_1"),
        ("Mixed", "\"Mixed\""),
        ("select", "\"select\""),
        ("1a", "\"1a\""),
        ("a\"b", "\"a\"\"b\""),
    ];
    for (name, quoted) in names {
        assert_eq!(maybe_quote(name), quoted);
    }
}
