//! Digest.crc32.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use sstable::Version;
use sstable::parts::digest::Digest;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(digest) = Digest::parse(Path::new("Digest.crc32"), bytes, Version::Nb) {
        let again = digest.0.to_string();
        let parsed = Digest::parse(Path::new("Digest.crc32"), again.as_bytes(), Version::Nb);
        assert_eq!(parsed.ok(), Some(digest));
    }
});
