//! A slide: three panels side by side on logarithmic axes, every line labelled where it ends.

use super::look::escape;
use super::plot::log10;
use super::svg::text::{num, put, small, width};

/// An image.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What is shown.
    pub title: String,
    /// How it was measured, in one line.
    pub note: String,
    /// From the left: the first is as wide as two.
    pub panels: Vec<Panel>,
}

/// Two axes and what is between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What this one shows.
    pub title: String,
    /// What the axis to the right measures.
    pub x: String,
    /// What the axis upwards measures.
    pub y: String,
    /// The lines.
    pub curves: Vec<Curve>,
}

impl Panel {
    /// A panel without lines.
    pub fn new(title: &str, x: &str, y: &str) -> Self {
        Self { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), curves: Vec::new() }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What stands at its end; nothing, if nothing should.
    pub name: String,
    /// Which colour; grey without.
    pub colour: Option<usize>,
    /// To the right, upwards, and from where to where upwards it may lie.
    pub points: Vec<(f64, f64, f64, f64)>,
    /// Whether it is thought rather than measured.
    pub theory: bool,
}

const WIDE: f64 = 1600.0;
const HIGH: f64 = 900.0;
const TOP: f64 = 130.0;
const BOTTOM: f64 = HIGH - 80.0;

/// Okabe and Ito's colours and some more that are told apart from them on white.
const COLOURS: [&str; 12] = [
    "#0072b2", "#7f7f7f", "#d55e00", "#e69f00", "#009e73", "#56b4e9", "#cc79a7", "#8c5a1e", "#6a5acd",
    "#c8202f", "#999933", "#111111",
];

const STYLE: &str = "<style>.ground{fill:#fff}.ink{fill:#1f2933}.faint{fill:#66727f}.grid{stroke:#e3e7eb}\
.axis{stroke:#66727f}</style>\n";

/// Draws the chart as an SVG document, sixteen to nine.
pub fn draw(chart: &Chart) -> String {
    let mut out = String::new();
    put!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\" font-size=\"14\" role=\"img\">\n\
         <title>{title}</title>\n{STYLE}<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"ink\" x=\"40\" y=\"52\" font-size=\"30\" font-weight=\"600\">{title}</text>\n\
         <text class=\"faint\" x=\"40\" y=\"80\">{}</text>\n",
        escape(&chart.note),
        w = num(WIDE),
        h = num(HIGH),
        title = escape(&chart.title),
    );
    let parts = small(chart.panels.len()) + 0.6;
    let unit = (WIDE - 60.0) / parts;
    let mut left = 30.0;
    for (number, panel) in chart.panels.iter().enumerate() {
        let room = if number == 0 { 1.6 * unit } else { unit };
        let labels = if number == 0 { 212.0 } else { 16.0 };
        draw_panel(
            &mut out,
            panel,
            Frame { left: left + 62.0, right: left + room - labels, label: number == 0 },
        );
        left += room;
    }
    out.push_str("</svg>\n");
    out
}

/// Where a panel is.
#[derive(Clone, Copy)]
struct Frame {
    left: f64,
    right: f64,
    label: bool,
}

/// The part of an axis that is shown, in powers of ten.
#[derive(Clone, Copy)]
struct Range {
    from: f64,
    until: f64,
}

impl Range {
    /// All values and a little room.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let (mut from, mut until) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| *value > 0.0).map(log10) {
            (from, until) = (from.min(value), until.max(value));
        }
        if from > until {
            return Self { from: 0.0, until: 1.0 };
        }
        let room = ((until - from) * 0.04).max(0.03);
        Self { from: from - room, until: until + room }
    }

    fn share(self, value: f64) -> f64 {
        (log10(value.max(1e-12)) - self.from) / (self.until - self.from)
    }

    /// Powers of ten, and where there are few of them 2 and 5 times those.
    fn ticks(self) -> Vec<(f64, String)> {
        let factors: &[f64] = if self.until - self.from < 1.8 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let mut ticks = Vec::new();
        let mut decade = self.from.floor();
        while decade <= self.until {
            for factor in factors {
                let at = decade + log10(*factor);
                let text = if *factor == 1.0 { power(decade) } else { plain(*factor, decade) };
                if at >= self.from && at <= self.until {
                    ticks.push(((at - self.from) / (self.until - self.from), text));
                }
            }
            decade += 1.0;
        }
        ticks
    }
}

/// A small number as people write it.
fn plain(factor: f64, decade: f64) -> String {
    let (mut value, mut left) = (factor, decade);
    while left > 0.5 {
        (value, left) = (value * 10.0, left - 1.0);
    }
    while left < -0.5 {
        (value, left) = (value / 10.0, left + 1.0);
    }
    format!("{value}")
}

fn draw_panel(out: &mut String, panel: &Panel, frame: Frame) {
    let points = || panel.curves.iter().flat_map(|curve| &curve.points);
    let x = Range::of(points().map(|point| point.0));
    let y = Range::of(points().map(|point| point.1));
    let right = |value: f64| frame.left + (frame.right - frame.left) * x.share(value);
    let up = |value: f64| BOTTOM - (BOTTOM - TOP) * y.share(value).clamp(0.0, 1.0);
    put!(
        out,
        "<text class=\"ink\" x=\"{}\" y=\"{}\" font-size=\"18\" font-weight=\"600\">{}</text>\n",
        num(frame.left),
        num(TOP - 16.0),
        escape(&panel.title),
    );
    draw_axes(out, panel, frame, x, y);
    let mut ends: Vec<(f64, f64, &Curve)> = Vec::new();
    for curve in &panel.curves {
        let places: Vec<(f64, f64)> = curve
            .points
            .iter()
            .filter(|point| point.0 > 0.0 && point.1 > 0.0)
            .map(|p| (right(p.0), up(p.1)))
            .collect();
        draw_curve(out, curve, &places);
        if !curve.theory {
            for (point, (at, height)) in curve.points.iter().zip(&places) {
                let bar = (up(point.2.max(1e-9)), up(point.3));
                put!(
                    out,
                    "<path d=\"M{x} {}V{}\" stroke=\"{c}\" stroke-width=\"1.6\"/>",
                    num(bar.0),
                    num(bar.1),
                    x = num(*at),
                    c = colour(curve)
                );
                put!(
                    out,
                    "<circle cx=\"{}\" cy=\"{}\" r=\"2.6\" fill=\"{}\"/>\n",
                    num(*at),
                    num(*height),
                    colour(curve)
                );
            }
        }
        if let Some((x, y)) = places.last().copied().filter(|_| !curve.name.is_empty()) {
            ends.push((x, y, curve));
        }
    }
    if frame.label {
        draw_labels(out, &mut ends, frame.right + 14.0);
    }
}

fn colour(curve: &Curve) -> &'static str {
    curve.colour.map_or("#66727f", |colour| COLOURS[colour % COLOURS.len()])
}

fn draw_curve(out: &mut String, curve: &Curve, places: &[(f64, f64)]) {
    let mut path = String::new();
    for (i, (x, y)) in places.iter().enumerate() {
        put!(path, "{}{} {}", if i == 0 { "M" } else { "L" }, num(*x), num(*y));
    }
    let (thick, dashes) = match (curve.theory, curve.colour) {
        (true, Some(_)) => ("1.2", " stroke-dasharray=\"3 5\" opacity=\"0.75\""),
        (true, None) => ("2", " stroke-dasharray=\"10 6\""),
        (false, _) => ("2.4", ""),
    };
    put!(
        out,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{thick}\" stroke-linejoin=\"round\"{dashes}/>\n",
        colour(curve),
    );
}

/// Names at the ends of their lines, moved apart where they would meet, each with a thin line to its own.
fn draw_labels(out: &mut String, ends: &mut [(f64, f64, &Curve)], x: f64) {
    const APART: f64 = 19.0;
    ends.sort_by(|one, other| one.1.total_cmp(&other.1));
    let mut heights: Vec<f64> = ends.iter().map(|end| end.1).collect();
    for _ in 0..200 {
        for i in 1..heights.len() {
            let gap = heights[i] - heights[i - 1];
            if gap < APART {
                let half = (APART - gap) / 2.0;
                heights[i - 1] -= half;
                heights[i] += half;
            }
        }
        heights.iter_mut().for_each(|height| *height = height.clamp(TOP, BOTTOM));
    }
    for ((end_x, end_y, curve), height) in ends.iter().zip(heights) {
        put!(
            out,
            "<path d=\"M{} {}L{} {}\" stroke=\"{c}\" stroke-width=\"0.8\" fill=\"none\" opacity=\"0.6\"/>\
             <text x=\"{}\" y=\"{}\" fill=\"{c}\" font-weight=\"600\">",
            num(end_x + 4.0),
            num(*end_y),
            num(x - 3.0),
            num(height),
            num(x),
            num(height + 5.0),
            c = colour(curve),
        );
        // A long name goes on two lines: the panel beside it begins soon.
        let (first, rest) = if width(&curve.name, 14.0) > 180.0 {
            curve.name.split_once(", ").unwrap_or((&curve.name, ""))
        } else {
            (curve.name.as_str(), "")
        };
        put!(out, "{}", escape(first));
        if !rest.is_empty() {
            put!(
                out,
                "<tspan x=\"{}\" dy=\"15\" font-size=\"11\" font-weight=\"400\">{}</tspan>",
                num(x),
                escape(rest)
            );
        }
        out.push_str("</text>\n");
    }
}

fn draw_axes(out: &mut String, panel: &Panel, frame: Frame, x: Range, y: Range) {
    let (mut grid, mut labels) = (String::new(), String::new());
    let wide = frame.right - frame.left;
    for (share, text) in x.ticks() {
        let at = num(frame.left + wide * share);
        put!(grid, "M{at} {}V{}", num(TOP), num(BOTTOM));
        put!(labels, "<text text-anchor=\"middle\" x=\"{at}\" y=\"{}\">{text}</text>", num(BOTTOM + 20.0));
    }
    for (share, text) in y.ticks() {
        let at = BOTTOM - (BOTTOM - TOP) * share;
        put!(grid, "M{} {}H{}", num(frame.left), num(at), num(frame.right));
        let (left, at) = (num(frame.left - 8.0), num(at + 5.0));
        put!(labels, "<text text-anchor=\"end\" x=\"{left}\" y=\"{at}\">{text}</text>");
    }
    put!(
        out,
        "<path class=\"grid\" d=\"{grid}\" fill=\"none\"/>\n\
         <path class=\"axis\" fill=\"none\" d=\"M{l} {t}V{b}H{r}\"/>\n<g class=\"faint\" font-size=\"13\">{labels}</g>\n\
         <text class=\"faint\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\n\
         <text class=\"faint\" text-anchor=\"middle\" transform=\"translate({} {}) rotate(-90)\">{}</text>\n",
        num(frame.left + wide / 2.0),
        num(BOTTOM + 46.0),
        escape(&panel.x),
        num(frame.left - 46.0),
        num(f64::midpoint(TOP, BOTTOM)),
        escape(&panel.y),
        l = num(frame.left),
        t = num(TOP),
        b = num(BOTTOM),
        r = num(frame.right),
    );
}

/// A power of ten as people write it.
fn power(decade: f64) -> String {
    match decade {
        d if d.abs() < 0.5 => "1".to_owned(),
        d if (d - 1.0).abs() < 0.5 => "10".to_owned(),
        d if (d - 2.0).abs() < 0.5 => "100".to_owned(),
        d if (d + 1.0).abs() < 0.5 => "0.1".to_owned(),
        d => format!("10<tspan dy=\"-6\" font-size=\"9\">{d:.0}</tspan>"),
    }
}
