//! Tables small enough to be written down. How they fare over time is in the simulation.

use super::super::options::Strategy;
use super::super::simulation::{compaction, facts, view};
use super::*;

const MB: u64 = 1 << 20;

/// An SSTable of a level, with these tokens and so many MiB.
fn sstable(number: u64, level: u32, tokens: [i64; 2], size: u64) -> SSTableFacts {
    let [first_token, last_token] = tokens;
    SSTableFacts { level, first_token, last_token, bytes_on_disk: size * MB, ..facts(number) }
}

/// SSTables of 10 MiB, and each level three times as large as the one before.
fn lcs(options: &[(&str, &str)]) -> Compaction {
    let sizes = [("sstable_size_in_mb", "10"), ("fanout_size", "3")];
    compaction("LeveledCompactionStrategy", &[&sizes[..], options].concat())
}

/// What is merged, and into which level.
fn job(all: &[SSTableFacts]) -> Option<(Vec<String>, u32)> {
    let job = lcs(&[]).next(&view(all))?;
    assert_eq!(job.max_output_bytes, Some(10 * MB));
    Some((job.inputs, job.output_level))
}

fn expected(inputs: &[&str], level: u32) -> Option<(Vec<String>, u32)> {
    Some((inputs.iter().map(|&input| input.to_owned()).collect(), level))
}

#[test]
fn levels_are_as_large_as_the_options_say() {
    let sizes: Vec<u64> = (0..4).map(|level| max_bytes_of_level(level, 10, 160)).collect();
    assert_eq!(sizes, [640, 1600, 16_000, 160_000]);
    assert_eq!(max_bytes_of_level(8, u32::MAX, u64::MAX), u64::MAX);
}

#[test]
fn new_ones_go_to_level_1_with_what_they_overlap() {
    let level_1 = [sstable(1, 1, [0, 9], 10), sstable(2, 1, [10, 19], 10), sstable(3, 1, [30, 39], 9)];
    let with = |new: &[SSTableFacts]| job(&[&level_1[..], new].concat());
    assert_eq!(with(&[]), None);
    assert_eq!(with(&[sstable(4, 0, [5, 12], 11)]), expected(&["4", "1", "2"], 1));
    // Between the first and the last of all, not only beneath each.
    let apart = [sstable(4, 0, [0, 1], 6), sstable(5, 0, [20, 21], 6)];
    assert_eq!(with(&apart), expected(&["4", "5", "1", "2"], 1));
    // They would not make one SSTable.
    let small = [sstable(4, 0, [0, 40], 5), sstable(5, 0, [0, 40], 5)];
    assert_eq!(with(&small), expected(&["4", "5"], 0));
    assert_eq!(with(&[sstable(4, 0, [40, 50], 99)]), None, "there is nothing to merge it with");
}

#[test]
fn the_oldest_new_ones_go_first() {
    let new: Vec<SSTableFacts> = (0..40)
        .map(|number| SSTableFacts { max_timestamp: 100 - number as i64, ..sstable(number, 0, [0, 9], 1) })
        .collect();
    let job = Levels {
        compaction: &lcs(&[]),
        options: &of(&lcs(&[])),
        view: &view(&new),
        levels: place(&view(&new)),
    };
    let inputs = job.take_new().unwrap().inputs;
    assert_eq!((inputs.len(), &inputs[0][..], &inputs[31][..]), (32, "39", "8"));
}

fn of(compaction: &Compaction) -> Leveled {
    let Strategy::Leveled(options) = compaction.strategy else { panic!("{compaction:?}") };
    options
}

/// Level 1 has 40 MiB of the 30 that it may have.
fn too_full() -> Vec<SSTableFacts> {
    let mut all: Vec<SSTableFacts> =
        (0..4).map(|number| sstable(number, 1, [number as i64 * 10, number as i64 * 10 + 9], 10)).collect();
    all.push(sstable(4, 2, [0, 15], 10));
    all.push(sstable(5, 2, [25, 29], 10));
    all
}

#[test]
fn a_level_goes_on_where_it_ended() {
    let mut all = too_full();
    // The youngest one of level 2 ends at 29.
    assert_eq!(job(&all), expected(&["3"], 2));
    all[4].written_at += 100;
    assert_eq!(job(&all), expected(&["2", "5"], 2));
    all[5] = sstable(6, 2, [35, 50], 10);
    all[5].written_at += 200;
    assert_eq!(job(&all), expected(&["0", "4"], 2), "from the beginning again");
}

#[test]
fn what_overlaps_something_busy_waits() {
    let all = too_full();
    let compaction = lcs(&[]);
    let inputs = |busy: &[&str]| {
        let busy = busy.iter().map(|&busy| busy.to_owned()).collect();
        compaction.next(&View { compacting: &busy, ..view(&all) }).map(|job| job.inputs)
    };
    assert_eq!(inputs(&["5"]), Some(vec!["3".into()]));
    assert_eq!(inputs(&["4"]), Some(vec!["3".into()]));
    assert_eq!(inputs(&["3"]), None, "without it the level is not too full");
    let mut more = too_full();
    more.push(sstable(7, 1, [40, 49], 10));
    let busy = ["3".to_owned(), "5".to_owned()].into();
    let job = compaction.next(&View { compacting: &busy, ..view(&more) });
    assert_eq!(job.unwrap().inputs, ["7"], "the next one of which nothing is busy");
}

#[test]
fn one_that_overlaps_nothing_may_move() {
    let all = too_full();
    let job = lcs(&[("single_sstable_uplevel", "true")]).next(&view(&all)).unwrap();
    assert_eq!((job.inputs, job.output_level, job.may_move), (vec!["3".into()], 2, true));
    assert!(!lcs(&[]).next(&view(&all)).unwrap().may_move);
}

#[test]
fn high_levels_come_before_new_ones_unless_these_are_many() {
    let mut all = too_full();
    all.extend((0..32).map(|number| sstable(100 + number, 0, [0, 40], 1)));
    assert_eq!(job(&all), expected(&["3"], 2));
    all.push(sstable(200, 0, [0, 40], 1));
    let job = lcs(&[]).next(&view(&all)).unwrap();
    assert_eq!((job.inputs.len(), job.output_level, job.why), (32, 0, Reason::Backlog));
    assert_eq!(job.max_output_bytes, None);
}

#[test]
fn one_in_the_wrong_place_belongs_to_level_0() {
    let all = [
        sstable(1, 1, [0, 10], 9),
        sstable(2, 1, [10, 20], 9),
        sstable(3, 1, [11, 20], 9),
        sstable(4, 17, [0, 1], 1),
        sstable(5, 1, [21, 22], 1),
    ];
    let levels = place(&view(&all));
    let numbers =
        |level: usize| levels[level].iter().map(|sstable| &sstable.generation[..]).collect::<Vec<_>>();
    assert_eq!((numbers(0), numbers(1)), (vec!["2", "4"], vec!["1", "3", "5"]));
}

#[test]
fn tombstones_are_dropped_from_the_highest_level_down() {
    let with = |number, level, tombstones| SSTableFacts {
        drop_times: sstable::parts::statistics::DropTimes { max_bins: 1, bins: [(1, tombstones)].into() },
        cells: 100,
        written_at: 0,
        ..self::sstable(number, level, [level as i64 * 10, level as i64 * 10 + number as i64], 5)
    };
    let all = [with(1, 1, 90), with(2, 3, 20), with(5, 2, 30), with(6, 0, 95)];
    let job = lcs(&[]).next(&view(&all)).unwrap();
    assert_eq!((&job.inputs[..], job.output_level, job.why), (&["5".to_owned()][..], 2, Reason::Tombstones));
}

#[test]
fn pending_jobs_are_what_is_too_much() {
    let compaction = lcs(&[]);
    assert_eq!(compaction.pending(&view(&too_full())), 1);
    let new: Vec<SSTableFacts> = (0..70).map(|number| sstable(number, 0, [0, 9], 1)).collect();
    // 30 MiB more than 40 are three SSTables, and two merges by size.
    assert_eq!(compaction.pending(&view(&new)), 3 + 2);
}
