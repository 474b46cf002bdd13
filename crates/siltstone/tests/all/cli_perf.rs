//! `siltstone perf` hands everything to the program beside it, and says so where there is none.

#![cfg(unix)]
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use testkit::command::{code, stderr, stdout};

/// A program that was just written may be busy: a process that another test starts has its file open until it is another program.
fn perf(folder: &Path, arguments: &[&str]) -> Output {
    loop {
        match Command::new(folder.join("siltstone")).arg("perf").args(arguments).output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {}
            Ok(output) if stderr(&output).contains("file busy") => {}
            output => return output.unwrap(),
        }
    }
}

#[test]
fn arguments_go_to_the_program_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(env!("CARGO_BIN_EXE_siltstone"), folder.path().join("siltstone")).unwrap();

    let missing = perf(folder.path(), &["fast-forward"]);
    assert_eq!((code(&missing), stdout(&missing)), (1, ""));
    assert!(stderr(&missing).contains("cargo build --release -p siltstone-perf"), "{}", stderr(&missing));

    let program = folder.path().join("siltstone-perf");
    fs::write(&program, "#!/bin/sh\necho \"$@\"\nexit 3\n").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    for arguments in [&["fast-forward", "--populate", "--rows", "5"][..], &["--help"], &[]] {
        let output = perf(folder.path(), arguments);
        let told = (code(&output), stdout(&output).trim_end(), stderr(&output));
        assert_eq!(told, (3, &*arguments.join(" "), ""), "{arguments:?}");
    }
}
