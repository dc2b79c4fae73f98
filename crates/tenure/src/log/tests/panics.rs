//! State machines that panic: the log goes on, and so does everybody else.

use std::sync::atomic::AtomicBool;

use super::*;

/// Lines that break on some writes, in the midst of changing.
#[derive(Default)]
struct Fragile {
    lines: Lines,
    /// Breaks once, whatever is written.
    once: Arc<AtomicBool>,
}

impl StateMachine for Fragile {
    fn apply(&mut self, index: u64, write: &[u8]) -> Vec<u8> {
        self.lines.0.push("half done".to_owned());
        assert!(write != b"poison", "no such account");
        assert!(!self.once.swap(false, Relaxed), "out of memory");
        self.lines.0.pop();
        self.lines.apply(index, write)
    }
    fn snapshot(&self) -> Snapshot {
        self.lines.snapshot()
    }
    fn restore(&mut self, from: &mut dyn BufRead) -> Result<(), StateError> {
        self.lines.restore(from)
    }
}

async fn written(log: &Log<Fragile>, text: &str) -> Result<Chosen, ProposeError> {
    within("a write", log.propose(text.as_bytes())).await
}

async fn read(log: &Log<Fragile>) -> Vec<String> {
    within("a read", log.read(|state| state.lines.0.clone())).await.unwrap()
}

#[tokio::test]
async fn a_write_on_which_every_member_panics_is_refused_and_the_log_goes_on() {
    let cluster = Cluster::found();
    let open = |name| {
        let config = Config { snapshot_every: 8, keep: 2, ..cluster.config(name) };
        Log::open(&config, Election::Told(cluster.hint.subscribe()), Fragile::default()).unwrap()
    };
    cluster.lead("a");
    let logs = NAMES.map(open);
    let mut expected = Vec::new();
    for number in 0..4 {
        written(&logs[number % 3], &number.to_string()).await.unwrap();
        expected.push(number.to_string());
        let refused = written(&logs[1], "poison").await;
        let Err(ProposeError::Panicked { message, .. }) = refused else { panic!("{refused:?}") };
        assert!(message.contains("no such account"), "{message}");
    }
    for log in &logs {
        assert_eq!(read(log).await, expected, "of the refused writes nothing is left");
        assert_eq!(log.status().await.unwrap().panics, 4);
    }
    for log in logs {
        within("the end", log.shutdown()).await;
    }
    let logs = NAMES.map(open); // Their disks hold the writes that break them.
    written(&logs[2], "on").await.unwrap();
    expected.push("on".to_owned());
    for log in &logs {
        assert_eq!(read(log).await, expected);
    }
}

#[tokio::test]
async fn a_panic_that_does_not_come_again_refuses_nothing() {
    let cluster = Cluster::found();
    cluster.lead("a");
    let once = Arc::<AtomicBool>::default();
    let fragile = || Fragile { once: once.clone(), ..Fragile::default() };
    let open =
        |name| Log::open(&cluster.config(name), Election::Told(cluster.hint.subscribe()), fragile()).unwrap();
    let logs = NAMES.map(open);
    written(&logs[0], "one").await.unwrap();
    once.store(true, Relaxed);
    written(&logs[0], "two").await.unwrap();
    for log in &logs {
        assert_eq!(read(log).await, ["one", "two"]);
        assert_eq!(log.status().await.unwrap().panics, 0);
    }
}

#[tokio::test]
async fn a_read_that_panics_does_so_in_its_caller_alone() {
    let cluster = Cluster::found();
    let logs = NAMES.map(|name| cluster.open(name));
    cluster.lead("a");
    let log = logs[0].clone();
    let broken = tokio::spawn(async move { log.read(|_| -> usize { panic!("of the caller") }).await });
    assert!(within("the read", broken).await.unwrap_err().is_panic());
    propose(&logs[0], "one").await;
    assert_eq!(lines(&logs[0]).await, ["one"]);
}
