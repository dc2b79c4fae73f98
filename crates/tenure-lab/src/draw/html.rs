//! The picture as one self-contained page.
//!
//! The page carries the picture as JSON and draws what is visible of it, so that text stays crisp
//! at every zoom; it refers to nothing outside itself.

use super::look::{self, Kind, Run, escape, lane_paint};
use super::scale::Scale;
use super::{Arrow, Bar, BarKind, Mark, MarkKind, Minute, Picture, Zone};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const BODY: &str = include_str!("page.html");

/// Draws the picture as one HTML page.
pub fn draw(picture: &Picture) -> String {
    let (class, badge) = if picture.broken { ("broken", "BROKEN") } else { ("kept", "KEPT") };
    let fields = [
        ("{{style}}", STYLE.to_owned()),
        ("{{script}}", SCRIPT.to_owned()),
        ("{{class}}", class.to_owned()),
        ("{{badge}}", badge.to_owned()),
        ("{{title}}", escape(&picture.title)),
        ("{{verdict}}", escape(&picture.verdict)),
        ("{{picture}}", json(picture)),
    ];
    fill(BODY, &fields)
}

/// Replaces each `{{name}}` of the template once it is met, so that nothing inside a value is
/// replaced.
pub(super) fn fill(template: &str, fields: &[(&str, String)]) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some(start) = rest.find("{{") {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let field = fields.iter().find(|(name, _)| rest.starts_with(name));
        let (name, value) = field.map_or(("{{", "{{"), |(name, value)| (*name, value.as_str()));
        out.push_str(value);
        rest = &rest[name.len()..];
    }
    out.push_str(rest);
    out
}

/// The picture as JSON that may stand inside a `script` element.
fn json(picture: &Picture) -> String {
    let runs = look::runs(picture);
    let kinds = look::kinds(picture);
    let scale = Scale::new(picture);
    let steps = if scale.stepped { scale.knots() } else { &[] };
    let lanes: Vec<(usize, &String)> = picture.lanes.iter().enumerate().collect();
    let fields = [
        format!("\"start\":{},\"end\":{}", picture.start, picture.end),
        format!("\"beyond\":{}", look::beyond(picture)),
        list("steps", steps, |step| step.0.to_string()),
        legend_json(picture),
        format!("\"broken\":{},\"delay\":{}", picture.broken, look::usual_delay(picture)),
        list("lanes", &lanes, |(lane, name)| {
            let paint = lane_paint(*lane);
            let role = picture.roles.get(*lane).map_or("", String::as_str);
            let (name, role) = (text(name), text(role));
            format!(
                "{{\"name\":{name},\"role\":{role},\"fill\":\"{}\",\"ink\":\"{}\"}}",
                paint.fill, paint.ink
            )
        }),
        list("kinds", &kinds, |kind| {
            let routine = kind.name == picture.words.routine;
            format!("{{\"name\":{},\"colour\":\"{}\",\"routine\":{routine}}}", text(&kind.name), kind.colour)
        }),
        list("arrows", &picture.arrows, |arrow| arrow_json(arrow, &kinds)),
        list("runs", &runs, run_json),
        list("bars", &picture.bars, bar_json),
        list("reigns", &look::reigns(&runs), |reign| {
            let (from, until) = (reign.from, reign.until);
            format!("{{\"from\":{from},\"until\":{until},\"lanes\":{:?}}}", reign.lanes)
        }),
        list("marks", &picture.marks, mark_json),
        list("zones", &picture.zones, zone_json),
        list("minutes", &picture.minutes, minute_json),
    ];
    format!("{{{}}}", fields.join(",\n"))
}

/// The legend's text for symbols that mean one thing here and another there.
fn legend_json(picture: &Picture) -> String {
    let (words, supports) = (picture.words, look::supports(picture));
    let says = [
        ("leads", words.leads),
        ("leadTrack", words.tracks[0]),
        ("supportTrack", words.tracks[1]),
        ("supports", &supports),
        ("silent", words.silent),
        ("elected", words.elected),
        ("zones", words.zones),
        ("missing", look::LOST),
        ("steps", look::STEPS),
    ];
    let says: Vec<String> = says.iter().map(|(name, says)| format!("\"{name}\":{}", text(says))).collect();
    format!("\"legend\":{{{}}}", says.join(","))
}

fn list<T>(name: &str, items: &[T], item: impl Fn(&T) -> String) -> String {
    let items: Vec<String> = items.iter().map(item).collect();
    format!("\"{name}\":[{}]", items.join(",\n"))
}

fn arrow_json(arrow: &Arrow, kinds: &[Kind]) -> String {
    let kind = kinds.iter().position(|kind| kind.name == arrow.kind).unwrap_or(0);
    format!(
        "{{\"from\":{},\"to\":{},\"sent\":{},\"arrived\":{},\"kind\":{kind},\"text\":{}}}",
        arrow.from,
        arrow.to,
        arrow.sent,
        or_null(arrow.arrived),
        text(&arrow.text),
    )
}

fn run_json(run: &Run) -> String {
    format!(
        "{{\"lane\":{},\"from\":{},\"until\":{},{},\"row\":{},\"open\":{},\"text\":{}}}",
        run.lane,
        run.from,
        run.until,
        bar_kind(run.kind),
        run.row,
        run.open,
        text(&run.text),
    )
}

fn bar_json(bar: &Bar) -> String {
    format!(
        "{{\"lane\":{},\"from\":{},\"until\":{},{},\"text\":{}}}",
        bar.lane,
        bar.from,
        bar.until,
        bar_kind(bar.kind),
        text(&bar.text),
    )
}

fn bar_kind(kind: BarKind) -> String {
    let name = match kind {
        BarKind::Lease => "lease",
        BarKind::Grant { to } => return format!("\"kind\":\"grant\",\"to\":{to}"),
        BarKind::Down => "down",
        BarKind::Paused => "paused",
        BarKind::Suspended => "suspended",
        BarKind::Silent => "silent",
    };
    format!("\"kind\":\"{name}\"")
}

fn mark_json(mark: &Mark) -> String {
    let kind = match mark.kind {
        MarkKind::Crash => "crash",
        MarkKind::Start => "start",
        MarkKind::Elected => "elected",
        MarkKind::Lost => "lost",
        MarkKind::Violation => "violation",
    };
    let (lane, at) = (or_null(mark.lane), mark.at);
    format!("{{\"lane\":{lane},\"at\":{at},\"kind\":\"{kind}\",\"text\":{}}}", text(&mark.text))
}

fn zone_json(zone: &Zone) -> String {
    let (from, until, calm) = (zone.from, zone.until, zone.calm);
    format!("{{\"from\":{from},\"until\":{until},\"calm\":{calm},\"text\":{}}}", text(&zone.text))
}

fn minute_json(minute: &Minute) -> String {
    let outcomes: Vec<String> = minute.outcomes.iter().map(|outcome| text(outcome)).collect();
    let (at, lane, outcomes) = (minute.at, or_null(minute.lane), outcomes.join(","));
    format!("{{\"at\":{at},\"lane\":{lane},\"text\":{},\"outcomes\":[{outcomes}]}}", text(&minute.text))
}

fn or_null<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

/// A JSON string. Characters that could end or open a `script` element, or a line of script, are
/// written by number.
pub(super) fn text(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len() + 2);
    out.push('"');
    for letter in plain.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\u{0}'..='\u{1f}' | '\u{7f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
