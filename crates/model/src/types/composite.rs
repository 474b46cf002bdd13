//! Several values in one: what compound partition keys are, and were the column names of Cassandra 2.
//!
//! ```text
//! composite   [0xffff] ( len:u16 value end:i8 )*
//! dynamic     ( kind len:u16 value end:i8 )*
//! kind        0x80 alias:u8 | len:u16 name of a type
//! ```
//!
//! `end` is 0 but in the bounds of slices, where -1 stands before and 1 after what begins in the same way.
//! As text, values are joined by colons; colons in them are escaped, and a dynamic one begins with `kind@`.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::compare::compare_ranked;
use super::names::PACKAGE;
use super::parts::{put_short, take_array, take_short, take_static_marker};
use super::{CqlType, TypeError};

/// Where the types of the components come from.
#[derive(Clone, Copy)]
pub(super) enum Kinds<'t> {
    /// The type itself lists them.
    Listed(&'t [CqlType]),
    /// Each component names its own, or an alias out of these.
    Named(&'t [(u8, CqlType)]),
}

/// One component of a composite.
struct Component<'t, 'v> {
    kind: Cow<'t, CqlType>,
    /// What the component calls its type, with `@`; nothing where the composite lists the types.
    label: String,
    value: &'v [u8],
    end: i8,
}

/// The order of composites whose types are listed.
pub(super) fn compare(kinds: &[CqlType], a: &[u8], b: &[u8]) -> Ordering {
    Kinds::Listed(kinds).compare(a, b)
}

/// The order of composites that name their types.
pub(super) fn compare_dynamic(aliases: &[(u8, CqlType)], a: &[u8], b: &[u8]) -> Ordering {
    Kinds::Named(aliases).compare(a, b)
}

impl<'t> Kinds<'t> {
    fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        compare_ranked(
            a,
            b,
            |value| self.is_whole(value),
            |mut a, mut b| {
                let statics = (self.take_static(&mut a), self.take_static(&mut b));
                if statics.0 != statics.1 {
                    return statics.1.cmp(&statics.0);
                }
                let mut index = 0;
                while !a.is_empty() && !b.is_empty() {
                    let (Some(a), Some(b)) = (self.take(index, &mut a), self.take(index, &mut b)) else {
                        break;
                    };
                    let order = a.compare(&b);
                    if order != Ordering::Equal {
                        return order;
                    }
                    index += 1;
                }
                b.is_empty().cmp(&a.is_empty())
            },
        )
    }

    /// Checks every component, and that no other follows one whose end is not 0.
    pub(super) fn validate(self, value: &[u8]) -> Result<(), TypeError> {
        let mut rest = value;
        self.take_static(&mut rest);
        let mut index = 0;
        while !rest.is_empty() {
            let component = self.take_or_refuse(index, &mut rest)?;
            component.kind.validate(component.value)?;
            if component.end != 0 && !rest.is_empty() {
                return Err(TypeError::bytes(
                    "composite",
                    format!("bytes after component {index}, which ends it"),
                ));
            }
            index += 1;
        }
        Ok(())
    }

    /// Appends the text.
    pub(super) fn write_text(self, value: &[u8], out: &mut String) -> Result<(), TypeError> {
        let mut rest = value;
        self.take_static(&mut rest);
        let mut index = 0;
        while !rest.is_empty() {
            out.push_str(if index == 0 { "" } else { ":" });
            let component = self.take_or_refuse(index, &mut rest)?;
            out.push_str(&component.label);
            out.push_str(&escape(&component.kind.to_text(component.value)?));
            if component.end != 0 {
                out.push_str(if component.end < 0 { ":_" } else { ":!" });
                break;
            }
            index += 1;
        }
        Ok(())
    }

    /// Reads the text.
    pub(super) fn parse_text(self, text: &str) -> Result<Vec<u8>, TypeError> {
        let mut out = Vec::new();
        for (index, part) in split(text).into_iter().enumerate() {
            let end = match part {
                "!" => 1,
                "_" => 0xff,
                _ => {
                    self.put_part(index, part, &mut out)?;
                    continue;
                }
            };
            if let Some(last) = out.last_mut() {
                *last = end;
            }
            break;
        }
        Ok(out)
    }

    fn put_part(self, index: usize, part: &str, out: &mut Vec<u8>) -> Result<(), TypeError> {
        let refuse = |what: &str| TypeError::text("composite", part, what);
        let (kind, part) = match self {
            Kinds::Listed(kinds) => (
                Cow::Borrowed(kinds.get(index).ok_or_else(|| refuse("there are too many components"))?),
                part,
            ),
            Kinds::Named(aliases) => {
                let (name, part) = part.split_once('@').unwrap_or((part, ""));
                (put_kind(aliases, name, out)?, part)
            }
        };
        let value = kind.from_text(&unescape(part))?;
        kind.validate(&value)?;
        put_short(&value, out).ok_or_else(|| refuse("it is too long"))?;
        out.push(0);
        Ok(())
    }

    fn take_static(self, rest: &mut &[u8]) -> bool {
        matches!(self, Kinds::Listed(_)) && take_static_marker(rest)
    }

    /// Whether the bytes are components whose types are known, and nothing else.
    fn is_whole(self, value: &[u8]) -> bool {
        let mut rest = value;
        self.take_static(&mut rest);
        let mut index = 0;
        while !rest.is_empty() && self.take(index, &mut rest).is_some() {
            index += 1;
        }
        rest.is_empty()
    }

    fn take_or_refuse<'v>(self, index: usize, rest: &mut &'v [u8]) -> Result<Component<'t, 'v>, TypeError> {
        let component = self.take(index, rest);
        component
            .ok_or_else(|| TypeError::bytes("composite", format!("component {index} is cut, or of no type")))
    }

    /// Takes a component; `None`, and nothing is taken, if it is cut or its type is not known.
    fn take<'v>(self, index: usize, rest: &mut &'v [u8]) -> Option<Component<'t, 'v>> {
        let mut tail = *rest;
        let (kind, label) = match self {
            Kinds::Listed(kinds) => (Cow::Borrowed(kinds.get(index)?), String::new()),
            Kinds::Named(aliases) => take_kind(aliases, &mut tail)?,
        };
        let value = take_short(&mut tail)?;
        let [end] = take_array(&mut tail)?;
        *rest = tail;
        Some(Component { kind, label, value, end: end as i8 })
    }
}

impl Component<'_, '_> {
    /// Orders components by their types' names, where those differ, then by value and end.
    fn compare(&self, other: &Component<'_, '_>) -> Ordering {
        let mut order = Ordering::Equal;
        if self.kind != other.kind {
            order = class_names(&self.kind, &other.kind).cmp(&class_names(&other.kind, &self.kind));
            order = order.then_with(|| self.kind.to_string().cmp(&other.kind.to_string()));
        }
        order.then_with(|| self.kind.compare(self.value, other.value)).then_with(|| self.end.cmp(&other.end))
    }
}

/// The class of a type without and with its package; what both reverse is looked at as it is forward.
fn class_names(kind: &CqlType, other: &CqlType) -> (String, String) {
    let both_reversed = kind.is_reversed() && other.is_reversed();
    let name = if both_reversed { kind.unreversed() } else { kind }.to_string();
    let name = name.strip_prefix(&format!("{PACKAGE}FrozenType(")).unwrap_or(&name);
    let class = name.split('(').next().unwrap_or(name);
    (class.rsplit('.').next().unwrap_or(class).to_owned(), class.to_owned())
}

/// Takes the type that a component names, and what it calls it.
///
/// A type that would name further ones itself is not known: its values could nest without bound.
fn take_kind<'t>(aliases: &'t [(u8, CqlType)], rest: &mut &[u8]) -> Option<(Cow<'t, CqlType>, String)> {
    let &[first, alias, ..] = *rest else { return None };
    if first & 0x80 != 0 {
        *rest = &rest[2..];
        return Some((Cow::Borrowed(find_alias(aliases, alias)?), format!("{}@", char::from(alias))));
    }
    let name = std::str::from_utf8(take_short(rest)?).ok()?;
    Some((Cow::Owned(parse_kind(name)?), format!("{name}@")))
}

fn put_kind<'t>(
    aliases: &'t [(u8, CqlType)],
    name: &str,
    out: &mut Vec<u8>,
) -> Result<Cow<'t, CqlType>, TypeError> {
    if let &[alias] = name.as_bytes()
        && let Some(kind) = find_alias(aliases, alias)
    {
        out.extend_from_slice(&[0x80, alias]);
        return Ok(Cow::Borrowed(kind));
    }
    let kind = parse_kind(name).filter(|_| name.len() < 0x8000);
    put_short(name.as_bytes(), out)
        .and(kind)
        .map(Cow::Owned)
        .ok_or_else(|| TypeError::text("dynamic composite", name, "the name of a type was expected"))
}

fn find_alias(aliases: &[(u8, CqlType)], alias: u8) -> Option<&CqlType> {
    aliases.iter().find(|known| known.0 == alias).map(|known| &known.1)
}

fn parse_kind(name: &str) -> Option<CqlType> {
    CqlType::parse(name).ok().filter(|_| !name.contains("DynamicCompositeType"))
}

/// The parts between colons that have no backslash before them.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(':').filter(|(at, _)| !text[..*at].ends_with('\\')) {
        parts.push(&text[start..at]);
        start = at + 1;
    }
    if !text.is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

/// With colons escaped; an end that would look like an escape itself is closed by an exclamation mark.
fn escape(text: &str) -> String {
    let mut escaped = text.replace(':', "\\:");
    if escaped.ends_with(['\\', '!']) {
        escaped.push('!');
    }
    escaped
}

fn unescape(text: &str) -> String {
    let plain = text.replace("\\:", ":");
    plain.strip_suffix('!').map(str::to_owned).unwrap_or(plain)
}
