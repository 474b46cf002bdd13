//! A chart of lines, as SVG.

use std::ops::Range;

use plotters::prelude::{
    ChartBuilder, Circle, Color, DashedLineSeries, DrawingAreaErrorKind, EmptyElement, IntoDrawingArea,
    IntoFont, LineSeries, Palette, Palette99, PathElement, SVGBackend, SeriesLabelPosition, ShapeStyle,
    WHITE,
};
use plotters::style::BLACK;

/// Width and height, in pixels.
const SIZE: (u32, u32) = (880, 420);

/// What is not above this is drawn here where an axis is logarithmic.
const LEAST: f64 = 0.1;

/// Some lines over one axis.
#[derive(Clone, Debug, Default)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
    /// What is to be known of it.
    pub(super) note: String,
}

/// What stands along a side.
#[derive(Clone, Debug, Default)]
pub(super) struct Axis {
    pub(super) label: String,
    /// Whether each step is ten times the one before.
    pub(super) is_log: bool,
    /// What stands at 0, 1, 2, …, if these are no numbers.
    pub(super) names: Vec<String>,
}

/// A line.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    /// Whether others have published it.
    pub(super) is_published: bool,
}

impl Chart {
    /// The chart as SVG.
    pub(super) fn svg(&self) -> String {
        let mut svg = String::new();
        let drawn = self.draw(&mut svg);
        assert!(drawn.is_ok(), "drawing into a string does not fail: {drawn:?}");
        svg
    }

    /// Its title as the name of a file.
    pub(super) fn file_name(&self) -> String {
        let words = self.title.split(|letter: char| !letter.is_ascii_alphanumeric());
        words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect::<Vec<_>>().join("-")
    }

    fn draw(&self, svg: &mut String) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let x = self.x.range(all().map(|point| point.0));
        let y = self.y.range(all().map(|point| point.1));
        let mut context = ChartBuilder::on(&root)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(x.clone(), y.clone())?;
        let (x_label, y_label) = (|at: &f64| self.x.label_at(*at, &x), |at: &f64| self.y.label_at(*at, &y));
        let mut mesh = context.configure_mesh();
        mesh.x_desc(&self.x.label).y_desc(&self.y.label).label_style(("sans-serif", 13).into_font());
        mesh.max_light_lines(0).x_label_formatter(&x_label).y_label_formatter(&y_label);
        if !self.x.names.is_empty() {
            mesh.x_labels(self.x.names.len());
        }
        mesh.draw()?;
        for (number, line) in self.lines.iter().enumerate() {
            let style = ShapeStyle::from(Palette99::pick(number).to_rgba()).stroke_width(2);
            let points: Vec<(f64, f64)> =
                line.points.iter().map(|&(x, y)| (self.x.place(x), self.y.place(y))).collect();
            let drawn = if line.is_published {
                context.draw_series(DashedLineSeries::new(points.iter().copied(), 6, 4, style))?
            } else {
                context.draw_series(LineSeries::new(points.iter().copied(), style))?
            };
            drawn.label(&line.name).legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], style));
            context.draw_series(
                points.iter().map(|&point| EmptyElement::at(point) + Circle::new((0, 0), 3, style.filled())),
            )?;
        }
        context
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .label_font(("sans-serif", 13).into_font())
            .draw()?;
        root.present()
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

    /// Where a number is drawn.
    fn place(&self, number: f64) -> f64 {
        if self.is_log { number.max(LEAST).log10() } else { number }
    }

    /// What is written at a place: of an axis of several tens, those alone.
    fn label_at(&self, place: f64, range: &Range<f64>) -> String {
        let is_between = (place - place.round()).abs() > 0.01;
        if self.is_log && range.end - range.start > 1.5 && is_between {
            String::new()
        } else {
            self.told(place)
        }
    }

    /// What stands at a place.
    fn told(&self, place: f64) -> String {
        if !self.names.is_empty() {
            let name = self.names.get(place.round().max(0.0) as usize);
            return name.filter(|_| (place - place.round()).abs() < 0.01).cloned().unwrap_or_default();
        }
        let number = if self.is_log { 10_f64.powf(place) } else { place };
        match number {
            number if number >= 1e6 => format!("{:.3}M", number / 1e6).replace(".000", ""),
            number if number >= 1e4 => format!("{:.1}k", number / 1e3).replace(".0k", "k"),
            number if number >= 10.0 || number.fract() == 0.0 => format!("{number:.0}"),
            number => format!("{number:.2}"),
        }
    }

    /// From a little below the least to a little above the greatest; from 0 where steps are equal.
    fn range(&self, numbers: impl Iterator<Item = f64>) -> Range<f64> {
        let places: Vec<f64> = numbers.map(|number| self.place(number)).collect();
        let greatest = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = places.iter().copied().fold(f64::INFINITY, f64::min);
        if places.is_empty() {
            return 0.0..1.0;
        }
        let margin = ((greatest - least) * 0.05).max(0.05);
        let from = if self.is_log { least - margin } else { least.min(0.0) };
        // The names of the lines stand at the top.
        from..greatest + (greatest - from).max(margin) * 0.2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_shortly() {
        let told = |axis: &Axis, number: f64| axis.told(axis.place(number));
        let (log, linear) = (Axis::log(""), Axis::linear(""));
        assert_eq!([told(&log, 1e8), told(&log, 1e4), told(&log, 256.0)], ["100M", "10k", "256"]);
        assert_eq!([told(&linear, 2.5), told(&linear, 3.0), told(&linear, 12_500.0)], ["2.50", "3", "12.5k"]);
        assert_eq!(told(&log, 0.0), "0.10");
    }

    #[test]
    fn a_chart_tells_its_lines() {
        let line = |name: &str, is_published| Line {
            name: name.to_owned(),
            points: vec![(1.0, 2.0), (10.0, 0.0)],
            is_published,
        };
        let chart = Chart {
            title: "Requests, by offset".to_owned(),
            x: Axis::log("rows"),
            y: Axis::log("requests"),
            lines: vec![line("here", false), line("there", true)],
            note: String::new(),
        };
        let svg = chart.svg();
        assert!(
            svg.starts_with("<svg")
                && svg.contains("here")
                && svg.contains("there")
                && svg.contains("requests")
        );
        assert_eq!(chart.file_name(), "requests-by-offset");
        assert!(Chart::default().svg().starts_with("<svg"), "nothing can be drawn too");
    }
}
