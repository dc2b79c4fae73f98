//! Draws the background: zones of time, the axis, a strip for each node; and where the run ends.

use super::text::{fitting, num, put, small, width};
use super::{FAINT, GRANT, LEASE, Place, ROW, Sheet, rows};
use crate::draw::Zone;
use crate::draw::look::{self, escape, lane_paint, tick_text, time_text};

pub(super) const CALM: (&str, &str) = ("#8fd19e", "#1b5e37");
pub(super) const TINTS: [(&str, &str); 3] =
    [("#f2b544", "#6b4700"), ("#b79be0", "#4b2f80"), ("#7fb6d9", "#1f4e70")];

/// A time of the axis, and its label with the row where it stands.
type Tick = (u64, Option<(String, usize)>);

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
        let open = zone.until >= self.picture.end;
        let until = if open { look::beyond(self.picture) } else { zone.until };
        let (x, end) = (self.x(zone.from.max(self.picture.start)), self.x(until));
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
            let long = width(&text, 12.0) + 10.0;
            if place.x < x || place.x + long > x + wide {
                let (x, y, long, high) = (num(place.x), num(tab), num(long), num(ROW - 3.0));
                put!(
                    out,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{long}\" height=\"{high}\" fill=\"{fill}\" \
                     fill-opacity=\".3\"/>"
                );
            }
            let (x, y) = (num(place.x + 5.0), num(tab + 11.5));
            put!(out, "<text x=\"{x}\" y=\"{y}\" fill=\"{ink}\">{}</text>", escape(&text));
        }
        out.push_str("</g>\n");
    }

    fn rows_of_zones(&self) -> usize {
        self.zones.iter().filter_map(|place| place.row).max().unwrap_or(0) + 1
    }

    /// Logical partitions: the strip of every member, and the space around it, in the colour of the
    /// leader. Neighbours of the same partition are joined.
    pub(super) fn shades(&self, out: &mut String) {
        for shade in &self.picture.shades {
            let (x, end) = (self.x(shade.from.max(self.picture.start)), self.x(shade.until));
            let (wide, paint) = (num((end - x).max(0.5)), lane_paint(shade.leader));
            let margin = 6.0;
            for lane in &shade.members {
                let joined = shade.members.contains(&(lane + 1));
                let high = if joined { self.pitch } else { self.strip + 2.0 * margin };
                let (x, y) = (num(x), num(self.top(*lane) - margin));
                put!(
                    out,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{}\" fill=\"{}\" fill-opacity=\".22\"/>",
                    num(high),
                    paint.fill,
                );
            }
        }
        out.push('\n');
    }

    pub(super) fn axis(&self, out: &mut String) {
        let (mut lines, mut labels) = (String::new(), String::new());
        let (top, axis) = (num(self.reign_top - 4.0), num(self.axis));
        for (at, label) in if self.scale.stepped { self.steps() } else { self.round_times() } {
            let x = num(self.x(at));
            put!(lines, "M{x} {top}V{axis}");
            if let Some((text, row)) = label {
                let y = num(self.axis + 14.0 + 13.0 * small(row));
                put!(labels, "<text x=\"{x}\" y=\"{y}\">{text}</text>");
            }
        }
        put!(
            out,
            "<path d=\"{lines}\" stroke=\"#dde2e7\" fill=\"none\"/>\n<path d=\"M{} {axis}H{}\" stroke=\"{FAINT}\"/>\n\
             <g text-anchor=\"middle\" font-size=\"11\" fill=\"{FAINT}\">{labels}</g>\n",
            num(self.left),
            num(self.x(self.picture.end)),
        );
    }

    /// Ticks at round times.
    fn round_times(&self) -> Vec<Tick> {
        let (start, end) = (self.picture.start, self.picture.end);
        let step = look::tick_step(end.saturating_sub(start), self.ticks());
        let first = start.div_ceil(step).saturating_mul(step);
        let times = std::iter::successors(Some(first), |at| at.checked_add(step));
        times.take_while(|&at| at <= end).map(|at| (at, Some((tick_text(at, end), 0)))).collect()
    }

    /// Ticks at the instants that have a step each; their labels take turns in two rows.
    fn steps(&self) -> Vec<Tick> {
        let mut ends = [0.0_f64; 2];
        let known = self.scale.knots().iter().filter(|knot| knot.0 <= self.picture.end);
        let mut label = |&(at, _): &(u64, f64)| {
            let (text, x) = (look::instant_text(at), self.x(at));
            let half = width(&text, 11.0) / 2.0;
            let row = ends.iter().position(|&end| end < x - half)?;
            ends[row] = x + half + 4.0;
            Some((text, row))
        };
        known.map(|knot| (knot.0, label(knot))).collect()
    }

    /// Behind the end of the run: what still lasts runs on, and fades.
    pub(super) fn after(&self, out: &mut String) {
        let (x, top) = (self.x(self.picture.end), self.reign_top - 4.0);
        put!(
            out,
            "<g><title>the run ends here, at {}</title><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" \
             fill=\"url(#after)\"/><path d=\"M{x} {y}V{}\" stroke=\"{FAINT}\"/></g>\n",
            time_text(self.picture.end),
            num(self.left + self.plot - x),
            num(self.axis - top),
            num(self.axis),
            x = num(x),
            y = num(top),
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
            if let Some(role) = self.picture.roles.get(lane).filter(|role| !role.is_empty()) {
                let (role, y) = (escape(&fitting(role, self.left - 46.0, 10.0)), num(middle + 16.5));
                put!(out, "<text x=\"30\" y=\"{y}\" font-size=\"10\" fill=\"{FAINT}\">{role}</text>");
            }
            let tracks = self.picture.words.tracks.into_iter().zip([15.0, LEASE + 4.0 + GRANT]);
            for (letter, y) in tracks.filter(|(letter, _)| !letter.is_empty()) {
                let (x, y) = (num(self.left - 5.0), num(top + y));
                put!(
                    out,
                    "<text x=\"{x}\" y=\"{y}\" font-size=\"10\" text-anchor=\"end\" fill=\"{FAINT}\">{letter}</text>"
                );
            }
        }
    }
}
