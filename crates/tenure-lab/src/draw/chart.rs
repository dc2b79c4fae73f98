//! A slide: one large panel and two small ones on logarithmic axes, every line labelled where it
//! ends.
//!
//! A viewer who sees no colours, or sits at the back, tells lines apart all the same: each has a
//! mark of its own, and its label shows that mark. Labels never meet: they are moved apart as
//! little as it takes, and a thin line leads to each. Theory is thin and dotted, in the colour of
//! what it speaks of.

use super::axes::{Frame, Range};
use super::look::escape;
use super::svg::text::{Paper, num, open, put, small, wrapped};

/// An image.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title of the chart.
    pub title: String,
    /// How it was measured, in one line.
    pub note: String,
    /// Three: the large one on the left, the upper and the lower one on the right.
    pub panels: Vec<Panel>,
    /// A remark below all panels.
    pub foot: String,
}

/// Two axes and what is between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The title of this panel.
    pub title: String,
    /// The label of the horizontal axis.
    pub x: String,
    /// Whether that axis counts in powers of two.
    pub doubles: bool,
    /// The label of the vertical axis.
    pub y: String,
    /// The lines.
    pub curves: Vec<Curve>,
}

/// One line, or one point.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The label at its end; empty for none.
    pub name: String,
    /// A fainter text beside the label.
    pub says: String,
    /// Which colour and mark; grey without.
    pub look: Option<usize>,
    /// From the left.
    pub points: Vec<Point>,
    /// Whether it is thought rather than measured.
    pub theory: bool,
}

/// A point, and from where to where upwards it may lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// From here.
    pub low: f64,
    /// To here.
    pub high: f64,
}

impl Point {
    /// A point without uncertainty.
    pub fn exact(x: f64, y: f64) -> Self {
        Self { x, y, low: y, high: y }
    }
}

const WIDE: f64 = 1600.0;
const HIGH: f64 = 900.0;
/// The size of most text.
const FONT: u32 = 15;

const FRAMES: [Frame; 3] = [
    Frame { left: 100.0, right: 640.0, top: 138.0, bottom: 764.0, font: 15 },
    Frame { left: 1080.0, right: 1350.0, top: 138.0, bottom: 396.0, font: 13 },
    Frame { left: 1080.0, right: 1350.0, top: 506.0, bottom: 764.0, font: 13 },
];

/// Okabe and Ito's colours, and as many more that are told apart from them on white.
const COLOURS: [&str; 16] = [
    "#0072b2", "#7f7f7f", "#d55e00", "#e69f00", "#009e73", "#cc79a7", "#111111", "#8c5a1e", "#6a5acd",
    "#b0122b", "#56b4e9", "#808000", "#006d6f", "#c2188f", "#1b2a6b", "#5a9e1f",
];

/// The corners of a mark; none: a circle. With as many filled as hollow, every colour has a mark of
/// its own.
const MARKS: [&[(f64, f64)]; 8] = [
    &[],
    &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
    &[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)],
    &[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
    &[(0.0, -1.6), (0.4, -0.4), (1.6, 0.0), (0.4, 0.4), (0.0, 1.6), (-0.4, 0.4), (-1.6, 0.0), (-0.4, -0.4)],
    &[(-1.2, 0.0), (0.8, -1.1), (0.8, 1.1)],
    &[(1.2, 0.0), (-0.8, -1.1), (-0.8, 1.1)],
];

const GREY: &str = "#66727f";

/// Draws the chart as an SVG document, sixteen to nine.
pub fn draw(chart: &Chart) -> String {
    let mut out = String::new();
    let paper = Paper { size: (WIDE, HIGH), font: FONT, heading: 30, style: "" };
    open(&mut out, paper, &chart.title, &chart.note);
    for (panel, frame) in chart.panels.iter().zip(FRAMES) {
        draw_panel(&mut out, panel, frame);
    }
    for (row, line) in wrapped(&chart.foot, WIDE - 48.0, 13.0).iter().enumerate() {
        let y = num(840.0 + 18.0 * small(row));
        put!(out, "<text class=\"faint\" x=\"24\" y=\"{y}\" font-size=\"13\">{}</text>\n", escape(line));
    }
    out.push_str("</svg>\n");
    out
}

fn draw_panel(out: &mut String, panel: &Panel, frame: Frame) {
    let points = || panel.curves.iter().flat_map(|curve| &curve.points);
    let x = points().map(|point| point.x);
    let x = if panel.doubles { Range::doublings(x) } else { Range::snug(x) };
    let y = Range::snug(points().map(|point| point.y));
    put!(
        out,
        "<text class=\"ink\" x=\"{}\" y=\"{}\" font-size=\"18\" font-weight=\"600\">{}</text>\n",
        num(frame.left),
        num(frame.top - 14.0),
        escape(&panel.title),
    );
    frame.draw(out, (&x, &y), (&panel.x, &panel.y));
    let mut ends: Vec<End<'_>> = Vec::new();
    // Curves of theory lie below measured ones.
    let (thought, measured): (Vec<&Curve>, Vec<&Curve>) = panel.curves.iter().partition(|curve| curve.theory);
    for curve in thought.into_iter().chain(measured) {
        let place = |point: (f64, f64)| frame.place((&x, &y), point);
        draw_curve(out, curve, &place);
        let last = curve.points.iter().filter_map(|point| place((point.x, point.y))).next_back();
        ends.extend(last.filter(|_| !curve.name.is_empty()).map(|at| End { at, curve }));
    }
    draw_labels(out, ends, frame);
}

fn colour(curve: &Curve) -> &'static str {
    curve.look.map_or(GREY, |look| COLOURS[look % COLOURS.len()])
}

/// How the line is drawn, except where.
fn stroke(curve: &Curve) -> String {
    let (thick, dashes) = match (curve.theory, curve.look) {
        (true, Some(_)) => ("1.3", " stroke-dasharray=\"1.5 3.5\""),
        (true, None) => ("1.6", " stroke-dasharray=\"9 5\""),
        (false, Some(look)) if is_hollow(look) => ("2.2", " stroke-dasharray=\"9 3\""),
        (false, _) => ("2.2", ""),
    };
    let colour = colour(curve);
    format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"{thick}\" stroke-linejoin=\"round\"{dashes}")
}

fn is_hollow(look: usize) -> bool {
    look / MARKS.len() % 2 == 1
}

fn draw_curve(out: &mut String, curve: &Curve, place: &dyn Fn((f64, f64)) -> Option<(f64, f64)>) {
    let at = |point: &Point| Some((*point, place((point.x, point.y))?));
    let places: Vec<(Point, (f64, f64))> = curve.points.iter().filter_map(at).collect();
    let (mut path, mut bars) = (String::new(), String::new());
    for (i, (point, (x, y))) in places.iter().enumerate() {
        put!(path, "{}{} {}", if i == 0 { "M" } else { "L" }, num(*x), num(*y));
        let ends = (place((point.x, point.low.max(1e-9))), place((point.x, point.high)));
        if let (Some((_, low)), Some((_, high)), true) = (ends.0, ends.1, point.low < point.high) {
            let left = num(x - 4.0);
            put!(bars, "M{x} {l}V{h}M{left} {l}h8M{left} {h}h8", x = num(*x), l = num(low), h = num(high));
        }
    }
    put!(out, "<g><title>{}</title><path d=\"{path}\" {}/>", escape(&curve.name), stroke(curve));
    if let (false, Some(look)) = (curve.theory, curve.look) {
        put!(out, "<path d=\"{bars}\" stroke=\"{}\" stroke-width=\"1.4\" fill=\"none\"/>", colour(curve));
        places.iter().for_each(|(_, at)| draw_mark(out, look, *at, 3.6));
    }
    out.push_str("</g>\n");
}

fn draw_mark(out: &mut String, look: usize, (x, y): (f64, f64), size: f64) {
    let colour = COLOURS[look % COLOURS.len()];
    let fill = if is_hollow(look) { "#fff" } else { colour };
    let paint = format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.4\"");
    let corners = MARKS[look % MARKS.len()];
    if corners.is_empty() {
        put!(out, "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {paint}/>", num(x), num(y), num(size));
        return;
    }
    let points: Vec<String> =
        corners.iter().map(|(dx, dy)| format!("{},{}", num(x + dx * size), num(y + dy * size))).collect();
    put!(out, "<polygon points=\"{}\" {paint}/>", points.join(" "));
}

/// Where a line ends that has a name.
struct End<'a> {
    at: (f64, f64),
    curve: &'a Curve,
}

/// Names beside the frame, in the order of their ends.
fn draw_labels(out: &mut String, mut ends: Vec<End<'_>>, frame: Frame) {
    ends.sort_by(|one, other| one.at.1.total_cmp(&other.at.1));
    let heights: Vec<f64> = ends.iter().map(|end| end.at.1).collect();
    let (x, size) = (frame.right + 34.0, f64::from(frame.font));
    for (end, height) in ends.iter().zip(spread(&heights, 1.4 * size, (frame.top + 4.0, frame.bottom))) {
        let curve = end.curve;
        put!(
            out,
            "<path d=\"M{} {}H{}L{} {h}\" stroke=\"#b9c1c9\" stroke-width=\"0.9\" stroke-dasharray=\"2 2\" fill=\"none\"/>\
             <path d=\"M{} {h}h22\" {}/>",
            num(end.at.0 + 6.0),
            num(end.at.1),
            num(frame.right + 8.0),
            num(x - 4.0),
            num(x),
            stroke(curve),
            h = num(height),
        );
        if let (Some(look), false) = (curve.look, curve.theory) {
            draw_mark(out, look, (x + 11.0, height), 4.2);
        }
        let style = if curve.theory {
            "class=\"faint\" font-style=\"italic\""
        } else {
            "class=\"ink\" font-weight=\"600\""
        };
        put!(
            out,
            "<text {style} x=\"{}\" y=\"{}\" font-size=\"{}\">",
            num(x + 29.0),
            num(height + 0.33 * size),
            frame.font
        );
        put!(out, "{}", escape(&curve.name));
        if !curve.says.is_empty() {
            let says = escape(&curve.says);
            put!(out, "<tspan class=\"faint\" font-weight=\"400\" font-size=\"85%\" dx=\"7\">{says}</tspan>");
        }
        out.push_str("</text>\n");
    }
}

/// Heights in rising order, moved so far apart, or as far as there is room, and no more than it
/// takes: the least squares of all moves. Labels that would meet make a block, whose middle is the
/// middle of what its labels want.
fn spread(wanted: &[f64], apart: f64, (top, bottom): (f64, f64)) -> Vec<f64> {
    let gaps = small(wanted.len().saturating_sub(1));
    let apart = apart.min((bottom - top) / gaps.max(1.0));
    // Less its place in the row, each label wants no more than to stand no higher than the one
    // before it.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (number, height) in wanted.iter().enumerate() {
        let mut block = (height - apart * small(number), 1);
        while let Some(before) = blocks.pop_if(|before| before.0 / small(before.1) > block.0 / small(block.1))
        {
            block = (before.0 + block.0, before.1 + block.1);
        }
        blocks.push(block);
    }
    let lowest = bottom - apart * gaps;
    let starts = blocks.iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / small(*count), *count));
    starts.enumerate().map(|(number, start)| start.min(lowest).max(top) + apart * small(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, look: usize, points: &[(f64, f64)]) -> Curve {
        let points = points.iter().map(|point| Point::exact(point.0, point.1)).collect();
        Curve { name: name.to_owned(), says: String::new(), look: Some(look), points, theory: false }
    }

    fn chart(curves: Vec<Curve>) -> Chart {
        let panel = |title: &str| Panel {
            title: title.to_owned(),
            x: "nodes".to_owned(),
            doubles: true,
            y: "messages".to_owned(),
            curves: curves.clone(),
        };
        Chart {
            title: "one & all".to_owned(),
            note: String::new(),
            panels: vec![panel("a"), panel("b"), panel("c")],
            foot: "nothing <left> out".to_owned(),
        }
    }

    #[test]
    fn labels_keep_their_order_and_never_meet_or_leave_the_panel() {
        let wanted = [0.0, 0.0, 1.0, 50.0, 51.0, 52.0, 300.0, 300.0];
        let places = spread(&wanted, 20.0, (0.0, 300.0));
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 20.0 - 1e-9), "{places:?}");
        assert!(places[0] >= 0.0 && places[7] <= 300.0 + 1e-9, "{places:?}");
        assert_eq!(spread(&[10.0, 100.0], 20.0, (0.0, 300.0)), [10.0, 100.0]);
        assert_eq!(spread(&[100.0, 100.0], 20.0, (0.0, 300.0)), [90.0, 110.0]);
    }

    #[test]
    fn more_labels_than_there_is_room_for_stand_closer_and_still_apart() {
        let places = spread(&[7.0; 40], 20.0, (0.0, 390.0));
        assert!(places.windows(2).all(|pair| (pair[1] - pair[0] - 10.0).abs() < 1e-9), "{places:?}");
    }

    #[test]
    fn sixteen_lines_have_sixteen_colours_and_sixteen_marks() {
        let looks: std::collections::BTreeSet<String> = (0..16)
            .map(|look| {
                let mut mark = String::new();
                draw_mark(&mut mark, look, (0.0, 0.0), 1.0);
                COLOURS.iter().fold(mark, |mark, colour| mark.replace(colour, "colour"))
            })
            .collect();
        let colours: std::collections::BTreeSet<&str> = COLOURS.into_iter().collect();
        assert_eq!((looks.len(), colours.len()), (16, 16));
    }

    #[test]
    fn every_line_is_labelled_once_in_each_panel_and_words_are_escaped() {
        let svg = draw(&chart(vec![
            curve("a<b", 0, &[(16.0, 2.0), (32.0, 3.0)]),
            curve("other", 9, &[(16.0, 2.0)]),
        ]));
        assert_eq!((svg.matches(">a&lt;b</text>").count(), svg.matches(">other</text>").count()), (3, 3));
        assert!(svg.contains("one &amp; all") && svg.contains("nothing &lt;left&gt; out"), "{svg}");
    }

    #[test]
    fn nothing_and_values_of_zero_are_drawn_without_a_line() {
        for points in [&[][..], &[(0.0, 0.0)], &[(16.0, 0.0)]] {
            let svg = draw(&chart(vec![curve("flat", 0, points)]));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
