//! Draws what `cargo xtask bench local --out FOLDER` measured:
//! `cargo run -p tenure-lab --example local_plots -- FOLDER`.
//!
//! Reads `figures.txt` there, a line of words each: `rounds PLACE N MEAN MEDIAN P99`,
//! `split CAUSE exclusion|election MILLISECONDS…`, `constants EP EXPIRES SIGMA KAPPA`. Other lines
//! are for others. Writes `local-rounds.svg` and `local-splits.svg`.

use std::fs;
use std::path::{Path, PathBuf};

use tenure_lab::draw::plot::{self, Axis, Panel, Plot, Scale, Series};

/// The points of figure 25 of Fetzer and Cristian that the surviving text still shows: its axis
/// goes from 3 to 7 ms, for 1 to 8 processes, and times grow linearly.
const PAPER: [(f64, f64); 2] = [(1.0, 3.0), (8.0, 7.0)];

/// How long a sign of life counted in 1999, in milliseconds.
const PAPER_EXPIRES: f64 = 230.0;

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: local_plots FOLDER");
        std::process::exit(2);
    };
    let text = fs::read_to_string(folder.join("figures.txt"))?;
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    write(&folder, "local-rounds.svg", rounds(&lines))?;
    write(&folder, "local-splits.svg", splits(&lines))
}

/// Nothing was measured of it: nothing is drawn.
fn write(folder: &Path, name: &str, plot: Option<Plot>) -> std::io::Result<()> {
    let Some(plot) = plot else { return Ok(()) };
    fs::write(folder.join(name), plot::draw(&plot))?;
    println!("drawn: {}", folder.join(name).display());
    Ok(())
}

fn numbers(words: &[&str]) -> Vec<f64> {
    words.iter().filter_map(|word| word.parse().ok()).collect()
}

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), scale }
}

/// Election times over the number of processes.
fn rounds(lines: &[Vec<&str>]) -> Option<Plot> {
    let mut ours = Vec::new();
    for (colour, place) in ["loopback", "namespaces"].into_iter().enumerate() {
        for (column, name, dashed) in [(1, "mean", false), (3, "99 %", true)] {
            let of_place = |words: &&Vec<&str>| words.len() > 5 && words[..2] == ["rounds", place];
            let point = |words: &Vec<&str>| {
                let row = numbers(&words[2..]);
                Some((*row.first()?, *row.get(column)?))
            };
            let points: Vec<_> = lines.iter().filter(of_place).filter_map(point).collect();
            if !points.is_empty() {
                ours.push(Series { name: format!("{place}, {name}"), colour, dashed, points });
            }
        }
    }
    if ours.is_empty() {
        return None;
    }
    let name = "1999: the two ends of figure 25's axis, joined".to_owned();
    let paper = Series { name, colour: 3, dashed: true, points: PAPER.to_vec() };
    let panel = |title: &str, scale: Scale, series: Vec<Series>| Panel {
        title: title.to_owned(),
        x: axis("processes", Scale::Linear),
        y: axis("from asking to leading, ms", scale),
        series,
    };
    let with_paper = ours.iter().cloned().chain([paper]).collect();
    Some(Plot {
        title: "A local leader's round between real processes".to_owned(),
        note: "from sending a request to leading by it; beside Fetzer and Cristian, 1999, on eight Sun IPX"
            .to_owned(),
        panels: vec![
            panel("beside 1999, on a logarithmic axis", Scale::Log, with_paper),
            panel("here alone", Scale::Linear, ours),
        ],
    })
}

/// Which share of the splits is over, over time.
fn splits(lines: &[Vec<&str>]) -> Option<Plot> {
    let mut all = Vec::new();
    for (colour, cause) in ["nftables", "delay"].into_iter().enumerate() {
        for (what, dashed) in [("exclusion", true), ("election", false)] {
            let wanted = |words: &&Vec<&str>| words.len() > 3 && words[..3] == ["split", cause, what];
            let times = lines.iter().find(wanted).map(|words| numbers(&words[3..]));
            let name = format!("{what}, by {cause}");
            all.extend(times.map(|times| Series { name, colour, dashed, points: share(times) }));
        }
    }
    if all.is_empty() {
        return None;
    }
    let constants = lines.iter().find(|words| words[0] == "constants").map(|words| numbers(&words[1..]));
    if let Some([_, expires, _, kappa]) = constants.as_deref() {
        all.push(upright(format!("expires = {expires:.0} ms"), 2, *expires));
        all.push(upright(format!("κ, the bound: {kappa:.0} ms"), 4, *kappa));
    }
    all.push(upright(format!("1999: expires = {PAPER_EXPIRES:.0} ms"), 3, PAPER_EXPIRES));
    Some(Plot {
        title: "From a split to the new leader of the side that lost its own".to_owned(),
        note: "five processes, two and three; the side without the old leader; exclusion: its first request without outsiders"
            .to_owned(),
        panels: vec![Panel {
            title: "splits that are over".to_owned(),
            x: axis("time since the split, ms", Scale::Linear),
            y: axis("share of all splits", Scale::Linear),
            series: all,
        }],
    })
}

/// A line up from a time.
fn upright(name: String, colour: usize, at: f64) -> Series {
    Series { name, colour, dashed: true, points: vec![(at, 0.0), (at, 1.0)] }
}

/// In steps: after each time, one more of all is over.
fn share(mut times: Vec<f64>) -> Vec<(f64, f64)> {
    times.sort_by(f64::total_cmp);
    let all = times.len() as f64;
    let step = |(i, at): (usize, &f64)| [(*at, i as f64 / all), (*at, (i + 1) as f64 / all)];
    times.iter().enumerate().flat_map(step).collect()
}
