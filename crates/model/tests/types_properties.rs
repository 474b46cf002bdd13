//! What holds for every type and all bytes: nothing panics, orders are total, and what is printed is read
//! back as what it was.

#![expect(clippy::unwrap_used, reason = "a test may fail where it likes")]

use std::cmp::Ordering;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use siltstone_model::CqlType;
use siltstone_model::types::{UserType, instant_micros, instant_seconds};

const NATIVES: [CqlType; 23] = [
    CqlType::Ascii,
    CqlType::BigInt,
    CqlType::Blob,
    CqlType::Boolean,
    CqlType::Counter,
    CqlType::Date,
    CqlType::Decimal,
    CqlType::Double,
    CqlType::Duration,
    CqlType::Empty,
    CqlType::Float,
    CqlType::Inet,
    CqlType::Int,
    CqlType::SmallInt,
    CqlType::Text,
    CqlType::Time,
    CqlType::Timestamp,
    CqlType::LegacyTimestamp,
    CqlType::TimeUuid,
    CqlType::TinyInt,
    CqlType::Uuid,
    CqlType::LexicalUuid,
    CqlType::VarInt,
];

fn any_type() -> impl Strategy<Value = CqlType> {
    let odd = prop_oneof![
        Just(CqlType::Custom("com.example.Own(a=b)".into())),
        Just(CqlType::PartitionerOrder { partitioner: "a.Murmur3Partitioner".into(), key: None }),
    ];
    let leaf = prop_oneof![8 => proptest::sample::select(&NATIVES[..]), 1 => odd];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), any::<bool>()).prop_map(|(element, frozen)| CqlType::list(element, frozen)),
            (inner.clone(), any::<bool>()).prop_map(|(element, frozen)| CqlType::set(element, frozen)),
            (inner.clone(), inner.clone(), any::<bool>())
                .prop_map(|(k, v, frozen)| CqlType::map(k, v, frozen)),
            vec(inner.clone(), 0..4).prop_map(CqlType::tuple),
            vec(inner.clone(), 1..4).prop_map(CqlType::Composite),
            vec(inner.clone(), 0..3)
                .prop_map(|kinds| CqlType::DynamicComposite((b'a'..).zip(kinds).collect())),
            inner.clone().prop_map(|base| CqlType::Reversed(Box::new(base))),
            (inner.clone().prop_filter("no bytes", |kind| kind.fixed_len() != Some(0)), 1..4u32).prop_map(
                |(element, dimension)| CqlType::Vector { element: Box::new(element.freeze()), dimension }
            ),
            (vec(inner, 1..4), any::<bool>()).prop_map(|(fields, frozen)| user_type(fields, frozen)),
        ]
    })
}

fn user_type(fields: Vec<CqlType>, frozen: bool) -> CqlType {
    let fields = ["a", "Bc", "ż ó\"", "d"].map(str::to_owned).into_iter().zip(fields).collect();
    let udt = CqlType::Udt(Box::new(UserType {
        keyspace: "ks".into(),
        name: "Name".into(),
        fields,
        frozen: false,
    }));
    if frozen { udt.freeze() } else { udt }
}

/// Bytes that look like those of many types: small numbers where lengths stand.
fn likely_bytes() -> impl Strategy<Value = Vec<u8>> {
    let chunk = prop_oneof![
        vec(any::<u8>(), 0..20),
        (0..5u32).prop_map(|len| len.to_be_bytes().to_vec()),
        (0..5u16).prop_map(|len| len.to_be_bytes().to_vec()),
        Just(vec![0xff; 4]),
        Just(vec![0x80, b'a']),
        Just(b"\0\x09Int32Type\0\x04\0\0\0\x01\0".to_vec()),
        Just(b"\0\x14DynamicCompositeType\0\0\0".to_vec()),
    ];
    vec(chunk, 0..8).prop_map(|chunks| chunks.concat())
}

/// A type of which every value has one JSON form, with the JSON of a value.
fn value() -> impl Strategy<Value = (CqlType, String)> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(|v| (CqlType::Int, v.to_string())),
        any::<i8>().prop_map(|v| (CqlType::TinyInt, v.to_string())),
        any::<i128>().prop_map(|v| (CqlType::VarInt, v.to_string())),
        any::<bool>().prop_map(|v| (CqlType::Boolean, v.to_string())),
        "[a-zA-Z0-9 :@\"\\\\\n\u{1}żó€𝄞]{0,8}"
            .prop_map(|v| (CqlType::Text, serde_json::to_string(&v).unwrap())),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), 0..3usize).prop_map(|((kind, json), len)| {
                (CqlType::list(kind, true), format!("[{}]", vec![json; len].join(", ")))
            }),
            inner.clone().prop_map(|(kind, json)| (CqlType::set(kind, true), format!("[{json}]"))),
            (inner.clone(), inner.clone()).prop_map(|((key, name), (kind, json))| {
                let name = if name.starts_with('"') { name } else { serde_json::to_string(&name).unwrap() };
                (CqlType::map(key, kind, true), format!("{{{name}: {json}}}"))
            }),
            vec(inner, 1..4).prop_map(|values| {
                let (kinds, values): (Vec<_>, Vec<_>) = values.into_iter().unzip();
                (CqlType::tuple(kinds), format!("[{}]", values.join(", ")))
            }),
        ]
    })
}

fn sign(order: Ordering) -> i8 {
    order as i8
}

fn row_json(kind: &CqlType, bytes: &[u8]) -> String {
    let mut json = String::new();
    kind.write_row_json(bytes, &mut json).unwrap();
    json
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn nothing_panics(kind in any_type(), bytes in likely_bytes(), other in likely_bytes()) {
        let _ = kind.validate(&bytes);
        let _ = kind.validate_cell(&bytes);
        let _ = kind.to_json(&bytes);
        let _ = kind.compare(&bytes, &other);
        let _ = kind.cell_value_type(Some(&bytes));
        if let Ok(text) = kind.to_text(&bytes) {
            let _ = kind.from_text(&text);
        }
    }

    #[test]
    fn no_text_panics(kind in any_type(), text in "\\PC{0,20}", json in "[0-9\\[\\]{}\":, .eE+a-f-]{0,20}") {
        let _ = CqlType::parse(&text);
        let _ = kind.from_text(&text);
        let _ = kind.from_text(&json);
        let _ = kind.from_json(&serde_json::Value::String(json.clone()));
        if let Ok(value) = serde_json::from_str(&json) {
            let _ = kind.from_json(&value);
        }
    }

    #[test]
    fn what_is_exact_is_read_back(kind in any_type(), bytes in likely_bytes(), number in any::<u64>(), bits in 0..64u32) {
        let number = (number >> bits).to_be_bytes();
        for bytes in [&bytes[..], &number, &number[4..]] {
            if let Ok(json) = kind.to_json(bytes) && kind.is_exact_json(bytes, &json) {
                let mut back = Vec::new();
                prop_assert_eq!(kind.put_json(&json, &mut back), Ok(()));
                prop_assert_eq!(&back, bytes);
                prop_assert_eq!(kind.validate(bytes), Ok(()));
            }
            if let Ok(text) = kind.to_text(bytes) && kind.is_exact_text(bytes, &text) {
                prop_assert_eq!(kind.from_text(&text), Ok(bytes.to_vec()));
                prop_assert_eq!(kind.validate(bytes), Ok(()));
            }
        }
    }

    #[test]
    fn what_is_read_is_exact((kind, json) in value()) {
        let bytes = kind.from_json(&serde_json::from_str(&json).unwrap()).unwrap();
        prop_assert!(kind.is_exact_json(&bytes, &kind.to_json(&bytes).unwrap()));
    }

    #[test]
    fn names_round_trip(kind in any_type()) {
        prop_assert_eq!(CqlType::parse(&kind.to_string()), Ok(kind));
    }

    #[test]
    fn cut_names_do_not_panic(kind in any_type(), cut in 0..100usize) {
        let name = kind.to_string();
        let _ = CqlType::parse(&name[..name.len() - cut.min(name.len())]);
    }

    #[test]
    fn orders_are_total(kind in any_type(), values in vec(likely_bytes(), 3)) {
        let [a, b, c] = &values[..] else { unreachable!() };
        prop_assert_eq!(kind.compare(a, a), Ordering::Equal);
        prop_assert_eq!(kind.compare(a, b), kind.compare(b, a).reverse());
        let (ab, bc, ac) = (sign(kind.compare(a, b)), sign(kind.compare(b, c)), sign(kind.compare(a, c)));
        if ab <= 0 && bc <= 0 {
            prop_assert_eq!(ac, ab.min(bc), "{:?}", values);
        }
        if ab >= 0 && bc >= 0 {
            prop_assert_eq!(ac, ab.max(bc), "{:?}", values);
        }
    }

    #[test]
    fn orders_of_natives_are_total(
        kind in proptest::sample::select(&NATIVES[..]),
        values in vec(vec(prop_oneof![Just(0), Just(0xff), Just(0x7f), Just(0x80), any::<u8>()], 0..18), 3),
    ) {
        let [a, b, c] = &values[..] else { unreachable!() };
        prop_assert_eq!(kind.compare(a, b), kind.compare(b, a).reverse());
        if kind.compare(a, b).is_le() && kind.compare(b, c).is_le() {
            prop_assert!(kind.compare(a, c).is_le());
        }
    }

    #[test]
    fn integers_are_ordered_as_integers(a: i64, b: i64) {
        prop_assert_eq!(CqlType::BigInt.compare(&a.to_be_bytes(), &b.to_be_bytes()), a.cmp(&b));
        prop_assert_eq!(CqlType::VarInt.compare(&a.to_be_bytes(), &b.to_be_bytes()), a.cmp(&b));
        let read = |v: i64| CqlType::VarInt.from_text(&v.to_string()).unwrap();
        prop_assert_eq!(CqlType::VarInt.compare(&read(a), &read(b)), a.cmp(&b));
    }

    #[test]
    fn decimals_of_different_scales_are_ordered_as_numbers(a: i32, b: i32, a_scale in -40..40i32, b_scale in -40..40i32) {
        let bytes = |scale: i32, value: i32| [scale.to_be_bytes(), value.to_be_bytes()].concat();
        // With a common scale of 40, both are integers.
        let digits = |scale: i32, value: i32| {
            let text = format!("{value}{}", "0".repeat((40 - scale) as usize));
            CqlType::VarInt.from_text(&text).unwrap()
        };
        let expected = CqlType::VarInt.compare(&digits(a_scale, a), &digits(b_scale, b));
        prop_assert_eq!(CqlType::Decimal.compare(&bytes(a_scale, a), &bytes(b_scale, b)), expected);
    }

    #[test]
    fn json_round_trips((kind, json) in value()) {
        let parsed = serde_json::from_str(&json).unwrap();
        let bytes = kind.from_json(&parsed).unwrap();
        kind.validate(&bytes).unwrap();
        let printed = kind.to_json(&bytes).unwrap();
        prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&printed).unwrap(), &parsed);
        prop_assert_eq!(kind.from_json(&serde_json::from_str(&printed).unwrap()), Ok(bytes));
    }

    #[test]
    fn floats_round_trip(double: u64, float: u32) {
        for (kind, bytes) in [(CqlType::Double, double.to_be_bytes().to_vec()), (CqlType::Float, float.to_be_bytes().to_vec())] {
            let text = kind.to_text(&bytes).unwrap();
            let (dumped, json) = (kind.to_json(&bytes).unwrap(), row_json(&kind, &bytes));
            let is_number = dumped != "null";
            prop_assert_eq!(if is_number { &dumped } else { &json }, &json);
            prop_assert_eq!(if is_number { text.clone() } else { format!("\"{text}\"") }, json.clone());
            if text == "NaN" {
                continue;
            }
            prop_assert_eq!(kind.from_text(&text).unwrap(), bytes.clone());
            prop_assert_eq!(kind.from_json(&serde_json::from_str(&json).unwrap()).unwrap(), bytes);
        }
    }

    #[test]
    fn fixed_values_round_trip_as_text(wide: u128, narrow: u64, days: u32) {
        let time_uuid = wide & !(0xf << 76) | 1 << 76;
        let millis = (narrow as i64 >> 14).max(-62_135_596_800_000);
        for (kind, bytes) in [
            (CqlType::Uuid, wide.to_be_bytes().to_vec()),
            (CqlType::TimeUuid, time_uuid.to_be_bytes().to_vec()),
            (CqlType::Date, days.to_be_bytes().to_vec()),
            (CqlType::Time, (narrow % 86_400_000_000_000).to_be_bytes().to_vec()),
            (CqlType::Timestamp, millis.to_be_bytes().to_vec()),
            (CqlType::Inet, days.to_be_bytes().to_vec()),
            (CqlType::Inet, (wide | 1 << 127).to_be_bytes().to_vec()),
            (CqlType::Blob, wide.to_be_bytes().to_vec()),
        ] {
            prop_assert_eq!(kind.from_text(&kind.to_text(&bytes).unwrap()).unwrap(), bytes.clone());
            let json = serde_json::from_str(&kind.to_json(&bytes).unwrap()).unwrap();
            prop_assert_eq!(kind.from_json(&json).unwrap(), bytes);
        }
    }

    #[test]
    fn decimals_and_durations_round_trip(scale: i32, unscaled: i128, months: u16, days: u16, nanos: u32, negative: bool) {
        let unscaled = CqlType::VarInt.from_text(&unscaled.to_string()).unwrap();
        let decimal = [&scale.to_be_bytes()[..], &unscaled].concat();
        let text = CqlType::Decimal.to_text(&decimal).unwrap();
        prop_assert_eq!(CqlType::Decimal.from_text(&text).unwrap(), decimal);
        let sign = if negative { "-" } else { "" };
        let duration = CqlType::Duration.from_text(&format!("{sign}{months}mo{days}d{nanos}ns")).unwrap();
        CqlType::Duration.validate(&duration).unwrap();
        let text = CqlType::Duration.to_text(&duration).unwrap();
        let is_zero = months == 0 && days == 0 && nanos == 0;
        prop_assert!(CqlType::Duration.from_text(&text) == Ok(duration.clone()) || is_zero);
        let json = serde_json::from_str(&row_json(&CqlType::Duration, &duration)).unwrap();
        prop_assert_eq!(CqlType::Duration.from_json(&json), Ok(duration));
    }

    #[test]
    fn sets_and_maps_are_put_in_order(ints in btree_set(any::<i32>(), 0..6), map in btree_map(any::<i32>(), any::<bool>(), 0..6)) {
        let backwards: Vec<i32> = ints.iter().rev().copied().collect();
        let kind = CqlType::set(CqlType::Int, true);
        let bytes = kind.from_json(&serde_json::json!(backwards)).unwrap();
        prop_assert_eq!(kind.to_json(&bytes).unwrap(), format!("{:?}", ints.iter().collect::<Vec<_>>()));
        let kind = CqlType::map(CqlType::Int, CqlType::Boolean, true);
        let backwards: serde_json::Map<_, _> = map.iter().rev().map(|(k, v)| (k.to_string(), (*v).into())).collect();
        let bytes = kind.from_json(&backwards.into()).unwrap();
        let entries: Vec<String> = map.iter().map(|(k, v)| format!("\"{k}\": {v}")).collect();
        prop_assert_eq!(kind.to_json(&bytes).unwrap(), format!("{{{}}}", entries.join(", ")));
    }

    #[test]
    fn all_times_print(time: i64) {
        let mut out = String::new();
        instant_micros(time, &mut out);
        instant_seconds(time, &mut out);
        prop_assert!(out.ends_with('Z'));
    }
}

#[test]
fn deep_names_are_refused() {
    let name = "ListType(".repeat(100_000) + "Int32Type" + &")".repeat(100_000);
    assert!(CqlType::parse(&name).unwrap_err().to_string().contains("nested too deep"));
}

#[test]
fn values_that_name_their_types_do_not_nest_without_bound() {
    let kind = CqlType::DynamicComposite(vec![]);
    let mut value = Vec::new();
    for _ in 0..2_000 {
        let inner = std::mem::take(&mut value);
        if inner.len() > 60_000 {
            break;
        }
        value.extend(b"\0\x16DynamicCompositeType()");
        value.extend((inner.len() as u16).to_be_bytes());
        value.extend(inner);
        value.push(0);
    }
    assert!(kind.validate(&value).is_err());
    assert_eq!(kind.compare(&value, &value), Ordering::Equal);
}
