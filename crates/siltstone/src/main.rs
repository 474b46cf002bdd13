//! The command `siltstone`.

fn main() {}
