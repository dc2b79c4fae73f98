//! Many runners whose daemons are all gone for longer than a lease, and come back: a leadership is
//! lost once a group, and won once.

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use tenure_testkit::binary::Binary;
use tenure_testkit::daemons::{Daemon, Daemons};
use tenure_testkit::waiting::until;

/// The command that is tested.
const TENURE: Binary = Binary(env!("CARGO_BIN_EXE_tenure"));

const GROUPS: usize = 15;

/// A leader and one that waits.
const RUNNERS: usize = 2;

/// Longer than a busy machine keeps a process from running: no group may lose its leader for that.
const LEASE: Duration = Duration::from_secs(10);

/// Notes that it has started, and whether another of its group lives: the lock goes with the last
/// process that holds it.
const COMMAND: &str = "exec 9>$TENURE_GROUP.lock; flock -n 9 || echo $TENURE_TERM >> $TENURE_GROUP.both; \
                       echo $TENURE_TERM >> $TENURE_GROUP.starts; exec sleep 600";

/// Runners of many groups.
struct Crowd<'a> {
    cluster: &'a Daemons,
    runners: Vec<Daemon>,
}

impl<'a> Crowd<'a> {
    fn start(cluster: &'a Daemons) -> Self {
        let start = |index: usize| {
            let mut command = TENURE.command_in(cluster.path());
            let group = format!("g{}", index % GROUPS);
            let lease = format!("--lease={}s", LEASE.as_secs());
            command.args(["run", "-c", "tenure.toml", "-g", &group, &lease, "--", "sh", "-c", COMMAND]);
            Daemon::start(command, &cluster.path().join(format!("{group}-{}.log", index / GROUPS)))
        };
        Self { cluster, runners: (0..GROUPS * RUNNERS).map(start).collect() }
    }

    fn file(&self, group: usize, what: &str) -> PathBuf {
        self.cluster.path().join(format!("g{group}.{what}"))
    }

    /// The terms in which the command of a group was started.
    fn starts(&self, group: usize) -> Vec<u64> {
        let text = fs::read_to_string(self.file(group, "starts")).unwrap_or_default();
        text.lines().map(|line| line.parse().expect("a term")).collect()
    }

    fn each_has_started(&self, times: usize) -> bool {
        (0..GROUPS).all(|group| self.starts(group).len() >= times)
    }

    /// All that the runners have said.
    fn story(&self) -> String {
        self.runners.iter().map(Daemon::text).collect()
    }

    fn losses(&self) -> usize {
        self.story().matches("the lease was not renewed in time").count()
    }
}

#[test]
fn an_outage_of_all_daemons_costs_each_group_one_loss_and_no_command_runs_twice() {
    let length = format!("--longest-lease {}s", LEASE.as_secs());
    let cluster = Daemons::found(TENURE, 3, &length);
    let daemons = cluster.start_all();
    let crowd = Crowd::start(&cluster);
    until("a leader for each group", || crowd.each_has_started(1));
    for daemon in &daemons {
        daemon.signal(Signal::KILL);
    }
    drop(daemons);
    until("the loss of each lease", || crowd.losses() == GROUPS);
    let waits =
        |text: String| text.lines().last().is_some_and(|line| line.contains("waits: no member answers"));
    until("runners that wait for a quorum", || crowd.runners.iter().all(|runner| waits(runner.text())));
    let daemons = cluster.start_all();
    until("a leader for each group again", || crowd.each_has_started(2));
    // Leaders that were lost again would be by now.
    sleep(LEASE * 2);
    for group in 0..GROUPS {
        let terms = crowd.starts(group);
        assert!(terms.len() == 2 && terms[0] < terms[1], "g{group}: {terms:?}\n{}", crowd.story());
        let both = fs::read_to_string(crowd.file(group, "both")).unwrap_or_default();
        assert_eq!(both, "", "g{group}: two commands at once\n{}", crowd.story());
    }
    assert_eq!(crowd.losses(), GROUPS, "{}", crowd.story());
    drop(daemons);
}
