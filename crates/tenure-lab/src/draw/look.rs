//! Common to both drawings: colours, the text of times, and which bars make one.

use super::{Bar, BarKind, Mark, MarkKind, Picture};

/// A colour, and the ink that can be read on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paint {
    /// The colour itself.
    pub fill: &'static str,
    /// Black or white.
    pub ink: &'static str,
}

const fn paint(fill: &'static str, ink: &'static str) -> Paint {
    Paint { fill, ink }
}

/// The identity colours of the lanes: Okabe and Ito's set for every kind of colour vision, the reds
/// last because red is what a violation has.
const LANES: [Paint; 9] = [
    paint("#0072b2", "#fff"),
    paint("#e69f00", "#111"),
    paint("#009e73", "#111"),
    paint("#cc79a7", "#111"),
    paint("#56b4e9", "#111"),
    paint("#8c5a1e", "#fff"),
    paint("#6a5acd", "#fff"),
    paint("#999933", "#111"),
    paint("#d55e00", "#111"),
];

/// The legend's text for a message that did not arrive: a run does not tell whether it was lost or
/// had no more time.
pub(super) const LOST: &str = "message lost or not handled";
/// The text for an axis that is not true to scale.
pub(super) const STEPS: &str = "time not to scale: one step for each instant";

const KINDS: [&str; 6] = ["#5d6b7e", "#23808f", "#8a5fb0", "#97781c", "#4f8a3c", "#a0527c"];
const NACKS: [&str; 2] = ["#c8202f", "#dd6a5f"];

/// The legend's text for a grant.
pub(super) fn supports(picture: &Picture) -> String {
    format!("{}, in the colour of whom", picture.words.supports)
}

/// The identity colour of a lane.
pub(super) fn lane_paint(lane: usize) -> Paint {
    LANES[lane % LANES.len()]
}

/// A kind of message and its colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// As the arrows name it.
    pub name: String,
    /// How it is drawn.
    pub colour: &'static str,
}

/// The kinds of message in the order of their first appearance; refusals are reddish.
pub(super) fn kinds(picture: &Picture) -> Vec<Kind> {
    let mut found: Vec<Kind> = Vec::new();
    let (mut plain, mut nacks) = (0, 0);
    for arrow in &picture.arrows {
        if found.iter().any(|kind| kind.name == arrow.kind) {
            continue;
        }
        let (set, used) =
            if refuses(&arrow.kind) { (&NACKS[..], &mut nacks) } else { (&KINDS[..], &mut plain) };
        found.push(Kind { name: arrow.kind.clone(), colour: set[*used % set.len()] });
        *used += 1;
    }
    found
}

fn refuses(kind: &str) -> bool {
    let kind = kind.to_lowercase();
    kind == "no"
        || ["nack", "nak", "reject", "refus", "deny", "denied"].iter().any(|word| kind.contains(word))
}

/// Where the drawing ends: a little after the run, so that one can see what its last instant began.
pub(super) fn beyond(picture: &Picture) -> u64 {
    let span = picture.end.saturating_sub(picture.start);
    picture.end.max(picture.start).saturating_add((span / 18).max(1))
}

/// The text without the name of its lane, where it begins with that: the lane says it already.
pub(super) fn nameless<'a>(text: &'a str, name: &str) -> &'a str {
    let rest = text.strip_prefix(name).and_then(|rest| rest.strip_prefix(' '));
    rest.filter(|rest| !rest.is_empty() && !name.is_empty()).unwrap_or(text)
}

/// The text as it is told of a lane: with the lane's name, and with it once.
pub(super) fn named(text: &str, name: &str) -> String {
    format!("{name}: {}", nameless(text, name))
}

/// The reason that a text gives: the part behind the last colon.
pub(super) fn reason(text: &str) -> Option<&str> {
    text.rsplit_once(": ").map(|(_, reason)| reason).filter(|reason| !reason.is_empty())
}

/// The text, then ever shorter ones for less room.
pub(super) fn shorter<'a>(text: &'a str, name: &str) -> [&'a str; 3] {
    let plain = nameless(text, name);
    [text, plain, plain.rsplit_once(", ").map_or(plain, |(_, last)| last)]
}

/// Bars that together are one: a renewed lease, a renewed grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// On which lane.
    pub lane: usize,
    /// From when, within the picture.
    pub from: u64,
    /// Until when, within the picture.
    pub until: u64,
    /// The kind of bar.
    pub kind: BarKind,
    /// In words: the last bar's.
    pub text: String,
    /// How many bars it is made of.
    pub bars: usize,
    /// Whether it outlasts the run: then it is drawn up to where the drawing ends.
    pub open: bool,
    /// In which row of its track: more than one only if grants to different lanes overlap.
    pub row: usize,
}

/// The bars of the picture, joined where they overlap, by lane and beginning.
pub(super) fn runs(picture: &Picture) -> Vec<Run> {
    let mut bars: Vec<&Bar> = picture.bars.iter().filter(|bar| bar.lane < picture.lanes.len()).collect();
    bars.sort_by_key(|bar| (bar.lane, bar.from, bar.until));
    let mut runs: Vec<Run> = Vec::new();
    let beyond = beyond(picture);
    for bar in bars {
        let open = bar.from <= picture.end && bar.until >= picture.end && !is_over(picture, bar);
        let from = bar.from.max(picture.start);
        let until = if open { beyond } else { bar.until };
        if from >= until || from > picture.end {
            continue;
        }
        let last = runs.iter_mut().rev().take_while(|run| run.lane == bar.lane).find(|run| joins(run, bar));
        if let Some(run) = last {
            run.until = run.until.max(until);
            run.text.clone_from(&bar.text);
            run.bars += 1;
            run.open |= open;
        } else {
            let (lane, kind, text) = (bar.lane, bar.kind, bar.text.clone());
            runs.push(Run { lane, from, until, kind, text, bars: 1, open, row: 0 });
        }
    }
    assign_rows(&mut runs);
    runs
}

/// Whether a lease ended with the run: what was seen last of its lane is that it leads no more.
fn is_over(picture: &Picture, bar: &Bar) -> bool {
    let ends = |mark: &&Mark| matches!(mark.kind, MarkKind::Lost | MarkKind::Crash);
    let here = picture.marks.iter().filter(|mark| mark.lane == Some(bar.lane) && mark.at == picture.end);
    bar.kind == BarKind::Lease && here.filter(ends).count() > 0
}

fn joins(run: &Run, bar: &Bar) -> bool {
    let named_alike = matches!(run.kind, BarKind::Grant { .. }) || run.text == bar.text;
    run.kind == bar.kind && named_alike && bar.from <= run.until
}

fn assign_rows(runs: &mut [Run]) {
    let mut ends: Vec<(usize, u64)> = Vec::new();
    for run in runs.iter_mut().filter(|run| matches!(run.kind, BarKind::Grant { .. })) {
        let free = ends.iter().position(|&(lane, end)| lane != run.lane || end <= run.from);
        run.row = free.unwrap_or(ends.len());
        if run.row == ends.len() {
            ends.push((run.lane, run.until));
        } else {
            ends[run.row] = (run.lane, run.until);
        }
    }
}

/// A stretch of time in which the same lanes hold a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reign {
    /// From when.
    pub from: u64,
    /// Until when.
    pub until: u64,
    /// The leaders: never empty, more than one if leases overlap.
    pub lanes: Vec<usize>,
}

/// The leaders over time: the leases of all lanes in one line.
pub(super) fn reigns(runs: &[Run]) -> Vec<Reign> {
    let mut edges: Vec<(u64, bool, usize)> = Vec::new();
    for run in runs.iter().filter(|run| run.kind == BarKind::Lease) {
        edges.push((run.from, true, run.lane));
        edges.push((run.until, false, run.lane));
    }
    edges.sort_unstable();
    let mut held: Vec<usize> = Vec::new();
    let mut reigns: Vec<Reign> = Vec::new();
    let mut since = 0;
    for (at, begins, lane) in edges {
        if at > since && !held.is_empty() {
            extend(&mut reigns, since, at, &held);
        }
        since = at;
        if begins {
            held.push(lane);
        } else if let Some(place) = held.iter().position(|&other| other == lane) {
            held.remove(place);
        }
    }
    reigns
}

fn extend(reigns: &mut Vec<Reign>, from: u64, until: u64, held: &[usize]) {
    let mut lanes = held.to_vec();
    lanes.sort_unstable();
    lanes.dedup();
    match reigns.last_mut() {
        Some(last) if last.until == from && last.lanes == lanes => last.until = until,
        _ => reigns.push(Reign { from, until, lanes }),
    }
}

/// How long a message usually takes: the middle delay, for showing those that never arrived.
pub(super) fn usual_delay(picture: &Picture) -> u64 {
    let mut delays: Vec<u64> = picture
        .arrows
        .iter()
        .filter_map(|arrow| arrow.arrived.map(|arrived| arrived.saturating_sub(arrow.sent)))
        .collect();
    delays.sort_unstable();
    let span = picture.end.saturating_sub(picture.start);
    delays.get(delays.len() / 2).map_or(span / 100, |&delay| delay.min(span / 20))
}

/// The distance between two ticks, a round number of nanoseconds, such that at most `most` fit into
/// `span`.
pub(super) fn tick_step(span: u64, most: u64) -> u64 {
    let least = span / most.max(1);
    let mut step = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            if step.saturating_mul(factor) > least {
                return step.saturating_mul(factor);
            }
        }
        step = step.saturating_mul(10);
        if step > u64::MAX / 10 {
            return step;
        }
    }
}

/// A time in words, exactly: milliseconds below one second, seconds from there.
pub(super) fn time_text(nanos: u64) -> String {
    if nanos < 1_000_000_000 { decimal(nanos, 6, "ms") } else { decimal(nanos, 9, "s") }
}

/// A time in words, in the unit that suits a picture which ends at `end`.
pub(super) fn tick_text(nanos: u64, end: u64) -> String {
    if end < 2_000_000_000 { decimal(nanos, 6, "ms") } else { decimal(nanos, 9, "s") }
}

/// A time in words, in milliseconds to the microsecond: for an axis whose ticks are not round.
pub(super) fn instant_text(nanos: u64) -> String {
    decimal(nanos.saturating_add(500) / 1_000, 3, "ms")
}

fn decimal(nanos: u64, places: u32, unit: &str) -> String {
    let one = 10_u64.pow(places);
    let fraction = format!("{:0width$}", nanos % one, width = places as usize);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction} {unit}", nanos / one)
}

/// Text for XML or HTML, in elements and in attributes alike. Characters that XML forbids become
/// U+FFFD.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            control if control.is_control() => out.push('\u{fffd}'),
            plain => out.push(plain),
        }
    }
    out
}
