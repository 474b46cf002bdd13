//! What can be wrong with a type's name, with a value's bytes, or with the text of a value.

use thiserror::Error;

/// Why a type string, the bytes of a value, or the text of a value was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TypeError {
    /// The name of a type does not follow Cassandra's grammar.
    #[error("type '{text}', at character {at}: {what}")]
    Syntax {
        /// The whole text that was parsed.
        text: String,
        /// The byte offset in `text` at which parsing stopped.
        at: usize,
        /// What was expected there.
        what: String,
    },
    /// The bytes are not a value of the type.
    #[error("not a {kind}: {what}")]
    Bytes {
        /// The CQL name of the type.
        kind: &'static str,
        /// What is wrong with the bytes.
        what: String,
    },
    /// The text or JSON is not a value of the type.
    #[error("cannot read {text} as {kind}: {what}")]
    Text {
        /// The CQL name of the type.
        kind: &'static str,
        /// The text that was read.
        text: String,
        /// What is wrong with it.
        what: String,
    },
}

impl TypeError {
    /// A cell is of a field that its user defined type does not have.
    pub fn no_such_field() -> TypeError {
        TypeError::bytes("user defined type", "it has no such field")
    }

    /// The bytes are not a value of type `kind`.
    pub(crate) fn bytes(kind: &'static str, what: impl Into<String>) -> TypeError {
        TypeError::Bytes { kind, what: what.into() }
    }

    /// `text` is not a value of type `kind`.
    pub(crate) fn text(kind: &'static str, text: impl Into<String>, what: impl Into<String>) -> TypeError {
        TypeError::Text { kind, text: text.into(), what: what.into() }
    }
}
