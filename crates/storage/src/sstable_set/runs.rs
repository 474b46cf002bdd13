//! Where SSTables are on the ring, in runs that do not overlap: a token is looked for by halves in each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use model::{PartitionKey, Token};

/// Where members are on the ring, in runs that do not overlap, each in the order of the ring: as few runs as there can be. Leveled
/// compaction leaves few runs, however many SSTables; then a partition is looked for by halves.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// Those of one member: SSTables that overlap all others are looked at one after the other, in one piece of memory.
    alone: Vec<Stretch>,
    /// Those of several.
    runs: Vec<Vec<Stretch>>,
}

/// Where a member is on the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch {
    /// The token of its first partition.
    pub(super) first: Token,
    /// The token of its last partition.
    pub(super) last: Token,
    /// Its place among the members.
    pub(super) place: u32,
}

impl Stretch {
    /// Whether a token is in it.
    pub(super) fn has(&self, token: Token) -> bool {
        self.first <= token && token <= self.last
    }
}

impl Runs {
    /// Of members that are there.
    pub(super) fn of(mut stretches: Vec<Stretch>) -> Runs {
        stretches.sort_by_key(|stretch| (stretch.first, stretch.last));
        let mut runs: Vec<Vec<Stretch>> = Vec::new();
        // The run that ends first takes the next member, if it ends before that begins.
        let mut open: BinaryHeap<Reverse<(Token, usize)>> = BinaryHeap::new();
        for stretch in stretches {
            let run = match open.peek() {
                Some(&Reverse((end, run))) if end < stretch.first => {
                    open.pop();
                    run
                }
                _ => {
                    runs.push(Vec::new());
                    runs.len() - 1
                }
            };
            runs[run].push(stretch);
            open.push(Reverse((stretch.last, run)));
        }
        let (alone, runs): (Vec<_>, _) = runs.into_iter().partition(|run| run.len() == 1);
        Runs { alone: alone.concat(), runs }
    }

    /// The members that have a token between their first and their last one, one of a run at the most.
    pub(super) fn around(&self, token: Token) -> impl Iterator<Item = u32> {
        let alone = self.alone.iter().filter(move |stretch| stretch.has(token));
        let in_runs = self.runs.iter().filter_map(move |run| {
            let behind = run.partition_point(|stretch| stretch.first <= token);
            let stretch = &run[behind.checked_sub(1)?];
            stretch.has(token).then_some(stretch)
        });
        alone.chain(in_runs).map(|stretch| stretch.place)
    }

    /// The members that have a token of a stretch between their first and their last one, of members that end where they begin or
    /// behind that.
    pub(super) fn meeting(&self, first: Token, last: Token) -> impl Iterator<Item = u32> {
        let meets = move |stretch: &&Stretch| stretch.first <= last && first <= stretch.last;
        let in_runs = self.runs.iter().flat_map(move |run| {
            let before = run.partition_point(|stretch| stretch.last < first);
            run[before..].iter().take_while(meets)
        });
        self.alone.iter().filter(meets).chain(in_runs).map(|stretch| stretch.place)
    }

    /// The same, but so many of each run at the most: the first ones, or the last ones. Whether there are more.
    pub(super) fn nearest(
        &self,
        [first, last]: [Token; 2],
        is_forward: bool,
        most: usize,
    ) -> (Vec<u32>, bool) {
        let alone = self.alone.iter().filter(|stretch| stretch.first <= last && first <= stretch.last);
        let mut near: Vec<u32> = alone.map(|stretch| stretch.place).collect();
        let mut has_more = false;
        for run in &self.runs {
            let meeting = &run[run.partition_point(|stretch| stretch.last < first)..];
            let meeting = &meeting[..meeting.partition_point(|stretch| stretch.first <= last)];
            let few = meeting.len().min(most);
            let some = if is_forward { &meeting[..few] } else { &meeting[meeting.len() - few..] };
            near.extend(some.iter().map(|stretch| stretch.place));
            has_more |= meeting.len() > most;
        }
        (near, has_more)
    }

    /// How many there are: a token is looked for in each.
    pub(super) fn len(&self) -> usize {
        self.alone.len() + self.runs.len()
    }

    /// All runs.
    pub(super) fn all(&self) -> impl Iterator<Item = &[Stretch]> {
        self.runs.iter().map(Vec::as_slice).chain(self.alone.chunks(1))
    }
}

/// Which SSTables of a run to ask for which of these keys.
pub(super) fn ask_run(run: &[Stretch], keys: &[&PartitionKey], questions: &mut Vec<(u32, Range<usize>)>) {
    let mut at = 0;
    while at < keys.len() {
        let behind = run.partition_point(|stretch| stretch.first <= keys[at].token);
        let last = behind.checked_sub(1).map(|before| run[before].last);
        let within = last.map_or(0, |last| keys[at..].partition_point(|key| key.token <= last));
        if within > 0 {
            questions.push((run[behind - 1].place, at..at + within));
            at += within;
            continue;
        }
        // The key stands before the run, between two of it or behind it.
        let Some(next) = run.get(behind) else { return };
        at += keys[at..].partition_point(|key| key.token < next.first);
    }
}

#[cfg(test)]
mod tests {
    use testkit::generate::random::Random;

    use super::*;

    fn stretches(ends: impl IntoIterator<Item = (Token, Token)>) -> Vec<Stretch> {
        (0..).zip(ends).map(|(place, (first, last))| Stretch { first, last, place }).collect()
    }

    #[test]
    fn runs_find_what_looking_at_each_finds() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let longest = [1, 5, 100][seed as usize % 3];
            let members = stretches((0..random.below(40)).map(|_| {
                let first = random.below(100) as Token;
                (first, first + random.below(longest) as Token)
            }));
            let runs = Runs::of(members.clone());
            let mut most = 0;
            for token in -1..210 {
                let mut found: Vec<u32> = runs.around(token).collect();
                found.sort_unstable();
                let around = members.iter().filter(|stretch| stretch.has(token));
                let expected: Vec<u32> = around.map(|stretch| stretch.place).collect();
                assert_eq!(found, expected, "{seed}: {token}");
                most = most.max(expected.len());
                let last = token + random.below(30) as Token;
                let mut met: Vec<u32> = runs.meeting(token, last).collect();
                met.sort_unstable();
                let meeting = members.iter().filter(|other| other.first <= last && token <= other.last);
                assert!(
                    meeting.map(|stretch| stretch.place).eq(met.iter().copied()),
                    "{seed}: {token} to {last}"
                );
                for (is_forward, most) in [(true, 2), (false, 2), (true, 100)] {
                    let (mut near, has_more) = runs.nearest([token, last], is_forward, most);
                    near.sort_unstable();
                    let is_all = near == met;
                    assert!(near.iter().all(|place| met.contains(place)) && is_all != has_more, "{seed}");
                }
            }
            assert_eq!(
                runs.all().count(),
                most,
                "{seed}: there are no more runs than members that overlap at one place"
            );
        }
    }

    #[test]
    fn members_that_do_not_overlap_are_one_run() {
        let runs = Runs::of(stretches((0..1000).rev().map(|at| (at * 10, at * 10 + 9))));
        assert_eq!((runs.all().count(), runs.around(5555).collect::<Vec<_>>()), (1, vec![999 - 555]));
    }
}
