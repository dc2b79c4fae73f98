//! The picture as one SVG image.
//!
//! Real time runs from left to right. Each node is a strip: its lease above, its grants below; messages run
//! between the edges of the strips and so never hide them. A line of its own says who led when.

use super::look::{self, Kind, Run, escape, lane_paint, tick_text, time_text};
use super::{Arrow, BarKind, Mark, MarkKind, Picture, Zone};
use std::fmt::Write;

/// Appends formatted text; writing to a `String` cannot fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => { let _ = write!($out, $($text)*); };
}

const RED: &str = "#c1121f";
const INK: &str = "#1f2933";
const FAINT: &str = "#66727f";
const ROW: f64 = 18.0;
const LEASE: f64 = 18.0;
const GRANT: f64 = 6.0;
const REIGN: f64 = 14.0;
/// Above this many arrows they lose their heads and their texts.
const MANY: usize = 1500;

/// Draws the picture as an SVG document.
pub fn draw(picture: &Picture) -> String {
    let sheet = Sheet::new(picture);
    let mut out = String::new();
    sheet.open(&mut out);
    sheet.heading(&mut out);
    sheet.zones(&mut out);
    sheet.axis(&mut out);
    sheet.strips(&mut out);
    sheet.arrows(&mut out);
    sheet.bars(&mut out);
    sheet.reigns(&mut out);
    sheet.marks(&mut out);
    sheet.violations(&mut out);
    sheet.legend(&mut out);
    out.push_str("</svg>\n");
    out
}

/// A label above the lanes: from where to where it may be written, and in which row.
struct Place {
    x: f64,
    row: Option<usize>,
}

/// Where everything goes.
struct Sheet<'a> {
    picture: &'a Picture,
    runs: Vec<Run>,
    kinds: Vec<Kind>,
    left: f64,
    plot: f64,
    zones_top: f64,
    zones: Vec<Place>,
    breaks_top: f64,
    breaks: Vec<Place>,
    reign_top: f64,
    lanes_top: f64,
    strip: f64,
    pitch: f64,
    axis: f64,
    legend: Vec<Entry>,
    legend_rows: usize,
}

/// One symbol of the legend.
struct Entry {
    x: f64,
    row: usize,
    symbol: String,
    text: String,
}

impl<'a> Sheet<'a> {
    fn new(picture: &'a Picture) -> Self {
        let runs = look::runs(picture);
        let grants = runs.iter().map(|run| run.row + 1).max().unwrap_or(1).min(3);
        let names = picture.lanes.iter().map(|name| width(name, 13.0)).fold(44.0, f64::max);
        let mut sheet = Sheet {
            picture,
            kinds: look::kinds(picture),
            runs,
            left: names.min(220.0) + 40.0,
            plot: plot_width(picture),
            zones_top: 66.0,
            zones: Vec::new(),
            breaks_top: 0.0,
            breaks: Vec::new(),
            reign_top: 0.0,
            lanes_top: 0.0,
            strip: LEASE + 4.0 + (GRANT + 2.0) * small(grants),
            pitch: if picture.lanes.len() > 9 { 66.0 } else { 88.0 },
            axis: 0.0,
            legend: Vec::new(),
            legend_rows: 0,
        };
        sheet.place();
        sheet
    }

    /// Gives every row its height, from the top.
    fn place(&mut self) {
        let zones = self.picture.zones.iter().map(|zone| (zone.from, zone.until, zone.text.as_str()));
        self.zones = self.pack(&zones.collect::<Vec<_>>(), 8);
        let breaks = self.picture.marks.iter().filter(|mark| whole(mark));
        let breaks = breaks.map(|mark| (mark.at, mark.at, mark.text.as_str()));
        self.breaks = self.pack(&breaks.collect::<Vec<_>>(), 5);
        self.breaks_top = self.zones_top + ROW * rows(&self.zones);
        self.reign_top = self.breaks_top + ROW * rows(&self.breaks) + 8.0;
        self.lanes_top = self.reign_top + REIGN + 22.0;
        self.axis = self.top(self.picture.lanes.len()) - self.pitch + self.strip + 14.0;
        (self.legend, self.legend_rows) = flow(legend(self.picture, &self.runs, &self.kinds), 1340.0);
    }

    /// Labels that would touch go into different rows; what finds no row stays without a label.
    fn pack(&self, labels: &[(u64, u64, &str)], most: usize) -> Vec<Place> {
        let mut ends: Vec<f64> = Vec::new();
        let mut order: Vec<usize> = (0..labels.len()).collect();
        order.sort_by_key(|&label| (labels[label].0, label));
        let mut places: Vec<Place> = labels.iter().map(|_| Place { x: 0.0, row: None }).collect();
        for label in order {
            let (from, until, text) = labels[label];
            let long = width(&fitting(text, self.plot - 12.0, 12.0), 12.0) + 12.0;
            let x = self.x(from).min(self.left + self.plot - long).max(self.left);
            let end = (x + long).max(self.x(until)) + 6.0;
            let row = ends.iter().position(|&taken| taken <= x);
            let row = row.or_else(|| (ends.len() < most).then_some(ends.len()));
            match row {
                Some(row) if row < ends.len() => ends[row] = end,
                Some(_) => ends.push(end),
                None => {}
            }
            places[label] = Place { x, row };
        }
        places
    }

    /// The time that is shown: never empty.
    fn span(&self) -> (u64, u64) {
        let start = self.picture.start.min(u64::MAX - 1);
        (start, self.picture.end.max(start + 1))
    }

    /// How many ticks have room.
    fn ticks(&self) -> u64 {
        (1..).take_while(|&ticks| float(ticks) * 95.0 < self.plot).last().unwrap_or(1)
    }

    fn x(&self, at: u64) -> f64 {
        let (start, end) = self.span();
        let span = end - start;
        let at = at.clamp(start.saturating_sub(span), end.saturating_add(span));
        self.left + self.plot * (float(at) - float(start)) / float(span)
    }

    fn top(&self, lane: usize) -> f64 {
        self.lanes_top + self.pitch * small(lane)
    }

    fn bottom(&self) -> f64 {
        self.axis - 6.0
    }

    fn open(&self, out: &mut String) {
        let wide = self.left * 2.0 + self.plot;
        let high = self.axis + 42.0 + 24.0 * small(self.legend_rows) + 10.0;
        put!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"{INK}\" \
             role=\"img\">\n<title>{}: {}</title>\n",
            escape(&self.picture.title),
            escape(&self.picture.verdict),
            w = num(wide),
            h = num(high),
        );
        out.push_str(PATTERNS);
        put!(
            out,
            "<clipPath id=\"plot\"><rect x=\"{}\" y=\"0\" width=\"{}\" height=\"{}\"/></clipPath>\n</defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
            num(self.left),
            num(self.plot),
            num(high),
        );
    }

    fn heading(&self, out: &mut String) {
        let colour = if self.picture.broken { RED } else { "#1b6e4b" };
        let badge = if self.picture.broken { "BROKEN" } else { "KEPT" };
        let wide = width(badge, 12.0) + 18.0;
        put!(
            out,
            "<text x=\"16\" y=\"28\" font-size=\"19\" font-weight=\"600\">{}</text>\n\
             <rect x=\"16\" y=\"37\" width=\"{w}\" height=\"19\" rx=\"3\" fill=\"{colour}\"/>\
             <text x=\"{m}\" y=\"51\" fill=\"#fff\" font-weight=\"700\" text-anchor=\"middle\">{badge}</text>\
             <text x=\"{t}\" y=\"51.5\" font-size=\"14\" fill=\"{colour}\">{}</text>\n",
            escape(&self.picture.title),
            escape(&self.picture.verdict),
            w = num(wide),
            m = num(16.0 + wide / 2.0),
            t = num(26.0 + wide),
        );
    }

    fn zones(&self, out: &mut String) {
        let mut partitions = 0;
        for (zone, place) in self.picture.zones.iter().zip(&self.zones) {
            let tint = if zone.calm { CALM } else { TINTS[partitions % TINTS.len()] };
            partitions += usize::from(!zone.calm);
            self.zone(out, zone, place, tint);
        }
    }

    fn zone(&self, out: &mut String, zone: &Zone, place: &Place, (fill, ink): (&str, &str)) {
        let (x, end) = (self.x(zone.from.max(self.picture.start)), self.x(zone.until.min(self.picture.end)));
        let wide = (end - x).max(1.0);
        let tab = self.zones_top + ROW * small(place.row.unwrap_or(self.rows_of_zones() - 1));
        put!(
            out,
            "<g><title>{} ({} to {})</title><rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" fill=\"{fill}\" \
             fill-opacity=\"{o:.2}\"/><path d=\"M{x} {y}V{b}M{e} {y}V{b}\" stroke=\"{ink}\" stroke-opacity=\".45\" \
             stroke-dasharray=\"2 3\"/><rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{t}\" fill=\"{fill}\" \
             fill-opacity=\".55\"/>",
            escape(&zone.text),
            time_text(zone.from),
            time_text(zone.until),
            x = num(x),
            e = num(x + wide),
            y = num(tab),
            w = num(wide),
            h = num(self.bottom() - tab),
            b = num(self.bottom()),
            t = num(ROW - 3.0),
            o = (0.48 / rows(&self.zones)).clamp(0.05, 0.16),
        );
        if place.row.is_some() {
            let text = fitting(&zone.text, self.plot - 12.0, 12.0);
            let (x, y) = (num(place.x + 5.0), num(tab + 11.5));
            put!(out, "<text x=\"{x}\" y=\"{y}\" fill=\"{ink}\">{}</text>", escape(&text));
        }
        out.push_str("</g>\n");
    }

    fn rows_of_zones(&self) -> usize {
        self.zones.iter().filter_map(|place| place.row).max().unwrap_or(0) + 1
    }

    fn axis(&self, out: &mut String) {
        let (start, end) = self.span();
        let step = look::tick_step(end - start, self.ticks());
        let mut at = start.div_ceil(step).saturating_mul(step);
        let (top, axis) = (num(self.reign_top - 4.0), num(self.axis));
        let mut lines = String::new();
        let mut labels = String::new();
        while at <= end {
            let x = num(self.x(at));
            put!(lines, "M{x} {top}V{axis}");
            let y = num(self.axis + 14.0);
            put!(labels, "<text x=\"{x}\" y=\"{y}\">{}</text>", tick_text(at, end));
            match at.checked_add(step) {
                Some(next) => at = next,
                None => break,
            }
        }
        put!(
            out,
            "<path d=\"{lines}\" stroke=\"#dde2e7\" fill=\"none\"/>\n<path d=\"M{} {axis}h{}\" stroke=\"{FAINT}\"/>\n\
             <g text-anchor=\"middle\" font-size=\"11\" fill=\"{FAINT}\">{labels}</g>\n",
            num(self.left),
            num(self.plot),
        );
    }

    fn strips(&self, out: &mut String) {
        let (left, plot) = (num(self.left), num(self.plot));
        for (lane, name) in self.picture.lanes.iter().enumerate() {
            let (top, middle) = (self.top(lane), self.top(lane) + self.strip / 2.0);
            let paint = lane_paint(lane);
            put!(
                out,
                "<rect x=\"{left}\" y=\"{}\" width=\"{plot}\" height=\"{}\" rx=\"2\" fill=\"#eef1f4\" \
                 stroke=\"#d3d9df\" stroke-width=\".7\"/>",
                num(top),
                num(self.strip),
            );
            let name = escape(&fitting(name, 220.0, 13.0));
            let (chip, y) = (num(middle - 6.0), num(middle + 4.5));
            let (right, after) = (num(self.left + self.plot + 10.0), num(self.left + self.plot + 28.0));
            put!(
                out,
                "<rect x=\"12\" y=\"{chip}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{c}\"/>\
                 <text x=\"30\" y=\"{y}\" font-size=\"13\" font-weight=\"600\">{name}</text>\
                 <rect x=\"{right}\" y=\"{chip}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{c}\"/>\
                 <text x=\"{after}\" y=\"{y}\" font-size=\"13\" font-weight=\"600\">{name}</text>\n",
                c = paint.fill,
            );
        }
    }
}

impl Sheet<'_> {
    /// Messages: the more there are, the thinner and fainter, so that leadership stays the story.
    fn arrows(&self, out: &mut String) {
        let many = self.picture.arrows.len() > MANY;
        let density = small(self.picture.arrows.len()) / self.plot;
        let opacity = (0.95 - density * 0.9).clamp(0.28, 0.9);
        let stroke = (1.5 - density * 1.6).clamp(0.6, 1.4);
        let delay = look::usual_delay(self.picture);
        put!(
            out,
            "<g clip-path=\"url(#plot)\" opacity=\"{opacity:.2}\" stroke-width=\"{stroke:.2}\" \
             stroke-linejoin=\"round\">\n"
        );
        for kind in &self.kinds {
            for lost in [false, true] {
                let arrows = self.picture.arrows.iter().filter(|arrow| self.shows(arrow));
                let chosen =
                    arrows.filter(|arrow| arrow.kind == kind.name && arrow.arrived.is_none() == lost);
                let chosen: Vec<&Arrow> = chosen.collect();
                if !chosen.is_empty() {
                    put!(out, "<g stroke=\"{c}\" fill=\"{c}\">\n", c = kind.colour);
                    self.shafts(out, &chosen, delay, many);
                    out.push_str("</g>\n");
                }
            }
        }
        out.push_str("</g>\n");
    }

    fn shows(&self, arrow: &Arrow) -> bool {
        arrow.from < self.picture.lanes.len() && arrow.to < self.picture.lanes.len()
    }

    /// Few arrows are elements with a text each; many are chunks of one path.
    fn shafts(&self, out: &mut String, arrows: &[&Arrow], delay: u64, many: bool) {
        let dash = |lost: bool| if lost { " stroke-dasharray=\"4 3\"" } else { "" };
        for chunk in arrows.chunks(if many { 200 } else { 1 }) {
            let (mut shafts, mut heads) = (String::new(), String::new());
            let lost = chunk[0].arrived.is_none();
            for arrow in chunk {
                self.shaft(&mut shafts, &mut heads, arrow, delay, many);
            }
            let title = if many { String::new() } else { format!("<title>{}</title>", self.told(chunk[0])) };
            put!(out, "<g>{title}<path d=\"{shafts}\" fill=\"none\"{}/>", dash(lost));
            if !heads.is_empty() {
                let weight = if lost { " stroke-width=\"1.7\" fill=\"none\" class=\"lost\"" } else { "" };
                put!(out, "<path d=\"{heads}\"{weight}/>");
            }
            out.push_str("</g>\n");
        }
    }

    fn shaft(&self, shafts: &mut String, heads: &mut String, arrow: &Arrow, delay: u64, many: bool) {
        let (above, below) = (self.top(arrow.from), self.top(arrow.from) + self.strip);
        let start = (self.x(arrow.sent), if arrow.to > arrow.from { below } else { above });
        let end = match arrow.to.cmp(&arrow.from) {
            std::cmp::Ordering::Greater => self.top(arrow.to),
            std::cmp::Ordering::Less => self.top(arrow.to) + self.strip,
            std::cmp::Ordering::Equal => above,
        };
        put!(shafts, "M{} {}", num(start.0), num(start.1));
        let Some(arrived) = arrow.arrived else {
            let x = self.x(arrow.sent.saturating_add(delay / 2)).max(start.0 + 5.0);
            let y = if arrow.to == arrow.from { above - 12.0 } else { self.between(start.1, end) };
            put!(shafts, "L{} {}", num(x), num(y));
            cross(heads, x, y, 3.5);
            return;
        };
        let x = self.x(arrived);
        if arrow.to == arrow.from {
            put!(shafts, "Q{} {} {} {}", num(f64::midpoint(start.0, x)), num(above - 24.0), num(x), num(end));
            head(heads, (f64::midpoint(start.0, x), above - 24.0), (x, end));
        } else {
            put!(shafts, "L{} {}", num(x), num(end));
            if !many {
                head(heads, start, (x, end));
            }
        }
    }

    /// Midway, but beside a strip rather than on it: a message is not lost by a node that never had it.
    fn between(&self, start: f64, end: f64) -> f64 {
        let middle = f64::midpoint(start, end);
        let mut tops = (0..self.picture.lanes.len()).map(|lane| self.top(lane));
        match tops.find(|&top| (top - 6.0..=top + self.strip + 6.0).contains(&middle)) {
            Some(top) if start < end => top - 8.0,
            Some(top) => top + self.strip + 8.0,
            None => middle,
        }
    }

    fn told(&self, arrow: &Arrow) -> String {
        let (from, to) = (&self.picture.lanes[arrow.from], &self.picture.lanes[arrow.to]);
        let end = match arrow.arrived {
            Some(at) => {
                format!("arrived {}, after {}", time_text(at), time_text(at.saturating_sub(arrow.sent)))
            }
            None => "lost".to_owned(),
        };
        let told =
            format!("{} {from} to {to}: {}\nsent {}, {end}", arrow.kind, arrow.text, time_text(arrow.sent));
        escape(&told)
    }

    fn bars(&self, out: &mut String) {
        let rank = |run: &Run| match run.kind {
            BarKind::Silent => 0,
            BarKind::Grant { .. } => 1,
            BarKind::Lease => 2,
            BarKind::Paused | BarKind::Suspended => 3,
            BarKind::Down => 4,
        };
        for wanted in 0..5 {
            for (place, run) in self.runs.iter().enumerate().filter(|(_, run)| rank(run) == wanted) {
                let more = if run.bars > 1 { format!(", {} bars", run.bars) } else { String::new() };
                let name = &self.picture.lanes[run.lane];
                let told = format!(
                    "{name}: {} ({} to {}{more})",
                    run.text,
                    time_text(run.from),
                    time_text(run.until)
                );
                put!(out, "<g><title>{}</title>", escape(&told));
                match run.kind {
                    BarKind::Lease => self.lease(out, run, self.covered(place)),
                    BarKind::Grant { to } => self.grant(out, run, to),
                    _ => self.outage(out, run),
                }
                out.push_str("</g>\n");
            }
        }
    }

    /// Until where the label of a lease may run: to its end, or to where the next lease of the lane lies on it.
    fn covered(&self, place: usize) -> u64 {
        let run = &self.runs[place];
        let later = self.runs[place + 1..].iter().take_while(|other| other.lane == run.lane);
        let next = later.filter(|other| other.kind == BarKind::Lease).map(|other| other.from).next();
        next.map_or(run.until, |next| next.min(run.until))
    }

    fn lease(&self, out: &mut String, run: &Run, covered: u64) {
        let (x, end, top) = (self.x(run.from), self.x(run.until), self.top(run.lane) + 2.0);
        let paint = lane_paint(run.lane);
        put!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{LEASE}\" rx=\"2\" fill=\"{}\" stroke=\"#fff\" \
             stroke-width=\".8\"/>",
            num(x),
            num(top),
            num((end - x).max(1.5)),
            paint.fill,
        );
        let mut from = x + 14.0;
        let room = self.x(covered) - 10.0;
        while room - from > 24.0 {
            let text = fitting(&run.text, room - from, 12.0);
            put!(
                out,
                "<text x=\"{}\" y=\"{}\" fill=\"{}\" font-weight=\"600\">{}</text>",
                num(from),
                num(top + 13.2),
                paint.ink,
                escape(&text),
            );
            from += width(&text, 12.0).max(900.0) + 60.0;
        }
    }

    fn grant(&self, out: &mut String, run: &Run, to: usize) {
        let (x, end) = (self.x(run.from), self.x(run.until));
        let top = self.top(run.lane) + LEASE + 5.0 + (GRANT + 2.0) * small(run.row.min(2));
        put!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{GRANT}\" fill=\"{}\"/>",
            num(x),
            num(top),
            num((end - x).max(1.0)),
            lane_paint(to).fill,
        );
    }

    fn outage(&self, out: &mut String, run: &Run) {
        let (x, end, top) = (self.x(run.from), self.x(run.until), self.top(run.lane));
        put!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}/>",
            num(x),
            num(top),
            num((end - x).max(1.0)),
            num(self.strip),
            outage_style(run.kind),
        );
        let word = outage_word(run.kind);
        if end - x > width(word, 11.0) + 30.0 {
            let (middle, wide) = (f64::midpoint(x, end), width(word, 11.0) + 10.0);
            put!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"15\" rx=\"3\" fill=\"#fff\" fill-opacity=\".9\"/>\
                 <text x=\"{}\" y=\"{}\" font-size=\"11\" text-anchor=\"middle\">{word}</text>",
                num(middle - wide / 2.0),
                num(top + 3.5),
                num(wide),
                num(middle),
                num(top + 15.0),
            );
        }
    }

    /// The line of its own: who led when.
    fn reigns(&self, out: &mut String) {
        let top = self.reign_top;
        put!(
            out,
            "<text x=\"30\" y=\"{}\" font-size=\"12\" fill=\"{FAINT}\">leader</text><rect x=\"{}\" y=\"{}\" \
             width=\"{}\" height=\"{REIGN}\" fill=\"#fff\" stroke=\"#d3d9df\" stroke-width=\".7\"/>\n",
            num(top + 11.0),
            num(self.left),
            num(top),
            num(self.plot),
        );
        for reign in look::reigns(&self.runs) {
            let (x, end) = (self.x(reign.from), self.x(reign.until));
            let high = REIGN / small(reign.lanes.len());
            for (place, &lane) in reign.lanes.iter().enumerate() {
                let paint = lane_paint(lane);
                let y = top + high * small(place);
                put!(
                    out,
                    "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
                    num(x),
                    num(y),
                    num((end - x).max(1.0)),
                    num(high),
                    paint.fill,
                );
                let name = &self.picture.lanes[lane];
                if reign.lanes.len() == 1 && end - x > width(name, 11.0) + 8.0 {
                    let (x, y) = (num(f64::midpoint(x, end)), num(y + 11.0));
                    put!(
                        out,
                        "<text x=\"{x}\" y=\"{y}\" font-size=\"11\" font-weight=\"600\" text-anchor=\"middle\" \
                         fill=\"{}\">{}</text>",
                        paint.ink,
                        escape(name),
                    );
                }
            }
            out.push('\n');
        }
    }

    fn marks(&self, out: &mut String) {
        let lanes = self.picture.lanes.len();
        for mark in &self.picture.marks {
            let Some(lane) = mark.lane.filter(|&lane| lane < lanes) else { continue };
            let (x, y) = (self.x(mark.at), self.top(lane) + 2.0 + LEASE / 2.0);
            let told = format!("{}: {} ({})", self.picture.lanes[lane], mark.text, time_text(mark.at));
            put!(out, "<g><title>{}</title>", escape(&told));
            symbol(out, mark.kind, x, y, lane_paint(lane).fill);
            out.push_str("</g>\n");
        }
    }

    /// What concerns every lane: a line through all of them, and its label above.
    fn violations(&self, out: &mut String) {
        let marks: Vec<(&Mark, &Place)> =
            self.picture.marks.iter().filter(|mark| whole(mark)).zip(&self.breaks).collect();
        for (mark, place) in &marks {
            let colour = if mark.kind == MarkKind::Violation { RED } else { FAINT };
            put!(
                out,
                "<path class=\"{}\" d=\"M{} {}V{}\" stroke=\"{colour}\" stroke-width=\"2\"><title>{}</title></path>\n",
                if mark.kind == MarkKind::Violation { "violation" } else { "whole" },
                num(self.x(mark.at)),
                num(self.breaks_top + ROW * small(place.row.unwrap_or(0))),
                num(self.axis),
                escape(&format!("{} ({})", mark.text, time_text(mark.at))),
            );
        }
        for (mark, place) in &marks {
            let Some(row) = place.row else { continue };
            let colour = if mark.kind == MarkKind::Violation { RED } else { FAINT };
            let text = fitting(&mark.text, self.plot - 12.0, 12.0);
            put!(
                out,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"{}\" fill=\"#fff\" font-weight=\"600\">{}</text>\n",
                num(place.x),
                num(self.breaks_top + ROW * small(row)),
                num(width(&text, 12.0) + 10.0),
                num(ROW - 2.0),
                num(place.x + 5.0),
                num(self.breaks_top + ROW * small(row) + 12.0),
                escape(&text),
            );
        }
    }

    fn legend(&self, out: &mut String) {
        for entry in &self.legend {
            let y = self.axis + 42.0 + 24.0 * small(entry.row);
            put!(
                out,
                "<g transform=\"translate({} {})\">{}<text x=\"40\" y=\"4\">{}</text></g>\n",
                num(16.0 + entry.x),
                num(y),
                entry.symbol,
                escape(&entry.text),
            );
        }
    }
}

const CALM: (&str, &str) = ("#8fd19e", "#1b5e37");
const TINTS: [(&str, &str); 3] = [("#f2b544", "#6b4700"), ("#b79be0", "#4b2f80"), ("#7fb6d9", "#1f4e70")];

const PATTERNS: &str = "<defs>\n\
    <pattern id=\"down\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\"><rect width=\"7\" height=\"7\" \
    fill=\"#c6ccd3\" fill-opacity=\".45\"/><path d=\"M-1 1l2-2M0 7l7-7M6 8l2-2\" stroke=\"#5d6772\" stroke-width=\"1.8\"/></pattern>\n\
    <pattern id=\"paused\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><circle cx=\"3\" cy=\"3\" \
    r=\"1.1\" fill=\"#3c4650\"/></pattern>\n\
    <pattern id=\"suspended\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><path d=\"M4 0V8M0 4H8\" \
    stroke=\"#3c4650\" stroke-width=\".9\"/></pattern>\n\
    <pattern id=\"silent\" width=\"9\" height=\"9\" patternUnits=\"userSpaceOnUse\"><path d=\"M-1 8l9 9M-1-1l11 11\" \
    stroke=\"#8a94a0\" stroke-width=\".8\"/></pattern>\n";

fn outage_style(kind: BarKind) -> &'static str {
    match kind {
        BarKind::Down => "fill=\"url(#down)\" stroke=\"#6b7580\"",
        BarKind::Paused => "fill=\"url(#paused)\" stroke=\"#3c4650\" stroke-dasharray=\"1.5 2.5\"",
        BarKind::Suspended => "fill=\"url(#suspended)\" stroke=\"#3c4650\"",
        _ => "fill=\"url(#silent)\" stroke=\"#8a94a0\" stroke-dasharray=\"5 3\"",
    }
}

fn outage_word(kind: BarKind) -> &'static str {
    match kind {
        BarKind::Down => "down",
        BarKind::Paused => "paused",
        BarKind::Suspended => "suspended",
        _ => "silent",
    }
}

/// Whether a mark concerns every lane.
fn whole(mark: &Mark) -> bool {
    mark.kind == MarkKind::Violation || mark.lane.is_none()
}

fn symbol(out: &mut String, kind: MarkKind, x: f64, y: f64, colour: &str) {
    let mut shape = String::new();
    let style = match kind {
        MarkKind::Crash => {
            cross(&mut shape, x, y, 6.0);
            put!(out, "<path d=\"{shape}\" stroke=\"#fff\" stroke-width=\"6\"/>");
            "stroke=\"#111\" stroke-width=\"3\"".to_owned()
        }
        MarkKind::Start => {
            put!(shape, "M{} {}l11 6.5l-11 6.5Z", num(x), num(y - 6.5));
            "fill=\"#111\" stroke=\"#fff\" stroke-width=\"1.2\"".to_owned()
        }
        MarkKind::Elected => {
            star(&mut shape, x, y);
            format!("fill=\"{colour}\" stroke=\"#111\" stroke-width=\"1.3\"")
        }
        MarkKind::Lost => {
            star(&mut shape, x, y);
            format!("fill=\"#fff\" stroke=\"{colour}\" stroke-width=\"1.8\"")
        }
        MarkKind::Violation => {
            put!(shape, "M{} {}m-9 0a9 9 0 1 0 18 0a9 9 0 1 0-18 0", num(x), num(y));
            format!("fill=\"none\" stroke=\"{RED}\" stroke-width=\"2.5\"")
        }
    };
    put!(out, "<path d=\"{shape}\" {style}/>");
}

fn cross(path: &mut String, x: f64, y: f64, arm: f64) {
    let (left, right, top, low) = (num(x - arm), num(x + arm), num(y - arm), num(y + arm));
    put!(path, "M{left} {top}L{right} {low}M{left} {low}L{right} {top}");
}

/// The ten corners of a star of radius nine.
fn star(path: &mut String, x: f64, y: f64) {
    const CORNERS: [(f64, f64); 10] = [
        (0.0, -9.0),
        (2.3, -3.2),
        (8.6, -2.8),
        (3.7, 1.2),
        (5.3, 7.3),
        (0.0, 3.9),
        (-5.3, 7.3),
        (-3.7, 1.2),
        (-8.6, -2.8),
        (-2.3, -3.2),
    ];
    for (place, (right, down)) in CORNERS.iter().enumerate() {
        let letter = if place == 0 { 'M' } else { 'L' };
        put!(path, "{letter}{} {}", num(x + right), num(y + down));
    }
    path.push('Z');
}

/// A head at `to` for a line that comes from `from`.
fn head(path: &mut String, from: (f64, f64), to: (f64, f64)) {
    let (x, y) = (to.0 - from.0, to.1 - from.1);
    let long = (x * x + y * y).sqrt().max(0.1);
    let (x, y) = (x / long, y / long);
    let (back_x, back_y) = (to.0 - x * 7.0, to.1 - y * 7.0);
    put!(
        path,
        "M{} {}L{} {}L{} {}Z",
        num(to.0),
        num(to.1),
        num(back_x - y * 2.8),
        num(back_y + x * 2.8),
        num(back_x + y * 2.8),
        num(back_y - x * 2.8),
    );
}

/// The symbols that the picture uses, each with its meaning.
fn legend(picture: &Picture, runs: &[Run], kinds: &[Kind]) -> Vec<(String, String)> {
    let mut entries: Vec<(String, String)> = Vec::new();
    let example = lane_paint(0).fill;
    let has = |wanted: fn(BarKind) -> bool| runs.iter().any(|run| wanted(run.kind));
    if has(|kind| kind == BarKind::Lease) {
        let shape = format!("<rect y=\"-9\" width=\"34\" height=\"18\" rx=\"2\" fill=\"{example}\"/>");
        entries.push((shape, "lease: leads, in its own colour".to_owned()));
    }
    if has(|kind| matches!(kind, BarKind::Grant { .. })) {
        let shape = format!("<rect y=\"-3\" width=\"34\" height=\"6\" fill=\"{example}\"/>");
        entries.push((shape, "grant: supports the node of that colour".to_owned()));
    }
    for (kind, text) in [
        (BarKind::Down, "down"),
        (BarKind::Paused, "paused, clock runs on"),
        (BarKind::Suspended, "machine suspended"),
        (BarKind::Silent, "silent after restart"),
    ] {
        if runs.iter().any(|run| run.kind == kind) {
            let shape = format!("<rect y=\"-9\" width=\"34\" height=\"18\" {}/>", outage_style(kind));
            entries.push((shape, text.to_owned()));
        }
    }
    legend_marks(picture, &mut entries);
    legend_arrows(picture, kinds, &mut entries);
    legend_zones(picture, &mut entries);
    entries
}

fn legend_marks(picture: &Picture, entries: &mut Vec<(String, String)>) {
    for (kind, text) in [
        (MarkKind::Elected, "elected"),
        (MarkKind::Lost, "leads no longer"),
        (MarkKind::Crash, "crash"),
        (MarkKind::Start, "start"),
    ] {
        if picture.marks.iter().any(|mark| mark.kind == kind) {
            let mut shape = String::new();
            symbol(&mut shape, kind, 20.0, 0.0, lane_paint(0).fill);
            entries.push((shape, text.to_owned()));
        }
    }
    if picture.marks.iter().any(|mark| mark.kind == MarkKind::Violation) {
        let shape = format!("<path d=\"M20-10V10\" stroke=\"{RED}\" stroke-width=\"2\"/>");
        entries.push((shape, "a property is broken".to_owned()));
    }
}

fn legend_arrows(picture: &Picture, kinds: &[Kind], entries: &mut Vec<(String, String)>) {
    for kind in kinds {
        let mut shape = String::new();
        head(&mut shape, (0.0, 0.0), (34.0, 0.0));
        let c = kind.colour;
        let line = format!(
            "<path d=\"M0 0H30\" stroke=\"{c}\" stroke-width=\"1.6\"/><path d=\"{shape}\" fill=\"{c}\"/>"
        );
        entries.push((line, kind.name.clone()));
    }
    if picture.arrows.iter().any(|arrow| arrow.arrived.is_none()) {
        let mut shape = String::new();
        cross(&mut shape, 28.0, 0.0, 3.5);
        let line = format!(
            "<g stroke=\"{FAINT}\"><path d=\"M0 0H28\" stroke-dasharray=\"4 3\"/><path d=\"{shape}\" \
             stroke-width=\"1.7\"/></g>"
        );
        entries.push((line, "message lost".to_owned()));
    }
}

fn legend_zones(picture: &Picture, entries: &mut Vec<(String, String)>) {
    for (calm, (fill, _), text) in [(false, TINTS[0], "partition"), (true, CALM, "calm: no more faults")] {
        if picture.zones.iter().any(|zone| zone.calm == calm) {
            let shape =
                format!("<rect y=\"-9\" width=\"34\" height=\"18\" fill=\"{fill}\" fill-opacity=\".4\"/>");
            entries.push((shape, text.to_owned()));
        }
    }
}

/// Breaks the legend into rows that are at most `wide`.
fn flow(entries: Vec<(String, String)>, wide: f64) -> (Vec<Entry>, usize) {
    let (mut x, mut row) = (0.0, 0);
    let mut placed = Vec::new();
    for (symbol, text) in entries {
        let long = 40.0 + width(&text, 12.0) + 26.0;
        if x > 0.0 && x + long > wide {
            (x, row) = (0.0, row + 1);
        }
        placed.push(Entry { x, row, symbol, text });
        x += long;
    }
    let rows = if placed.is_empty() { 0 } else { row + 1 };
    (placed, rows)
}

/// Wide enough for what happens, within limits.
fn plot_width(picture: &Picture) -> f64 {
    let events = picture.arrows.len() + picture.bars.len() + picture.marks.len();
    let seconds = float(picture.end.saturating_sub(picture.start)) / 1e9;
    (1000.0 + 0.8 * small(events) + 40.0 * seconds).clamp(1240.0, 5800.0).round()
}

fn rows(places: &[Place]) -> f64 {
    small(places.iter().filter_map(|place| place.row).max().map_or(0, |row| row + 1))
}

/// About how wide a text is: nobody can ask the font.
fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|letter| if letter.is_ascii() { 0.58 } else { 0.95 }).sum::<f64>() * size
}

/// As much of the text as fits.
fn fitting(text: &str, room: f64, size: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        if width(&short, size) + 1.6 * size > room {
            break;
        }
        short.push(letter);
    }
    short.push('…');
    short
}

fn float(nanos: u64) -> f64 {
    nanos as f64
}

fn small(count: usize) -> f64 {
    count as f64
}

/// A length, to one decimal and without a sign on zero.
fn num(length: f64) -> String {
    let text = format!("{length:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}
