//! The words of a runner that waits: who leads, or why nobody can; once, and when it changes.

use std::time::Duration;

use tenure::{Key, Leadership, NotReady, Status, Watch};
use tokio::time::{Instant, timeout};

use super::supervise::Runner;

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
        if self.said.as_ref() != Some(&why) {
            runner.note("waits", &format!("waits: {why}"));
            self.said = Some(why);
        }
    }

    /// Why this process does not lead; `None` if the node has stopped.
    async fn why(&mut self, runner: &Runner) -> Option<String> {
        let status = runner.node().status().await.ok()?;
        if !status.ready {
            return Some(no_quorum(&status, runner.key()));
        }
        match self.leadership(runner).await {
            Leadership::Leader { name, term } => {
                let name = name.map_or_else(|| "another process".to_owned(), |name| name.to_string());
                Some(format!("{name} leads, in term {}", term.0))
            }
            Leadership::Unknown => None, // The members will report.
            _ => Some("nobody leads yet".to_owned()),
        }
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
    let of = |answers: bool| {
        let members = status.peers_known.iter().filter(|peer| peer.is_member && peer.answers == answers);
        members.map(|peer| peer.name.to_string()).collect::<Vec<_>>().join(", ")
    };
    let (answer, silent) = (of(true), of(false));
    if !answer.is_empty() {
        return format!("no quorum of the members answers: {answer} does, but not {silent}");
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
