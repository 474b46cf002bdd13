//! CRC.db.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use sstable::Version;
use sstable::parts::crc::Crc;

fuzz_target!(|input: (u64, Vec<u8>)| {
    let (data_len, bytes) = input;
    if let Ok(crc) = Crc::parse(Path::new("CRC.db"), &bytes, Version::Nb) {
        crc.get(crc.len());
        let _ = crc.of_data(Path::new("CRC.db"), data_len);
    }
});
