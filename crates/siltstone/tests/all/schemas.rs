//! What CQL says of the tables of fixtures.

use std::path::PathBuf;

use testkit::fixtures::Fixture;

/// The schema of a fixture's set, and the name of its table.
pub(crate) fn described(fixture: &Fixture) -> Option<(PathBuf, String)> {
    let schema =
        fixture.data.ancestors().map(|folder| folder.join("schema.cql")).find(|path| path.is_file())?;
    let below = fixture.data.strip_prefix(schema.parent()?).ok()?;
    let mut names = below.iter().skip_while(|name| *name != "sstables").skip(1);
    Some((schema, names.next()?.to_str()?.to_owned()))
}
