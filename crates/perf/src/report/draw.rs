//! Charts as they look: the names of the lines above, then lines or bars over their axes. An SVG and a PNG show the same.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    BitMapBackend, Cartesian2d, ChartBuilder, ChartContext, Circle, Color, DashedLineSeries, DrawingArea,
    DrawingAreaErrorKind, DrawingBackend, FontStyle, FontTransform, IntoDrawingArea, IntoFont, IntoTextStyle,
    LineSeries, PathElement, RGBColor, Rectangle, SVGBackend, Text, TextStyle, WHITE,
};
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart::{Axis, Chart, Form, Line, short};
use super::png;

/// Width and height of an SVG, in pixels.
pub(super) const SIZE: (u32, u32) = (880, 420);

/// By how much a PNG is larger.
pub(super) const ENLARGED: u32 = 2;

/// Height of a row of names, and of letters, in pixels of an SVG.
const ROW: i32 = 19;
const LETTERS: u32 = 13;
const SMALL_LETTERS: u32 = 11;
const LARGE_LETTERS: u32 = 16;

/// Bars that are narrower than this have their numbers written upwards.
const WIDE_BAR: f64 = 30.0;

/// Height of a line of a group's name.
const GROUP_ROW: i32 = 16;

/// Around a chart, and at its left for its numbers.
const MARGIN: i32 = 12;
const LEFT: i32 = 72;

/// Of the room of a group its bars take so much, and each of its own room.
const GROUP: f64 = 0.84;
const BAR: f64 = 0.9;

/// Colors that most people tell apart, dark enough for thin lines on white.
const COLORS: [(u8, u8, u8); 12] = [
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (204, 121, 167),
    (86, 180, 233),
    (230, 159, 0),
    (90, 90, 90),
    (136, 34, 85),
    (153, 153, 51),
    (51, 34, 136),
    (140, 86, 75),
    (68, 170, 153),
];

type Area<B> = DrawingArea<B, Shift>;
type Drawn<T, B> = Result<T, DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;
type Context<'a, B> = ChartContext<'a, B, Cartesian2d<Scale, Scale>>;

/// A chart as SVG, for a page that has its title, or with it.
pub(super) fn svg(chart: &Chart, is_headed: bool) -> String {
    let mut svg = String::new();
    let drawn = draw(chart, SVGBackend::with_string(&mut svg, SIZE).into_drawing_area(), 1, is_headed);
    assert!(drawn.is_ok(), "drawing into a string does not fail: {drawn:?}");
    svg
}

/// A chart as PNG with its title, enlarged, so that it can be read on fine screens and on paper.
pub(super) fn png(chart: &Chart) -> Vec<u8> {
    let (width, height) = (SIZE.0 * ENLARGED, SIZE.1 * ENLARGED);
    let mut pixels = vec![0; (width * height * 3) as usize];
    let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
    let drawn = draw(chart, area, ENLARGED, true);
    assert!(drawn.is_ok(), "drawing into memory does not fail: {drawn:?}");
    png::encoded(&pixels, (width, height))
}

fn draw<B: DrawingBackend>(chart: &Chart, root: Area<B>, scale: u32, is_headed: bool) -> Drawn<(), B> {
    let registered = register_font("sans-serif", FontStyle::Normal, ttf_noto_sans::REGULAR);
    assert!(registered.is_ok(), "the font is one");
    let pen = Pen { chart, root, scale };
    pen.root.fill(&WHITE)?;
    let top = if is_headed { pen.title()? } else { pen.pixels(8) };
    let top = pen.names(top)?;
    let mut context = pen.axes(top)?;
    match chart.form {
        Form::Lines => pen.lines(&mut context)?,
        Form::Bars => pen.bars(&mut context)?,
    }
    pen.root.present()
}

/// The places of an axis, and where it has its numbers.
struct Scale {
    places: RangedCoordf64,
    is_log: bool,
}

impl Scale {
    fn new(axis: &Axis, range: Range<f64>) -> Scale {
        Scale { places: range.into(), is_log: axis.is_log }
    }
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, pixels: (i32, i32)) -> i32 {
        self.places.map(place, pixels)
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        match self.is_log {
            true => Axis::tens(&self.places.range(), hint.max_num_points()),
            false => self.places.key_points(hint),
        }
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
    /// Writes the title. Answers with how much of the top it takes.
    fn title(&self) -> Drawn<i32, B> {
        let style = self.text(LARGE_LETTERS).pos(Pos::new(HPos::Center, VPos::Top));
        let middle = self.root.dim_in_pixel().0 as i32 / 2;
        self.root.draw(&Text::new(self.chart.title.clone(), (middle, self.pixels(10)), style))?;
        Ok(self.pixels(36))
    }

    /// Writes the names of the lines, from so far below the top on. Answers with where they end.
    fn names(&self, top: i32) -> Drawn<i32, B> {
        let (style, swatch) = (self.text(LETTERS), self.pixels(18));
        let mut widths = Vec::new();
        for line in &self.chart.lines {
            let (width, _) = self.root.estimate_text_size(&line.name, &style)?;
            widths.push(swatch + self.pixels(6) + width as i32 + self.pixels(22));
        }
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

    /// A piece of a line, or a small bar.
    fn swatch(&self, number: usize, line: &Line, (x, middle): (i32, i32), width: i32) -> Drawn<(), B> {
        let style = color(number).stroke_width(2 * self.scale);
        let (half, dash) = (self.pixels(5), width * 2 / 5);
        match (self.chart.form, line.is_published) {
            (Form::Bars, _) => {
                let corners = [(x, middle - half), (x + width, middle + half)];
                self.root.draw(&Rectangle::new(corners, fill(number, line).filled()))
            }
            (Form::Lines, false) => {
                self.root.draw(&PathElement::new([(x, middle), (x + width, middle)], style))
            }
            (Form::Lines, true) => {
                self.root.draw(&PathElement::new([(x, middle), (x + dash, middle)], style))?;
                self.root.draw(&PathElement::new([(x + width - dash, middle), (x + width, middle)], style))
            }
        }
    }

    fn axes(&self, top: i32) -> Drawn<Context<'_, B>, B> {
        let Chart { x: along, y: up, .. } = self.chart;
        let (x, y) = (self.chart.x_range(), self.chart.y_range());
        let below = self.pixels(46) + (self.group_rows()? - 2).max(0) * self.pixels(GROUP_ROW);
        let mut context = ChartBuilder::on(&self.root)
            .margin(self.pixels(MARGIN))
            .margin_top(top + self.pixels(4))
            .x_label_area_size(below)
            .y_label_area_size(self.pixels(LEFT))
            .build_cartesian_2d(Scale::new(along, x), Scale::new(up, y))?;
        let (x_label, y_label) = (|at: &f64| along.told(*at), |at: &f64| up.told(*at));
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

    fn lines(&self, context: &mut Context<'_, B>) -> Drawn<(), B> {
        let Chart { x: along, y: up, .. } = self.chart;
        let (x_range, y_range) = (self.chart.x_range(), self.chart.y_range());
        // Ours above those of others, where they are the same.
        let lines = || self.chart.lines.iter().enumerate();
        let of_others = lines().filter(|(_, line)| line.is_published);
        for (number, line) in of_others.chain(lines().filter(|(_, line)| !line.is_published)) {
            let style = color(number).stroke_width(2 * self.scale);
            let points: Vec<(f64, f64)> =
                line.points.iter().map(|&(x, y)| (along.place(x, &x_range), up.place(y, &y_range))).collect();
            let (dash, gap) = (self.pixels(6), self.pixels(4));
            if line.is_published {
                context.draw_series(DashedLineSeries::new(points.iter().copied(), dash, gap, style))?;
            } else {
                context.draw_series(LineSeries::new(points.iter().copied(), style))?;
            }
            context.draw_series(
                points.iter().map(|&point| Circle::new(point, self.pixels(3), style.filled())),
            )?;
        }
        Ok(())
    }

    /// The bars of each group side by side, each with its number above it, and the groups' names below.
    fn bars(&self, context: &mut Context<'_, B>) -> Drawn<(), B> {
        let range = self.chart.y_range();
        let bottom = range.start;
        let width = GROUP / self.chart.lines.len().max(1) as f64;
        for (number, line) in self.chart.lines.iter().enumerate() {
            for &(group, value) in &line.points {
                let left = group - GROUP / 2.0 + number as f64 * width;
                let top = self.chart.y.place(value, &range);
                let corners = [(left, bottom), (left + width * BAR, top)];
                context.draw_series([Rectangle::new(corners, fill(number, line).filled())])?;
                let middle = (left + width * BAR / 2.0, top);
                self.number(value, context.plotting_area().map_coordinate(&middle), width)?;
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
    fn number(&self, value: f64, (x, y): (i32, i32), width: f64) -> Drawn<(), B> {
        let groups = self.chart.x.names.len().max(1) as f64;
        let is_wide = width / groups * f64::from(SIZE.0) > WIDE_BAR;
        let style = self.text(SMALL_LETTERS);
        let style = match is_wide {
            true => style.pos(Pos::new(HPos::Center, VPos::Bottom)),
            false => style.transform(FontTransform::Rotate270).pos(Pos::new(HPos::Left, VPos::Center)),
        };
        self.root.draw(&Text::new(short(value), (x, y - self.pixels(3)), style))
    }

    /// The name of a group in the middle of its room, on as many lines as it needs there.
    fn group_name(&self, name: &str, (x, y): (i32, i32), room: i32) -> Drawn<(), B> {
        let style = self.text(LETTERS).pos(Pos::new(HPos::Center, VPos::Top));
        for (number, line) in (0..).zip(self.wrapped(name, room)?) {
            let at = (x, y + number * self.pixels(GROUP_ROW));
            self.root.draw(&Text::new(line, at, style.clone()))?;
        }
        Ok(())
    }

    /// How many lines the names of the groups have at the most.
    fn group_rows(&self) -> Drawn<i32, B> {
        let names = &self.chart.x.names;
        let width = self.root.dim_in_pixel().0 as i32 - self.pixels(LEFT + 2 * MARGIN);
        let mut rows = 0;
        for name in names.iter().filter(|_| self.chart.form == Form::Bars) {
            rows = rows.max(self.wrapped(name, width / names.len() as i32)?.len());
        }
        Ok(rows as i32)
    }

    /// A text in lines that have room.
    fn wrapped(&self, text: &str, room: i32) -> Drawn<Vec<String>, B> {
        let style = self.text(LETTERS);
        let fits = |line: &str| Ok(self.root.estimate_text_size(line, &style)?.0 as i32 <= room * 9 / 10);
        in_lines(text, fits)
    }

    fn text(&self, letters: u32) -> TextStyle<'static> {
        ("sans-serif", letters * self.scale).into_font().into_text_style(&self.root)
    }

    fn pixels(&self, of_svg: i32) -> i32 {
        of_svg * self.scale as i32
    }
}

/// The color of a line.
fn color(number: usize) -> RGBColor {
    let (red, green, blue) = COLORS[number % COLORS.len()];
    RGBColor(red, green, blue)
}

/// The color of a bar: pale for what others have published.
fn fill(number: usize, line: &Line) -> RGBColor {
    let RGBColor(red, green, blue) = color(number);
    let pale = |part: u8| u8::MAX - (u8::MAX - part) / 5 * 2;
    if line.is_published { RGBColor(pale(red), pale(green), pale(blue)) } else { color(number) }
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
fn in_lines<E>(text: &str, fits: impl Fn(&str) -> Result<bool, E>) -> Result<Vec<String>, E> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if fits(&format!("{line} {word}"))? => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::super::chart::Axis;
    use super::png::tests::decoded;
    use super::*;

    fn chart(form: Form) -> Chart {
        let line = |name: &str, is_published| Line {
            name: name.to_owned(),
            points: vec![(0.0, 2.0), (1.0, 0.0)],
            is_published,
        };
        Chart {
            title: "Requests".to_owned(),
            form,
            x: Axis { names: vec!["a row".to_owned(), "a slice of many rows".to_owned()], ..Axis::default() },
            y: Axis::log("requests"),
            lines: vec![line("here", false), line("there", true)],
            note: String::new(),
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
        assert!(!svg(&chart(Form::Bars), false).contains("Requests"));
        assert!(svg(&Chart::default(), true).starts_with("<svg"), "nothing can be drawn too");
    }

    #[test]
    fn a_picture_has_ink_on_it() {
        for form in [Form::Lines, Form::Bars] {
            let (size, pixels) = decoded(&png(&chart(form)));
            assert_eq!(size, (SIZE.0 * ENLARGED, SIZE.1 * ENLARGED));
            let line: [u8; 3] = COLORS[0].into();
            let count = |color: [u8; 3]| pixels.chunks(3).filter(|pixel| *pixel == color).count();
            assert!(
                count([255; 3]) > pixels.len() / 12 && count(line) > 100 && count([0; 3]) > 100,
                "{form:?}"
            );
        }
    }

    #[test]
    fn names_stand_in_rows() {
        assert_eq!(in_rows(&[4, 5, 6, 20], 10), (vec![(0, 0), (4, 0), (0, 1), (0, 2)], 3));
        assert_eq!(in_rows(&[], 10), (vec![], 1));
    }

    #[test]
    fn names_of_groups_are_in_lines() {
        let lines =
            |text, room| in_lines(text, |line: &str| Ok::<_, Infallible>(line.len() <= room)).unwrap();
        assert_eq!(lines("a row of 100,000 in order", 16), ["a row of 100,000", "in order"]);
        assert_eq!(lines("a row of 100,000 in order", 5), ["a row", "of", "100,000", "in", "order"]);
        assert_eq!(lines("scan", 1), ["scan"]);
    }
}
