//! CQL's statements, as far as they tell what a table is.
//!
//! ```text
//! CREATE TABLE [IF NOT EXISTS] [ks.]t ( column type [STATIC] [MASKED …] [PRIMARY KEY], …, PRIMARY KEY ((a, b), c) )
//!     [WITH option AND option …]
//! CREATE TYPE [IF NOT EXISTS] [ks.]t ( field type, … )
//! ALTER TABLE [IF EXISTS] [ks.]t ADD [IF NOT EXISTS] … | DROP [IF EXISTS] … | WITH …
//! USE ks
//! ```
//!
//! What else would alter a type or the table is an error; all other statements are passed over.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;

use model::CqlType;
use model::merge::holds;
use model::types::{TypeError, UserType};

use super::draft::{Draft, DraftColumn};
use super::lexer::{Kind, Token, tokens};
use super::{Alteration, FolderName, OptionValue, Parsed, TableSchema, Wanted, Wrong};

/// The table that a text creates. What names no keyspace is in this one, until the text uses another.
/// From the byte `new` on it is what alters the table now.
pub(super) fn parse(
    text: &str,
    table: Option<&str>,
    keyspace: Option<&str>,
    new: usize,
) -> Parsed<TableSchema> {
    let tokens = tokens(text)?;
    let mut schema = Schema::new(text, keyspace, new);
    let (found, _) = schema.find_table(&tokens, &Wanted { name: table })?;
    let mut draft = Draft::default();
    for statement in statements(&tokens) {
        let mut cursor = Cursor::new(text, statement);
        if cursor.eat("USE") {
            schema.keyspace = Some(cursor.name()?);
        } else if cursor.eat("CREATE") && cursor.eat("TYPE") {
            schema.create_type(&mut cursor)?;
        } else if statement[0].at == found {
            cursor.eat_any(&["TABLE", "COLUMNFAMILY"]);
            draft = schema.create_table(&mut cursor)?;
        } else if statement[0].is("ALTER") {
            schema.alter(&mut Cursor::new(text, &statement[1..]), &mut draft)?;
        }
    }
    draft.build().map_err(|what| Wrong::new(found, what))
}

/// The statements that tell what a table is, each with its semicolon.
pub(super) fn statements_of(text: &str, table: Option<&str>) -> Parsed<String> {
    let tokens = tokens(text)?;
    let mut schema = Schema::new(text, None, text.len());
    let (_, own) = schema.find_table(&tokens, &Wanted { name: table })?;
    let mut own_text = String::new();
    for statement in statements(&tokens) {
        let is_kept = match schema.about(statement)? {
            About::Use => true,
            About::Type(keyspace) => keyspace == own.0,
            About::Table(name) => name == own,
            About::Other => false,
        };
        if let ([first, ..], [.., last], true) = (statement, statement, is_kept) {
            own_text.push_str(&text[first.at..last.end()]);
            own_text.push_str(";\n");
        }
    }
    Ok(own_text)
}

/// Whether a text in the folder of a table creates a materialized view that is called so, and no table that is; or a view and no table.
pub(super) fn is_of_view(text: &str, folder: &FolderName) -> bool {
    let Ok(tokens) = tokens(text) else { return false };
    let schema = Schema::new(text, folder.keyspace.as_deref(), text.len());
    let names = |what: &[&str]| {
        let created = |statement| {
            let mut cursor = Cursor::new(text, statement);
            let is_it = cursor.eat("CREATE") && what.iter().all(|word| cursor.eat(word));
            is_it.then(|| schema.qualified(&mut cursor, UNLESS_IT_IS).unwrap_or_default())
        };
        statements(&tokens).filter_map(created).collect::<Vec<_>>()
    };
    // The folder above it may be that of a backup.
    let is_it = |(_, name): &Qualified| *name == folder.table;
    let tables = [names(&["TABLE"]), names(&["COLUMNFAMILY"])].concat();
    let views = names(&["MATERIALIZED", "VIEW"]);
    let has_it = views.iter().any(is_it) && !tables.iter().any(is_it);
    has_it || (!views.is_empty() && tables.is_empty())
}

/// The names of the tables that a text creates, each with its keyspace: the given one where none is told.
pub(super) fn tables(text: &str, keyspace: Option<&str>) -> Parsed<Vec<Qualified>> {
    let tokens = tokens(text)?;
    let created = Schema::new(text, keyspace, text.len()).created(&tokens)?;
    Ok(created.into_iter().map(|(_, name)| name).collect())
}

/// The one `ALTER TABLE` statement that a text is.
pub(super) fn parse_alteration(text: &str) -> Parsed<Alteration> {
    let tokens = tokens(text)?;
    let mut all = statements(&tokens);
    let (first, more) = (all.next(), all.next());
    let statement = first.filter(|_| more.is_none());
    let statement = statement.ok_or_else(|| Wrong::new(0, "one ALTER TABLE statement was expected"))?;
    let mut cursor = Cursor::new(text, statement);
    cursor.expect("ALTER")?;
    cursor.expect("TABLE")?;
    let may_be_missing = cursor.is("IF");
    let (keyspace, table) = Schema::new(text, None, 0).qualified(&mut cursor, IF_IT_IS)?;
    let keyspace = keyspace.ok_or_else(|| cursor.error("the keyspace was expected, as in ks.table"))?;
    let is_drop = cursor.eat("DROP");
    // A column may be called so.
    let tells_time = |pair: &[Token<'_>; 2]| pair[0].is("USING") && pair[1].is("TIMESTAMP");
    let needs_timestamp = is_drop && !statement.array_windows().any(tells_time);
    let text = text[statement[0].at..statement.last().map_or(0, Token::end)].to_owned();
    Ok(Alteration { table: format!("{keyspace}.{table}"), may_be_missing, text, needs_timestamp })
}

/// Whether a text creates a table only if it is not there.
pub(super) fn may_be_there(text: &str) -> Parsed<bool> {
    let tokens = tokens(text)?;
    let is_conditional = |statement| {
        let mut cursor = Cursor::new(text, statement);
        cursor.eat("CREATE") && cursor.eat_any(TABLE) && cursor.is("IF")
    };
    Ok(statements(&tokens).any(is_conditional))
}

/// A CQL type in a text, with the error at its place in the text.
pub(super) fn parse_type(text: &str, at: usize, find: &model::types::FindUserType<'_>) -> Parsed<CqlType> {
    CqlType::parse_cql(text, find).map_err(|error| match error {
        TypeError::Syntax { at: within, what, .. } => Wrong::new(at + within, what),
        other => Wrong::new(at, other.to_string()),
    })
}

/// A text behind which a statement stands for itself: its last statement may have no semicolon, and its last line may be a comment.
pub(super) fn ended(text: &str) -> Parsed<String> {
    let is_ended = tokens(text)?.last().is_none_or(|token| token.is(";"));
    let line = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Ok(format!("{text}{line}{}", if is_ended { "" } else { ";\n" }))
}

/// The statements of a text, each with a token at least.
fn statements<'t, 'a>(tokens: &'t [Token<'a>]) -> impl Iterator<Item = &'t [Token<'a>]> {
    tokens.split(|token| token.is(";")).filter(|statement| !statement.is_empty())
}

/// A name, with its keyspace where that is told.
pub(super) type Qualified = (Option<String>, String);

/// What a statement is about.
enum About {
    /// The keyspace from here on.
    Use,
    /// A type of a keyspace that is created.
    Type(Option<String>),
    /// A table that is created or altered.
    Table(Qualified),
    Other,
}

/// What a table is called.
const TABLE: &[&str] = &["TABLE", "COLUMNFAMILY"];

/// What stands behind `IF` where something is made only if it is not there, and where it is altered only if it is.
const UNLESS_IT_IS: &[&str] = &["NOT", "EXISTS"];
const IF_IT_IS: &[&str] = &["EXISTS"];

/// A type is made of so many others at the most, those of its user types among them.
const LARGEST_TYPE: usize = 10_000;

/// Of how many types one is made, itself among them.
fn size_of(data_type: &CqlType) -> usize {
    let count = Cell::new(0);
    data_type.any(&|_| {
        count.update(|count| count + 1);
        false
    });
    count.get()
}

/// What the statements so far have said.
struct Schema<'a> {
    text: &'a str,
    new: usize,
    /// The one in use.
    keyspace: Option<String>,
    types: HashMap<Qualified, UserType>,
}

impl<'a> Schema<'a> {
    fn new(text: &'a str, keyspace: Option<&str>, new: usize) -> Schema<'a> {
        Schema { text, new, keyspace: keyspace.map(str::to_owned), types: HashMap::new() }
    }

    /// What a statement is about, which comes behind those that were asked for before.
    fn about(&mut self, statement: &[Token<'_>]) -> Parsed<About> {
        let mut cursor = Cursor::new(self.text, statement);
        if cursor.eat("USE") {
            self.keyspace = Some(cursor.name()?);
            return Ok(About::Use);
        }
        let is_create = cursor.eat("CREATE");
        if is_create && cursor.eat("TYPE") {
            return Ok(About::Type(self.qualified(&mut cursor, UNLESS_IT_IS)?.0));
        }
        let condition = if is_create { UNLESS_IT_IS } else { IF_IT_IS };
        match (is_create || cursor.eat("ALTER")) && cursor.eat_any(TABLE) {
            true => Ok(About::Table(self.qualified(&mut cursor, condition)?)),
            false => Ok(About::Other),
        }
    }

    /// The tables that are created, each with where its statement begins. The keyspace in use is then what it was.
    fn created(&mut self, tokens: &[Token<'_>]) -> Parsed<Vec<(usize, Qualified)>> {
        let (keyspace, mut all) = (self.keyspace.clone(), Vec::new());
        for statement in statements(tokens) {
            if let (About::Table(name), true) = (self.about(statement)?, statement[0].is("CREATE")) {
                all.push((statement[0].at, name));
            }
        }
        self.keyspace = keyspace;
        Ok(all)
    }

    /// Where the statement begins that creates the table, and its name.
    fn find_table(&mut self, tokens: &[Token<'_>], wanted: &Wanted<'_>) -> Parsed<(usize, Qualified)> {
        let all = self.created(tokens)?;
        let named = |(keyspace, table): &(Option<String>, String)| match keyspace {
            Some(keyspace) => format!("{keyspace}.{table}"),
            None => table.clone(),
        };
        let list = || all.iter().map(|(_, name)| named(name)).collect::<Vec<_>>().join(", ");
        let is_wanted = |(keyspace, table): &(Option<String>, String)| wanted.is(keyspace.as_deref(), table);
        let mut found = all.iter().filter(|(_, name)| is_wanted(name));
        match (found.next(), found.next(), wanted.name) {
            (Some(found), None, _) => Ok(found.clone()),
            (None, ..) if all.is_empty() => Err(Wrong::new(0, "there is no CREATE TABLE")),
            (None, _, name) => {
                Err(Wrong::new(0, format!("there is no table {}, but {}", name.unwrap_or_default(), list())))
            }
            (Some(_), Some((at, _)), _) => {
                Err(Wrong::new(*at, format!("one of several tables has to be named: {}", list())))
            }
        }
    }

    /// `[IF … EXISTS] [keyspace.]name`
    fn qualified(&self, cursor: &mut Cursor<'_, '_>, condition: &[&str]) -> Parsed<Qualified> {
        cursor.eat_condition(condition)?;
        let first = cursor.name()?;
        match cursor.eat(".") {
            true => Ok((Some(first), cursor.name()?)),
            false => Ok((self.keyspace.clone(), first)),
        }
    }

    fn create_type(&mut self, cursor: &mut Cursor<'_, '_>) -> Parsed<()> {
        let (keyspace, name) = self.qualified(cursor, UNLESS_IT_IS)?;
        let mut fields: Vec<(String, CqlType)> = Vec::new();
        let mut size = 1;
        cursor.expect("(")?;
        loop {
            let field = cursor.name()?;
            if fields.iter().any(|(other, _)| *other == field) {
                return Err(cursor.error(format!("the field {field} is there twice")));
            }
            let data_type = self.data_type(cursor, keyspace.as_deref())?;
            size += size_of(&data_type);
            if size > LARGEST_TYPE {
                return Err(
                    cursor.error(format!("the type {name} is made of more than {LARGEST_TYPE} others"))
                );
            }
            fields.push((field, data_type));
            if !cursor.eat(",") {
                break;
            }
        }
        cursor.expect(")")?;
        cursor.end()?;
        let user_type = UserType {
            keyspace: keyspace.clone().unwrap_or_default(),
            name: name.clone(),
            fields,
            frozen: false,
        };
        self.types.insert((keyspace, name), user_type);
        Ok(())
    }

    fn create_table(&self, cursor: &mut Cursor<'_, '_>) -> Parsed<Draft> {
        let (keyspace, table) = self.qualified(cursor, UNLESS_IT_IS)?;
        let mut draft = Draft { keyspace, table, ..Draft::default() };
        cursor.expect("(")?;
        loop {
            match cursor.is_primary_key() {
                true => primary_key(cursor, &mut draft)?,
                false => self.column(cursor, &mut draft)?,
            }
            // A comma may stand behind the last one.
            if !cursor.eat(",") || cursor.is(")") {
                break;
            }
        }
        cursor.expect(")")?;
        if cursor.eat("WITH") {
            options(cursor, &mut draft)?;
        }
        cursor.end()?;
        Ok(draft)
    }

    /// `name type [STATIC] [MASKED …] [PRIMARY KEY]`
    fn column(&self, cursor: &mut Cursor<'_, '_>, draft: &mut Draft) -> Parsed<()> {
        let name = cursor.name()?;
        let data_type = self.data_type(cursor, draft.keyspace.as_deref())?;
        let is_static = cursor.eat("STATIC");
        if cursor.is("MASKED") {
            cursor.skip_until(|cursor| cursor.is(",") || cursor.is_primary_key());
        }
        if cursor.is_primary_key() {
            if !draft.partition_key.is_empty() {
                return Err(cursor.error("there is a second primary key"));
            }
            cursor.at += 2;
            draft.partition_key = vec![name.clone()];
        }
        draft.columns.push(DraftColumn { name, data_type, is_static });
        Ok(())
    }

    /// A column of a table that has been there. From now on one that was dropped may come back, but not as something else: there may be
    /// files that have it as it was. What is of it in older texts is what servers have allowed.
    fn added(&self, cursor: &mut Cursor<'_, '_>, draft: &mut Draft, may_be_there: bool) -> Parsed<()> {
        self.column(cursor, draft)?;
        let is_there =
            |(new, others): (&DraftColumn, &[DraftColumn])| others.iter().any(|other| other.name == new.name);
        if may_be_there && draft.columns.split_last().is_some_and(is_there) {
            draft.columns.pop();
            return Ok(());
        }
        let Some(new) = draft.columns.last().filter(|_| cursor.offset() >= self.new) else { return Ok(()) };
        let is_other = |old: &&DraftColumn| {
            old.name == new.name && (old.is_static != new.is_static || !holds(&new.data_type, &old.data_type))
        };
        match draft.dropped_columns.iter().find(is_other) {
            None => Ok(()),
            Some(old) => {
                let kind = |column: &DraftColumn| if column.is_static { "static " } else { "" };
                Err(cursor.error(format!(
                    "{} was dropped as a {}{}: it cannot come back as a {}{}",
                    new.name,
                    kind(old),
                    old.data_type.cql_name(),
                    kind(new),
                    new.data_type.cql_name(),
                )))
            }
        }
    }

    /// A type: everything up to what may follow one.
    fn data_type(&self, cursor: &mut Cursor<'_, '_>, keyspace: Option<&str>) -> Parsed<CqlType> {
        const BEHIND: [&str; 4] = ["STATIC", "MASKED", ",", ")"];
        let (first, start) = (cursor.at, cursor.offset());
        let end =
            cursor.skip_until(|cursor| BEHIND.iter().any(|word| cursor.is(word)) || cursor.is_primary_key());
        let (other, mut size) = (RefCell::new(None), Cell::new(1));
        let find = |named: Option<&str>, name: &str| {
            if let (Some(named), Some(keyspace)) = (named, keyspace)
                && named != keyspace
            {
                other.replace(Some(format!(
                    "a table of {keyspace} has no types of another keyspace, as {named}.{name} is"
                )));
                return None;
            }
            let known = self.types.get(&(named.or(keyspace).map(str::to_owned), name.to_owned()))?;
            // Those that one is made of are in it as a whole.
            size.update(|size| size + known.fields.iter().map(|(_, field)| size_of(field)).sum::<usize>());
            (size.get() <= LARGEST_TYPE).then(|| known.clone())
        };
        let parsed = parse_type(&cursor.without_comments(first, start..end.max(start)), start, &find);
        let is_large = *size.get_mut() > LARGEST_TYPE;
        match other.into_inner() {
            Some(what) => Err(Wrong::new(start, what)),
            None if is_large => {
                Err(Wrong::new(start, format!("the type is made of more than {LARGEST_TYPE} others")))
            }
            None => parsed,
        }
    }

    /// What happens to the table after it was created. A type that is altered would have to be looked at again.
    fn alter(&self, cursor: &mut Cursor<'_, '_>, draft: &mut Draft) -> Parsed<()> {
        if cursor.eat("TYPE") {
            return Err(cursor.error("ALTER TYPE is not followed: write the type as it is now"));
        }
        if !cursor.eat_any(&["TABLE", "COLUMNFAMILY"]) {
            return Ok(());
        }
        let (keyspace, table) = self.qualified(cursor, IF_IT_IS)?;
        if (&keyspace, &table) != (&draft.keyspace, &draft.table) {
            return Ok(());
        }
        if cursor.eat("WITH") {
            let was_compact = draft.is_compact;
            options(cursor, draft)?;
            if draft.is_compact != was_compact {
                return Err(cursor.error("COMPACT STORAGE is told where a table is created, and stays"));
            }
        } else if cursor.eat("ADD") {
            let may_be_there = cursor.eat_condition(UNLESS_IT_IS)?;
            let in_brackets = cursor.eat("(");
            self.added(cursor, draft, may_be_there)?;
            while cursor.eat(",") {
                self.added(cursor, draft, may_be_there)?;
            }
            if in_brackets {
                cursor.expect(")")?;
            }
        } else if cursor.eat("DROP") {
            drop_columns(cursor, draft)?;
        } else {
            return Err(cursor.error("of ALTER TABLE only ADD, DROP and WITH are followed"));
        }
        cursor.end()
    }
}

/// `DROP [IF EXISTS] a`, `DROP a, b`, `DROP (a, b)`, each maybe `USING TIMESTAMP n`. Without a timestamp it is not known when they
/// were dropped.
fn drop_columns(cursor: &mut Cursor<'_, '_>, draft: &mut Draft) -> Parsed<()> {
    let may_be_missing = cursor.eat_condition(IF_IT_IS)?;
    let in_brackets = cursor.eat("(");
    let mut names = vec![cursor.name()?];
    while cursor.eat(",") {
        names.push(cursor.name()?);
    }
    if in_brackets {
        cursor.expect(")")?;
    }
    if may_be_missing {
        names.retain(|name| draft.columns.iter().any(|column| column.name == *name));
    }
    draft.dropped_columns.extend(draft.columns.extract_if(.., |column| names.contains(&column.name)));
    if cursor.eat("USING") {
        cursor.expect("TIMESTAMP")?;
        let at = cursor.number()?;
        draft.dropped.extend(names.into_iter().map(|name| (name, at)));
    }
    Ok(())
}

/// `PRIMARY KEY ((a, b), c, d)`
fn primary_key(cursor: &mut Cursor<'_, '_>, draft: &mut Draft) -> Parsed<()> {
    if !draft.partition_key.is_empty() {
        return Err(cursor.error("there is a second primary key"));
    }
    cursor.at += 2;
    cursor.expect("(")?;
    draft.partition_key = match cursor.eat("(") {
        true => names_up_to(cursor, ")")?,
        false => vec![cursor.name()?],
    };
    if cursor.eat(",") {
        draft.clustering = names_up_to(cursor, ")")?;
        return Ok(());
    }
    cursor.expect(")")
}

fn names_up_to(cursor: &mut Cursor<'_, '_>, end: &str) -> Parsed<Vec<String>> {
    let mut names = vec![cursor.name()?];
    while cursor.eat(",") {
        names.push(cursor.name()?);
    }
    cursor.expect(end)?;
    Ok(names)
}

/// `option AND option …`
fn options(cursor: &mut Cursor<'_, '_>, draft: &mut Draft) -> Parsed<()> {
    loop {
        if cursor.eat("COMPACT") {
            cursor.expect("STORAGE")?;
            draft.is_compact = true;
        } else if cursor.eat("CLUSTERING") {
            ["ORDER", "BY", "("].into_iter().try_for_each(|word| cursor.expect(word))?;
            clustering_order(cursor, draft)?;
        } else {
            let name = cursor.name()?;
            cursor.expect("=")?;
            draft.options.set(name, option_value(cursor)?);
        }
        if !cursor.eat("AND") {
            return Ok(());
        }
    }
}

fn clustering_order(cursor: &mut Cursor<'_, '_>, draft: &mut Draft) -> Parsed<()> {
    loop {
        let name = cursor.name()?;
        if cursor.eat("DESC") {
            draft.descending.push(name);
        } else {
            cursor.eat("ASC");
        }
        if !cursor.eat(",") {
            return cursor.expect(")");
        }
    }
}

fn option_value(cursor: &mut Cursor<'_, '_>) -> Parsed<OptionValue> {
    if !cursor.is("{") {
        return cursor.text_until(|cursor| cursor.is("AND")).map(OptionValue::Text);
    }
    cursor.expect("{")?;
    let mut entries = Vec::new();
    while !cursor.eat("}") {
        let name = cursor.text_until(|cursor| cursor.is(":"))?;
        cursor.expect(":")?;
        let value = cursor.text_until(|cursor| cursor.is(",") || cursor.is("}"))?;
        entries.push((name, value));
        cursor.eat(",");
    }
    Ok(OptionValue::Map(entries))
}

/// Where a statement is read.
struct Cursor<'t, 'a> {
    text: &'a str,
    tokens: &'t [Token<'a>],
    at: usize,
}

impl<'t, 'a> Cursor<'t, 'a> {
    fn new(text: &'a str, tokens: &'t [Token<'a>]) -> Cursor<'t, 'a> {
        Cursor { text, tokens, at: 0 }
    }

    fn peek(&self) -> Option<&'t Token<'a>> {
        self.tokens.get(self.at)
    }

    fn is(&self, wanted: &str) -> bool {
        self.peek().is_some_and(|token| token.is(wanted))
    }

    fn is_primary_key(&self) -> bool {
        self.is("PRIMARY") && self.tokens.get(self.at + 1).is_some_and(|token| token.is("KEY"))
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let found = self.is(wanted);
        self.at += usize::from(found);
        found
    }

    fn eat_any(&mut self, wanted: &[&str]) -> bool {
        wanted.iter().any(|wanted| self.eat(wanted))
    }

    fn expect(&mut self, wanted: &str) -> Parsed<()> {
        if self.eat(wanted) { Ok(()) } else { Err(self.error(format!("{wanted} was expected"))) }
    }

    /// `IF` and these words, if it is there; whether it is.
    fn eat_condition(&mut self, words: &[&str]) -> Parsed<bool> {
        let is_there = self.eat("IF");
        if is_there {
            words.iter().try_for_each(|word| self.expect(word))?;
        }
        Ok(is_there)
    }

    fn name(&mut self) -> Parsed<String> {
        let name = self.peek().and_then(Token::name).ok_or_else(|| self.error("a name was expected"))?;
        self.at += 1;
        Ok(name)
    }

    fn number(&mut self) -> Parsed<i64> {
        let is_negative = self.eat("-");
        let number = self.peek().and_then(|token| token.text.parse::<i64>().ok());
        let number = number.ok_or_else(|| self.error("an integer was expected"))?;
        self.at += 1;
        Ok(if is_negative { -number } else { number })
    }

    fn end(&self) -> Parsed<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("the end of the statement was expected")),
        }
    }

    /// Goes on to where something stands outside of all brackets, but not beyond the ones that are open; where
    /// the last token before it ends.
    fn skip_until(&mut self, is_end: impl Fn(&Self) -> bool) -> usize {
        let start = self.at;
        let mut depth = 0usize;
        while let Some(token) = self.peek() {
            if depth == 0 && is_end(self) {
                break;
            }
            match token.text {
                "(" | "{" | "<" | "[" if token.kind == Kind::Symbol => depth += 1,
                ")" | "}" | ">" | "]" if token.kind == Kind::Symbol => match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => break,
                },
                _ => {}
            }
            self.at += 1;
        }
        if self.at == start { self.offset() } else { self.tokens[self.at - 1].end() }
    }

    /// The same, as text: without its quotes, if it is but one token.
    fn text_until(&mut self, is_end: impl Fn(&Self) -> bool) -> Parsed<String> {
        let (first, start) = (self.at, self.offset());
        let end = self.skip_until(is_end);
        match self.at - first {
            0 => Err(self.error("a value was expected")),
            1 => Ok(self.tokens[first].content().into_owned()),
            _ => Ok(self.text[start..end].to_owned()),
        }
    }

    /// What was read since this token, with room in the place of comments: what stands behind these is where it was.
    fn without_comments(&self, first: usize, part: Range<usize>) -> String {
        let mut text = String::with_capacity(part.len());
        for token in &self.tokens[first..self.at] {
            text.extend(std::iter::repeat_n(' ', token.at - part.start - text.len()));
            text.push_str(token.text);
        }
        text
    }

    /// Bytes from the start of the text.
    fn offset(&self) -> usize {
        let end = || self.tokens.last().map_or(0, Token::end);
        self.peek().map_or_else(end, |token| token.at)
    }

    fn error(&self, what: impl Into<String>) -> Wrong {
        Wrong::new(self.offset(), what)
    }
}
