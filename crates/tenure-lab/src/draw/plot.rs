//! Numbers as lines: one image with panels one below the other, each with two axes, a grid and the same legend.
//!
//! The ground is light or dark as the reader's system is; every colour can be read on both. A line shows its points and
//! nothing between that was not measured, so steps must be given as steps. On a logarithmic axis there is no zero: points
//! that are not above it are left out.

use super::look::{escape, lane_paint};
use super::svg::text::{num, put, small, width};

/// An image.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What is shown.
    pub title: String,
    /// How it was measured, in one line.
    pub note: String,
    /// From the top.
    pub panels: Vec<Panel>,
}

/// Two axes and the lines between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What this one shows.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// One direction of a panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// What it measures, with its unit.
    pub label: String,
    /// How.
    pub scale: Scale,
}

/// How an axis measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From zero, in equal steps.
    Linear,
    /// In powers of ten.
    Log,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend says; the same in two panels is one entry.
    pub name: String,
    /// Which colour: series that belong together share one.
    pub colour: usize,
    /// Whether it is broken, to tell it from its sister of the same colour.
    pub dashed: bool,
    /// From the left.
    pub points: Vec<(f64, f64)>,
}

const WIDE: f64 = 960.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 28.0;
const HIGH: f64 = 300.0;
/// A panel with its title and the labels below it.
const PITCH: f64 = HIGH + 92.0;
const TOP: f64 = 84.0;
const ROW: f64 = 22.0;

/// Light unless the reader's system is dark.
const STYLE: &str = "<style>.ground{fill:#fff}.ink{fill:#1f2933}.faint{fill:#66727f}.grid{stroke:#dde2e7}\
.axis{stroke:#66727f}@media (prefers-color-scheme:dark){.ground{fill:#15191e}.ink{fill:#e6eaee}.faint{fill:#a3afba}\
.grid{stroke:#2b323a}.axis{stroke:#8a96a2}}</style>\n";

/// Draws the plot as an SVG document.
pub fn draw(plot: &Plot) -> String {
    let legend = legend(plot);
    let rows = legend.last().map_or(0, |(_, row, _)| row + 1);
    let high = TOP + ROW * small(rows) + PITCH * small(plot.panels.len()) + 8.0;
    let mut out = String::new();
    put!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\" font-size=\"12\" role=\"img\">\n\
         <title>{title}</title>\n{STYLE}<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"ink\" x=\"16\" y=\"28\" font-size=\"19\" font-weight=\"600\">{title}</text>\n\
         <text class=\"faint\" x=\"16\" y=\"50\">{}</text>\n",
        escape(&plot.note),
        w = num(WIDE),
        h = num(high),
        title = escape(&plot.title),
    );
    for (x, row, series) in &legend {
        let y = TOP - 8.0 + ROW * small(*row);
        put!(
            out,
            "<path d=\"M{} {y}h30\" {}/><text class=\"ink\" x=\"{}\" y=\"{}\">{}</text>\n",
            num(*x),
            stroke(series),
            num(x + 38.0),
            num(y + 4.0),
            escape(&series.name),
            y = num(y),
        );
    }
    for (i, panel) in plot.panels.iter().enumerate() {
        draw_panel(&mut out, panel, TOP + ROW * small(rows) + PITCH * small(i) + 30.0);
    }
    out.push_str("</svg>\n");
    out
}

/// Every series once, with its place.
fn legend(plot: &Plot) -> Vec<(f64, usize, &Series)> {
    let mut placed: Vec<(f64, usize, &Series)> = Vec::new();
    let (mut x, mut row) = (16.0, 0);
    for series in plot.panels.iter().flat_map(|panel| &panel.series) {
        if placed.iter().any(|(_, _, known)| known.name == series.name) {
            continue;
        }
        let long = 38.0 + width(&series.name, 12.0) + 24.0;
        if x > 16.0 && x + long > WIDE {
            (x, row) = (16.0, row + 1);
        }
        placed.push((x, row, series));
        x += long;
    }
    placed
}

fn stroke(series: &Series) -> String {
    let dashes = if series.dashed { " stroke-dasharray=\"6 4\"" } else { "" };
    let colour = lane_paint(series.colour).fill;
    format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linejoin=\"round\"{dashes}")
}

/// The part of an axis that is shown, and its ticks.
#[derive(Clone, Debug, PartialEq)]
struct Range {
    scale: Scale,
    /// As places are reckoned: powers of ten on a logarithmic axis.
    from: f64,
    until: f64,
    ticks: Vec<(f64, String)>,
}

impl Range {
    fn of(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        match scale {
            Scale::Linear => Self::linear(values.fold(0.0, f64::max)),
            Scale::Log => Self::log(values.filter(|value| *value > 0.0).map(log10)),
        }
    }

    /// From zero to the first tick at or above the largest value.
    fn linear(largest: f64) -> Self {
        let step = round_step(largest / 6.0);
        let places = places(step);
        let mut ticks = vec![(0.0, tick_text(0.0, places))];
        let mut count = 0_u32;
        while f64::from(count) * step < largest * (1.0 - 1e-9) {
            count += 1;
            ticks.push((f64::from(count) * step, tick_text(f64::from(count) * step, places)));
        }
        Self { scale: Scale::Linear, from: 0.0, until: f64::from(count.max(1)) * step, ticks }
    }

    /// Whole decades around all values.
    fn log(decades: impl Iterator<Item = f64>) -> Self {
        let (mut from, mut until) = (f64::INFINITY, f64::NEG_INFINITY);
        decades.for_each(|decade| (from, until) = (from.min(decade), until.max(decade)));
        if from > until {
            (from, until) = (0.0, 1.0);
        }
        let (from, until) = ((from + 1e-9).floor(), (until - 1e-9).ceil());
        let until = until.max(from + 1.0);
        let mut ticks = Vec::new();
        let mut decade = from;
        while decade <= until {
            ticks.push((decade, power_text(decade)));
            decade += 1.0;
        }
        Self { scale: Scale::Log, from, until, ticks }
    }

    /// Between 0 and 1; nothing where the axis has no place for a value.
    fn place(&self, value: f64) -> Option<f64> {
        let value = match self.scale {
            Scale::Linear => value,
            Scale::Log if value > 0.0 => log10(value),
            Scale::Log => return None,
        };
        Some((value - self.from) / (self.until - self.from))
    }
}

fn draw_panel(out: &mut String, panel: &Panel, top: f64) {
    let values = || panel.series.iter().flat_map(|series| &series.points);
    let x = Range::of(panel.x.scale, values().map(|point| point.0));
    let y = Range::of(panel.y.scale, values().map(|point| point.1));
    let plot = WIDE - LEFT - RIGHT;
    let right = |place: f64| LEFT + plot * place;
    let up = |place: f64| top + HIGH * (1.0 - place);
    put!(out, "<text class=\"ink\" x=\"{}\" y=\"{}\" font-weight=\"600\">", num(LEFT), num(top - 10.0));
    put!(out, "{}</text>\n", escape(&panel.title));
    draw_axes(out, (&x, &y), top);
    put!(
        out,
        "<text class=\"faint\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\n\
         <text class=\"faint\" text-anchor=\"middle\" transform=\"translate(20 {}) rotate(-90)\">{}</text>\n",
        num(LEFT + plot / 2.0),
        num(top + HIGH + 38.0),
        escape(&panel.x.label),
        num(top + HIGH / 2.0),
        escape(&panel.y.label),
    );
    for series in &panel.series {
        let place = |point: &(f64, f64)| Some((right(x.place(point.0)?), up(y.place(point.1)?)));
        let places: Vec<(f64, f64)> = series.points.iter().filter_map(place).collect();
        draw_line(out, series, &places);
    }
}

fn draw_line(out: &mut String, series: &Series, places: &[(f64, f64)]) {
    put!(out, "<g><title>{}</title>", escape(&series.name));
    if let [(x, y)] = places {
        let colour = lane_paint(series.colour).fill;
        put!(out, "<circle cx=\"{}\" cy=\"{}\" r=\"3\" fill=\"{colour}\"/>", num(*x), num(*y));
    } else {
        let mut path = String::new();
        for (i, (x, y)) in places.iter().enumerate() {
            put!(path, "{}{} {}", if i == 0 { "M" } else { "L" }, num(*x), num(*y));
        }
        put!(out, "<path d=\"{path}\" {}/>", stroke(series));
    }
    out.push_str("</g>\n");
}

fn draw_axes(out: &mut String, (x, y): (&Range, &Range), top: f64) {
    let (plot, bottom) = (WIDE - LEFT - RIGHT, top + HIGH);
    let (mut grid, mut labels) = (String::new(), String::new());
    let share = |range: &Range, tick: f64| (tick - range.from) / (range.until - range.from);
    for (tick, text) in &x.ticks {
        let at = num(LEFT + plot * share(x, *tick));
        put!(grid, "M{at} {}V{}", num(top), num(bottom));
        put!(labels, "<text text-anchor=\"middle\" x=\"{at}\" y=\"{}\">{text}</text>", num(bottom + 17.0));
    }
    for (tick, text) in &y.ticks {
        let at = top + HIGH * (1.0 - share(y, *tick));
        put!(grid, "M{} {}H{}", num(LEFT), num(at), num(LEFT + plot));
        let (x, at) = (num(LEFT - 8.0), num(at + 4.0));
        put!(labels, "<text text-anchor=\"end\" x=\"{x}\" y=\"{at}\">{text}</text>");
    }
    put!(
        out,
        "<path class=\"grid\" d=\"{grid}\" fill=\"none\"/>\n<path class=\"axis\" fill=\"none\" d=\"M{l} {t}V{b}H{r}\"/>\n\
         <g class=\"faint\" font-size=\"11\">{labels}</g>\n",
        l = num(LEFT),
        t = num(top),
        b = num(bottom),
        r = num(LEFT + plot),
    );
}

/// The first of 1, 2, 5 times a power of ten that is at least `least`.
fn round_step(least: f64) -> f64 {
    if least.is_nan() || least <= 0.0 {
        return 1.0;
    }
    let mut power = 1.0;
    while power > least {
        power /= 10.0;
    }
    loop {
        if let Some(factor) = [1.0, 2.0, 5.0].into_iter().find(|factor| power * factor >= least) {
            return power * factor;
        }
        power *= 10.0;
    }
}

/// How many decimals a step needs.
fn places(step: f64) -> usize {
    let (mut places, mut step) = (0, step);
    while step < 0.999 && places < 9 {
        (places, step) = (places + 1, step * 10.0);
    }
    places
}

fn tick_text(value: f64, places: usize) -> String {
    format!("{value:.places$}")
}

/// A power of ten as people write it, as long as they can count its zeros.
fn power_text(decade: f64) -> String {
    match decade {
        0.0..=4.0 => {
            let mut value = 1.0;
            let mut left = decade;
            while left > 0.5 {
                (value, left) = (value * 10.0, left - 1.0);
            }
            format!("{value:.0}")
        }
        -4.0..0.0 => {
            let mut text = "0.".to_owned();
            let mut left = decade;
            while left < -1.5 {
                text.push('0');
                left += 1.0;
            }
            text + "1"
        }
        _ => format!("1e{decade:.0}"),
    }
}

/// The decadic logarithm of a number above zero. Made of sums, products and quotients alone, which every machine rounds
/// alike: the library's may differ in the last digit, and with it the image.
pub(super) fn log10(value: f64) -> f64 {
    let (mut decades, mut rest) = (0.0, value);
    while rest >= 10.0 {
        (decades, rest) = (decades + 1.0, rest / 10.0);
    }
    while rest < 1.0 {
        (decades, rest) = (decades - 1.0, rest * 10.0);
    }
    // ln x = 2 artanh((x-1)/(x+1)), a series that for x below 10 has converged long before its 200th term.
    let ratio = (rest - 1.0) / (rest + 1.0);
    let (mut sum, mut power, mut term) = (0.0, ratio, 1.0);
    while term < 200.0 {
        sum += power / term;
        (power, term) = (power * ratio * ratio, term + 2.0);
    }
    decades + 2.0 * sum / std::f64::consts::LN_10
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, points: &[(f64, f64)]) -> Series {
        Series { name: name.to_owned(), colour: 0, dashed: false, points: points.to_vec() }
    }

    fn plot(scale: Scale, all: Vec<Series>) -> Plot {
        let axis = |label: &str, scale| Axis { label: label.to_owned(), scale };
        let panel = Panel {
            title: "a < b".to_owned(),
            x: axis("delay, s", Scale::Linear),
            y: axis("blocked, s", scale),
            series: all,
        };
        Plot { title: "one & all".to_owned(), note: String::new(), panels: vec![panel] }
    }

    #[test]
    fn a_line_goes_through_its_points_at_their_places() {
        let svg = draw(&plot(Scale::Linear, vec![series("line", &[(0.0, 0.0), (6.0, 3.0)])]));
        let (left, right) = (num(LEFT), num(WIDE - RIGHT));
        let (top, bottom) = (num(TOP + ROW + 30.0), num(TOP + ROW + 30.0 + HIGH));
        assert!(svg.contains(&format!("d=\"M{left} {bottom}L{right} {top}\"")), "{svg}");
    }

    #[test]
    fn a_linear_axis_begins_at_zero_and_ends_at_a_round_number() {
        let range = Range::of(Scale::Linear, [0.3, 1.22].into_iter());
        assert_eq!((range.from, range.until), (0.0, 1.5));
        let texts: Vec<&str> = range.ticks.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["0.0", "0.5", "1.0", "1.5"]);
    }

    #[test]
    fn a_logarithmic_axis_has_whole_decades_and_no_place_for_zero() {
        let range = Range::of(Scale::Log, [0.002, 0.0, 30.0].into_iter());
        let texts: Vec<&str> = range.ticks.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["0.001", "0.01", "0.1", "1", "10", "100"]);
        assert_eq!((range.place(0.0), range.place(0.001), range.place(100.0)), (None, Some(0.0), Some(1.0)));
        assert!((range.place(1.0).unwrap() - 0.6).abs() < 1e-12);
    }

    #[test]
    fn the_logarithm_is_the_known_one() {
        for value in [1e-9, 0.02, 0.999_999, 1.0, 2.0, 9.999_999, 10.0, 12_345.6, 1e12] {
            assert!((log10(value) - f64::log10(value)).abs() < 1e-12, "{value}");
        }
    }

    #[test]
    fn an_empty_plot_and_values_of_zero_are_drawn_without_a_line() {
        for scale in [Scale::Linear, Scale::Log] {
            for points in [&[][..], &[(0.0, 0.0)], &[(0.0, 0.0), (1.0, 0.0)]] {
                let svg = draw(&plot(scale, vec![series("flat", points)]));
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        }
    }

    #[test]
    fn names_are_escaped_and_each_is_in_the_legend_once() {
        let mut both = plot(Scale::Linear, vec![series("F < E", &[(0.0, 1.0), (1.0, 2.0)])]);
        both.panels.push(both.panels[0].clone());
        let svg = draw(&both);
        assert!(svg.contains("one &amp; all") && svg.contains("a &lt; b") && !svg.contains("F < E"));
        assert_eq!(svg.matches(">F &lt; E</text>").count(), 1);
        assert!(svg.contains("prefers-color-scheme:dark") && svg.contains("delay, s"));
    }
}
