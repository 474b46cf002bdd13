//! Tables as people and Cassandra write them, and what is wrong with some.

use model::CqlType;

use super::*;

fn parse(text: &str) -> TableSchema {
    TableSchema::parse(Path::new("schema"), text, None).unwrap()
}

fn error_of(text: &str, table: Option<&str>) -> String {
    TableSchema::parse(Path::new("schema"), text, table).unwrap_err().to_string()
}

fn error(text: &str) -> String {
    error_of(text, None)
}

fn names(columns: &[model::Column]) -> Vec<String> {
    columns.iter().map(|column| column.name_text().into_owned()).collect()
}

const CQL: &str = r#"
CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy'} AND durable_writes = true;
-- CREATE TABLE ks.not_this (k int PRIMARY KEY);
CREATE TYPE ks.addr (street text, tags frozen<set<text>>);
CREATE TYPE ks.person (name text, home frozen<addr>);
CREATE FUNCTION ks.f (i int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS $$ return i; $$;
CREATE TABLE IF NOT EXISTS ks."Users" (
    "Id" uuid,
    day date,
    c decimal,
    s map<text, frozen<person>> static,
    secret text MASKED WITH mask_inner(1, null),
    old int,
    home addr,
    v vector<float, 3>,
    PRIMARY KEY (("Id", day), c),
) WITH CLUSTERING ORDER BY (c DESC)
    AND ID = 5a1c395e-b41f-11e5-9f22-ba0be0483c18
    AND bloom_filter_fp_chance = 0.01
    AND comment = 'it''s; a comment'
    AND compression = {'chunk_length_in_kb': '16', 'class': 'LZ4Compressor', 'n': 5}
    AND caching = {};
ALTER TABLE ks."Users" DROP old USING TIMESTAMP 1700000000000000;
ALTER TABLE ks."Users" ADD new list<text>;
ALTER TABLE ks."Users" WITH comment = 'new';
CREATE INDEX ON ks."Users" (v);
"#;

#[test]
fn a_table_is_found_among_other_statements() {
    let table = parse(CQL);
    assert_eq!((table.keyspace.as_deref(), &*table.table), (Some("ks"), "Users"));
    assert_eq!((table.partition_key, table.clustering), (vec!["Id".into(), "day".into()], vec!["c".into()]));
    let schema = &table.schema;
    assert_eq!(schema.partition_key, CqlType::Composite(vec![CqlType::Uuid, CqlType::Date]));
    assert_eq!(schema.clustering, [CqlType::Reversed(Box::new(CqlType::Decimal))]);
    assert_eq!(table.dropped, [("old".to_owned(), 1_700_000_000_000_000)]);
    assert_eq!(names(&schema.statics), ["s"]);
    assert_eq!(names(&schema.regulars), ["secret", "v", "home", "new"]);
    assert_eq!(
        schema.regulars[2].data_type.to_string(),
        "org.apache.cassandra.db.marshal.UserType(ks,61646472,737472656574:org.apache.cassandra.db.marshal.UTF8Type,\
         74616773:org.apache.cassandra.db.marshal.FrozenType(org.apache.cassandra.db.marshal.SetType(\
         org.apache.cassandra.db.marshal.UTF8Type)))"
    );
}

#[test]
fn options_are_kept_as_text() {
    let options = parse(CQL).options;
    assert_eq!(options.text("id"), Some("5a1c395e-b41f-11e5-9f22-ba0be0483c18"));
    assert_eq!(options.text("bloom_filter_fp_chance"), Some("0.01"));
    assert_eq!(options.text("comment"), Some("new"));
    let compression: Vec<_> = options.map("compression").unwrap().iter().map(|(k, v)| (&**k, &**v)).collect();
    assert_eq!(compression, [("chunk_length_in_kb", "16"), ("class", "LZ4Compressor"), ("n", "5")]);
    assert_eq!(options.map("caching"), Some(&[][..]));
    assert_eq!((options.map("comment"), options.text("caching"), options.text("none")), (None, None, None));
}

#[test]
fn json_says_the_same_as_cql() {
    let json = r#"{
      "keyspace": "ks", "table": "Users",
      "types": [
        {"name": "addr", "fields": [{"name": "street", "type": "text"}, {"name": "tags", "type": "frozen<set<text>>"}]},
        {"name": "person", "fields": [{"name": "name", "type": "text"}, {"name": "home", "type": "frozen<addr>"}]}
      ],
      "partition_key": [{"name": "Id", "type": "uuid"}, {"name": "day", "type": "date"}],
      "clustering": [{"name": "c", "type": "decimal", "order": "desc"}],
      "static": [{"name": "s", "type": "map<text, frozen<person>>"}],
      "regular": [
        {"name": "secret", "type": "text"}, {"name": "home", "type": "addr"}, {"name": "v", "type": "vector<float, 3>"},
        {"name": "new", "type": "org.apache.cassandra.db.marshal.ListType(org.apache.cassandra.db.marshal.UTF8Type)"}
      ],
      "options": {"bloom_filter_fp_chance": 0.01, "compression": {"class": "LZ4Compressor", "n": 5}}
    }"#;
    let (json, cql) = (parse(json), parse(CQL));
    assert_eq!(json.schema, cql.schema);
    assert_eq!((json.keyspace, json.table), (cql.keyspace, cql.table));
    assert_eq!((json.partition_key, json.clustering), (cql.partition_key, cql.clustering));
    assert_eq!(json.options.text("bloom_filter_fp_chance"), Some("0.01"));
    assert_eq!(json.options.map("compression").unwrap()[1], ("n".to_owned(), "5".to_owned()));
}

#[test]
fn one_of_several_tables_is_named() {
    let text = "USE a; CREATE TABLE t (k int PRIMARY KEY); CREATE TABLE b.t (k text PRIMARY KEY);
                CREATE TABLE b.u (k text PRIMARY KEY, addr int);";
    assert_eq!(error(text), "schema:1:44: one of several tables has to be named: a.t, b.t, b.u");
    assert_eq!(
        error_of(text, Some("t")),
        "schema:1:44: one of several tables has to be named: a.t, b.t, b.u"
    );
    assert_eq!(error_of(text, Some("v")), "schema:1:1: there is no table v, but a.t, b.t, b.u");
    let key = |name| TableSchema::parse(Path::new(""), text, Some(name)).unwrap().schema.partition_key;
    assert_eq!((key("a.t"), key("b.t"), key("u")), (CqlType::Int, CqlType::Text, CqlType::Text));
    assert_eq!(error(" -- nothing\n"), "schema:1:1: there is no CREATE TABLE");
}

#[test]
fn compact_storage_has_columns_that_cql_does_not_show() {
    let schema = |rest: &str| parse(&format!("CREATE TABLE t ({rest}) WITH COMPACT STORAGE")).schema;
    let sparse = schema("k text PRIMARY KEY, a int, value text");
    assert_eq!(
        (names(&sparse.statics), names(&sparse.regulars)),
        (vec!["a".into(), "value".into()], vec!["value1".into()])
    );
    assert_eq!(
        (sparse.clustering, sparse.regulars[0].data_type.clone()),
        (vec![CqlType::Text], CqlType::Blob)
    );
    let dense = schema("k text, c int, PRIMARY KEY (k, c)");
    assert_eq!(
        (names(&dense.regulars), dense.regulars[0].data_type.clone()),
        (vec!["value".into()], CqlType::Empty)
    );
    let taken = schema("k text, value text, PRIMARY KEY (k, value)");
    assert_eq!(names(&taken.regulars), ["value1"], "a key has the name");
    let counter = schema("k text PRIMARY KEY, a counter");
    assert_eq!(counter.regulars[0].data_type, CqlType::Counter);
    let wide = "CREATE TABLE t (k int, c int, a int, b int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE";
    assert!(error(wide).contains("COMPACT STORAGE has one column"), "{}", error(wide));
}

#[test]
fn errors_say_where_and_what() {
    let wrong = [
        ("CREATE TABLE t (\n  k int,\n  v txt,\n  PRIMARY KEY (k))", "3:5: txt is neither a type of CQL"),
        ("CREATE TABLE t (\n  k int,\n  v map<int txt>)", "3:13: ',' was expected"),
        ("CREATE TABLE t (k int)", "1:1: the table t has no primary key"),
        ("CREATE TABLE t (k int, PRIMARY KEY (j))", "1:1: j is in the primary key, but is no column"),
        ("CREATE TABLE t (k int PRIMARY KEY, k int)", "1:1: the column k is there twice"),
        ("CREATE TABLE t (k int PRIMARY KEY, l int PRIMARY KEY)", "1:42: there is a second primary key"),
        (
            "CREATE TABLE t (k list<int> PRIMARY KEY)",
            "1:1: k is in the primary key and cannot be a list<int>",
        ),
        ("CREATE TABLE t (k int PRIMARY KEY, a counter, b int)", "1:1: b is no counter, but others are"),
        ("CREATE TABLE t (k int PRIMARY KEY) WITH a =", "1:44: a value was expected"),
        (
            "CREATE TABLE t (k int PRIMARY KEY) WITH CLUSTERING ORDER BY (x DESC)",
            "1:1: x has an order, but is no",
        ),
        ("CREATE TABLE t (k int PRIMARY KEY", "1:34: ) was expected"),
        ("CREATE TABLE t (k int PRIMARY KEY) nonsense", "1:36: the end of the statement was expected"),
        ("CREATE TABLE t (k int PRIMARY KEY, v 'a.b(')", "1:43: ')' was expected"),
        ("CREATE TABLE 'x", "1:14: a text in quotes is not closed"),
        (
            "CREATE TYPE a (f list<int>); CREATE TABLE t (k int PRIMARY KEY, v a)",
            "1:30: v: the field f of a type",
        ),
        ("ALTER TYPE a ADD x int; CREATE TABLE t (k int PRIMARY KEY)", "1:12: ALTER TYPE is not followed"),
        (
            "{\"table\":\"t\",\n \"partition_key\":[{\"name\":\"k\",\"type\":\"it\"}]}",
            "2:39: it is neither a type",
        ),
        ("{\"table\":\"t\",\n \"partition_key\":[{\"name\":\"k\"}]}", "2:19: type is missing"),
        ("{\"table\":\"t\"}", "1:10: the table t has no primary key"),
        ("{\"table\":\"t\",\n}", "2:1: a string was expected"),
        ("{\"keyspace\":7}", "1:13: a string was expected"),
    ];
    for (text, message) in wrong {
        let error = error(text);
        assert!(error.starts_with(&format!("schema:{message}")), "{text}: {error}");
    }
    let unknown = "{\"table\":\"t\",\"partition_key\":[{\"name\":\"k\",\"type\":\"int\"}],\"colunms\":[]}";
    assert_eq!(error(unknown), "schema:1:1: colunms is not a member of a table");
}

#[test]
fn a_folder_tells_the_table() {
    let id = "0123456789abcdef0123456789abcdef";
    for (folder, keyspace, table) in [
        ("/data/ks/users".to_owned(), "ks", "users"),
        (format!("/data/ks/users-{id}"), "ks", "users"),
        (format!("/data/ks/users-{id}/snapshots/monday"), "ks", "users"),
        (format!("/data/ks/users-{id}/backups"), "ks", "users"),
        (format!("/backups/users-{id}"), "backups", "users"),
        ("/snapshots/monday".to_owned(), "snapshots", "monday"),
        ("/x/a-b".to_owned(), "x", "a-b"),
    ] {
        let named = FolderName { keyspace: Some(keyspace.to_owned()), table: table.to_owned() };
        assert_eq!(FolderName::of(Path::new(&folder)), named, "{folder}");
    }
}

/// The folder's name tells which of several tables it is, and what is wrong with that one is told.
#[test]
fn a_folder_tells_which_table_it_is() {
    let text = "CREATE TABLE a.t (k int PRIMARY KEY); CREATE TABLE b.t (k text PRIMARY KEY, v int);\n\
                CREATE TABLE b.u (k frozen<no> PRIMARY KEY); ALTER TABLE b.t DROP v USING TIMESTAMP 5;";
    let of = |text: &str, folder: &str| {
        TableSchema::parse_of_folder(Path::new("schema"), text, &FolderName::of(Path::new(folder)), None)
    };
    for (folder, keyspace) in [("/a/t", "a"), ("/b/t", "b")] {
        assert_eq!(of(text, folder).unwrap().keyspace.as_deref(), Some(keyspace));
    }
    let error = |folder: &str| of(text, folder).unwrap_err().to_string();
    assert_eq!(error("/c/t"), "schema:1:39: one of several tables has to be named: a.t, b.t, b.u");
    assert_eq!(error("/c/x"), "schema:1:39: one of several tables has to be named: a.t, b.t, b.u");
    assert!(error("/c/u").starts_with("schema:2:28: no is neither"), "{}", error("/c/u"));
    // The only one is it, whatever it is called; and it is in the folder's keyspace if it does not tell one.
    let alone = "CREATE TABLE t (k int PRIMARY KEY); ALTER TABLE ks.t ADD v int;";
    let schema = of(alone, "/ks/other").unwrap();
    assert_eq!(
        (schema.keyspace.as_deref(), names(&schema.schema.regulars)),
        (Some("ks"), vec!["v".to_owned()])
    );
    let table = of(text, "/b/t").unwrap();
    let altered = |alteration: &str| table.altered(Path::new("schema"), text, alteration);
    assert_eq!(names(&altered("ALTER TABLE b.t ADD w int;").unwrap().0.schema.regulars), ["w"]);
    let back = altered("ALTER TABLE b.t ADD v text;").unwrap_err().to_string();
    assert!(back.contains("v was dropped as a int: it cannot come back as a text"), "{back}");
}

/// As Cassandra has it since 4.1, wherever it stands among what tells of tables.
#[test]
fn what_may_be_there_or_not_is_followed() {
    let table = parse(
        "ALTER TABLE IF EXISTS ks.other ADD x int; CREATE TABLE ks.t (k int PRIMARY KEY, v int, w int);
         ALTER TABLE IF EXISTS ks.t ADD IF NOT EXISTS (v text, x int);
         ALTER TABLE ks.t DROP IF EXISTS (w, y) USING TIMESTAMP 7;",
    );
    assert_eq!(names(&table.schema.regulars), ["v", "x"]);
    assert_eq!(table.schema.regulars[0].data_type, CqlType::Int);
    assert_eq!(table.dropped, [("w".to_owned(), 7)]);
    for wrong in ["ALTER TABLE IF NOT EXISTS ks.t ADD x int;", "CREATE TYPE IF EXISTS ks.a (x int);"] {
        let said = error(&format!("CREATE TABLE ks.t (k int PRIMARY KEY); {wrong}"));
        assert!(said.contains("EXISTS was expected") || said.contains("NOT was expected"), "{said}");
    }
    let missing = |statement: &str| Alteration::parse(Path::new("schema"), statement).unwrap().may_be_missing;
    assert!(missing("ALTER TABLE IF EXISTS ks.t ADD x int") && !missing("ALTER TABLE ks.t ADD x int"));
}

#[test]
fn comments_may_stand_in_types() {
    let text = "CREATE TABLE ks.t (k int PRIMARY KEY, m map<text, /* n */ int>, l list<-- of\n int>)";
    let columns = parse(text).schema.regulars;
    let kinds: Vec<_> = columns.iter().map(|column| column.data_type.cql_name()).collect();
    assert_eq!(kinds, ["list<int>", "map<text, int>"]);
    let wrong = "CREATE TABLE ks.t (k int PRIMARY KEY, m map<text, /* n */ no>)";
    assert!(error(wrong).starts_with("schema:1:59: "), "{}", error(wrong));
}

/// What Cassandra has no table for is none here either: no cluster could take its files.
#[test]
fn tables_that_cassandra_refuses_are_refused() {
    for (what, text) in [
        ("durations", "CREATE TABLE ks.t (k int, d frozen<list<duration>>, PRIMARY KEY (k, d))"),
        ("static", "CREATE TABLE ks.t (k int PRIMARY KEY, s int static)"),
        ("counters", "CREATE TABLE ks.t (k int PRIMARY KEY, l list<counter>)"),
        ("twice", "CREATE TYPE ks.a (x int, x text); CREATE TABLE ks.t (k int PRIMARY KEY)"),
        ("another keyspace", "CREATE TYPE o.a (x int); CREATE TABLE ks.t (k int PRIMARY KEY, a frozen<o.a>)"),
        (
            "COMPACT STORAGE",
            "CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c)); ALTER TABLE ks.t WITH COMPACT STORAGE",
        ),
    ] {
        assert!(error(text).contains(what), "{}", error(text));
    }
}

/// Each has all that it is made of: a few statements would fill the memory.
#[test]
fn types_of_types_have_a_size() {
    let of =
        |number: usize| format!("CREATE TYPE ks.t{} (a frozen<t{number}>, b frozen<t{number}>);", number + 1);
    let types: String = (0..30).map(of).collect();
    let text =
        format!("CREATE TYPE ks.t0 (a int); {types} CREATE TABLE ks.t (k int PRIMARY KEY, a frozen<t30>)");
    assert!(error(&text).contains("made of more than 10000 others"), "{}", error(&text));
}

#[test]
fn what_is_dropped_is_dropped_at_a_time() {
    let text = |statement: &str| Alteration::parse(Path::new("schema"), statement).unwrap().text_at(7);
    assert_eq!(text("ALTER TABLE ks.t DROP v;"), "ALTER TABLE ks.t DROP v USING TIMESTAMP 7");
    assert_eq!(text("ALTER TABLE ks.t DROP using"), "ALTER TABLE ks.t DROP using USING TIMESTAMP 7");
    let told = "ALTER TABLE ks.t DROP v using timestamp 5";
    assert_eq!(text(told), told);
    assert_eq!(text("ALTER TABLE ks.t ADD v int"), "ALTER TABLE ks.t ADD v int");
}

/// A text that people wrote may end with anything.
#[test]
fn what_alters_a_table_stands_for_itself_behind_any_text() {
    let create = "CREATE TABLE ks.t (k int PRIMARY KEY, v int)";
    for end in [
        "",
        ";",
        ";\n",
        "; -- mine",
        "; -- mine;",
        " -- mine;",
        " WITH comment = 'x'",
        " WITH comment = 'x'\n",
        "; /* ; */",
    ] {
        let text = format!("{create}{end}");
        let table = TableSchema::parse(Path::new("schema"), &text, None).unwrap();
        let (altered, whole) = table
            .altered(Path::new("schema"), &text, "ALTER TABLE ks.t DROP v USING TIMESTAMP 7;\n")
            .unwrap();
        assert_eq!((names(&altered.schema.regulars).len(), altered.dropped.len()), (0, 1), "{end:?}");
        let read_again = TableSchema::parse(Path::new("schema"), &whole, None).unwrap();
        assert_eq!(read_again, altered, "{end:?}");
    }
}

#[test]
fn the_folder_of_a_view_is_known() {
    let view = "CREATE MATERIALIZED VIEW ks.by_v AS SELECT * FROM ks.t PRIMARY KEY (v, k);";
    let both = format!("CREATE TABLE ks.t (k int PRIMARY KEY, v int); {view}");
    let is_view = |text: &str, table: &str| {
        TableSchema::is_of_view(
            text,
            &FolderName { keyspace: Some("ks".to_owned()), table: table.to_owned() },
        )
    };
    assert!(is_view(view, "anything") && is_view(&both, "by_v") && !is_view(&both, "t"));
}

#[test]
fn names_may_be_in_quotes() {
    let is =
        |given: &str, keyspace: Option<&str>, table: &str| Wanted { name: Some(given) }.is(keyspace, table);
    for given in ["t", "ks.t", "\"t\"", "\"ks\".t", "ks.\"t\""] {
        assert!(is(given, Some("ks"), "t"), "{given}");
    }
    assert!(is("2024.06.users", Some("2024.06"), "users") && is("users", Some("2024.06"), "users"));
    assert!(is("\"a\"\"b\"", None, "a\"b") && is("\"a.b\"", None, "a.b"));
    assert!(
        !is("ks.t", None, "t") && !is("T", None, "t") && !is("x.t", Some("ks"), "t") && !is("\"", None, "")
    );
}
