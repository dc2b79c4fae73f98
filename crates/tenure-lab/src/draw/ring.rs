//! An election on a ring, drawn as a ring.
//!
//! [`svg`] is one image: where everybody stood in the end, and how much each had to say. [`page`]
//! shows the run itself: messages move along the ring, nodes change colour, and one can play, step
//! and scrub. It refers to nothing outside itself.

use super::html::{fill, text};
use super::look::escape;
use super::svg::text::{Paper, num, open, put, small};
use crate::catalogue::Error;
use crate::protocols::ring::watch::{Trace, What};
use tenure_proto::classic::Standing;

/// A run, ready to be drawn.
pub struct Picture<'a> {
    /// The title: the run that is drawn.
    pub title: String,
    /// Its outcome, in one line.
    pub verdict: String,
    /// Whether something was broken.
    pub broken: bool,
    /// The ids, clockwise; nothing where nodes have none.
    pub ids: Option<&'a [u32]>,
    /// How many nodes.
    pub nodes: u32,
    /// Whether the network is a star with node 0 in its centre.
    pub star: bool,
    /// The events of the run.
    pub trace: &'a Trace,
    /// How many parts of the trace's time make one unit.
    pub unit: u64,
}

/// More nodes than this cannot be told apart in a drawing.
pub const MOST_NODES: u32 = 2000;
/// More messages than this make a page that no browser likes.
pub const MOST_MESSAGES: usize = 500_000;

/// Whether this can be drawn at all.
pub fn check(nodes: u32) -> Result<(), Error> {
    if nodes > MOST_NODES {
        return Err(Error::new(format!(
            "{nodes} nodes cannot be drawn or traced: --nodes up to {MOST_NODES}"
        )));
    }
    Ok(())
}

const SIZE: f64 = 860.0;
const MIDDLE: f64 = SIZE / 2.0;

fn name(standing: Standing) -> &'static str {
    match standing {
        Standing::Asleep => "asleep",
        Standing::Candidate => "candidate",
        Standing::Passive => "passive",
        Standing::Leader => "leader",
        Standing::Follower(_) => "follower",
    }
}

fn paint(standing: Standing) -> &'static str {
    match standing {
        Standing::Asleep => "#ffffff",
        Standing::Candidate => "#56b4e9",
        Standing::Passive => "#b8c0c8",
        Standing::Leader => "#e69f00",
        Standing::Follower(_) => "#009e73",
    }
}

/// Where a node is: the first at the top, the others clockwise.
fn place(picture: &Picture<'_>, node: u32, radius: f64) -> (f64, f64) {
    if picture.star && node == 0 {
        return (MIDDLE, MIDDLE + 40.0);
    }
    let (number, all) = match picture.star {
        true => (node - 1, picture.nodes.max(2) - 1),
        false => (node, picture.nodes.max(1)),
    };
    let angle = std::f64::consts::TAU * f64::from(number) / f64::from(all);
    (MIDDLE + radius * angle.sin(), MIDDLE + 40.0 - radius * angle.cos())
}

fn last_standings(picture: &Picture<'_>) -> Vec<Standing> {
    let mut standings = vec![Standing::Asleep; picture.nodes as usize];
    for event in &picture.trace.events {
        if let (What::Stand(standing), Some(slot)) = (&event.what, standings.get_mut(event.node as usize)) {
            *slot = *standing;
        }
    }
    standings
}

/// Draws how it ended: who leads, and how many messages each node sent.
pub fn svg(picture: &Picture<'_>) -> String {
    let mut sent = vec![0_u32; picture.nodes as usize];
    picture.trace.messages.iter().for_each(|message| sent[message.from as usize] += 1);
    let most = sent.iter().copied().max().unwrap_or(0).max(1);
    let radius = 250.0;
    let dot = (std::f64::consts::PI * radius / f64::from(picture.nodes.max(1)) * 0.62).clamp(1.5, 17.0);
    let mut out = String::new();
    let paper = Paper { size: (SIZE, SIZE + 60.0), font: 12, heading: 19, style: "" };
    open(&mut out, paper, &picture.title, &picture.verdict);
    draw_links(&mut out, picture, radius);
    let standings = last_standings(picture);
    for (node, standing) in (0..picture.nodes).zip(&standings) {
        let (x, y) = place(picture, node, radius);
        let share = f64::from(sent[node as usize]) / f64::from(most);
        if !(picture.star && node == 0) {
            let (from, to) = (
                place(picture, node, radius + dot + 3.0),
                place(picture, node, radius + dot + 3.0 + 90.0 * share),
            );
            put!(
                out,
                "<path d=\"M{} {}L{} {}\" stroke=\"#8fb8d8\" stroke-width=\"{}\"><title>{} messages sent</title></path>",
                num(from.0),
                num(from.1),
                num(to.0),
                num(to.1),
                num((dot * 0.8).clamp(1.0, 9.0)),
                sent[node as usize],
            );
        }
        let ring = if *standing == Standing::Leader { ("#111", "3") } else { ("#66727f", "1") };
        put!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"><title>n{node}: {}</title></circle>",
            num(x),
            num(y),
            num(if *standing == Standing::Leader { dot + 2.0 } else { dot }),
            paint(*standing),
            ring.0,
            ring.1,
            name(*standing),
        );
        if dot >= 8.0 {
            put!(
                out,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#111\">{}</text>\n",
                num(x),
                num(y + 4.0),
                label(picture, node)
            );
        }
    }
    draw_legend(&mut out, most, SIZE + 30.0);
    out.push_str("</svg>\n");
    out
}

fn draw_links(out: &mut String, picture: &Picture<'_>, radius: f64) {
    if picture.star {
        for node in 1..picture.nodes {
            let (x, y) = place(picture, node, radius);
            put!(
                out,
                "<path d=\"M{} {}L{} {}\" stroke=\"#d0d6dc\"/>\n",
                num(MIDDLE),
                num(MIDDLE + 40.0),
                num(x),
                num(y)
            );
        }
        return;
    }
    put!(
        out,
        "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"none\" stroke=\"#d0d6dc\" stroke-width=\"2\"/>\n",
        num(MIDDLE),
        num(MIDDLE + 40.0),
        num(radius),
    );
}

fn label(picture: &Picture<'_>, node: u32) -> String {
    match picture.ids.and_then(|ids| ids.get(node as usize)) {
        Some(id) => id.to_string(),
        None => String::new(),
    }
}

fn draw_legend(out: &mut String, most: u32, y: f64) {
    let all = [Standing::Candidate, Standing::Passive, Standing::Leader, Standing::Follower(None)];
    for (i, standing) in all.into_iter().enumerate() {
        let x = 34.0 + 120.0 * small(i);
        put!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"7\" fill=\"{}\" stroke=\"#66727f\"/><text x=\"{}\" y=\"{}\" fill=\"#1f2933\">{}</text>\n",
            num(x),
            num(y),
            paint(standing),
            num(x + 13.0),
            num(y + 4.0),
            name(standing),
        );
    }
    put!(
        out,
        "<path d=\"M530 {}h30\" stroke=\"#8fb8d8\" stroke-width=\"6\"/><text x=\"568\" y=\"{}\" fill=\"#1f2933\">messages that a node sent, at most {most}</text>\n",
        num(y),
        num(y + 4.0),
    );
}

/// Draws the run as a page that plays it.
pub fn page(picture: &Picture<'_>) -> Result<String, Error> {
    let trace = picture.trace;
    if trace.messages.len() > MOST_MESSAGES {
        let many = trace.messages.len();
        return Err(Error::new(format!("{many} messages are too many for a page: fewer --nodes, or --svg")));
    }
    let mut kinds: Vec<&str> = Vec::new();
    for message in &trace.messages {
        if !kinds.contains(&message.kind) {
            kinds.push(message.kind);
        }
    }
    let number = |kind: &str| kinds.iter().position(|known| *known == kind).unwrap_or(0);
    let end = trace.events.iter().map(|event| event.time).max().unwrap_or(0);
    let mut messages = String::new();
    for m in &trace.messages {
        let received = m.received.map_or("null".to_owned(), |time| time.to_string());
        put!(
            messages,
            "[{},{},{},{},{received},{},{}],\n",
            m.from,
            m.to,
            u8::from(m.clockwise),
            m.sent,
            number(m.kind),
            text(&m.text)
        );
    }
    let mut states = String::new();
    for event in &trace.events {
        if let What::Stand(standing) = &event.what {
            put!(states, "[{},{},{}],\n", event.time, event.node, text(name(*standing)));
        }
    }
    let list = |items: &str| items.trim_end_matches(",\n").to_owned();
    let ids: Vec<String> = picture.ids.unwrap_or(&[]).iter().map(ToString::to_string).collect();
    let kinds: Vec<String> = kinds.iter().map(|kind| text(kind)).collect();
    let data = format!(
        "{{\"nodes\":{},\"star\":{},\"unit\":{},\"end\":{end},\"ids\":[{}],\"kinds\":[{}],\n\"messages\":[{}],\n\"states\":[{}]}}",
        picture.nodes,
        picture.star,
        picture.unit,
        ids.join(","),
        kinds.join(","),
        list(&messages),
        list(&states),
    );
    let (class, badge) = if picture.broken { ("broken", "BROKEN") } else { ("kept", "KEPT") };
    let fields = [
        ("{{class}}", class.to_owned()),
        ("{{badge}}", badge.to_owned()),
        ("{{title}}", escape(&picture.title)),
        ("{{verdict}}", escape(&picture.verdict)),
        ("{{data}}", data),
        ("{{script}}", include_str!("ring.js").to_owned()),
    ];
    Ok(fill(include_str!("ring.html"), &fields))
}
