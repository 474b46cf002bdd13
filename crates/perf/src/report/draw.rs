//! Charts as they look: the names of the lines above, then lines or bars over their axes, and below what is to be known of them. An SVG
//! and a PNG show the same. On a page title and note are of the page.

use std::ops::Range;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    BLACK, BitMapBackend, Cartesian2d, ChartBuilder, ChartContext, Circle, Color, DashedLineSeries,
    DrawingArea, DrawingAreaErrorKind, DrawingBackend, FontStyle, FontTransform, IntoDrawingArea, IntoFont,
    IntoTextStyle, LineSeries, PathElement, RGBColor, Rectangle, SVGBackend, ShapeStyle, Text, TextStyle,
    WHITE,
};
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart::{Axis, Chart, Form, Line, short};
use super::png;

/// Width and height of an SVG without its note, in pixels.
pub(super) const SIZE: (u32, u32) = (880, 420);

/// By how much a PNG is larger.
pub(super) const ENLARGED: u32 = 2;

/// Height of a row of names, and of letters, in pixels of an SVG.
const ROW: i32 = 19;
const LETTERS: u32 = 13;
const SMALL_LETTERS: u32 = 11;
const LARGE_LETTERS: u32 = 16;

/// The color of a note.
const PALE_TEXT: RGBColor = RGBColor(85, 85, 85);

/// Height of a line of the title, and of the note.
const TITLE_ROW: i32 = 20;
const NOTE_ROW: i32 = 15;

/// Bars that are narrower than this have their numbers written upwards.
const WIDE_BAR: f64 = 30.0;

/// Height of a line of a group's name.
const GROUP_ROW: i32 = 16;

/// Around a chart, and at its left for its numbers.
const MARGIN: i32 = 12;
const LEFT: i32 = 72;

/// Width of a piece of a line beside its name.
const SWATCH: i32 = 24;

/// Of the room of a group its bars take so much, and each of its own room.
const GROUP: f64 = 0.84;
const BAR: f64 = 0.9;

/// How much wider a line is, and how much larger the radius of its points, for each line that would hide it.
const WIDER: u32 = 3;
const LARGER: i32 = 2;

/// Colors that most people tell apart, dark enough for thin lines on white.
const COLORS: [(u8, u8, u8); 12] = [
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (204, 121, 167),
    (90, 90, 90),
    (136, 34, 85),
    (153, 153, 51),
    (51, 34, 136),
    (230, 159, 0),
    (140, 86, 75),
    (86, 180, 233),
    (68, 170, 153),
];

/// Of published lines of one color, dashes and the gaps between them, in pixels.
const DASHES: [(i32, i32); 2] = [(7, 4), (3, 3)];

type Area<B> = DrawingArea<B, Shift>;
type Drawn<T, B> = Result<T, DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;
type Context<'a, B> = ChartContext<'a, B, Cartesian2d<Scale, Scale>>;

/// A chart as SVG: for a page that has its title and its note, or with them.
pub(super) fn svg(chart: &Chart, is_alone: bool) -> String {
    let mut svg = String::new();
    let size = if is_alone { size(chart) } else { SIZE };
    let drawn = draw(chart, SVGBackend::with_string(&mut svg, size).into_drawing_area(), 1, is_alone);
    assert!(drawn.is_ok(), "drawing into a string does not fail: {drawn:?}");
    if is_alone {
        svg += &format!("<!-- {} -->\n", png::MARK);
    }
    svg
}

/// A chart as PNG with title and note, enlarged, so that it can be read on fine screens and on paper.
pub(super) fn png(chart: &Chart) -> Vec<u8> {
    let (width, height) = size(chart);
    let (width, height) = (width * ENLARGED, height * ENLARGED);
    let mut pixels = vec![0; (width * height * 3) as usize];
    let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
    let drawn = draw(chart, area, ENLARGED, true);
    assert!(drawn.is_ok(), "drawing into memory does not fail: {drawn:?}");
    png::encoded(&pixels, (width, height))
}

/// Width and height of an SVG with its note.
fn size(chart: &Chart) -> (u32, u32) {
    let rows = note(chart).len() as u32;
    let (width, height) = SIZE;
    (width, height + if rows == 0 { 0 } else { rows * NOTE_ROW as u32 + MARGIN as u32 })
}

/// The lines of the note.
fn note(chart: &Chart) -> Vec<String> {
    match chart.told() {
        none if none.is_empty() => Vec::new(),
        told => wrapped(&told, SMALL_LETTERS, SIZE.0 as i32 - 2 * MARGIN),
    }
}

fn draw<B: DrawingBackend>(chart: &Chart, root: Area<B>, scale: u32, is_alone: bool) -> Drawn<(), B> {
    register();
    root.fill(&WHITE)?;
    let (root, below) = root.split_vertically(SIZE.1 * scale);
    let pen = Pen { chart, root, scale };
    let top = if is_alone { pen.title()? } else { pen.pixels(8) };
    let top = pen.names(top)?;
    let mut context = pen.axes(top)?;
    match chart.form {
        Form::Lines => pen.lines(&mut context)?,
        Form::Bars => pen.bars(&mut context)?,
    }
    if is_alone {
        pen.note(&below)?;
    }
    pen.root.present()
}

/// The places of an axis, and where it has its numbers.
struct Scale {
    places: RangedCoordf64,
    is_log: bool,
    /// Whether only whole numbers stand there.
    is_whole: bool,
    /// Whether an axis of tens has a place for 0, where it begins.
    has_zero: bool,
}

impl Scale {
    /// One axis of a chart, which reaches over a range; points have their places along it by `of`.
    fn new(chart: &Chart, axis: &Axis, range: Range<f64>, of: impl Fn(&(f64, f64)) -> f64) -> Scale {
        let (is_whole, has_zero) = (chart.is_whole(&of), chart.has_zero(axis, of));
        Scale { places: range.into(), is_log: axis.is_log, is_whole, has_zero }
    }

    /// From where on it has numbers by their tens.
    fn begin(&self) -> f64 {
        let range = self.places.range();
        if self.has_zero { Axis::above_zero(&range) } else { range.start }
    }

    /// Whether what stands at a place is a whole number.
    fn is_whole_at(&self, place: f64) -> bool {
        let number = if self.is_log { 10_f64.powf(place) } else { place };
        (number - number.round()).abs() < 1e-6 * number.abs().max(1.0)
    }
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, pixels: (i32, i32)) -> i32 {
        self.places.map(place, pixels)
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        let mut places = match self.is_log {
            true => Axis::tens(&(self.begin()..self.places.range().end), hint.max_num_points()),
            false => self.places.key_points(hint),
        };
        places.retain(|place| !self.is_whole || self.is_whole_at(*place));
        places.splice(..0, self.has_zero.then_some(self.places.range().start));
        places
    }

    fn range(&self) -> Range<f64> {
        self.places.range()
    }
}

/// What is drawn, where, and how many pixels one of an SVG is there.
struct Pen<'a, B: DrawingBackend> {
    chart: &'a Chart,
    root: Area<B>,
    scale: u32,
}

impl<B: DrawingBackend> Pen<'_, B> {
    /// Writes the title, in the middle. Answers with how much of the top it takes.
    fn title(&self) -> Drawn<i32, B> {
        let style = self.text(LARGE_LETTERS).pos(Pos::new(HPos::Center, VPos::Top));
        let middle = self.root.dim_in_pixel().0 as i32 / 2;
        let lines = wrapped(&self.chart.title, LARGE_LETTERS, SIZE.0 as i32 - 2 * MARGIN);
        for (row, line) in (0..).zip(&lines) {
            let at = (middle, self.pixels(10 + row * TITLE_ROW));
            self.root.draw(&Text::new(line.clone(), at, style.clone()))?;
        }
        Ok(self.pixels(16 + lines.len() as i32 * TITLE_ROW))
    }

    /// Writes the note on what is left for it.
    fn note(&self, below: &Area<B>) -> Drawn<(), B> {
        let style = self.text(SMALL_LETTERS).color(&PALE_TEXT);
        for (row, line) in (0..).zip(note(self.chart)) {
            let at = (self.pixels(MARGIN), self.pixels(row * NOTE_ROW + 2));
            below.draw(&Text::new(line, at, style.clone()))?;
        }
        Ok(())
    }

    /// Writes the names of the lines, from so far below the top on. Answers with where they end.
    fn names(&self, top: i32) -> Drawn<i32, B> {
        let (style, swatch) = (self.text(LETTERS), self.pixels(SWATCH));
        let width = |line: &Line| swatch + self.pixels(6 + width(&line.name, LETTERS) + 22);
        let widths: Vec<i32> = self.chart.lines.iter().map(width).collect();
        let left = self.pixels(LEFT);
        let (places, rows) = in_rows(&widths, self.root.dim_in_pixel().0 as i32 - left - self.pixels(MARGIN));
        for ((number, line), (x, row)) in self.chart.lines.iter().enumerate().zip(places) {
            let (x, middle) = (left + x, top + row * self.pixels(ROW) + self.pixels(ROW) / 2);
            self.swatch(number, line, (x, middle), swatch)?;
            let beside = (x + swatch + self.pixels(6), middle);
            let style = style.clone().pos(Pos::new(HPos::Left, VPos::Center));
            self.root.draw(&Text::new(line.name.clone(), beside, style))?;
        }
        Ok(top + rows * self.pixels(ROW))
    }

    /// A piece of a line with a point, which is wide if it is behind others somewhere, or a small bar.
    fn swatch(&self, number: usize, line: &Line, (x, middle): (i32, i32), width: i32) -> Drawn<(), B> {
        if self.chart.form == Form::Bars {
            let half = self.pixels(5);
            let corners = [(x, middle - half), (x + width, middle + half)];
            return self.root.draw(&Rectangle::new(corners, self.color(number).filled()));
        }
        let is_behind = |piece: &[(f64, f64)]| self.chart.above(number, piece) > 0;
        let above = |size: usize| usize::from(line.points.windows(size).any(is_behind));
        for (from, to) in self.dashes(number, width) {
            let ends = [(x + from, middle), (x + to, middle)];
            self.root.draw(&PathElement::new(ends, self.stroke(number, above(2))))?;
        }
        let point = Circle::new((x + width / 2, middle), self.radius(above(1)), self.color(number).filled());
        self.root.draw(&point)
    }

    /// Of a piece of a line that is so wide, where it has its dashes; those that others have published have some.
    fn dashes(&self, number: usize, width: i32) -> Vec<(i32, i32)> {
        if !self.chart.lines[number].is_published {
            return vec![(0, width)];
        }
        let (dash, gap) = self.dash(number);
        let begins = (0..width).step_by((dash + gap) as usize);
        begins.map(|begin| (begin, (begin + dash).min(width))).collect()
    }

    /// A dash and a gap.
    fn dash(&self, number: usize) -> (i32, i32) {
        let (dash, gap) = DASHES[self.chart.variant(number) % DASHES.len()];
        (self.pixels(dash), self.pixels(gap))
    }

    /// The stroke of a line, of which so many others are above.
    fn stroke(&self, number: usize, above: usize) -> ShapeStyle {
        self.color(number).stroke_width((2 + WIDER * above as u32) * self.scale)
    }

    /// The radius of its points.
    fn radius(&self, above: usize) -> i32 {
        self.pixels(3 + LARGER * above as i32)
    }

    /// The color of a line: those of one color are darker one by one, and pale if others have published them.
    fn color(&self, number: usize) -> RGBColor {
        let (line, variant) = (&self.chart.lines[number], self.chart.variant(number) as f64);
        let (red, green, blue) = COLORS[line.color % COLORS.len()];
        let (with, share) = match line.is_published {
            true => (WHITE, (0.4 + 0.25 * variant).min(0.8)),
            false => (BLACK, (0.35 * variant).min(0.8)),
        };
        let mixed =
            |part: u8, with: u8| (f64::from(part) + (f64::from(with) - f64::from(part)) * share) as u8;
        RGBColor(mixed(red, with.0), mixed(green, with.1), mixed(blue, with.2))
    }

    fn axes(&self, top: i32) -> Drawn<Context<'_, B>, B> {
        let Chart { x: along, y: up, .. } = self.chart;
        let below = self.pixels(46) + (self.group_rows() - 2).max(0) * self.pixels(GROUP_ROW);
        let (x, y) = (self.chart.x_range(), self.y_range(top + self.pixels(MARGIN) + below));
        let zero_of = |scale: &Scale| scale.has_zero.then_some(scale.range().start);
        let x = Scale::new(self.chart, along, x, |point| point.0);
        let y = Scale::new(self.chart, up, y, |point| point.1);
        let (x_zero, y_zero) = (zero_of(&x), zero_of(&y));
        let mut context = ChartBuilder::on(&self.root)
            .margin(self.pixels(MARGIN))
            .margin_top(top + self.pixels(4))
            .x_label_area_size(below)
            .y_label_area_size(self.pixels(LEFT))
            .build_cartesian_2d(x, y)?;
        let label = |axis: &Axis, zero: Option<f64>, at: f64| {
            if zero == Some(at) { short(0.0) } else { axis.told(at) }
        };
        let (x_label, y_label) = (|at: &f64| label(along, x_zero, *at), |at: &f64| label(up, y_zero, *at));
        let mut mesh = context.configure_mesh();
        mesh.x_desc(&along.label).y_desc(&up.label).label_style(self.text(LETTERS)).max_light_lines(0);
        mesh.axis_desc_style(self.text(LETTERS)).set_all_tick_mark_size(self.pixels(4));
        mesh.x_label_formatter(&x_label).y_label_formatter(&y_label);
        match self.chart.form {
            Form::Bars => mesh.disable_x_mesh().x_labels(0),
            Form::Lines if along.names.is_empty() => &mut mesh,
            Form::Lines => mesh.x_labels(along.names.len()),
        };
        mesh.draw()?;
        Ok(context)
    }

    /// What the axis on the left reaches over, where so many pixels are above and below: numbers that stand upright on bars have room there.
    fn y_range(&self, taken: i32) -> Range<f64> {
        let range = self.chart.y_range();
        if self.chart.form == Form::Lines || self.has_wide_bars() {
            return range;
        }
        let values = self.chart.lines.iter().flat_map(|line| &line.points).map(|point| point.1);
        let longest = values.map(|value| width(&short(value), SMALL_LETTERS)).max().unwrap_or(0);
        let height = f64::from(SIZE.1 as i32 - taken / self.scale as i32);
        let room = f64::from(longest + 8).min(height / 2.0);
        range.start..range.start + (range.end - range.start) * height / (height - room)
    }

    /// Each piece of a line, as wide as it needs to be to be seen behind those above it.
    fn lines(&self, context: &mut Context<'_, B>) -> Drawn<(), B> {
        let Chart { x: along, y: up, .. } = self.chart;
        let (x_range, y_range) = (self.chart.x_range(), self.chart.y_range());
        let place = |&(x, y): &(f64, f64)| (along.place(x, &x_range), up.place(y, &y_range));
        for number in self.chart.in_layers() {
            let line = &self.chart.lines[number];
            let (dash, gap) = self.dash(number);
            for piece in line.points.windows(2) {
                let stroke = self.stroke(number, self.chart.above(number, piece));
                let ends = piece.iter().map(place);
                if line.is_published {
                    context.draw_series(DashedLineSeries::new(ends, dash, gap, stroke))?;
                } else {
                    context.draw_series(LineSeries::new(ends, stroke))?;
                }
            }
            let fill = self.color(number).filled();
            let points = line.points.iter().map(|point| {
                let above = self.chart.above(number, &[*point]);
                Circle::new(place(point), self.radius(above), fill)
            });
            context.draw_series(points)?;
        }
        Ok(())
    }

    /// The bars of each group side by side, each with its number above it, and the groups' names below.
    fn bars(&self, context: &mut Context<'_, B>) -> Drawn<(), B> {
        let range = self.chart.y_range();
        let bottom = range.start;
        let width = self.bar_width();
        for (number, line) in self.chart.lines.iter().enumerate() {
            for &(group, value) in &line.points {
                let left = group - GROUP / 2.0 + number as f64 * width;
                let top = self.chart.y.place(value, &range);
                let corners = [(left, bottom), (left + width * BAR, top)];
                context.draw_series([Rectangle::new(corners, self.color(number).filled())])?;
                let middle = (left + width * BAR / 2.0, top);
                self.number(value, context.plotting_area().map_coordinate(&middle))?;
            }
        }
        let (_, below) = context.plotting_area().get_pixel_range();
        let slot = context.plotting_area().dim_in_pixel().0 as i32 / self.chart.x.names.len().max(1) as i32;
        for (group, name) in self.chart.x.names.iter().enumerate() {
            let (x, _) = context.plotting_area().map_coordinate(&(group as f64, bottom));
            self.group_name(name, (x, below.end + self.pixels(6)), slot)?;
        }
        Ok(())
    }

    /// What a bar is of, above it.
    fn number(&self, value: f64, (x, y): (i32, i32)) -> Drawn<(), B> {
        let style = self.text(SMALL_LETTERS);
        let style = match self.has_wide_bars() {
            true => style.pos(Pos::new(HPos::Center, VPos::Bottom)),
            false => style.transform(FontTransform::Rotate270).pos(Pos::new(HPos::Left, VPos::Center)),
        };
        self.root.draw(&Text::new(short(value), (x, y - self.pixels(3)), style))
    }

    /// The width of the room of a bar, where a group has 1.
    fn bar_width(&self) -> f64 {
        GROUP / self.chart.lines.len().max(1) as f64
    }

    fn has_wide_bars(&self) -> bool {
        let groups = self.chart.x.names.len().max(1) as f64;
        self.bar_width() / groups * f64::from(SIZE.0) > WIDE_BAR
    }

    /// The name of a group in the middle of its room, on as many lines as it needs there.
    fn group_name(&self, name: &str, (x, y): (i32, i32), room: i32) -> Drawn<(), B> {
        let style = self.text(LETTERS).pos(Pos::new(HPos::Center, VPos::Top));
        for (number, line) in (0..).zip(wrapped(name, LETTERS, room / self.scale as i32)) {
            let at = (x, y + number * self.pixels(GROUP_ROW));
            self.root.draw(&Text::new(line, at, style.clone()))?;
        }
        Ok(())
    }

    /// How many lines the names of the groups have at the most.
    fn group_rows(&self) -> i32 {
        let names = &self.chart.x.names;
        let room = (SIZE.0 as i32 - LEFT - 2 * MARGIN) / names.len().max(1) as i32;
        let bars = names.iter().filter(|_| self.chart.form == Form::Bars);
        bars.map(|name| wrapped(name, LETTERS, room).len()).max().unwrap_or(0) as i32
    }

    fn text(&self, letters: u32) -> TextStyle<'static> {
        ("sans-serif", letters * self.scale).into_font().into_text_style(&self.root)
    }

    fn pixels(&self, of_svg: i32) -> i32 {
        of_svg * self.scale as i32
    }
}

/// How wide a text is, in pixels of an SVG.
fn width(text: &str, letters: u32) -> i32 {
    register();
    let size = ("sans-serif", letters).into_font().box_size(text);
    size.expect("the font is there").0 as i32
}

/// A text in lines that have room.
fn wrapped(text: &str, letters: u32, room: i32) -> Vec<String> {
    in_lines(text, |line| width(line, letters) <= room * 9 / 10)
}

/// Makes the font known, which is the same everywhere.
fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        let registered = register_font("sans-serif", FontStyle::Normal, ttf_noto_sans::REGULAR);
        assert!(registered.is_ok(), "the font is one");
    });
}

/// Where names of these widths stand in rows, and how many rows there are.
fn in_rows(widths: &[i32], room: i32) -> (Vec<(i32, i32)>, i32) {
    let (mut places, mut x, mut row) = (Vec::new(), 0, 0);
    for &width in widths {
        if x > 0 && x + width > room {
            (x, row) = (0, row + 1);
        }
        places.push((x, row));
        x += width;
    }
    (places, row + 1)
}

/// A text in lines that fit, each of one word at the least.
fn in_lines(text: &str, fits: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if fits(&format!("{line} {word}")) => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::chart::Axis;
    use super::png::tests::decoded;
    use super::*;

    fn chart(form: Form) -> Chart {
        let line = |name: &str, is_published| Line {
            name: name.to_owned(),
            points: vec![(0.0, 2.0), (1.0, 0.0)],
            color: 0,
            is_published,
        };
        Chart {
            title: "Requests".to_owned(),
            form,
            x: Axis { names: vec!["a row".to_owned(), "a slice of many rows".to_owned()], ..Axis::default() },
            y: Axis::log("requests"),
            lines: vec![line("here", false), line("there", true)],
            note: "Cold. ".repeat(100),
        }
    }

    #[test]
    fn a_chart_tells_its_lines() {
        for form in [Form::Lines, Form::Bars] {
            let svg = svg(&chart(form), true);
            for text in ["<svg", "Requests", "here", "there", "requests", "a row"] {
                assert!(svg.contains(text), "{form:?}: {text}");
            }
        }
        assert!(svg(&chart(Form::Bars), true).contains("Cold."));
        assert!(!["Requests", "Cold."].iter().any(|text| svg(&chart(Form::Bars), false).contains(text)));
        assert!(svg(&Chart::default(), true).starts_with("<svg"), "nothing can be drawn too");
    }

    #[test]
    fn a_picture_has_ink_on_it() {
        for form in [Form::Lines, Form::Bars] {
            let (size, pixels) = decoded(&png(&chart(form)));
            assert_eq!(size.0, SIZE.0 * ENLARGED);
            let note = &pixels[(size.0 * SIZE.1 * ENLARGED * 3) as usize..];
            assert!(note.chunks(3).filter(|pixel| *pixel == [85; 3]).count() > 100, "{form:?}");
            let line: [u8; 3] = COLORS[0].into();
            let count = |color: [u8; 3]| pixels.chunks(3).filter(|pixel| *pixel == color).count();
            assert!(
                count([255; 3]) > pixels.len() / 12 && count(line) > 100 && count([0; 3]) > 100,
                "{form:?}"
            );
        }
    }

    /// Colors of an SVG are in its strokes and fills.
    #[test]
    fn published_lines_have_the_pale_color_of_ours() {
        for form in [Form::Lines, Form::Bars] {
            let mut chart = chart(form);
            let published = Line { name: "later".to_owned(), ..chart.lines[1].clone() };
            chart.lines.push(published);
            let svg = svg(&chart, true);
            for color in ["#0072B2", "#66AAD0", "#A5CDE4"] {
                assert!(svg.contains(color), "{form:?}: {color}");
            }
            chart.lines[1].is_published = false;
            assert!(super::svg(&chart, true).contains("#004A73"), "{form:?}: another of ours is darker");
        }
    }

    #[test]
    fn lines_behind_others_are_wider() {
        let mut chart = chart(Form::Lines);
        let widths = |chart: &Chart| {
            ["2", "5"].map(|width| svg(chart, true).contains(&format!("stroke-width=\"{width}\"")))
        };
        assert_eq!(widths(&chart), [true, true]);
        chart.lines.pop();
        assert_eq!(widths(&chart), [true, false]);
    }

    #[test]
    fn numbers_on_bars_have_room() {
        let points = |value: f64| (0..30).map(|group| (f64::from(group), value)).collect();
        let bars = Line { points: points(394_400.0), ..Line::default() };
        let names = vec!["a".to_owned(); 30];
        let chart = Chart::bars(String::new(), names, "", vec![bars], String::new());
        let svg = svg(&chart, false);
        // A bar is the only thing that is as blue as that; its top is far enough below that of the axis.
        let tops = svg.lines().filter(|line| line.starts_with("<rect") && line.contains("#0072B2"));
        let top = |line: &str| line.split("y=\"").nth(1)?.split('"').next()?.parse::<i32>().ok();
        assert!(
            tops.skip(1).filter_map(top).all(|top| top > 8 + ROW + width("394.4k", SMALL_LETTERS)),
            "{svg}"
        );
    }

    #[test]
    fn whole_things_have_whole_numbers() {
        let scale = |is_log: bool, is_whole: bool, range: Range<f64>| {
            Scale { places: range.into(), is_log, is_whole, has_zero: false }.key_points(10)
        };
        assert_eq!(scale(false, true, 0.0..2.5), [0.0, 1.0, 2.0]);
        assert!(scale(false, false, 0.0..2.5).contains(&0.5));
        assert_eq!(scale(true, true, 0.9_f64.log10()..2.3_f64.log10()).len(), 2, "1 and 2");
    }

    #[test]
    fn nothing_is_labelled_so() {
        let labels = |values: [f64; 3]| {
            let points = (1..).map(f64::from).zip(values).collect();
            let lines = vec![Line { points, ..Line::default() }];
            let (x, y) = (Axis::linear(""), Axis::log(""));
            let svg = svg(&Chart { x, y, lines, ..Chart::default() }.drawable(), true);
            svg.lines().filter(|line| *line == "0").count()
        };
        let along = labels([1.0, 10.0, 1000.0]);
        assert_eq!([labels([0.0, 10.0, 1000.0]), labels([0.0; 3])], [along + 1; 2]);
    }

    #[test]
    fn long_titles_are_in_lines() {
        let long = Chart { title: "a title of many words ".repeat(10), ..chart(Form::Bars) };
        let lines = |svg: String| {
            svg.lines().filter(|line| !line.starts_with('<') && line.contains("of many words")).count()
        };
        assert_eq!(lines(svg(&long, true)), 2);
    }

    #[test]
    fn names_stand_in_rows() {
        assert_eq!(in_rows(&[4, 5, 6, 20], 10), (vec![(0, 0), (4, 0), (0, 1), (0, 2)], 3));
        assert_eq!(in_rows(&[], 10), (vec![], 1));
    }

    #[test]
    fn names_of_groups_are_in_lines() {
        let lines = |text, room| in_lines(text, |line: &str| line.len() <= room);
        assert_eq!(lines("a row of 100,000 in order", 16), ["a row of 100,000", "in order"]);
        assert_eq!(lines("a row of 100,000 in order", 5), ["a row", "of", "100,000", "in", "order"]);
        assert_eq!(lines("scan", 1), ["scan"]);
    }
}
