//! How many files a program may have open: as many as it is allowed to allow itself.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises how many files the process may have open to what it may raise that to. An open SSTable is two files and more, and
/// systems begin with 1,024. For programs: a library leaves its process as it is.
///
/// # Errors
/// What the operating system says; all is then as it was.
pub fn allow_many_files() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_allowed_is_taken() {
        let before = getrlimit(Resource::Nofile).maximum;
        allow_many_files().unwrap();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!((current, maximum), (before, before));
    }
}
