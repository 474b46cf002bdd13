//! Mutations and fragments as flat bytes: in the commit log, and on the way between threads.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::flat::{self, FlatReader};
use model::{Bytes, Fragment};

fuzz_target!(|bytes: &[u8]| {
    let bytes = Bytes::from(bytes.to_vec());
    if let Ok(mutation) = flat::mutation(&bytes) {
        let mut again = Vec::new();
        flat::put_mutation(&mutation, &mut again);
        assert_eq!(flat::mutation(&Bytes::from(again)).as_ref(), Ok(&mutation));
        assert_eq!(flat::mutation_key(&bytes), Ok(mutation.key));
    }
    let _ = flat::slice(&bytes);
    let _ = flat::position(&bytes);
    let (mut reader, mut fragment) = (FlatReader::new(bytes.clone()), Fragment::default());
    let mut at = reader.offset();
    while let Ok(true) = reader.take_fragment(&mut fragment) {
        assert!(reader.offset() > at, "each fragment takes bytes");
        at = reader.offset();
        let mut again = Vec::new();
        flat::put_fragment(&fragment, &mut again);
        let mut read = Fragment::default();
        assert_eq!(FlatReader::new(Bytes::from(again)).take_fragment(&mut read), Ok(true));
        assert_eq!(read, fragment);
    }
});
