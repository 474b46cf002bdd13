//! Which type can hold the values of another, so that a column altered over time is one column again.
//!
//! These are the rules by which Cassandra replaces a type: by value, where only the bytes must make
//! sense, and by order, where they must also sort alike, as in the paths of cells. Where Cassandra warns
//! of a sort that differs (the old `DateType` and `timestamp`), here the orders are not alike.

use crate::CqlType;
use crate::types::UserType;

/// Whether a column of the type `new` may take the place of one of the type `old`: it has as many cells, and holds their values,
/// whichever keyspace a user defined type is of.
pub fn holds(new: &CqlType, old: &CqlType) -> bool {
    has_same_cells(new, old) && (reads_alike(new, old) || holds_values_of(new, old))
}

/// Whether they are equal but for the keyspaces of user defined types, and the old and the new name of timestamps: Cassandra shows
/// both by the same, so that a schema does not tell which one the files have.
fn reads_alike(new: &CqlType, old: &CqlType) -> bool {
    use CqlType::{LegacyTimestamp, List, Map, Set, Timestamp};
    match (new, old) {
        (Timestamp | LegacyTimestamp, Timestamp | LegacyTimestamp) => true,
        (List { element: new, frozen }, List { element: old, frozen: other })
        | (Set { element: new, frozen }, Set { element: old, frozen: other }) => {
            frozen == other && reads_alike(new, old)
        }
        (Map { key, value, frozen }, Map { key: old_key, value: old_value, frozen: other }) => {
            frozen == other && reads_alike(key, old_key) && reads_alike(value, old_value)
        }
        (new, old) => new.is_alike(old),
    }
}

/// Whether a part of a key of the type `new` may take the place of one of the type `old`: it reads its values, and puts them into the same
/// order, whichever keyspace a user defined type is of, and whatever its fields are called.
pub fn holds_keys(new: &CqlType, old: &CqlType) -> bool {
    new.is_alike(old) || sorts_like(new, old)
}

/// The one of two types of a column that holds the values of both; the first, where each does.
pub(super) fn wider<'a>(a: &'a CqlType, b: &'a CqlType) -> Option<&'a CqlType> {
    if !has_same_cells(a, b) {
        None
    } else if holds_values_of(a, b) {
        Some(a)
    } else {
        holds_values_of(b, a).then_some(b)
    }
}

fn has_same_cells(a: &CqlType, b: &CqlType) -> bool {
    a.is_multi_cell() == b.is_multi_cell() && a.is_counter() == b.is_counter()
}

/// Whether `new` can read the values of `old`.
fn holds_values_of(new: &CqlType, old: &CqlType) -> bool {
    use CqlType::{
        BigInt, Blob, Date, Int, LegacyTimestamp, List, Map, Set, Text, Time, TimeUuid, Timestamp, Tuple,
        Udt, Uuid, VarInt, Vector,
    };
    let (new, old) = (new.unreversed(), old.unreversed());
    match (new, old) {
        (new, old) if new == old => true,
        (Blob, old) => !old.is_counter(),
        (Text, CqlType::Ascii) | (Uuid, TimeUuid) | (Time, BigInt) | (Date, Int) | (VarInt, Int) => true,
        (BigInt | VarInt | Timestamp | LegacyTimestamp, BigInt | Timestamp | LegacyTimestamp) => true,
        (List { frozen: true, element: new }, List { frozen: true, element: old }) => {
            holds_values_of(new, old)
        }
        (Map { frozen: true, key, value }, Map { frozen: true, key: old_key, value: old_value }) => {
            sorts_like(key, old_key) && holds_values_of(value, old_value)
        }
        (Vector { element: new, dimension }, Vector { element: old, dimension: other }) => {
            dimension == other && same_cells(new, old)
        }
        (Tuple(new), Tuple(old)) => holds_prefix(new.iter(), old.iter(), holds_values_of),
        (Udt(new), Udt(old)) => holds_fields(new, old),
        (List { .. } | Map { .. } | Set { .. }, _) => sorts_like(new, old),
        _ => false,
    }
}

/// Whether `new` can read the values of `old` and puts them into the same order.
fn sorts_like(new: &CqlType, old: &CqlType) -> bool {
    use CqlType::{Ascii, Blob, Composite, List, Map, Reversed, Set, Text, Tuple, Udt};
    match (new, old) {
        (new, old) if new == old => true,
        (Blob, Text | Ascii) | (Text, Ascii) => true,
        (Reversed(new), Reversed(old)) => sorts_like(new, old),
        (List { frozen: false, element: new }, List { frozen: false, element: old }) => same_cells(new, old),
        (Map { frozen: false, key, value }, Map { frozen: false, key: old_key, value: old_value }) => {
            sorts_like(key, old_key) && same_cells(value, old_value)
        }
        (List { frozen, element: new }, List { frozen: old_frozen, element: old })
        | (Set { frozen, element: new }, Set { frozen: old_frozen, element: old }) => {
            frozen == old_frozen && sorts_like(new, old)
        }
        (Map { frozen: true, key, value }, Map { frozen: true, key: old_key, value: old_value }) => {
            sorts_like(key, old_key) && sorts_like(value, old_value)
        }
        (Tuple(new), Tuple(old)) => holds_prefix(new.iter(), old.iter(), sorts_like),
        (Composite(new), Composite(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| holds_keys(new, old))
        }
        (Udt(new), Udt(old)) => holds_fields(new, old),
        _ => false,
    }
}

/// Whether the elements of a multi-cell column can be read as the others: their lengths are written alike.
fn same_cells(new: &CqlType, old: &CqlType) -> bool {
    new.fixed_len() == old.fixed_len() && holds_values_of(new, old)
}

/// Fields may be added to a user type, and renamed, but not removed.
fn holds_fields(new: &UserType, old: &UserType) -> bool {
    let (new_types, old_types) = (new.fields.iter().map(|f| &f.1), old.fields.iter().map(|f| &f.1));
    new.frozen == old.frozen && holds_prefix(new_types, old_types, sorts_like)
}

fn holds_prefix<'a>(
    mut new: impl ExactSizeIterator<Item = &'a CqlType>,
    mut old: impl ExactSizeIterator<Item = &'a CqlType>,
    holds: fn(&CqlType, &CqlType) -> bool,
) -> bool {
    new.len() >= old.len() && old.all(|old| new.next().is_some_and(|new| holds(new, old)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udt(fields: &[(&str, CqlType)], frozen: bool) -> CqlType {
        let fields = fields.iter().map(|(name, field)| (name.to_string(), field.clone())).collect();
        CqlType::Udt(Box::new(UserType { keyspace: "ks".into(), name: "t".into(), fields, frozen }))
    }

    #[test]
    fn the_wider_type_is_the_one_that_reads_both() {
        use CqlType::{Ascii, BigInt, Blob, Date, Int, Text, Time, TimeUuid, Timestamp, Uuid, VarInt};
        let (field, more) = (("a", Int), ("b", Text));
        let wider_first = [
            (Blob, Text),
            (Blob, Int),
            (Blob, CqlType::list(Int, true)),
            (Text, Ascii),
            (Uuid, TimeUuid),
            (VarInt, Int),
            (VarInt, BigInt),
            (Time, BigInt),
            (Date, Int),
            (CqlType::tuple([Int, Text]), CqlType::tuple([Int])),
            (udt(&[field.clone(), more.clone()], true), udt(&[("z", Int)], true)),
            (udt(&[field.clone(), more.clone()], false), udt(std::slice::from_ref(&field), false)),
            (CqlType::list(VarInt, true), CqlType::list(Int, true)),
            (CqlType::list(Blob, false), CqlType::list(Text, false)),
            (CqlType::set(Text, false), CqlType::set(Ascii, false)),
            (CqlType::map(Blob, Blob, false), CqlType::map(Text, Ascii, false)),
        ];
        for (wide, narrow) in &wider_first {
            assert_eq!(wider(wide, narrow), Some(wide));
            assert_eq!(wider(narrow, wide), Some(wide));
        }
        assert_eq!(wider(&Timestamp, &BigInt), Some(&Timestamp));
        assert_eq!(wider(&BigInt, &Timestamp), Some(&BigInt));
    }

    #[test]
    fn a_column_takes_the_place_of_one_that_it_holds() {
        use CqlType::{Int, LegacyTimestamp, Text, Timestamp};
        let vector = |of: CqlType, dimension| CqlType::Vector { element: Box::new(of), dimension };
        let (one, two) = (udt(&[("a", Int)], true), udt(&[("a", Int), ("b", Text)], true));
        let held = [
            (CqlType::set(Timestamp, false), CqlType::set(LegacyTimestamp, false)),
            (CqlType::map(LegacyTimestamp, one.clone(), false), CqlType::map(Timestamp, one.clone(), false)),
            (vector(two.clone(), 3), vector(one.clone(), 3)),
            (CqlType::list(two.clone(), true), CqlType::list(one.clone(), true)),
        ];
        for (new, old) in &held {
            assert!(holds(new, old), "{new:?} {old:?}");
        }
        assert!(!holds(&vector(Int, 3), &vector(Int, 4)) && !holds(&one, &two) && !holds(&Int, &Text));
    }

    #[test]
    fn keys_stay_in_their_order() {
        use CqlType::{Int, Text};
        let reversed = |of| CqlType::Reversed(Box::new(of));
        let (one, two) = (udt(&[("a", Int)], true), udt(&[("z", Int), ("b", Text)], true));
        assert!(holds_keys(&two, &one) && !holds_keys(&one, &two), "a type has got a field");
        assert!(holds_keys(&reversed(two), &reversed(one.clone())) && holds_keys(&Text, &CqlType::Ascii));
        let of_two = |of: &CqlType| CqlType::Composite(vec![of.clone(), Int]);
        assert!(holds_keys(&of_two(&udt(&[("a", Int), ("b", Int)], true)), &of_two(&one)));
        assert!(!holds_keys(&CqlType::Blob, &Int) && !holds_keys(&one, &reversed(one.clone())));
    }

    #[test]
    fn some_types_never_meet() {
        use CqlType::{Ascii, Blob, Counter, Double, Int, LegacyTimestamp, Text, Timestamp, VarInt};
        let strangers = [
            (Text, Int),
            (Int, CqlType::BigInt),
            (Double, CqlType::Float),
            (Blob, Counter),
            (Blob, CqlType::set(Int, false)),
            (CqlType::set(Int, true), CqlType::set(Int, false)),
            (CqlType::set(Blob, false), CqlType::set(Int, false)),
            (CqlType::list(VarInt, false), CqlType::list(Int, false)),
            (CqlType::set(Timestamp, false), CqlType::set(LegacyTimestamp, false)),
            (CqlType::list(Ascii, true), CqlType::set(Ascii, true)),
        ];
        for (a, b) in &strangers {
            assert_eq!((wider(a, b), wider(b, a)), (None, None), "{a:?} {b:?}");
        }
    }
}
