//! Draws events at an instant: symbols on the strips, and marks that concern all lanes.

use super::text::{fitting, num, put, small, width};
use super::{FAINT, LEASE, Place, RED, ROW, Sheet};
use crate::draw::look::{self, escape, lane_paint, time_text};
use crate::draw::{BarKind, Mark, MarkKind};

impl Sheet<'_> {
    pub(super) fn marks(&self, out: &mut String) {
        let lanes = self.picture.lanes.len();
        for mark in &self.picture.marks {
            let Some(lane) = mark.lane.filter(|&lane| lane < lanes) else { continue };
            let (x, y) = (self.x(mark.at), self.top(lane) + 2.0 + LEASE / 2.0);
            let name = &self.picture.lanes[lane];
            let told = format!("{} ({})", look::named(&mark.text, name), time_text(mark.at));
            put!(out, "<g><title>{}</title>", escape(&told));
            symbol(out, mark.kind, x, y, lane_paint(lane).fill);
            if mark.kind == MarkKind::Lost {
                self.why(out, mark, lane);
            }
            out.push_str("</g>\n");
        }
    }

    /// Why it leads no longer, where there is room for it on the strip.
    fn why(&self, out: &mut String, mark: &Mark, lane: usize) {
        let Some(reason) = look::reason(&mark.text) else { return };
        let runs = self.runs.iter().filter(|run| run.lane == lane && run.until > mark.at);
        let runs = runs.filter(|run| !matches!(run.kind, BarKind::Grant { .. })).map(|run| run.from);
        let marks = self.picture.marks.iter().filter(|other| other.lane == Some(lane) && other.at > mark.at);
        let next = runs.chain(marks.map(|other| other.at)).min();
        let from = self.x(mark.at) + 12.0;
        let room = next.map_or(self.left + self.plot, |next| self.x(next) - 8.0) - from;
        if width(reason, 11.0) <= room {
            put!(
                out,
                "<text x=\"{}\" y=\"{}\" font-size=\"11\" paint-order=\"stroke\" stroke=\"#eef1f4\" \
                 stroke-width=\"3\">{}</text>",
                num(from),
                num(self.top(lane) + 15.0),
                escape(reason),
            );
        }
    }

    /// Draws a violation, which concerns every lane: a line through all of them, and its label
    /// above.
    pub(super) fn violations(&self, out: &mut String) {
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
}

/// Whether a mark concerns every lane.
pub(super) fn whole(mark: &Mark) -> bool {
    mark.kind == MarkKind::Violation || mark.lane.is_none()
}

pub(super) fn symbol(out: &mut String, kind: MarkKind, x: f64, y: f64, colour: &str) {
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

pub(super) fn cross(path: &mut String, x: f64, y: f64, arm: f64) {
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
