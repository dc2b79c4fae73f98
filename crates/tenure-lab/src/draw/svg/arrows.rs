//! Messages: from edge to edge of the strips.

use super::Sheet;
use super::marks::cross;
use super::text::{num, put, small};
use crate::draw::Arrow;
use crate::draw::look::{self, escape, time_text};

/// Above this many arrows they lose their heads and their texts.
const MANY: usize = 1500;

impl Sheet<'_> {
    /// Messages: the more there are, the thinner and fainter, so that leadership stays the story;
    /// and those of routine are fainter still.
    pub(super) fn arrows(&self, out: &mut String) {
        let routine = self.picture.words.routine;
        let telling = self.picture.arrows.iter().filter(|arrow| arrow.kind != routine).count();
        let density = small(telling) / self.plot;
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
                    let is_routine = kind.name == routine;
                    let faint = if is_routine { " opacity=\".35\" stroke-width=\".6\"" } else { "" };
                    put!(out, "<g stroke=\"{c}\" fill=\"{c}\"{faint}>\n", c = kind.colour);
                    self.shafts(out, &chosen, delay, telling > MANY || is_routine);
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
            let x = match self.scale.stepped {
                true => start.0 + 22.0,
                false => self.x(arrow.sent.saturating_add(delay / 2)).max(start.0 + 5.0),
            };
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

    /// Midway, but beside a strip rather than on it: a message is not lost by a node that never had
    /// it.
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
            None => "lost, or not handled before the end".to_owned(),
        };
        let told =
            format!("{} {from} to {to}: {}\nsent {}, {end}", arrow.kind, arrow.text, time_text(arrow.sent));
        escape(&told)
    }
}

/// A head at `to` for a line that comes from `from`.
pub(super) fn head(path: &mut String, from: (f64, f64), to: (f64, f64)) {
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
