//! Tests of Statistics.db: small ones made by hand, broken ones, real ones.

use proptest::prelude::*;

use super::*;
use crate::parts::samples::{self, survives_corruption};

fn parse(bytes: &[u8], version: Version) -> Result<Statistics> {
    Statistics::parse(Path::new("nb-1-big-Statistics.db"), bytes, version)
}

#[test]
fn real_files() {
    for file in samples::real_files("Statistics.db") {
        match Statistics::parse(&file.path, &file.bytes, file.version) {
            Ok(_) => {}
            Err(error) => println!("{error}"),
        }
    }
}
