//! A fence for what lives in this process: many resources, each under its own lock.
//!
//! To decide and then to write are two steps. A thread with an old leader's request may be paused
//! between them, while a newer leader's write is admitted and made; then it goes on and overwrites
//! it. So [`MemoryFence::write`] makes the write itself, under the lock of its resource.
//! [`MemoryFence::admit`] only decides.
//!
//! Its tokens are gone with the process: for a resource that outlives the process, it is the wrong
//! fence.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Admitted, Fence, Newest, Rule, Stale, Token};

/// A fence in memory for any number of resources, shared by threads.
///
/// `K` names resources; `W` names writers, as in [`Fence`].
///
/// ```
/// use std::convert::Infallible;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use tenure::fence::{Admitted, MemoryFence, Rule, Stale, Term, Token};
///
/// let price = AtomicU32::new(10);
/// let fence = MemoryFence::new(Rule::ByTerm);
/// let set = |token, to| {
///     fence.write(&"price", token, "alpha", |_| Ok::<_, Infallible>(price.store(to, Ordering::Relaxed)))
/// };
/// let (old, new) = (Token::new(Term(1), 1), Token::new(Term(2), 1));
/// assert_eq!(set(new, 20), Ok(Ok(())));
/// assert_eq!(set(old, 15), Err(Stale { newest: new })); // paused until now: not written
/// assert_eq!(price.into_inner(), 20);
/// ```
#[derive(Debug)]
pub struct MemoryFence<K, W> {
    rule: Rule,
    fences: Mutex<BTreeMap<K, Arc<Mutex<Fence<W>>>>>,
}

impl<K: Ord + Clone, W: Eq + Clone> MemoryFence<K, W> {
    /// Makes a fence with one rule for all resources. No resource has seen a token yet.
    pub const fn new(rule: Rule) -> Self {
        Self { rule, fences: Mutex::new(BTreeMap::new()) }
    }

    /// Runs a write under the lock of its resource if the token is admitted.
    ///
    /// No other write to this resource is decided on meanwhile; writes to other resources go on.
    /// The write must not call this fence for the same resource: it would wait for itself.
    ///
    /// A write that says `Err` has changed nothing: then the fence has seen nothing either, and the
    /// same write may come again. One that panics may have changed anything: older writes are
    /// refused from then on, and in order it cannot be repeated, since nobody knows whether it
    /// happened.
    ///
    /// # Errors
    /// [`Stale`] if a newer token was admitted before; then the write was not run. The inner result
    /// is that of the write.
    pub fn write<T, E>(
        &self,
        resource: &K,
        token: Token,
        writer: W,
        write: impl FnOnce(Admitted) -> Result<T, E>,
    ) -> Result<Result<T, E>, Stale> {
        let resource = self.resource(resource);
        let mut fence = lock(&resource);
        let before = fence.clone();
        let mut after = fence.clone();
        let admitted = after.admit(token, writer)?;
        if after != before {
            fence.newest = Some(Newest { token, writer: None }); // This stays if the write panics.
        }
        let outcome = write(admitted);
        *fence = if outcome.is_ok() { after } else { before };
        Ok(outcome)
    }

    /// Decides on a write and remembers its token, without running the write.
    ///
    /// It suffices only where the caller holds a lock of its own from before this call until the
    /// write is made; otherwise an older write can still be made after a newer one.
    ///
    /// # Errors
    /// [`Stale`] if a newer token was admitted before.
    pub fn admit(&self, resource: &K, token: Token, writer: W) -> Result<Admitted, Stale> {
        lock(&self.resource(resource)).admit(token, writer)
    }

    /// Returns the largest token that was admitted to a resource. It may be out of date at once.
    pub fn newest(&self, resource: &K) -> Option<Token> {
        let resource = lock(&self.fences).get(resource).cloned()?;
        lock(&resource).newest.as_ref().map(|newest| newest.token)
    }

    /// Frees the memory of a resource that is gone for good.
    ///
    /// If the resource comes back under its name, the first write is admitted, from any sender: an
    /// old leader's as well.
    pub fn forget(&self, resource: &K) {
        lock(&self.fences).remove(resource);
    }

    fn resource(&self, resource: &K) -> Arc<Mutex<Fence<W>>> {
        let mut fences = lock(&self.fences);
        if let Some(known) = fences.get(resource) {
            return Arc::clone(known);
        }
        let new = Arc::new(Mutex::new(Fence { rule: self.rule, newest: None }));
        fences.insert(resource.clone(), Arc::clone(&new));
        new
    }
}

/// A lock that somebody panicked under is taken all the same: what it guards is right at every
/// instant.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::fence::Term;

    fn token(term: u64, number: u64) -> Token {
        Token::new(Term(term), number)
    }

    fn done(_: Admitted) -> Result<(), Infallible> {
        Ok(())
    }

    #[test]
    fn a_paused_leaders_write_is_not_made() {
        let fence = MemoryFence::new(Rule::ByTerm);
        assert_eq!(fence.write(&"r", token(2, 1), "beta", Ok::<_, ()>), Ok(Ok(Admitted::Newer)));
        let late =
            fence.write(&"r", token(1, 9), "alpha", |_| -> Result<(), ()> { panic!("it was written") });
        assert_eq!(late, Err(Stale { newest: token(2, 1) }));
    }

    #[test]
    fn resources_are_judged_apart() {
        let fence = MemoryFence::new(Rule::InOrder);
        fence.admit(&"a", token(5, 1), "alpha").unwrap();
        assert_eq!(fence.admit(&"b", token(1, 1), "beta"), Ok(Admitted::Newer));
        assert_eq!(fence.newest(&"a"), Some(token(5, 1)));
        assert_eq!(fence.newest(&"c"), None);
        fence.forget(&"a");
        assert_eq!(fence.newest(&"a"), None);
    }

    #[test]
    fn a_write_to_one_resource_does_not_wait_for_another() {
        let fence = MemoryFence::new(Rule::ByTerm);
        let within =
            fence.write(&"a", token(1, 1), "alpha", |_| fence.write(&"b", token(1, 2), "alpha", done));
        assert_eq!(within, Ok(Ok(Ok(()))));
    }

    #[test]
    fn a_write_that_failed_may_come_again_and_does_not_count() {
        let fence = MemoryFence::new(Rule::InOrder);
        fence.admit(&"r", token(1, 1), "alpha").unwrap();
        assert_eq!(fence.write(&"r", token(1, 2), "alpha", |_| Err::<(), _>("full")), Ok(Err("full")));
        assert_eq!(fence.newest(&"r"), Some(token(1, 1)));
        let again = fence.write(&"r", token(1, 2), "alpha", Ok::<_, ()>);
        assert_eq!(again, Ok(Ok(Admitted::Newer)), "it was never applied: no retry, but the write itself");
        let retry = fence.write(&"r", token(1, 2), "alpha", Ok::<_, ()>);
        assert_eq!(retry, Ok(Ok(Admitted::Again)));
    }

    #[test]
    fn a_write_that_panicked_holds_back_older_ones_and_is_not_taken_for_done() {
        let fence = MemoryFence::new(Rule::InOrder);
        let half =
            || fence.write(&"r", token(2, 1), "beta", |_| -> Result<(), ()> { panic!("in the middle") });
        assert!(catch_unwind(AssertUnwindSafe(half)).is_err());
        let stale = Err(Stale { newest: token(2, 1) });
        assert_eq!(fence.admit(&"r", token(1, 1), "alpha"), stale);
        assert_eq!(fence.admit(&"r", token(2, 1), "beta"), stale);
        assert_eq!(fence.admit(&"r", token(2, 2), "beta"), Ok(Admitted::Newer));
    }

    #[test]
    fn a_newer_write_waits_for_an_older_one_that_is_being_made() {
        let fence = MemoryFence::new(Rule::ByTerm);
        let made = Mutex::new(Vec::new());
        thread::scope(|scope| {
            let (begun, older_has_begun) = mpsc::channel();
            let (fence, made) = (&fence, &made);
            scope.spawn(move || {
                let write = |_| {
                    begun.send(()).unwrap();
                    for step in 0..1000 {
                        made.lock().unwrap().push(step);
                        thread::yield_now();
                    }
                    Ok::<_, Infallible>(())
                };
                fence.write(&"r", token(1, 1), "alpha", write).unwrap().unwrap();
            });
            older_has_begun.recv().unwrap();
            let newer = |_| {
                made.lock().unwrap().push(-1);
                Ok::<_, Infallible>(())
            };
            fence.write(&"r", token(2, 1), "beta", newer).unwrap().unwrap();
        });
        let made = made.into_inner().unwrap();
        assert_eq!((made.len(), made.last()), (1001, Some(&-1)), "the newer write is the last one");
    }

    #[test]
    fn leaders_that_race_leave_the_newest_ones_write() {
        let fence = MemoryFence::new(Rule::ByTerm);
        let value = Mutex::new(0);
        thread::scope(|scope| {
            for term in 1..=8 {
                let (fence, value) = (&fence, &value);
                scope.spawn(move || {
                    for number in 1..=200 {
                        let set = |_| {
                            let mut value = value.lock().unwrap();
                            assert!(*value <= term, "{term} was written after {value}");
                            *value = term;
                            Ok::<_, Infallible>(())
                        };
                        let _ = fence.write(&"r", token(term, number), term, set); // Refusals are part of it.
                    }
                });
            }
        });
        assert_eq!((value.into_inner().unwrap(), fence.newest(&"r").map(Token::term)), (8, Some(Term(8))));
    }
}
