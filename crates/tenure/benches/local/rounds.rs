//! Rounds: from asking to leading. The leader of a stable group asks again and again, and each time
//! leads anew.

use std::time::Duration;

use tenure_testkit::namespaces::Net;

use crate::constants::Plan;
use crate::holes::{Machine, Witness, millis};
use crate::member::{Member, Sign, What};
use crate::place::Place;
use crate::report::{Progress, Report, summary};

/// How long somebody is waited for who should lead all.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most processes.
pub(crate) const MOST: usize = 8;

/// How many children a node of the tree has, as in the paper.
const CHILDREN: usize = 3;

/// Rounds of one group.
struct Measured {
    /// In milliseconds.
    took: Vec<f64>,
    /// Datagrams that a round sends in all, and those that come to the leader, the nodes' own pings
    /// included.
    datagrams: f64,
    to_leader: f64,
    /// Of a hundred requests, how many did not succeed, and how many were answered along the tree.
    failed: f64,
    collated: f64,
}

/// Both tables: over the number of processes, and direct against collated.
pub(crate) fn run(count: usize, machine: Machine, net: Option<&Net>, witness: &Witness, report: &mut Report) {
    let places: Vec<Place<'_>> = std::iter::once(Place::Loopback).chain(net.map(Place::Namespaces)).collect();
    let mut all: Vec<Vec<Option<Measured>>> = Vec::new();
    let mut trees = Vec::new();
    let mut notes = Vec::new();
    for place in &places {
        let _ = witness.meanwhile();
        all.push((1..=MOST).map(|size| one(*place, size, None, (count, machine))).collect());
        trees.push(one(*place, MOST, Some(CHILDREN), (count, machine)));
        notes.push(format!("Meanwhile, on {}: {}.", place.name(), witness.meanwhile()));
    }
    table(count, &places, &all, report);
    direct_against_collated(&places, &all, &trees, report);
    notes.iter().for_each(|note| report.say(note));
}

fn table(count: usize, places: &[Place<'_>], all: &[Vec<Option<Measured>>], report: &mut Report) {
    report.say(&format!("\n### From asking to leading, {count} elections each (ms)\n"));
    let columns =
        |place: &Place<'_>| format!(" {0}: mean | median | 99 % | failed | datagrams |", place.name());
    report.say(&format!("| n |{} 2(n-1) |", places.iter().map(columns).collect::<String>()));
    report.say(&format!("|---|{}---|", "---|".repeat(5 * places.len())));
    for size in 1..=MOST {
        let cells: String = all.iter().map(|rows| cells(rows[size - 1].as_ref())).collect();
        report.say(&format!("| {size} |{cells} {} |", 2 * (size - 1)));
        for (place, rows) in places.iter().zip(all) {
            if let Some(measured) = &rows[size - 1] {
                let [mean, median, tail] = summary(&measured.took);
                report.note(&format!("rounds {} {size} {mean:.4} {median:.4} {tail:.4}", place.name()));
            }
        }
    }
    report.say(
        "\n1999, eight Sun IPX on an Ethernet of 10 Mbit/s, 100,000 elections: figures 25 and 26 grow linearly with n, on an axis from 3 to \
         7 ms; no more of their numbers is legible. Datagrams are those of all members for one request, the nodes' own pings included: \
         one request is n-1 datagrams (the paper's broadcast), and n-1 answers. Failed: of a hundred requests, because something was late.",
    );
}

fn cells(measured: Option<&Measured>) -> String {
    let Some(measured) = measured else { return " | | | | |".to_owned() };
    let [mean, median, tail] = summary(&measured.took);
    let Measured { failed, datagrams, .. } = measured;
    format!(" {mean:.2} | {median:.2} | {tail:.2} | {failed:.1} % | {datagrams:.1} |")
}

fn direct_against_collated(
    places: &[Place<'_>],
    all: &[Vec<Option<Measured>>],
    trees: &[Option<Measured>],
    report: &mut Report,
) {
    report.say(&format!("\n### Direct against collated answers, n = {MOST} (ms)\n"));
    report.say("| | answers | mean | median | 99 % | datagrams a round | to the leader | collated |");
    report.say("|---|---|---|---|---|---|---|---|");
    for ((place, rows), tree) in places.iter().zip(all).zip(trees) {
        let both = [("direct", rows[MOST - 1].as_ref()), ("tree of 3", tree.as_ref())];
        for (answers, measured) in both.into_iter().filter_map(|(name, it)| it.map(|it| (name, it))) {
            let [mean, median, tail] = summary(&measured.took);
            let Measured { datagrams, to_leader, collated, .. } = measured;
            let place = place.name();
            report.say(&format!(
                "| {place} | {answers} | {mean:.2} | {median:.2} | {tail:.2} | {datagrams:.1} | {to_leader:.1} | {collated:.0} % |"
            ));
            let word = answers.split(' ').next().unwrap_or_default();
            report.note(&format!("answers {place} {word} {mean:.4} {median:.4} {tail:.4}"));
        }
    }
    report.say(
        "\n1999: 6 to 8 ms either way (figure 29; the points of its axis are lost), too little gained to be worth it. Only rounds that really \
         were collated count in the rows of the tree; now and then one must be answered directly, which the datagrams include.",
    );
}

/// Measures one group; says so and gives nothing if nobody leads it.
fn one(
    place: Place<'_>,
    size: usize,
    tree: Option<usize>,
    (count, machine): (usize, Machine),
) -> Option<Measured> {
    let plan = Plan::choose(machine, size, tree);
    let what = format!("{size} on {}{}", place.name(), tree.map_or("", |_| ", along a tree"));
    let (_cluster, mut members) = place.start(size, &plan.how);
    let Some(leader) = leader(&members, size) else {
        eprintln!("{what}: nobody led all of them within {PATIENCE:?}: this machine is too busy");
        return None;
    };
    let measured = watch(&mut members, leader, (count, tree.is_some()), Progress::new(what.clone(), count));
    match &measured {
        Some(measured) => eprintln!("{what}: {:.2} ms on average", summary(&measured.took)[0]),
        None => eprintln!("{what}: the leader was lost: this machine is too busy"),
    }
    measured
}

/// Follows the leader for so many rounds.
fn watch(
    members: &mut [Member],
    leader: usize,
    (count, collated): (usize, bool),
    mut progress: Progress,
) -> Option<Measured> {
    let before = traffic(members, leader);
    let mut seen = Seen { size: members.len() as u64, only_collated: collated, ..Seen::default() };
    while seen.took.len() < count {
        seen.note(members[leader].next(PATIENCE)?);
        progress.at(seen.took.len());
    }
    let after = traffic(members, leader);
    after.2.into_iter().for_each(|sign| seen.note(sign));
    Some(seen.measured(after.0 - before.0, after.1 - before.1, count))
}

/// Datagrams sent by all, datagrams received by the leader, and the leader's events before its
/// count.
fn traffic(members: &mut [Member], leader: usize) -> (u64, u64, Vec<Sign>) {
    let others: u64 =
        (0..members.len()).filter(|who| *who != leader).map(|who| members[who].traffic().0).sum();
    let (sent, received, signs) = members[leader].traffic();
    (others + sent, received, signs)
}

/// The leader's events.
#[derive(Default)]
struct Seen {
    size: u64,
    only_collated: bool,
    took: Vec<f64>,
    asked: u32,
    collated: u32,
    led: u32,
    /// Whether the request under way is answered along the tree.
    along_tree: bool,
}

impl Seen {
    fn note(&mut self, sign: Sign) {
        match sign.what {
            What::Asks { collated, .. } => {
                self.asked += 1;
                self.collated += u32::from(collated);
                self.along_tree = collated;
            }
            What::Leads { took, supporters } if supporters == self.size => {
                self.led += 1;
                if self.along_tree || !self.only_collated {
                    self.took.push(millis(took));
                }
            }
            What::Leads { .. } | What::Traffic { .. } => {}
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "for people to read")]
    fn measured(mut self, sent: u64, received: u64, count: usize) -> Measured {
        self.took.truncate(count);
        let asked = f64::from(self.asked.max(1));
        Measured {
            took: self.took,
            datagrams: sent as f64 / asked,
            to_leader: received as f64 / asked,
            failed: f64::from(self.asked.saturating_sub(self.led)) / asked * 100.0,
            collated: f64::from(self.collated) / asked * 100.0,
        }
    }
}

/// The leader of all members, once there is one.
pub(crate) fn leader(members: &[Member], size: usize) -> Option<usize> {
    let steps = PATIENCE.as_millis() / 5;
    for _ in 0..steps {
        for (index, member) in members.iter().enumerate() {
            let leads = |what| matches!(what, What::Leads { supporters, .. } if supporters == size as u64);
            if member.drain().iter().any(|sign| leads(sign.what)) {
                return Some(index);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}
