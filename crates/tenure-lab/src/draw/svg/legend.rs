//! The legend: the symbols that the picture uses, and no others.

use super::arrows::head;
use super::bars::outage_style;
use super::ground::{CALM, TINTS};
use super::marks::{cross, symbol};
use super::text::{num, put, small, width};
use super::{FAINT, RED, Sheet};
use crate::draw::look::{self, Kind, Run, escape, lane_paint};
use crate::draw::{BarKind, MarkKind, Picture};

/// One symbol of the legend.
pub(super) struct Entry {
    x: f64,
    row: usize,
    symbol: String,
    text: String,
}

impl Sheet<'_> {
    pub(super) fn legend(&self, out: &mut String) {
        for entry in &self.legend {
            let y = self.legend_top() + 24.0 * small(entry.row);
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

/// The symbols that the picture uses, each with its meaning.
pub(super) fn legend(
    picture: &Picture,
    runs: &[Run],
    kinds: &[Kind],
    stepped: bool,
) -> Vec<(String, String)> {
    let mut entries: Vec<(String, String)> = Vec::new();
    let (example, other) = (lane_paint(0), lane_paint(1));
    let has = |wanted: fn(BarKind) -> bool| runs.iter().any(|run| wanted(run.kind));
    if has(|kind| kind == BarKind::Lease) {
        let shape = format!("<rect y=\"-9\" width=\"34\" height=\"18\" rx=\"2\" fill=\"{}\"/>", example.fill);
        entries.push((shape, picture.words.leads.to_owned()));
    }
    if has(|kind| matches!(kind, BarKind::Grant { .. })) {
        let half = |x, fill| format!("<rect x=\"{x}\" y=\"-5\" width=\"16\" height=\"10\" fill=\"{fill}\"/>");
        entries.push((half(0, example.fill) + &half(18, other.fill), look::supports(picture)));
    }
    for (kind, text) in [
        (BarKind::Down, "down"),
        (BarKind::Paused, "paused, clock runs on"),
        (BarKind::Suspended, "machine suspended"),
        (BarKind::Silent, picture.words.silent),
    ] {
        if runs.iter().any(|run| run.kind == kind) {
            let shape = format!("<rect y=\"-9\" width=\"34\" height=\"18\" {}/>", outage_style(kind));
            entries.push((shape, text.to_owned()));
        }
    }
    legend_marks(picture, &mut entries);
    legend_arrows(picture, kinds, &mut entries);
    legend_zones(picture, &mut entries);
    if stepped {
        let shape = format!("<path d=\"M0 4H34M3 4v-8M17 4v-8M31 4v-8\" fill=\"none\" stroke=\"{FAINT}\"/>");
        entries.push((shape, look::STEPS.to_owned()));
    }
    entries
}

fn legend_marks(picture: &Picture, entries: &mut Vec<(String, String)>) {
    for (kind, text) in [
        (MarkKind::Elected, picture.words.elected),
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
        entries.push((line, look::LOST.to_owned()));
    }
}

fn legend_zones(picture: &Picture, entries: &mut Vec<(String, String)>) {
    for (calm, (fill, _), text) in
        [(false, TINTS[0], picture.words.zones), (true, CALM, "calm: no more faults")]
    {
        if picture.zones.iter().any(|zone| zone.calm == calm) {
            let shape =
                format!("<rect y=\"-9\" width=\"34\" height=\"18\" fill=\"{fill}\" fill-opacity=\".4\"/>");
            entries.push((shape, text.to_owned()));
        }
    }
}

/// Breaks the legend into rows that are at most `wide`.
pub(super) fn flow(entries: Vec<(String, String)>, wide: f64) -> (Vec<Entry>, usize) {
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
