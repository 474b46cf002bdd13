//! The chores of the project; `cargo xtask help` lists them.

fn main() {}
