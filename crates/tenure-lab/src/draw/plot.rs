//! Numbers as lines: one image with panels one below the other, each with two axes, a grid and the
//! same legend.
//!
//! The ground is light or dark as the reader's system is; every colour can be read on both. A line
//! shows its points and nothing between that was not measured, so steps must be given as steps. On
//! a logarithmic axis there is no zero: points that are not above it are left out.

use super::axes::{Frame, Range};
use super::look::{escape, lane_paint};
use super::svg::text::{Paper, num, open, put, small, width};

/// An image.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The title of the plot.
    pub title: String,
    /// How it was measured, in one line.
    pub note: String,
    /// From the top.
    pub panels: Vec<Panel>,
}

/// Two axes and the lines between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The title of this panel.
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
    /// The measured quantity, with its unit.
    pub label: String,
    /// How.
    pub scale: Scale,
}

impl Axis {
    fn range(&self, values: impl Iterator<Item = f64>) -> Range {
        match self.scale {
            Scale::Linear => Range::linear(values),
            Scale::Log => Range::whole_decades(values),
        }
    }
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
    /// The text in the legend; the same in two panels is one entry.
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
const DARK: &str = "@media (prefers-color-scheme:dark){.ground{fill:#15191e}.ink{fill:#e6eaee}.faint{fill:#a3afba}\
.grid{stroke:#2b323a}.axis{stroke:#8a96a2}}";

/// Draws the plot as an SVG document.
pub fn draw(plot: &Plot) -> String {
    let legend = legend(plot);
    let rows = legend.last().map_or(0, |(_, row, _)| row + 1);
    let high = TOP + ROW * small(rows) + PITCH * small(plot.panels.len()) + 8.0;
    let mut out = String::new();
    open(&mut out, Paper { size: (WIDE, high), font: 12, heading: 19, style: DARK }, &plot.title, &plot.note);
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

fn draw_panel(out: &mut String, panel: &Panel, top: f64) {
    let values = || panel.series.iter().flat_map(|series| &series.points);
    let x = panel.x.range(values().map(|point| point.0));
    let y = panel.y.range(values().map(|point| point.1));
    let frame = Frame { left: LEFT, right: WIDE - RIGHT, top, bottom: top + HIGH, font: 11 };
    put!(out, "<text class=\"ink\" x=\"{}\" y=\"{}\" font-weight=\"600\">", num(LEFT), num(top - 10.0));
    put!(out, "{}</text>\n", escape(&panel.title));
    frame.draw(out, (&x, &y), (&panel.x.label, &panel.y.label));
    for series in &panel.series {
        let places = series.points.iter().filter_map(|point| frame.place((&x, &y), *point));
        draw_line(out, series, &places.collect::<Vec<_>>());
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
