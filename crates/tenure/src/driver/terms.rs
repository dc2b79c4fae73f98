//! How high terms are, and what an operator should know of it in time.
//!
//! Packed tokens hold terms below 2^31. Elections of decades do not get there; a mistake may. So a
//! node says so when half of the range is used, once a day, with an estimate of when the rest will
//! be; and loudly when a term does not fit any more. Wide tokens go on.

use std::time::Duration;

use tenure_proto::strong::edict::PackedToken;
use tenure_proto::strong::{Event, Refusal, Term};
use tenure_proto::{GroupId, LocalTime, NodeId};

use super::Driver;
use super::questions::later;
use crate::repair::group_text;
use crate::status::{PackedTerms, TermStatus};

/// How often is said that terms run out.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// How often is said that outsiders ask for terms that are too high.
const MINUTE: Duration = Duration::from_secs(60);

/// The terms that were seen, and the warnings about them.
#[derive(Default)]
pub(super) struct Terms {
    /// The top when it was first looked at, and when that was.
    began: Option<(Term, LocalTime)>,
    /// The last warning about the range of packed tokens, and when to repeat it.
    said: Option<(PackedTerms, LocalTime)>,
    /// When to say again that somebody asked for too much.
    tell_at: Option<LocalTime>,
}

/// How long until the last packed term, if terms go on rising as they have since they were first
/// looked at.
fn packed_left(began: (Term, LocalTime), top: Term, now: LocalTime) -> Option<Duration> {
    let risen = u128::from(top.0.saturating_sub(began.0.0));
    let passed = u128::from(now.remaining(began.1).as_nanos());
    let left = u128::from(PackedToken::LAST_TERM.0.saturating_sub(top.0));
    let nanos = (left * passed).checked_div(risen)?;
    Some(Duration::from_secs(u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX)))
}

impl Driver {
    /// The top, and the first one that was seen.
    fn tops(&self) -> (Term, Option<(Term, LocalTime)>) {
        (self.machine.as_ref().map_or(Term(0), |machine| machine.top()), self.terms.began)
    }

    pub(super) fn term_status(&self, now: LocalTime) -> TermStatus {
        let (top, began) = self.tops();
        let doubted = self.machine.as_ref().and_then(|machine| machine.doubted());
        TermStatus {
            top,
            packed: PackedTerms::at(top),
            packed_left: began.and_then(|began| packed_left(began, top, now)),
            doubted: doubted.map(|(by, term)| (self.called(by), term)),
            barred: self.barred(),
        }
    }

    /// Whether a repair of terms has barred a group, as a member knows. A candidate that is none
    /// may go by an older charter, and asks.
    pub(super) fn is_barred(&self, group: GroupId) -> bool {
        let charter = self.machine.as_ref().map(|machine| machine.charter());
        charter.is_some_and(|charter| charter.has(self.me) && charter.body.barred.has(group))
    }

    /// The barred groups.
    fn barred(&self) -> Vec<String> {
        let groups = self.machine.as_ref().map(|machine| machine.charter().body.barred.groups());
        groups.unwrap_or_default().iter().map(|group| self.group_called(*group)).collect()
    }

    /// The name of a group, or its number where that is not known.
    pub(super) fn group_called(&self, group: GroupId) -> String {
        self.registry.name(group).map_or_else(|| group_text(group), ToString::to_string)
    }

    /// Says at a start which groups are barred.
    pub(super) fn log_barred(&self) {
        let groups = self.barred();
        if !groups.is_empty() {
            tracing::warn!(name: "tenure.barred", node = %self.name, groups = groups.join(","), "these groups are led by nobody since terms were repaired: reset their fences, then `tenure members repair-terms lift`");
        }
    }

    /// Its name, or its number where that is not known.
    fn called(&self, node: NodeId) -> String {
        self.net.name(node).map_or_else(|| node.to_string(), |name| name.to_string())
    }

    /// Looks how high terms are, and says so while there is time.
    pub(super) fn watch_terms(&mut self, now: LocalTime) {
        let (top, _) = self.tops();
        self.terms.began.get_or_insert((top, now));
        let packed = PackedTerms::at(top);
        let again = self.terms.said.is_none_or(|(said, again)| said != packed || again <= now);
        if packed == PackedTerms::Plenty || !again {
            return;
        }
        self.terms.said = Some((packed, later(now, DAY)));
        let left = self.term_status(now).packed_left.map(|left| left.as_secs() / DAY.as_secs());
        if packed == PackedTerms::HalfUsed {
            tracing::warn!(name: "tenure.terms_half", node = %self.name, top = top.0, days_left = ?left, "half of the terms that packed tokens can hold are used: move fences to wide tokens");
        } else {
            tracing::error!(name: "tenure.terms_out", node = %self.name, top = top.0, "new terms do not fit into packed tokens: only wide tokens go on");
        }
    }

    /// Says what was refused or doubted for its height.
    pub(super) fn on_height_event(&mut self, event: &Event, now: LocalTime) {
        let named = |group: &GroupId| {
            self.registry.name(*group).map_or_else(|| group.to_string(), ToString::to_string)
        };
        match event {
            Event::Refused { request, refusal: Refusal::TooHigh { wait } }
                if self.terms.tell_at.is_none_or(|at| at <= now) =>
            {
                let (peer, total) = (self.called(request.id.holder.node), self.tally.refused_too_high);
                tracing::warn!(name: "tenure.too_high", node = %self.name, peer, group = named(&request.group), term = request.term.0, wait = %wait, total, "refuses a term that lies too far above all others");
                self.terms.tell_at = Some(later(now, MINUTE));
            }
            Event::Implausible { by, term, known } => {
                let peer = self.called(*by);
                tracing::error!(name: "tenure.term_doubted", node = %self.name, peer, term = term.0, known = known.0, "a member speaks of a term far above all that is known here: find out who granted it, then `tenure members confirm-term`");
            }
            Event::Confirmed { term } => {
                tracing::warn!(name: "tenure.term_confirmed", node = %self.name, term = term.0, "an operator confirms that terms may be as high as this");
            }
            Event::HeldBack { group, term, wait } => {
                tracing::warn!(name: "tenure.held_back", node = %self.name, group = named(group), term = term.0, wait = %wait, "members find its term too high: waits, and asks for less");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAYS: u64 = 24 * 3600 * 1_000_000_000;

    #[test]
    fn half_of_the_packed_terms_is_said_years_before_the_last() {
        assert_eq!(PackedTerms::at(Term(1 << 29)), PackedTerms::Plenty);
        assert_eq!(PackedTerms::at(Term(1 << 30)), PackedTerms::HalfUsed);
        assert_eq!(PackedTerms::at(Term((1 << 31) - 2)), PackedTerms::HalfUsed);
        assert_eq!(PackedTerms::at(Term((1 << 31) - 1)), PackedTerms::Exhausted);
        assert_eq!(PackedTerms::at(Term(u64::MAX)), PackedTerms::Exhausted);
    }

    #[test]
    fn the_rest_is_estimated_from_how_terms_have_risen() {
        let began = (Term(1 << 30), LocalTime::from_nanos(DAYS));
        let now = LocalTime::from_nanos(11 * DAYS);
        assert_eq!(packed_left(began, Term(1 << 30), now), None, "they have not risen");
        let left = packed_left(began, Term((1 << 30) + 1_000_000), now).unwrap().as_secs() / DAY.as_secs();
        assert_eq!(left, ((1 << 30) - 1_000_001) / 100_000);
        let now = LocalTime::from_nanos(u64::MAX);
        assert!(packed_left((Term(0), LocalTime::ZERO), Term(1), now).is_some(), "nothing overflows");
    }
}
