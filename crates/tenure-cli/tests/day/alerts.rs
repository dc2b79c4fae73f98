//! Which alerts must fire, which may, and which did.
//!
//! **The rules** are those of packaging/alerts.yml, with time run fifteen times as fast (`quicken`
//! of the test kit): every length after `for:` and in `[…]` is divided by fifteen, and Prometheus
//! scrapes and evaluates each second instead of each quarter of a minute. Leases are not shortened,
//! so a failover, which is short beside a real `for:`, is about as long as a quick one.
//!
//! **Must fire**, each derived from what was done and from the referee's ledger, with room for
//! detection, scrapes and evaluations ([`LAG`]):
//!
//! * `TenureNoLeader` of a group: no command lived for longer than the lease of the last one could
//!   last, the rule's `for`, and the lag;
//! * `TenureNoQuorum`: two of three were stopped or dead for longer than `for` and the lag;
//! * `TenurePeerDown`: a member was so, for longer than `for` and the lag.
//!
//! **May fire**: what the same causes make possible, from their beginning until a while after their
//! end ([`TAIL`]). `TenureNotReady`, `TenureEpochSkew`, `TenureLeaseCloseToExpiry`,
//! `TenureRenewalSlow` and `TenureFlapping` may follow from something that was done, and need not.
//! **Everything else must not fire**, above all the alerts of clocks, keys and scopes.
//!
//! A scrape that fails although nothing was done to the daemon, or a hole in which the machine ran
//! nobody, excuses what fires soon after; how often is told.

use std::collections::BTreeMap;

use serde_json::Value;
use tenure_testkit::referee::Ledger;

use crate::site::{Event, HOSTS, LEASE};

/// How many times as fast the rules run.
pub(crate) const TIMES: u64 = 15;
const SECOND: u64 = 1_000_000_000;
/// Room for detection, scrapes and evaluations.
const LAG: u64 = 10 * SECOND;
/// For how long after its cause an alert may fire.
const TAIL: u64 = 15 * SECOND;

/// A time, in readings of the common clock.
type Span = (u64, u64);

/// An alert that fired, from the first to the last evaluation that said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fired {
    pub(crate) name: String,
    /// The group, the host that was scraped and the host of the peer, where the alert has them.
    group: Option<String>,
    hosts: Vec<u8>,
    pub(crate) span: Span,
}

/// An alert that must fire.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) name: &'static str,
    pub(crate) group: Option<String>,
    pub(crate) span: Span,
}

/// The result.
#[derive(Default)]
pub(crate) struct Verdict {
    /// How many must fire, and how many fired, by name.
    pub(crate) wanted: BTreeMap<String, usize>,
    pub(crate) fired: BTreeMap<String, usize>,
    pub(crate) missing: Vec<String>,
    pub(crate) unexpected: Vec<String>,
    /// How many fired soon after a hole.
    pub(crate) excused: usize,
}

/// Deeds and observations of a day, without the alerts.
pub(crate) struct Day<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) events: &'a [Event],
    /// Times in which the machine ran nobody, or a scrape failed for no other reason.
    pub(crate) holes: &'a [Span],
    /// The times that count: alerts of the set-up and of the end do not.
    pub(crate) span: Span,
}

/// The alerts that fired, from an answer of Prometheus to a range of `ALERTS`, and the difference
/// of its clock to ours.
pub(crate) fn fired(range: &Value, to_ours: impl Fn(f64) -> u64) -> Vec<Fired> {
    let mut all = Vec::new();
    for series in range["data"]["result"].as_array().into_iter().flatten() {
        let label = |name: &str| series["metric"][name].as_str().unwrap_or_default().to_owned();
        let group = Some(label("group")).filter(|group| !group.is_empty());
        let hosts = [label("instance"), label("peer")].iter().filter_map(|text| host_in(text)).collect();
        let one = Fired { name: label("alertname"), group, hosts, span: (0, 0) };
        let instants = series["values"].as_array().into_iter().flatten();
        let mut spans: Vec<Span> = Vec::new();
        for at in instants.filter_map(|pair| pair[0].as_f64()).map(&to_ours) {
            match spans.last_mut() {
                Some(span) if at < span.1 + 3 * SECOND => span.1 = at,
                _ => spans.push((at, at)),
            }
        }
        all.extend(spans.into_iter().map(|span| Fired { span, ..one.clone() }));
    }
    all
}

/// The host in `10.77.0.2:7401`, or in the name of its member, `h2-1`.
fn host_in(text: &str) -> Option<u8> {
    let of_member = text.strip_prefix('h').map(|rest| rest.split('-').next().unwrap_or_default());
    let of_address = || text.split(':').next()?.rsplit('.').next();
    of_member.or_else(of_address)?.parse().ok()
}

impl Day<'_> {
    /// The times in which something was done to these very hosts, or to two of three.
    fn troubles(&self, hosts: &[u8]) -> impl Iterator<Item = Span> {
        let touches = |event: &&Event| {
            event.group.is_none()
                && (event.hosts.len() > 1 || event.hosts.iter().any(|host| hosts.contains(host)))
        };
        self.events.iter().filter(touches).map(|event| (event.from, event.to)).collect::<Vec<_>>().into_iter()
    }

    /// The times in which a group may have been without a leader.
    fn gaps(&self, group: &str) -> Vec<Span> {
        let lives = self.ledger.by_group();
        let Some(lives) = lives.get(group) else { return vec![self.span] };
        let ends = std::iter::once(self.span.0).chain(lives.iter().map(|life| life.last));
        let begins = lives.iter().map(|life| life.first).chain([self.span.1]);
        ends.zip(begins).filter(|(end, begin)| end + SECOND / 2 < *begin).collect()
    }

    fn is_two(event: &&Event) -> bool {
        event.hosts.len() > 1
    }

    /// The alerts that must fire.
    pub(crate) fn wanted(&self) -> Vec<Wanted> {
        let lease = u64::try_from(LEASE.as_nanos()).expect("it is short") * 5 / 4;
        let within = |(from, to): &Span| self.span.0 <= *from && *to <= self.span.1;
        let mut wanted = Vec::new();
        for group in self.ledger.groups() {
            let long = self.gaps(group).into_iter().filter(|gap| gap.1 - gap.0 > lease + 4 * SECOND + LAG);
            let name = "TenureNoLeader";
            wanted.extend(long.map(|span| Wanted { name, group: Some(group.to_owned()), span }));
        }
        for event in self.events.iter().filter(|event| event.group.is_none()) {
            let down = matches!(event.kind, "kill -9 a daemon, for long" | "stop two of three, for long")
                || event.kind.contains("two of three");
            let (span, length) = ((event.from, event.to), event.to.saturating_sub(event.from));
            let mut want = |name, least: u64| {
                if down && length > least + LAG {
                    wanted.push(Wanted { name, group: None, span });
                }
            };
            if event.hosts.len() > 1 {
                want("TenureNoQuorum", 2 * SECOND);
            }
            want("TenurePeerDown", 8 * SECOND);
        }
        wanted.retain(|one| within(&one.span));
        wanted
    }

    /// The times in which an alert may fire.
    fn may(&self, fired: &Fired) -> Vec<Span> {
        let all = || self.events.iter().map(|event| (event.from, event.to)).collect();
        let two = || self.events.iter().filter(Self::is_two).map(|event| (event.from, event.to));
        let members =
            || self.events.iter().filter(|event| event.kind.contains("member")).map(|e| (e.from, e.to));
        let group = fired.group.as_deref().unwrap_or_default();
        match fired.name.as_str() {
            "TenureNoLeader" => self.gaps(group).into_iter().chain(two()).collect(),
            "TenureNoQuorum" => two().chain(members()).collect(),
            "TenureNotReady" | "TenurePeerDown" => self.troubles(&fired.hosts).chain(members()).collect(),
            "TenureEpochSkew" => members().collect(),
            "TenureLeaseCloseToExpiry" => {
                let late = self.gaps(group).into_iter().map(|gap| (gap.0, gap.1 + 20 * SECOND));
                let cluster = self.events.iter().filter(|event| event.group.is_none());
                late.chain(cluster.map(|event| (event.from, event.to + 20 * SECOND))).collect()
            }
            "TenureFlapping" => self.restless(group),
            "TenureRenewalSlow" => all(),
            _ => Vec::new(),
        }
    }

    /// The times in which a group had more than five terms in the rule's window.
    fn restless(&self, group: &str) -> Vec<Span> {
        let lives = self.ledger.by_group();
        let firsts: Vec<u64> = lives.get(group).into_iter().flatten().map(|life| life.first).collect();
        let window = 40 * SECOND;
        let many = firsts.windows(5).filter(|terms| terms[4] - terms[0] < window + LAG);
        many.map(|terms| (terms[4], terms[0] + window + LAG)).collect()
    }

    /// Compares.
    pub(crate) fn judge(&self, all: &[Fired]) -> Verdict {
        let mut verdict = Verdict::default();
        for wanted in self.wanted() {
            *verdict.wanted.entry(wanted.name.to_owned()).or_default() += 1;
            let is_it = |fired: &&Fired| {
                fired.name == wanted.name
                    && fired.group == wanted.group
                    && fired.span.0 <= wanted.span.1 + LAG
                    && wanted.span.0 <= fired.span.1
            };
            if !all.iter().any(|fired| is_it(&fired)) {
                verdict.missing.push(format!("{wanted:?}"));
            }
        }
        for fired in all.iter().filter(|fired| fired.span.0 < self.span.1) {
            *verdict.fired.entry(fired.name.clone()).or_default() += 1;
            let covers = |span: &Span| span.0 <= fired.span.0 && fired.span.1 <= span.1.saturating_add(TAIL);
            let touches = |span: &Span| span.0 <= fired.span.1 && fired.span.0 <= span.1.saturating_add(TAIL);
            if self.may(fired).iter().any(covers) {
                continue;
            }
            match self.holes.iter().any(touches) {
                true => verdict.excused += 1,
                false => verdict.unexpected.push(format!("{fired:?}")),
            }
        }
        verdict
    }
}

/// Times in which a scrape of a host failed although nothing was done to it.
pub(crate) fn failed_scrapes(range: &Value, events: &[Event], to_ours: impl Fn(f64) -> u64) -> Vec<Span> {
    let mut holes = Vec::new();
    for series in range["data"]["result"].as_array().into_iter().flatten() {
        let host = series["metric"]["instance"].as_str().and_then(host_in).unwrap_or(HOSTS + 1);
        let failed = series["values"].as_array().into_iter().flatten().filter(|pair| pair[1] == "0");
        for at in failed.filter_map(|pair| pair[0].as_f64()).map(&to_ours) {
            let caused = events.iter().any(|event| {
                event.hosts.contains(&host) && event.from <= at && at <= event.to.saturating_add(3 * SECOND)
            });
            if !caused {
                holes.push((at.saturating_sub(SECOND), at + SECOND));
            }
        }
    }
    holes
}
