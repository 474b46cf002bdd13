//! Whether two types are the same, whichever keyspace their user defined types are of: a table that was restored into
//! another keyspace has files that name the one of before.

use super::CqlType;

impl CqlType {
    /// Whether the types are equal but for the keyspaces of user defined types.
    pub fn is_alike(&self, other: &CqlType) -> bool {
        use CqlType::{Composite, List, Map, Reversed, Set, Tuple, Udt, Vector};
        match (self, other) {
            (List { element: a, frozen }, List { element: b, frozen: other })
            | (Set { element: a, frozen }, Set { element: b, frozen: other }) => {
                frozen == other && a.is_alike(b)
            }
            (Map { key, value, frozen }, Map { key: other_key, value: other_value, frozen: other }) => {
                frozen == other && key.is_alike(other_key) && value.is_alike(other_value)
            }
            (Udt(a), Udt(b)) => {
                a.name == b.name
                    && a.frozen == b.frozen
                    && a.fields.iter().map(|(name, _)| name).eq(b.fields.iter().map(|(name, _)| name))
                    && all_alike(a.field_types(), b.field_types())
            }
            (Vector { element: a, dimension }, Vector { element: b, dimension: other }) => {
                dimension == other && a.is_alike(b)
            }
            (Reversed(a), Reversed(b)) => a.is_alike(b),
            (Tuple(a), Tuple(b)) | (Composite(a), Composite(b)) => all_alike(a.iter(), b.iter()),
            (a, b) => a == b,
        }
    }
}

/// Whether both have as many types, each like the other.
pub fn all_alike<'a>(
    a: impl ExactSizeIterator<Item = &'a CqlType>,
    b: impl ExactSizeIterator<Item = &'a CqlType>,
) -> bool {
    a.len() == b.len() && a.zip(b).all(|(a, b)| a.is_alike(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::UserType;

    fn udt(keyspace: &str, field: CqlType) -> CqlType {
        let [keyspace, name] = [keyspace, "person"].map(str::to_owned);
        CqlType::Udt(Box::new(UserType {
            keyspace,
            name,
            fields: vec![("age".to_owned(), field)],
            frozen: true,
        }))
    }

    #[test]
    fn only_keyspaces_may_differ() {
        let wrap = |udt: CqlType| CqlType::Reversed(Box::new(CqlType::Tuple(vec![CqlType::list(udt, true)])));
        let (here, there) = (udt("here", CqlType::Int), udt("there", CqlType::Int));
        assert!(here != there && here.is_alike(&there) && wrap(here.clone()).is_alike(&wrap(there)));
        assert!(!here.is_alike(&udt("here", CqlType::Text)));
        assert!(!here.is_alike(&CqlType::Tuple(vec![CqlType::Int])));
        assert!(
            !CqlType::Tuple(vec![CqlType::Int]).is_alike(&CqlType::Tuple(vec![CqlType::Int, CqlType::Int]))
        );
    }
}
