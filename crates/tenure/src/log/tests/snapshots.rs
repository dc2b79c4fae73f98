//! Snapshots: given to others, not taken up, too long.

use super::*;

#[tokio::test]
async fn a_member_that_was_away_for_long_is_given_a_snapshot() {
    let cluster = Cluster::found();
    let short = |name| Config { snapshot_every: 20, keep: 5, ..cluster.config(name) };
    cluster.lead("a");
    let (a, b) = (cluster.open_with(&short("a")), cluster.open_with(&short("b")));
    for number in 0..100 {
        propose(&b, &number.to_string()).await;
    }
    until("the log is forgotten", &a, |status| status.forgotten > 50).await;
    let c = cluster.open_with(&short("c"));
    let mut heard = c.subscribe();
    propose(&c, "of c").await;
    let state = lines(&c).await;
    assert_eq!((state.len(), state[100].as_str()), (101, "of c"));
    let restored = within("news", async {
        loop {
            match heard.next().await {
                Some(News::Restored { upto }) => return upto,
                Some(_) => {}
                None => panic!("it runs"),
            }
        }
    });
    assert!(restored.await > 50);
    within("the end", c.shutdown()).await;
    assert_eq!(lines(&cluster.open_with(&short("c"))).await.len(), 101, "it has kept what it was given");
    drop((a, b));
}

/// Takes up no snapshot.
#[derive(Default)]
struct Newer(Lines);

impl StateMachine for Newer {
    fn apply(&mut self, index: u64, write: &[u8]) -> Vec<u8> {
        self.0.apply(index, write)
    }
    fn snapshot(&self) -> Vec<u8> {
        self.0.snapshot()
    }
    fn restore(&mut self, _snapshot: &[u8]) -> Result<(), StateError> {
        Err("of an older version".into())
    }
}

#[tokio::test]
async fn nothing_is_read_from_a_state_that_could_not_be_restored() {
    let cluster = Cluster::found();
    let short = |name| Config { snapshot_every: 20, keep: 0, ..cluster.config(name) };
    cluster.lead("a");
    let (a, b) = (cluster.open_with(&short("a")), cluster.open_with(&short("b")));
    for number in 0..19 {
        propose(&b, &format!("{number}{}", "x".repeat(500_000))).await; // Long: the read waits before the snapshot comes.
    }
    until("the log is forgotten", &a, |status| status.forgotten > 0).await;
    until("the log is forgotten", &b, |status| status.forgotten > 0).await;
    let told = Election::Told(cluster.hint.subscribe());
    let c = Log::open(&short("c"), told, Newer::default()).unwrap();
    let read = within("a read", c.read(|state| state.0.0.len())).await;
    let why = Stopped::State { reason: "of an older version".into() };
    assert_eq!(read, Err(why.clone().into()));
    assert_eq!(within("the end", c.stopped()).await, why);
}

#[tokio::test]
async fn a_state_too_long_for_a_snapshot_is_not_forgotten_and_writes_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new("lines", "a", ClusterId::draw(), ClusterKey::generate());
    config.members = peers([("a", "127.0.0.1:1")]);
    (config.folder, config.snapshot_every, config.keep) = (dir.path().join("a"), 5, 0);
    super::found(&config).unwrap();
    for (longest_snapshot, lives) in [(10, 1), (10, 2), (1000, 3)] {
        let config = Checked { longest_snapshot, ..Checked::new(&config).unwrap() };
        let disk = disk::open(&config).unwrap();
        let election = Election::fixed(NodeName::new("a").unwrap());
        let log = Log::run(config, election, Lines::default(), disk).unwrap();
        for number in 0..20 {
            propose(&log, &number.to_string()).await;
        }
        assert_eq!(lines(&log).await.len(), 20 * lives);
        assert_eq!(log.status().await.unwrap().forgotten > 0, longest_snapshot > 10);
        within("the end", log.shutdown()).await;
    }
}

/// As long as it was told last.
#[derive(Default)]
struct Padded(usize);

impl StateMachine for Padded {
    fn apply(&mut self, _index: u64, write: &[u8]) -> Vec<u8> {
        self.0 = write.len();
        Vec::new()
    }
    fn snapshot(&self) -> Vec<u8> {
        vec![0; self.0]
    }
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), StateError> {
        self.0 = snapshot.len();
        Ok(())
    }
}

#[tokio::test]
async fn a_state_that_gets_shorter_again_is_kept_without_opening_the_log_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new("padded", "a", ClusterId::draw(), ClusterKey::generate());
    config.members = peers([("a", "127.0.0.1:1")]);
    (config.folder, config.snapshot_every, config.keep) = (dir.path().join("a"), 5, 0);
    super::found(&config).unwrap();
    let config = Checked { longest_snapshot: 500, ..Checked::new(&config).unwrap() };
    let disk = disk::open(&config).unwrap();
    let log =
        Log::run(config, Election::fixed(NodeName::new("a").unwrap()), Padded::default(), disk).unwrap();
    for (length, forgets) in [(1000, false), (10, true)] {
        for _ in 0..10 {
            within("a write", log.propose(vec![0; length])).await.unwrap();
        }
        assert_eq!(log.status().await.unwrap().forgotten > 0, forgets);
    }
}

#[tokio::test]
async fn members_make_their_snapshots_at_different_places() {
    let cluster = Cluster::found();
    let short = |name| Config { snapshot_every: 30, keep: 0, ..cluster.config(name) };
    cluster.lead("a");
    let logs = NAMES.map(|name| cluster.open_with(&short(name)));
    for number in 0..29 {
        propose(&logs[0], &number.to_string()).await;
    }
    for (log, place) in logs.iter().zip([30, 20, 10]) {
        until("a snapshot", log, |status| status.forgotten == place).await;
    }
}

/// A state whose bytes are made when a test says so.
struct Slow(Lines, Arc<std::sync::Mutex<std::sync::mpsc::Receiver<()>>>);

impl StateMachine for Slow {
    fn apply(&mut self, index: u64, write: &[u8]) -> Vec<u8> {
        self.0.apply(index, write)
    }
    fn snapshot(&self) -> Vec<u8> {
        self.0.snapshot()
    }
    fn capture(&self) -> Capture {
        let (bytes, go) = (self.0.snapshot(), self.1.clone());
        Capture::new(move |to| {
            go.lock().unwrap().recv().map_err(std::io::Error::other)?;
            to.write_all(&bytes)
        })
    }
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), StateError> {
        self.0.restore(snapshot)
    }
}

#[tokio::test]
async fn writes_go_on_while_a_captured_state_becomes_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new("slow", "a", ClusterId::draw(), ClusterKey::generate());
    config.members = peers([("a", "127.0.0.1:1")]);
    (config.folder, config.snapshot_every, config.keep) = (dir.path().join("a"), 5, 0);
    super::found(&config).unwrap();
    let open = || {
        let (go, told) = std::sync::mpsc::channel();
        let state = Slow(Lines::default(), Arc::new(std::sync::Mutex::new(told)));
        (Log::open(&config, Election::fixed(NodeName::new("a").unwrap()), state).unwrap(), go)
    };
    let (log, go) = open();
    for number in 0..20 {
        within("a write", log.propose(number.to_string().into_bytes())).await.unwrap();
    }
    assert_eq!(log.status().await.unwrap().forgotten, 0, "no snapshot is there yet");
    go.send(()).unwrap();
    within("the snapshot", async {
        while log.status().await.unwrap().forgotten == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(log.status().await.unwrap().forgotten, 5, "of the state as it was captured");
    within("the end", log.shutdown()).await;
    let (log, _go) = open();
    let state = within("a read", log.read(|state| state.0.0.clone())).await.unwrap();
    assert_eq!(state, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_snapshot_of_many_megabytes_gets_to_a_member_that_was_away() {
    let cluster = Cluster::found();
    let short = |name| Config { snapshot_every: 20, keep: 0, longest_write: 8 << 20, ..cluster.config(name) };
    cluster.lead("a");
    let (a, b) = (cluster.open_with(&short("a")), cluster.open_with(&short("b")));
    for number in 0..24 {
        propose(&b, &format!("{number} {}", "x".repeat(1 << 20))).await;
    }
    until("the log is forgotten", &a, |status| status.forgotten > 0).await;
    until("the log is forgotten", &b, |status| status.forgotten > 0).await;
    let c = cluster.open_with(&short("c"));
    propose(&c, "of c").await;
    let state = lines(&c).await;
    assert_eq!((state.len(), state[24].as_str()), (25, "of c"));
    within("the end", c.shutdown()).await;
    assert_eq!(lines(&cluster.open_with(&short("c"))).await.len(), 25, "it has kept what it was given");
}
