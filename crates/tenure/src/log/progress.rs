//! Whether a leader gets anything done. The strong lease is kept by the nodes' datagrams, the log
//! goes through streams: one that has the first without the second would keep everybody else from
//! leading, for as long as its node lives.

use tenure_proto::LocalTime;
use tenure_proto::log::Slot;
use tenure_proto::time::LocalSpan;

/// For how many repetitions nothing may come of what was said.
const RETRIES: u32 = 20;

/// For how many leases.
const LEASES: u32 = 3;

/// After how long a leader counts as one that gets nothing done.
pub(super) fn patience(retry: LocalSpan, lease: LocalSpan) -> LocalSpan {
    retry.times(RETRIES).max(lease.times(LEASES))
}

/// How a process is that holds the lease, and has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    /// Whether it has promises of enough members.
    pub(super) leads: bool,
    /// How much promises have told it so far, if it has not.
    pub(super) gathered: usize,
    pub(super) applied: Slot,
}

/// When something came of its work last.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: LocalTime,
    /// Whether it has led since something was applied: to lead once more is no progress.
    led: bool,
    /// The most that it was told since then: to be told so much once more is none either. Under a
    /// new lease it is counted anew, so a leader that needs long for the promises can always
    /// finish, as long as more and more of them come.
    gathered: usize,
    applied: Slot,
}

impl Mark {
    fn is_passed_by(&self, work: Work) -> bool {
        let prepared = work.leads || work.gathered > self.gathered;
        work.applied > self.applied || (prepared && !self.led)
    }
}

#[derive(Debug, Default)]
pub(super) struct Progress(Option<Mark>);

impl Progress {
    /// Takes note of the work, if there is any.
    pub(super) fn note(&mut self, now: LocalTime, work: Option<Work>) {
        self.0 = work.map(|work| match self.0 {
            Some(mark) if !mark.is_passed_by(work) => mark,
            _ => Mark { at: now, led: work.leads, gathered: work.gathered, applied: work.applied },
        });
    }

    /// From when on it has worked in vain for so long.
    pub(super) fn ends(&self, patience: LocalSpan) -> Option<LocalTime> {
        self.0.map(|mark| mark.at.after(patience))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: LocalSpan = LocalSpan::from_nanos(100);

    fn at(nanos: u64) -> LocalTime {
        LocalTime::from_nanos(nanos)
    }

    fn work(leads: bool, applied: u64) -> Option<Work> {
        Some(Work { leads, gathered: 0, applied: Slot(applied) })
    }

    fn told(gathered: usize) -> Option<Work> {
        Some(Work { leads: false, gathered, applied: Slot(7) })
    }

    #[test]
    fn who_has_nothing_to_do_never_works_in_vain() {
        let mut progress = Progress::default();
        progress.note(at(10), None);
        assert_eq!(progress.ends(SPAN), None);
        progress.note(at(20), work(false, 0));
        progress.note(at(30), None);
        assert_eq!(progress.ends(SPAN), None);
        progress.note(at(40), work(true, 0));
        assert_eq!(progress.ends(SPAN), Some(at(140)), "counted anew");
    }

    #[test]
    fn promises_and_every_slot_applied_are_progress_but_promises_again_are_not() {
        let mut progress = Progress::default();
        progress.note(at(10), work(false, 7));
        progress.note(at(20), work(false, 7));
        assert_eq!(progress.ends(SPAN), Some(at(110)));
        progress.note(at(30), work(true, 7));
        assert_eq!(progress.ends(SPAN), Some(at(130)));
        progress.note(at(40), work(false, 7));
        progress.note(at(50), work(true, 7));
        assert_eq!(progress.ends(SPAN), Some(at(130)), "it led before, and nothing came of it");
        progress.note(at(60), work(true, 8));
        assert_eq!(progress.ends(SPAN), Some(at(160)));
    }

    #[test]
    fn every_page_of_a_promise_is_progress_unless_it_was_told_before() {
        let mut progress = Progress::default();
        for (now, gathered) in [(10, 0), (90, 1), (170, 2), (250, 3)] {
            progress.note(at(now), told(gathered));
            assert_eq!(progress.ends(SPAN), Some(at(now + 100)));
        }
        for (now, gathered) in [(260, 0), (270, 2), (280, 3)] {
            progress.note(at(now), told(gathered));
            assert_eq!(progress.ends(SPAN), Some(at(350)), "a new ballot asks for the same once more");
        }
        progress.note(at(290), told(4));
        assert_eq!(progress.ends(SPAN), Some(at(390)));
        progress.note(at(300), work(true, 7));
        progress.note(at(310), told(5));
        assert_eq!(progress.ends(SPAN), Some(at(400)), "it led before, and nothing came of it");
        progress.note(at(320), None);
        progress.note(at(330), told(1));
        assert_eq!(progress.ends(SPAN), Some(at(430)), "another lease");
    }

    #[test]
    fn it_is_patient_for_repetitions_and_for_leases() {
        let [short, long] = [100, 5000].map(LocalSpan::from_nanos);
        assert_eq!(patience(short, SPAN), LocalSpan::from_nanos(2000));
        assert_eq!(patience(short, long), LocalSpan::from_nanos(15000));
    }
}
