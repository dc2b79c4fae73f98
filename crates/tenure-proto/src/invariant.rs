//! Assertions that stay on in release builds.

/// Stops the process where an invariant of the sound rules does not hold: a stop is better than a
/// wrong answer. One condition a line, with its reason.
///
/// The laboratory's mutants break rules on purpose and are judged by properties. Their rules say
/// `false` to `asserts`; the sound ones say `true`, a constant, so nothing is left of the question.
macro_rules! invariant {
    ($rules:expr, $holds:expr, $why:literal) => {
        assert!(!$rules.asserts() || $holds, $why)
    };
}
