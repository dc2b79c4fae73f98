//! The words of a runner that waits: who leads, or why nobody can; once, and when it changes.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tenure::{CharterStatus, ClockBound, Key, Leadership, NotReady, PeerStatus, Status, Watch};
use tenure_proto::strong::Term;
use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan};
use tokio::time::{Instant, timeout};

use super::supervise::Runner;
use super::timing::nanos;
use crate::commands::calc;

/// How long a runner waits before it says so: an election takes less.
const FIRST: Duration = Duration::from_millis(1500);

/// How often it looks whether there is something new to say.
pub(super) const LOOK: Duration = Duration::from_millis(500);

/// How often a campaign whose time is over looks whether somebody leads.
pub(super) const RESPITE: Duration = Duration::from_millis(100);

/// How long members may take to report who leads.
const REPORTED_WITHIN: Duration = Duration::from_millis(500);

/// How long a runner has at least to reach the members.
const ONE_TRY: Duration = Duration::from_secs(2);

/// How long an election takes at most where nobody leads and a quorum is within reach.
const ELECTION: Duration = Duration::from_secs(5);

/// A wait for the leadership, and the last word on it.
pub(super) struct Waiting {
    since: Instant,
    /// Since when a quorum is within reach, as was seen when `--wait` was over.
    ready: Option<Instant>,
    watch: Option<Watch>,
    said: Option<String>,
}

/// Why a runner waits.
struct Why {
    /// The reason itself, which is said once.
    about: String,
    /// Figures as of now: they change all the time, and are no news.
    more: String,
    /// The same for `-o json`.
    fields: Map<String, Value>,
}

impl Why {
    fn of(about: impl Into<String>, fields: Value) -> Self {
        let fields = if let Value::Object(fields) = fields { fields } else { Map::new() };
        Self { about: about.into(), more: String::new(), fields }
    }
}

impl Waiting {
    /// From now on.
    pub(super) fn begin() -> Self {
        Self { since: Instant::now(), ready: None, watch: None, said: None }
    }

    /// Says what has changed.
    pub(super) async fn look(&mut self, runner: &Runner) {
        if self.since.elapsed() < FIRST {
            return;
        }
        let Some(why) = self.why(runner).await else { return };
        runner.note_with("waits", &format!("waits: {}{}", why.about, why.more), why.fields);
        self.said = Some(why.about);
    }

    /// Why this process does not lead; `None` if that was said, or the node has stopped.
    async fn why(&mut self, runner: &Runner) -> Option<Why> {
        let status = runner.node().status().await.ok()?;
        let why = if status.ready {
            match self.leadership(runner).await {
                Leadership::Leader { name, term } => {
                    let name = name.map(|name| name.to_string());
                    let leads = name.clone().unwrap_or_else(|| "another process".to_owned());
                    let about = format!("{leads} leads, in term {}", term.0);
                    if self.was_said(&about) {
                        return None;
                    }
                    let why = Why::of(about, json!({ "leader": name, "term": term.0 }));
                    self.until_when(why, term, status.charter.as_ref()).await
                }
                Leadership::Unknown => return None, // The members will report.
                _ => Why::of("nobody leads yet", json!({})),
            }
        } else {
            let (answering, silent) = by_answer(&status);
            let fields = json!({ "answering": answering, "silent": silent });
            Why::of(no_quorum(&status, runner.key()), fields)
        };
        (!self.was_said(&why.about)).then_some(why)
    }

    fn was_said(&self, about: &str) -> bool {
        self.said.as_deref() == Some(about)
    }

    /// Adds when the lease of this leader is over if it renews no more: no sooner than a quorum
    /// says now, and no later than the longest lease that members grant.
    async fn until_when(&self, mut why: Why, of: Term, charter: Option<&CharterStatus>) -> Why {
        let wait = charter.and_then(|charter| longest_wait(charter.bound, charter.longest_lease));
        let latest = wait.map(|wait| wait.as_nanos().div_ceil(1_000_000));
        let Some((watch, latest)) = self.watch.as_ref().zip(latest) else { return why };
        let answer = timeout(REPORTED_WITHIN, watch.ask()).await.unwrap_or_default();
        let is_it = matches!(answer.leadership, Leadership::Leader { term, .. } if term == of);
        let earliest = answer.leads_for.filter(|_| is_it).map(|left| left.as_millis());
        let end = seconds(latest.div_ceil(100));
        why.more = match earliest {
            Some(ms) => format!("; if it falls silent now, its lease ends in {} to {end}", seconds(ms / 100)),
            None => format!("; if it falls silent, its lease ends within {end}"),
        };
        why.fields.insert("leads_for_ms".to_owned(), json!(earliest));
        why.fields.insert("ends_within_ms".to_owned(), json!(latest));
        why
    }

    /// The leadership, as far as members have reported yet.
    async fn leadership(&mut self, runner: &Runner) -> Leadership {
        if self.watch.is_none() {
            self.watch = runner.node().observe(&runner.run.group).await.ok();
        }
        self.watch.as_ref().map(|watch| watch.now().leadership).unwrap_or_default()
    }

    /// The same; members that have not reported yet may take a moment.
    pub(super) async fn reported(&mut self, runner: &Runner) -> Leadership {
        let leadership = self.leadership(runner).await;
        let Some(watch) = self.watch.as_mut().filter(|_| leadership == Leadership::Unknown) else {
            return leadership;
        };
        let _ = timeout(REPORTED_WITHIN, watch.next()).await;
        watch.now().leadership
    }

    /// `--wait` is over: for how much longer the campaign may go on all the same. One try is made
    /// in any case, and an election that nobody else has won is brought to its end.
    pub(super) async fn respite(&mut self, runner: &Runner) -> Option<Instant> {
        let end = if !runner.node().is_ready() {
            self.since + ONE_TRY
        } else if matches!(self.reported(runner).await, Leadership::Leader { .. }) {
            return None;
        } else {
            *self.ready.get_or_insert_with(Instant::now) + ELECTION
        };
        Some(end).filter(|end| Instant::now() < *end)
    }
}

/// Which members answer, and what may be the reason that too few do.
pub(super) fn no_quorum(status: &Status, key: &Key) -> String {
    let refused = status.not_ready.iter().find(|why| matches!(why, NotReady::KeyRefused { .. }));
    if let Some(why) = refused {
        return why.to_string();
    }
    let (answering, silent) = by_answer(status);
    if !answering.is_empty() {
        let (answering, silent) = (answering.join(", "), silent.join(", "));
        return format!("no quorum of the members answers: {answering} does, but not {silent}");
    }
    let key = match key {
        Key::Scoped(key) => format!(
            "; or members know key {} no more, from which this one was made: then put a new one into its file",
            key.made_from()
        ),
        Key::Cluster(_) => String::new(),
    };
    format!("no member answers: are they down, or out of reach{key}?")
}

/// The members that answer, and those that do not.
fn by_answer(status: &Status) -> (Vec<String>, Vec<String>) {
    let members = status.peers_known.iter().filter(|peer| peer.is_member);
    let (answering, silent): (Vec<_>, Vec<_>) = members.partition(|peer| peer.answers);
    let names = |peers: Vec<&PeerStatus>| peers.iter().map(|peer| peer.name.to_string()).collect();
    (names(answering), names(silent))
}

/// How long grants last at most, in real time, that are extended no more.
fn longest_wait(bound: ClockBound, longest_lease: Duration) -> Option<Duration> {
    let bound = match bound {
        ClockBound::Drift { ppm } => Bound::Drift(Drift::from_ppm(ppm)?),
        ClockBound::Skew { bound } => Bound::Skew(LocalSpan::from_nanos(nanos(bound))),
    };
    let clocks = Clockwork { bound, tick: LocalSpan::from_nanos(1) };
    Some(calc::bound_at_worst(clocks, longest_lease))
}

/// Tenths of seconds, for people.
fn seconds(tenths: u128) -> String {
    format!("{}.{} s", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_is_not_renewed_ends_as_late_as_the_worst_clocks_make_it() {
        let longest = |bound| longest_wait(bound, Duration::from_secs(9));
        assert_eq!(longest(ClockBound::Drift { ppm: 100_000 }), Some(Duration::from_secs(11)));
        let skew = ClockBound::Skew { bound: Duration::from_millis(250) };
        assert_eq!(longest(skew), Some(Duration::from_millis(9500)));
    }

    #[test]
    fn seconds_have_one_decimal() {
        assert_eq!((seconds(7), seconds(61)), ("0.7 s".to_owned(), "6.1 s".to_owned()));
    }
}
