//! The picture as one SVG image.
//!
//! Real time runs from left to right. Each node is a strip: its lease above, its grants below;
//! messages run between the edges of the strips and so never hide them. A line of its own says who
//! led when.
//!
//! Here is where everything goes and which layer lies on which; each layer has a file of its own.

mod arrows;
mod bars;
mod ground;
mod legend;
mod marks;
pub(super) mod text;

use self::legend::{Entry, flow, legend};
use self::marks::whole;
use self::text::{fitting, float, num, put, root, small, width};
use super::Picture;
use super::look::{self, Kind, Run, escape};
use super::scale::Scale;

const RED: &str = "#c1121f";
const FAINT: &str = "#66727f";
const ROW: f64 = 18.0;
const LEASE: f64 = 18.0;
const GRANT: f64 = 10.0;
const REIGN: f64 = 14.0;

/// Draws the picture as an SVG document.
pub fn draw(picture: &Picture) -> String {
    let sheet = Sheet::new(picture);
    let mut out = String::new();
    sheet.open(&mut out);
    sheet.heading(&mut out);
    sheet.zones(&mut out);
    sheet.axis(&mut out);
    sheet.strips(&mut out);
    sheet.shades(&mut out);
    sheet.arrows(&mut out);
    sheet.bars(&mut out);
    sheet.reigns(&mut out);
    sheet.after(&mut out);
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
    scale: Scale,
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

impl<'a> Sheet<'a> {
    fn new(picture: &'a Picture) -> Self {
        let runs = look::runs(picture);
        let grants = runs.iter().map(|run| run.row + 1).max().unwrap_or(1).min(3);
        let roles = picture.roles.iter().map(|role| width(role, 10.0) + 6.0);
        let names = picture.lanes.iter().map(|name| width(name, 13.0)).chain(roles).fold(44.0, f64::max);
        let strip = LEASE + 4.0 + (GRANT + 2.0) * small(grants);
        let mut sheet = Sheet {
            picture,
            scale: Scale::new(picture),
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
            strip,
            pitch: strip + if picture.lanes.len() > 9 { 34.0 } else { 54.0 },
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
        let entries = legend(self.picture, &self.runs, &self.kinds, self.scale.stepped);
        (self.legend, self.legend_rows) = flow(entries, 1340.0);
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

    /// How many ticks have room.
    fn ticks(&self) -> u64 {
        (1..).take_while(|&ticks| float(ticks) * 95.0 < self.plot).last().unwrap_or(1)
    }

    fn x(&self, at: u64) -> f64 {
        self.left + self.plot * self.scale.place(at)
    }

    fn top(&self, lane: usize) -> f64 {
        self.lanes_top + self.pitch * small(lane)
    }

    fn bottom(&self) -> f64 {
        self.axis - 6.0
    }

    fn legend_top(&self) -> f64 {
        self.axis + if self.scale.stepped { 56.0 } else { 42.0 }
    }

    fn open(&self, out: &mut String) {
        let wide = self.left * 2.0 + self.plot;
        let high = self.legend_top() + 24.0 * small(self.legend_rows) + 10.0;
        let title = format!("{}: {}", self.picture.title, self.picture.verdict);
        root(out, (wide, high), 12, &title);
        out.push_str(bars::PATTERNS);
        out.push_str(
            "<linearGradient id=\"after\"><stop stop-color=\"#fff\" stop-opacity=\".15\"/>\
             <stop offset=\"1\" stop-color=\"#fff\" stop-opacity=\".75\"/></linearGradient>\n",
        );
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
