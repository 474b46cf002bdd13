//! What went wrong, in words.

use std::error::Error as _;

use siltstone::Error;

/// What an error says, and behind it why.
pub fn told(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let why = error.to_string();
        // Some say it themselves.
        if !text.ends_with(&why) {
            text = format!("{text}: {why}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use runtime::RuntimeError;

    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let cause = || io::Error::other("no room");
        let thread = told(&Error::Runtime(RuntimeError::Thread(cause())));
        assert_eq!(thread, "starting the thread of a shard: no room");
        assert_eq!(told(&Error::Output(cause())), "the output cannot be written: no room");
        assert_eq!(told(&Error::Usage("that is nothing".to_owned())), "that is nothing");
    }
}
