//! Snapshots: given to others, not taken up, damaged.

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
    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }
    fn restore(&mut self, _from: &mut dyn BufRead) -> Result<(), StateError> {
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
    fn snapshot(&self) -> Snapshot {
        let (lines, go) = (self.0.0.join("\n"), self.1.clone());
        Snapshot::streamed(move |to| {
            go.lock().unwrap().recv().map_err(std::io::Error::other)?;
            to.write_all(lines.as_bytes())
        })
    }
    fn restore(&mut self, from: &mut dyn BufRead) -> Result<(), StateError> {
        self.0.restore(from)
    }
}

#[tokio::test]
async fn writes_go_on_while_a_state_becomes_bytes() {
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

/// A log of one member with a snapshot, which has stopped.
async fn with_snapshot(dir: &Path) -> Config {
    let mut config = Config::new("lines", "a", ClusterId::draw(), ClusterKey::generate());
    config.members = peers([("a", "127.0.0.1:1")]);
    (config.folder, config.snapshot_every, config.keep) = (dir.join("a"), 5, 0);
    super::found(&config).unwrap();
    let log = Log::open(&config, alone(), Lines::default()).unwrap();
    for number in 0..8 {
        propose(&log, &number.to_string()).await;
    }
    until("a snapshot", &log, |status| status.forgotten > 0).await;
    within("the end", log.shutdown()).await;
    config
}

fn alone() -> Election {
    Election::fixed(NodeName::new("a").unwrap())
}

/// The files of snapshots that are there.
fn files(config: &Config) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(&config.folder).unwrap().map(|entry| entry.unwrap());
    entries
        .filter(|entry| entry.file_name().to_str().unwrap().starts_with("snapshot-"))
        .map(|entry| entry.path())
        .collect()
}

#[tokio::test]
async fn a_snapshot_that_is_damaged_or_missing_is_refused_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let config = with_snapshot(dir.path()).await;
    let [file] = &files(&config)[..] else { panic!("one snapshot") };
    let whole = std::fs::read(file).unwrap();
    let mut rotten = whole.clone();
    rotten[whole.len() / 2] ^= 1;
    std::fs::write(file, rotten).unwrap();
    let open = || Log::open(&config, alone(), Lines::default());
    assert!(matches!(open(), Err(OpenError::Damaged { file: named, .. }) if named == *file));
    std::fs::remove_file(file).unwrap();
    assert!(matches!(open(), Err(OpenError::Damaged { file: named, .. }) if named == *file));
    std::fs::write(file, whole).unwrap();
    assert_eq!(lines(&open().unwrap()).await.len(), 8);
}

#[tokio::test]
async fn files_that_a_crash_has_left_are_deleted_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let config = with_snapshot(dir.path()).await;
    let kept = files(&config);
    for name in ["snapshot-00000000000000000000000000000007", "snapshot-00000000000000000000000000000008.new"]
    {
        std::fs::write(config.folder.join(name), b"the rest of a crash").unwrap();
    }
    let log = Log::open(&config, alone(), Lines::default()).unwrap();
    assert_eq!(files(&config), kept);
    assert_eq!(lines(&log).await.len(), 8);
}

/// A snapshot as older versions kept it: within the log's own file.
#[tokio::test]
async fn a_snapshot_that_an_older_version_kept_in_the_log_is_taken_up() {
    let dir = tempfile::tempdir().unwrap();
    let config = with_snapshot(dir.path()).await;
    disk::tests::put_snapshot_into_the_log(&Checked::new(&config).unwrap());
    for file in files(&config) {
        std::fs::remove_file(file).unwrap();
    }
    for _ in 0..2 {
        let log = Log::open(&config, alone(), Lines::default()).unwrap();
        assert_eq!(lines(&log).await, (0..8).map(|number| number.to_string()).collect::<Vec<_>>());
        assert_eq!(files(&config).len(), 1);
        within("the end", log.shutdown()).await;
    }
}
