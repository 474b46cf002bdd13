//! What a chart is of: lines or bars over two axes.

use std::ops::Range;

use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;

use super::draw;

/// Some lines, or groups of bars, over one axis.
#[derive(Clone, Debug, Default)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) form: Form,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
    /// What is to be known of it.
    pub(super) note: String,
}

/// How points are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Form {
    /// The points of a line are joined.
    #[default]
    Lines,
    /// Each point is a bar, beside those of the other lines. Along the side stand names.
    Bars,
}

/// What stands along a side.
#[derive(Clone, Debug, Default)]
pub(super) struct Axis {
    pub(super) label: String,
    /// Whether equal steps are equal ratios.
    pub(super) is_log: bool,
    /// What stands at 0, 1, 2, …, if these are no numbers.
    pub(super) names: Vec<String>,
}

/// A line, or one bar of each group.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    /// The number of its color: several have one if they are of one thing, as what others have published and what it stands beside.
    pub(super) color: usize,
    /// Whether others have published it.
    pub(super) is_published: bool,
}

/// Where what bars tell reaches over more than so many times the least, steps are tens.
const FAR: f64 = 100.0;

/// Lines that are nearer to each other, of all that an axis reaches over, hide one another.
const NEAR: f64 = 0.006;

/// Below what an axis of tens has of numbers, 0 has a band to itself: of their room so much.
const BAND: f64 = 0.12;

/// Bytes of the name of a picture, without number and kind: file systems have room for 255.
const LONGEST_NAME: usize = 200;

impl Chart {
    /// Bars: groups with names, and the unit of what is measured. Where they are far apart, the note says how they are drawn.
    pub(super) fn bars(
        title: String,
        groups: Vec<String>,
        unit: &str,
        lines: Vec<Line>,
        mut note: String,
    ) -> Chart {
        let values =
            || lines.iter().flat_map(|line| &line.points).map(|point| point.1).filter(|value| *value > 0.0);
        let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        let y = if most > FAR * least { Axis::log(unit) } else { Axis::linear(unit) };
        if y.is_log {
            note += " Each step is ten times the one before: heights are not in proportion.";
        }
        let x = Axis { names: groups, ..Axis::default() };
        Chart { title, form: Form::Bars, x, y, lines, note }
    }

    /// The chart as far as it can be drawn: no axis has room for what is not finite, and no tens lead to what is below 0. Where there is
    /// nothing but 0 up an axis, its steps are equal.
    pub(super) fn drawable(mut self) -> Chart {
        let (x, y) = (self.x.is_log, self.y.is_log);
        let has_place = |number: f64, is_log: bool| number.is_finite() && !(is_log && number < 0.0);
        for line in &mut self.lines {
            line.points.retain(|point| has_place(point.0, x) && has_place(point.1, y));
        }
        let mut points = self.lines.iter().flat_map(|line| &line.points);
        self.y.is_log &= points.any(|point| point.1 > 0.0);
        self
    }

    /// The chart as SVG, alone with its title and its note, or without them.
    pub(super) fn svg(&self, is_alone: bool) -> String {
        draw::svg(self, is_alone)
    }

    /// The chart as PNG with its title and its note, twice as large as the SVG.
    pub(super) fn png(&self) -> Vec<u8> {
        draw::png(self)
    }

    /// Its title as the name of a file, of as many words as file systems have room for.
    pub(super) fn file_name(&self) -> String {
        let words = self.title.split(|letter: char| !letter.is_ascii_alphanumeric());
        let mut name = String::new();
        for word in words.filter(|word| !word.is_empty() && word.len() < LONGEST_NAME) {
            if name.len() + word.len() >= LONGEST_NAME {
                break;
            }
            name += if name.is_empty() { "" } else { "-" };
            name += &word.to_lowercase();
        }
        name
    }

    /// What is to be known of it, and of how it is drawn.
    pub(super) fn told(&self) -> String {
        let is_hidden =
            |(number, line): (usize, &Line)| line.points.iter().any(|&at| self.above(number, &[at]) > 0);
        let hides = self.form == Form::Lines && self.lines.iter().enumerate().any(is_hidden);
        let behind = if hides { " Where lines meet, the wider one is behind." } else { "" };
        format!("{}{}{behind}", self.note, self.steps())
    }

    /// How far the steps of the axes of lines are, where they are not equal. Bars have it in their note.
    fn steps(&self) -> String {
        let sides = match (self.x.is_log, self.y.is_log) {
            _ if self.form == Form::Bars => return String::new(),
            (false, false) => return String::new(),
            (true, true) => "Both axes are logarithmic",
            (true, false) => "The horizontal axis is logarithmic",
            (false, true) => "The vertical axis is logarithmic",
        };
        let has_zero = self.has_zero(&self.x, |point| point.0) || self.has_zero(&self.y, |point| point.1);
        let zero = if has_zero { ", and 0 has a place of its own at the edge" } else { "" };
        format!(" {sides}{zero}.")
    }

    /// Whether one of its axes is of tens and has to have a place for 0, to which these do not lead. A bar of 0 has no height.
    pub(super) fn has_zero(&self, axis: &Axis, of: impl Fn(&(f64, f64)) -> f64) -> bool {
        let mut points = self.lines.iter().flat_map(|line| &line.points);
        axis.is_log && self.form == Form::Lines && points.any(|point| of(point) == 0.0)
    }

    /// How many lines before one have its color, and are published or not as it is: it is told from them by how light or dark it is.
    pub(super) fn variant(&self, number: usize) -> usize {
        let of = |line: &Line| (line.color, line.is_published);
        self.lines[..number].iter().filter(|line| of(line) == of(&self.lines[number])).count()
    }

    /// The lines as they are drawn one above the other: those of others, and above them ours.
    pub(super) fn in_layers(&self) -> Vec<usize> {
        let mut layers: Vec<usize> = (0..self.lines.len()).collect();
        layers.sort_by_key(|number| !self.lines[*number].is_published);
        layers
    }

    /// How many lines that are drawn above one have this piece of it too, a point or two that follow each other, or one so near that it hides it.
    pub(super) fn above(&self, number: usize, piece: &[(f64, f64)]) -> usize {
        let (x, y) = (self.x_range(), self.y_range());
        let is_near = |(one, other): (&(f64, f64), &(f64, f64))| {
            self.x.distance(one.0, other.0, &x) < NEAR && self.y.distance(one.1, other.1, &y) < NEAR
        };
        let has_it = |other: &usize| {
            let mut pieces = self.lines[*other].points.windows(piece.len());
            pieces.any(|points| points.iter().zip(piece).all(is_near))
        };
        let above = self.in_layers().into_iter().skip_while(|other| *other != number).skip(1);
        above.filter(has_it).count()
    }

    /// Whether all that stands along an axis is whole: its numbers are, too.
    pub(super) fn is_whole(&self, of: impl Fn(&(f64, f64)) -> f64) -> bool {
        self.lines.iter().flat_map(|line| &line.points).all(|point| of(point).fract() == 0.0)
    }

    /// What the axis below reaches over.
    pub(super) fn x_range(&self) -> Range<f64> {
        match self.form {
            Form::Lines => self.range(&self.x, |point| point.0),
            Form::Bars => -0.5..self.x.names.len().max(1) as f64 - 0.5,
        }
    }

    /// What the axis on the left reaches over.
    pub(super) fn y_range(&self) -> Range<f64> {
        self.range(&self.y, |point| point.1)
    }

    fn range(&self, axis: &Axis, of: impl Fn(&(f64, f64)) -> f64) -> Range<f64> {
        let range = axis.range(self.lines.iter().flat_map(|line| &line.points).map(&of));
        let band = if self.has_zero(axis, of) { BAND * (range.end - range.start) } else { 0.0 };
        range.start - band..range.end
    }
}

impl Axis {
    /// Of numbers, each step as far as the one before.
    pub(super) fn linear(label: &str) -> Axis {
        Axis { label: label.to_owned(), is_log: false, names: Vec::new() }
    }

    /// Of numbers, each step ten times the one before.
    pub(super) fn log(label: &str) -> Axis {
        Axis { is_log: true, ..Axis::linear(label) }
    }

    /// Where a number is drawn on an axis that reaches over a range: 0, which no tens lead to, at its begin.
    pub(super) fn place(&self, number: f64, range: &Range<f64>) -> f64 {
        match self.is_log {
            true if number == 0.0 => range.start,
            true => number.log10(),
            false => number,
        }
    }

    /// Where the numbers above 0 begin on an axis of tens that has a place for 0.
    pub(super) fn above_zero(range: &Range<f64>) -> f64 {
        range.start + (range.end - range.start) * BAND / (1.0 + BAND)
    }

    /// How far from each other two numbers are drawn, of all that the axis reaches over.
    fn distance(&self, one: f64, other: f64, range: &Range<f64>) -> f64 {
        (self.place(one, range) - self.place(other, range)).abs() / (range.end - range.start)
    }

    /// Where the axis of tens that reaches over a range has its numbers: whole tens, of which there is room for so many; of few tens also 2 and 5, or
    /// round numbers.
    pub(super) fn tens(range: &Range<f64>, room: usize) -> Vec<f64> {
        let within = |place: &f64| range.contains(place);
        let whole = || (range.start.floor() as i32..=range.end.ceil() as i32).map(f64::from);
        if range.end - range.start > 2.0 {
            let tens: Vec<f64> = whole().filter(within).collect();
            return tens.iter().copied().step_by(tens.len().div_ceil(room.max(1)).max(1)).collect();
        }
        let halves = whole().flat_map(|ten| [1.0, 2.0, 5.0].map(|digit: f64| ten + digit.log10()));
        let places: Vec<f64> = halves.filter(within).collect();
        if places.len() > 2 {
            return places;
        }
        let numbers = RangedCoordf64::from(10_f64.powf(range.start)..10_f64.powf(range.end));
        numbers.key_points(room).into_iter().map(f64::log10).collect()
    }

    /// What stands at a place.
    pub(super) fn told(&self, place: f64) -> String {
        if !self.names.is_empty() {
            let name = self.names.get(place.round().max(0.0) as usize);
            return name.filter(|_| (place - place.round()).abs() < 0.01).cloned().unwrap_or_default();
        }
        short(if self.is_log { 10_f64.powf(place) } else { place })
    }

    /// From a little below the least to a little above the greatest; from 0 where steps are equal.
    fn range(&self, numbers: impl Iterator<Item = f64>) -> Range<f64> {
        let places: Vec<f64> = match self.is_log {
            true => numbers.filter(|number| *number > 0.0).map(f64::log10).collect(),
            false => numbers.collect(),
        };
        let greatest = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = places.iter().copied().fold(f64::INFINITY, f64::min);
        if places.is_empty() {
            return 0.0..1.0;
        }
        let margin = ((greatest - least) * 0.05).max(0.05);
        let from = if self.is_log { least - margin } else { least.min(0.0) };
        from..greatest + ((greatest - from) * 0.08).max(margin)
    }
}

/// A number in few letters.
pub(super) fn short(number: f64) -> String {
    let (number, decimals, unit) = match number {
        1e6.. => (number / 1e6, 3, "M"),
        1e4.. => (number / 1e3, 1, "k"),
        100.0.. => (number, 0, ""),
        10.0.. => (number, 1, ""),
        0.01.. => (number, 2, ""),
        _ => (number, 4, ""),
    };
    let text = format!("{number:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_shortly() {
        let told = |axis: &Axis, number: f64| axis.told(axis.place(number, &(-2.0..9.0)));
        let (log, linear) = (Axis::log(""), Axis::linear(""));
        assert_eq!([told(&log, 1e8), told(&log, 1e4), told(&log, 256.0)], ["100M", "10k", "256"]);
        assert_eq!([told(&linear, 2.5), told(&linear, 3.0), told(&linear, 12_500.0)], ["2.5", "3", "12.5k"]);
        assert_eq!([short(17.25), short(0.0003), short(99.99), short(0.0)], ["17.2", "0.0003", "100", "0"]);
    }

    #[test]
    fn an_axis_of_tens_reaches_over_what_is_above_nothing() {
        let range = Axis::log("").range([0.0, 0.001, 10.0].into_iter());
        assert!(range.start < -3.0 && range.start > -4.0 && range.end > 1.0 && range.end < 2.0, "{range:?}");
        assert_eq!(Axis::log("").range([0.0].into_iter()), 0.0..1.0);
        assert_eq!(Axis::linear("").range([2.0, 4.0].into_iter()).start, 0.0);
    }

    #[test]
    fn nothing_has_a_place_below_what_is_above_it() {
        let line = |points: &[(f64, f64)]| Line { points: points.to_vec(), ..Line::default() };
        let of = |points: &[(f64, f64)]| {
            let (x, y) = (Axis::linear(""), Axis::log(""));
            Chart { x, y, lines: vec![line(points)], ..Chart::default() }.drawable()
        };
        let without = of(&[(1.0, 1.0), (2.0, 100.0)]);
        assert_eq!(without.told(), " The vertical axis is logarithmic.");
        let with =
            of(&[(1.0, 1.0), (2.0, 100.0), (3.0, 0.0), (4.0, -5.0), (5.0, f64::INFINITY), (6.0, f64::NAN)]);
        assert_eq!(with.lines[0].points, [(1.0, 1.0), (2.0, 100.0), (3.0, 0.0)]);
        assert!(with.told().contains("0 has a place of its own"), "{}", with.told());
        let (from, above) = (with.y.place(0.0, &with.y_range()), Axis::above_zero(&with.y_range()));
        assert!(from == with.y_range().start && from < above && above < with.y.place(1.0, &with.y_range()));
        assert!((above - without.y_range().start).abs() < 1e-9);
        let nothing = of(&[(1.0, 0.0), (2.0, 0.0)]);
        assert!(!nothing.y.is_log && nothing.lines[0].points.len() == 2 && nothing.told().is_empty());
        assert!(nothing.y_range().start == 0.0 && nothing.y_range().end > 0.0);
    }

    #[test]
    fn tens_are_round() {
        let told = |from: f64, to: f64| -> Vec<String> {
            let places = Axis::tens(&(from.log10()..to.log10()), 6);
            places.into_iter().map(|place| Axis::log("").told(place)).collect()
        };
        assert_eq!(told(0.9, 1100.0), ["1", "10", "100", "1000"]);
        assert_eq!(told(0.9, 1.1e9), ["1", "100", "10k", "1M", "100M"]);
        assert_eq!(told(3.0, 70.0), ["5", "10", "20", "50"]);
        assert_eq!(told(2.1, 4.3), ["2.5", "3", "3.5", "4"]);
    }

    #[test]
    fn bars_stand_in_their_groups() {
        let bars = Line { points: vec![(0.0, 3.0), (1.0, 5.0)], ..Line::default() };
        let groups = vec!["a".to_owned(), "b".to_owned()];
        let of = |bars| {
            let title = "Requests, by case".to_owned();
            Chart::bars(title, groups.clone(), "requests", vec![bars], "Cold.".to_owned())
        };
        let far = of(Line { points: vec![(0.0, 3.0), (1.0, 500.0)], ..bars.clone() });
        assert!(far.y.is_log && far.note.contains("ten times"), "{}", far.note);
        let chart = of(bars);
        assert!(!chart.y.is_log && chart.note == "Cold.");
        assert_eq!(chart.x_range(), -0.5..1.5);
        assert!(chart.y_range().start == 0.0 && chart.y_range().end > 5.0);
        assert_eq!(chart.file_name(), "requests-by-case");
    }

    #[test]
    fn lines_that_meet_are_told() {
        let line = |points: [(f64, f64); 3], is_published| Line {
            points: points.to_vec(),
            is_published,
            ..Line::default()
        };
        let (low, high) = ([(1.0, 1.0), (2.0, 1.0), (3.0, 4.0)], [(1.0, 1.001), (2.0, 1.0), (3.0, 9.0)]);
        let lines = vec![line(low, false), line(high, false), line(low, true)];
        let chart = Chart { note: "Cold.".to_owned(), lines, ..Chart::default() };
        assert_eq!(chart.in_layers(), [2, 0, 1]);
        assert_eq!([0, 1, 2].map(|number| chart.above(number, &low[..2])), [1, 0, 2]);
        assert_eq!([0, 1, 2].map(|number| chart.above(number, &low[1..])), [0, 0, 1]);
        assert_eq!([0, 1, 2].map(|number| chart.above(number, &low[2..])), [0, 0, 1]);
        assert_eq!([0, 1, 2].map(|number| chart.variant(number)), [0, 1, 0]);
        assert_eq!(chart.told(), "Cold. Where lines meet, the wider one is behind.");
        assert!(chart.is_whole(|point| point.0) && !chart.is_whole(|point| point.1));
        let alone = Chart { lines: chart.lines[..1].to_vec(), ..chart };
        assert_eq!(alone.told(), "Cold.");
    }

    #[test]
    fn names_of_files_have_an_end() {
        let of = |title: String| Chart { title, ..Chart::default() }.file_name();
        assert_eq!(of("word ".repeat(1000)), ["word"; 40].join("-"));
        assert_eq!(of(format!("a {} b", "c".repeat(300))), "a-b");
    }
}
