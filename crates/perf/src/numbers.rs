//! Numbers of several runs as one, and as they are printed.

use serde_json::{Number, Value};

/// The middle one of numbers that ascend; of an even number of them the upper of the two. 0 where there is none.
pub(crate) fn middle(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// The same of numbers in any order.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    middle(&numbers)
}

/// The median absolute deviation of numbers from their median.
pub(crate) fn deviation(numbers: &[f64], median: f64) -> f64 {
    self::median(numbers.iter().map(|other| (other - median).abs()).collect())
}

/// A number with so many decimals, and none where it is whole.
pub(crate) fn rounded(number: f64, decimals: usize) -> Value {
    let text = format!("{number:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.parse::<Number>().map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_idle_zeros() {
        let is = |number: f64, decimals: usize| rounded(number, decimals).to_string();
        assert_eq!(
            [is(2.0, 1), is(2.46, 1), is(100.0, 0), is(0.001_836, 6)],
            ["2", "2.5", "100", "0.001836"]
        );
    }

    #[test]
    fn the_median_and_how_far_others_are_from_it() {
        assert_eq!((middle(&[]), deviation(&[], 0.0)), (0.0, 0.0));
        assert_eq!((middle(&[7.0]), deviation(&[7.0], 7.0)), (7.0, 0.0));
        assert_eq!((middle(&[1.0, 2.0, 9.0]), deviation(&[1.0, 2.0, 9.0], 2.0)), (2.0, 1.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0, 3.0]), 3.0);
    }
}
