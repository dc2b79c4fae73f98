//! Draws a small run that was made up by hand:
//! `cargo run -p tenure-lab --example pictures -- DIRECTORY`.
//!
//! The drawings know no protocol: a caller that fills a [`Picture`] gets both of them.

use std::path::PathBuf;
use tenure_lab::draw::{Arrow, Bar, BarKind, Mark, MarkKind, Minute, Picture, Zone, html, svg};

const MS: u64 = 1_000_000;

fn main() -> std::io::Result<()> {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: pictures DIRECTORY");
        std::process::exit(2);
    };
    std::fs::create_dir_all(&directory)?;
    let picture = sample();
    std::fs::write(directory.join("sample.svg"), svg::draw(&picture))?;
    std::fs::write(directory.join("sample.html"), html::draw(&picture))
}

/// Of three nodes the first is elected, crashes, and the second follows.
fn sample() -> Picture {
    let mut picture = Picture {
        title: "a sample, 3 nodes".to_owned(),
        verdict: "n1 leads 75 ms after n0 crashed".to_owned(),
        lanes: vec!["n0".to_owned(), "n1".to_owned(), "n2".to_owned()],
        end: 200 * MS,
        ..Picture::default()
    };
    ask(&mut picture, 0, 10 * MS, &[0, 2]);
    ask(&mut picture, 0, 40 * MS, &[0, 1, 2]);
    picture.bars.push(bar(0, 14, 60, BarKind::Lease, "n0 leads, term 1"));
    mark(&mut picture, 0, 60, MarkKind::Crash, "n0 crashes");
    picture.bars.push(bar(0, 60, 200, BarKind::Down, "n0 is down"));
    ask(&mut picture, 1, 131 * MS, &[1, 2]);
    ask(&mut picture, 1, 160 * MS, &[1, 2]);
    picture.bars.push(bar(1, 135, 200, BarKind::Lease, "n1 leads, term 2"));
    picture.zones.push(Zone {
        from: 15 * MS,
        until: 35 * MS,
        text: "split: n0 n2 | n1".to_owned(),
        calm: false,
    });
    mark(&mut picture, 0, 14, MarkKind::Elected, "n0 leads in term 1");
    mark(&mut picture, 1, 135, MarkKind::Elected, "n1 leads in term 2");
    picture.minutes.sort_by_key(|minute| minute.at);
    picture
}

/// `leader` asks all; each of `quorum` grants for 70 ms, the others never hear of it.
fn ask(picture: &mut Picture, leader: usize, at: u64, quorum: &[usize]) {
    minute(picture, leader, at, "asks all");
    for to in 0..picture.lanes.len() {
        let arrived = quorum.contains(&to).then_some(at + 2 * MS);
        let mut send = |from, to, sent, arrived, kind: &str| {
            let (kind, text) = (kind.to_owned(), format!("{kind} of {} ms", at / MS));
            picture.arrows.push(Arrow { from, to, sent, arrived, kind, text });
        };
        if to != leader {
            send(leader, to, at, arrived, "request");
        }
        let Some(heard) = arrived else { continue };
        if to != leader {
            send(to, leader, heard, Some(heard + 2 * MS), "ok");
        }
        let text = format!("n{to} supports n{leader}");
        let until = (heard + 70 * MS).min(picture.end);
        picture.bars.push(Bar { lane: to, from: heard, until, kind: BarKind::Grant { to: leader }, text });
        minute(picture, to, heard, &format!("supports n{leader}"));
    }
}

fn bar(lane: usize, from: u64, until: u64, kind: BarKind, text: &str) -> Bar {
    Bar { lane, from: from * MS, until: until * MS, kind, text: text.to_owned() }
}

fn mark(picture: &mut Picture, lane: usize, at: u64, kind: MarkKind, text: &str) {
    picture.marks.push(Mark { lane: Some(lane), at: at * MS, kind, text: text.to_owned() });
    minute(picture, lane, at * MS, text);
}

fn minute(picture: &mut Picture, lane: usize, at: u64, text: &str) {
    picture.minutes.push(Minute { at, lane: Some(lane), text: text.to_owned(), outcomes: Vec::new() });
}
