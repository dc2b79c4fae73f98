//! Draws all that lasts: leases, grants and outages on the strips, and the line that says who led
//! when.

use super::text::{num, put, small, width};
use super::{FAINT, GRANT, LEASE, REIGN, Sheet};
use crate::draw::BarKind;
use crate::draw::look::{self, Run, escape, lane_paint, time_text};

impl Sheet<'_> {
    pub(super) fn bars(&self, out: &mut String) {
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
                let told = look::named(&run.text, &self.picture.lanes[run.lane]);
                let until =
                    if run.open { "beyond the end of the run".to_owned() } else { time_text(run.until) };
                let told = format!("{told} ({} to {until}{more})", time_text(run.from));
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

    /// Until where the label of a lease may run: to its end, or to where the next lease of the lane
    /// lies on it.
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
        let room = self.x(covered) - 4.0;
        let texts = look::shorter(&run.text, &self.picture.lanes[run.lane]);
        while let Some(text) = texts.iter().find(|text| width(text, 12.0) <= room - from) {
            put!(
                out,
                "<text x=\"{}\" y=\"{}\" fill=\"{}\" font-weight=\"600\">{}</text>",
                num(from),
                num(top + 13.2),
                paint.ink,
                escape(text),
            );
            from += width(text, 12.0).max(900.0) + 60.0;
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
        let Some(name) = self.picture.lanes.get(to) else { return };
        let long = width(name, 9.0);
        let mut from = x + 4.0;
        while from + long + 4.0 < end {
            put!(
                out,
                "<text x=\"{}\" y=\"{}\" font-size=\"9\" font-weight=\"600\" fill=\"{}\">{}</text>",
                num(from),
                num(top + GRANT - 1.8),
                lane_paint(to).ink,
                escape(name),
            );
            from += long + 600.0;
        }
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
    pub(super) fn reigns(&self, out: &mut String) {
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
}

pub(super) const PATTERNS: &str = "<defs>\n\
    <pattern id=\"down\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\"><rect width=\"7\" height=\"7\" \
    fill=\"#c6ccd3\" fill-opacity=\".45\"/><path d=\"M-1 1l2-2M0 7l7-7M6 8l2-2\" stroke=\"#5d6772\" stroke-width=\"1.8\"/></pattern>\n\
    <pattern id=\"paused\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><circle cx=\"3\" cy=\"3\" \
    r=\"1.1\" fill=\"#3c4650\"/></pattern>\n\
    <pattern id=\"suspended\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><path d=\"M4 0V8M0 4H8\" \
    stroke=\"#3c4650\" stroke-width=\".9\"/></pattern>\n\
    <pattern id=\"silent\" width=\"9\" height=\"9\" patternUnits=\"userSpaceOnUse\"><path d=\"M-1 8l9 9M-1-1l11 11\" \
    stroke=\"#8a94a0\" stroke-width=\".8\"/></pattern>\n";

pub(super) fn outage_style(kind: BarKind) -> &'static str {
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
