//! TOC.txt, and names of files.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use sstable::component::{Component, Descriptor};

fuzz_target!(|bytes: &[u8]| {
    for component in Component::parse_toc(Path::new("TOC.txt"), bytes).unwrap_or_default() {
        assert!(!component.name().contains('/'));
    }
    let Ok(name) = std::str::from_utf8(bytes) else { return };
    if let Ok((descriptor, component)) = Descriptor::parse_component(Path::new(name)) {
        assert_eq!(Some(descriptor.file_name(&component).as_ref()), Path::new(name).file_name());
    }
});
