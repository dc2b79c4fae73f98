//! What lies under everything: zones of time, the axis, a strip for each node.

use super::text::{fitting, num, put, small};
use super::{FAINT, Place, ROW, Sheet, rows};
use crate::draw::Zone;
use crate::draw::look::{self, escape, lane_paint, tick_text, time_text};

pub(super) const CALM: (&str, &str) = ("#8fd19e", "#1b5e37");
pub(super) const TINTS: [(&str, &str); 3] =
    [("#f2b544", "#6b4700"), ("#b79be0", "#4b2f80"), ("#7fb6d9", "#1f4e70")];

impl Sheet<'_> {
    pub(super) fn zones(&self, out: &mut String) {
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

    pub(super) fn axis(&self, out: &mut String) {
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

    pub(super) fn strips(&self, out: &mut String) {
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
