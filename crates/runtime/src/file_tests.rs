//! Reads of real and simulated files against the bytes that were written.

use std::fs;

use super::*;
use crate::sim::SimOptions;
use crate::stats::IoCount;
use crate::{Disk, Shard, ShardOptions, join_all, run, run_simulated, spawn};

const CLASS: IoClass = IoClass::new(3);

/// All ways to read a real file.
fn all_options() -> impl Iterator<Item = ShardOptions> {
    [(true, true), (true, false), (false, true), (false, false)]
        .into_iter()
        .map(|(io_uring, direct_io)| ShardOptions { io_uring, direct_io, cpu: None })
}

/// Bytes of which no two neighbouring blocks are alike.
fn content(len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Offsets around the multiples of usual alignments and around the end.
fn edges(len: u64) -> Vec<u64> {
    let mut edges: Vec<u64> = [0, 512, 1024, 4096, 8192, len]
        .into_iter()
        .flat_map(|edge: u64| [edge.saturating_sub(1), edge, edge + 1])
        .filter(|edge| *edge <= len)
        .collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

async fn check_all_edges(disk: &Disk, path: &Path, expected: &[u8]) {
    let file = disk.open(path, CLASS).await.unwrap();
    let len = expected.len() as u64;
    assert_eq!(file.len(), len);
    for start in edges(len) {
        for end in edges(len).into_iter().filter(|end| *end >= start) {
            let window = file.read_exact_at(start, (end - start) as usize).await.unwrap();
            assert_eq!(*window, expected[start as usize..end as usize], "{start}..{end}");
            let window = file.read_behind_room_at(start, (end - start) as usize, 700).await.unwrap();
            let (buffer, bytes) = window.into_parts();
            assert!(bytes.is_empty() || bytes.start >= 700, "{start}..{end}");
            assert_eq!(buffer[bytes], expected[start as usize..end as usize], "{start}..{end}");
        }
        let past = file.read_exact_at(start, (len - start) as usize + 1).await.unwrap_err();
        assert_eq!(past.kind(), io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn real_reads_agree_at_all_edges() {
    let folder = tempfile::tempdir().unwrap();
    for len in [0, 1, 511, 512, 513, 4096, 10_000, 12_288] {
        let path = folder.path().join(len.to_string());
        fs::write(&path, content(len)).unwrap();
        for options in all_options() {
            run(options, async |shard| check_all_edges(shard.disk(), &path, &content(len)).await).unwrap();
        }
    }
}

#[test]
fn a_file_system_in_memory_is_read_buffered() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let path = folder.path().join("a");
    fs::write(&path, content(10_000)).unwrap();
    for options in all_options() {
        run(options, async |shard| {
            check_all_edges(shard.disk(), &path, &content(10_000)).await;
            assert_eq!(shard.disk().open(&path, CLASS).await.unwrap().alignment(), 1);
        })
        .unwrap();
    }
}

#[test]
fn real_reads_are_counted_as_asked_of_the_system() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, content(100_000)).unwrap();
    for options in all_options() {
        let direct = options.direct_io;
        run(options, async |shard| {
            let file = shard.disk().open(&path, CLASS).await.unwrap();
            let alignment = file.alignment() as u64;
            assert!(direct || alignment == 1);
            file.read_exact_at(4095, 2).await.unwrap();
            let first = shard.disk().stats();
            let bytes = if alignment == 1 { 2 } else { 2 * alignment };
            assert_eq!(first.class(CLASS), IoCount { requests: 1, bytes });
            file.read_exact_at(8192, 4096).await.unwrap();
            let second = shard.disk().stats().since(&first);
            assert_eq!(second.total(), IoCount { requests: 1, bytes: 4096.max(alignment) });
        })
        .unwrap();
    }
}

#[test]
fn many_real_reads_go_on_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let expected = content(1 << 20);
    fs::write(&path, &expected).unwrap();
    for options in all_options() {
        run(options, async |shard| {
            let file = shard.disk().open(&path, CLASS).await.unwrap();
            let offsets = (0..300_u64).map(|number| number * 3401);
            let tasks = offsets.clone().map(|offset| {
                let file = file.clone();
                spawn(async move { file.read_exact_at(offset, 3000).await })
            });
            for (window, offset) in join_all(tasks).await.into_iter().zip(offsets) {
                assert_eq!(*window.unwrap(), expected[offset as usize..offset as usize + 3000]);
            }
            assert_eq!(shard.disk().stats().total().requests, 300);
        })
        .unwrap();
    }
}

#[test]
fn a_real_file_cut_short_after_opening_ends_unexpectedly() {
    let folder = tempfile::tempdir().unwrap();
    for options in all_options() {
        let path = folder.path().join("a");
        fs::write(&path, content(10_000)).unwrap();
        run(options, async |shard| {
            let file = shard.disk().open(&path, CLASS).await.unwrap();
            fs::File::options().write(true).open(&path).unwrap().set_len(5000).unwrap();
            assert_eq!(*file.read_exact_at(4000, 1000).await.unwrap(), content(10_000)[4000..5000]);
            for offset in [4500, 5000, 7000] {
                let error = file.read_exact_at(offset, 1000).await.unwrap_err();
                assert_eq!((error.kind(), error.path()), (io::ErrorKind::UnexpectedEof, path.as_path()));
            }
        })
        .unwrap();
    }
}

#[test]
fn a_window_keeps_its_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, content(10_000)).unwrap();
    for options in all_options() {
        run(options, async |shard| {
            let file = shard.disk().open(&path, CLASS).await.unwrap();
            let window = file.read_exact_at(1000, 3000).await.unwrap();
            let address = window.as_ref().as_ptr();
            let (buf, range) = window.into_parts();
            assert_eq!(buf[range.clone()], content(10_000)[1000..4000]);
            assert_eq!(buf[range].as_ptr(), address);
            assert!(buf.capacity() <= 3000 + 3 * 4096);
        })
        .unwrap();
    }
}

/// Runs `main` with a file of 10,000 bytes that is there already.
fn with_simulated_file<T>(sim: SimOptions, main: impl AsyncFnOnce(Shard, File) -> T) -> T {
    run_simulated(sim, async |shard| {
        shard.disk().as_simulated().unwrap().add_file("/a", content(10_000));
        let file = shard.disk().open(Path::new("/a"), CLASS).await.unwrap();
        main(shard, file).await
    })
    .unwrap()
}

#[test]
fn simulated_reads_agree_at_all_edges() {
    for alignment in [0, 1, 512, 4096] {
        for short_read_chance in [0.0, 0.5, 1.0] {
            let sim =
                SimOptions { seed: 1, short_read_chance, alignment, max_delay: 3, ..SimOptions::default() };
            with_simulated_file(sim, async |shard, file| {
                assert_eq!(file.alignment(), alignment.max(1));
                check_all_edges(shard.disk(), file.path(), &content(10_000)).await;
            });
        }
    }
}

#[test]
fn simulated_reads_are_rounded_and_counted() {
    let sim = SimOptions { alignment: 512, ..SimOptions::default() };
    with_simulated_file(sim, async |shard, file| {
        file.read_exact_at(511, 2).await.unwrap();
        assert_eq!(shard.disk().stats().class(CLASS), IoCount { requests: 1, bytes: 1024 });
        file.read_exact_at(9999, 1).await.unwrap();
        assert_eq!(shard.disk().stats().class(CLASS), IoCount { requests: 2, bytes: 1536 });
        file.read_exact_at(10_000, 0).await.unwrap();
        file.read_exact_at(u64::MAX, 2).await.unwrap_err();
        assert_eq!(shard.disk().stats().total().requests, 2);
    });
}

#[test]
fn each_continuation_of_a_short_read_is_a_request() {
    let sim = SimOptions { short_read_chance: 1.0, alignment: 512, ..SimOptions::default() };
    with_simulated_file(sim, async |shard, file| {
        file.read_exact_at(0, 512).await.unwrap();
        assert_eq!(shard.disk().stats().total().requests, 1, "one unit is never short");
        file.read_exact_at(0, 1024).await.unwrap();
        assert_eq!(shard.disk().stats().total(), IoCount { requests: 3, bytes: 512 + 1024 + 512 });
    });
}

#[test]
fn a_failed_read_names_what_was_asked_for() {
    let sim = SimOptions { io_error_chance: 1.0, alignment: 512, ..SimOptions::default() };
    with_simulated_file(sim, async |_, file| {
        let error = file.read_exact_at(700, 30).await.unwrap_err();
        assert_eq!(error.to_string(), "/a: reading 30 bytes at offset 700: a simulated failure of the disk");
        assert_eq!(error.clone(), error);
    });
}

#[test]
fn spans_are_rounded_outwards() {
    let span = |offset, len| Span::around(offset, len, 512);
    assert_eq!(span(0, 1), Span { offset: 0, len: 512, lead: 0 });
    assert_eq!(span(511, 2), Span { offset: 0, len: 1024, lead: 511 });
    assert_eq!(span(512, 512), Span { offset: 512, len: 512, lead: 0 });
    assert_eq!(Span::around(700, 30, 1), Span { offset: 700, len: 30, lead: 0 });
}
