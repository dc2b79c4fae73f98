//! Meters of this process: memory, processor time of a thread, lines of the log.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counts from now on what nodes of this process write to the log.
pub fn count_events() {
    static LOG: Once = Once::new();
    LOG.call_once(|| tracing::subscriber::set_global_default(Counting).expect("nobody else has set one"));
}

static EVENTS: AtomicU64 = AtomicU64::new(0);

/// How many lines nodes have written to the log so far.
pub fn events() -> u64 {
    EVENTS.load(Relaxed)
}

/// A log that only counts.
struct Counting;

impl tracing::Subscriber for Counting {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("tenure")
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        EVENTS.fetch_add(1, Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// The memory of this process, in KiB.
pub fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("Linux has it");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// The processor time that a thread of this process has used, by its name.
pub fn busy(thread: &str) -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux has it");
    let stat = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("stat")).ok()
    };
    let text = tasks.filter_map(stat).find(|text| text.contains(&format!("({thread})"))).expect("it runs");
    let fields: Vec<&str> = text.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks: u64 = fields[11..13].iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
