//! The explorer walks the shipped machine: scopes with known numbers of states, mutants that are
//! found in as many steps as it takes, and ways to them that the laboratory can repeat.

use tenure_lab::catalogue::{Experiment, find};
use tenure_lab::explore::{Bounds, Budget, Checked, Clocks, Verdict, Wanted};

fn nerio() -> &'static dyn Experiment {
    find("nerio-drift").unwrap()
}

fn wanted(scope: &str) -> Wanted {
    Wanted { scope: Some(scope.to_owned()), ..Wanted::default() }
}

fn walk(mutant: Option<&str>, wanted: &Wanted) -> Checked {
    nerio().check(mutant, wanted, &mut |_| ()).unwrap()
}

/// Walks a scope of the sound machine: how many states there are, and how far away the last is.
fn exhausted(wanted: &Wanted) -> (u64, u32) {
    let checked = walk(None, wanted);
    assert_eq!(checked.verdict, Verdict::Holds, "{:?}", checked.counterexample);
    (checked.found.progress.states, checked.found.progress.depth)
}

#[test]
fn small_scopes_of_the_sound_machine_are_exhausted_and_hold() {
    assert_eq!(exhausted(&wanted("one")), (1_639, 11));
    assert_eq!(exhausted(&wanted("renewal")), (59_377, 21));
    assert_eq!(exhausted(&wanted("ticks")), (49_280, 29));
}

#[test]
fn two_acquisitions_by_the_worst_clocks_hold() {
    assert_eq!(exhausted(&wanted("two")), (387_239, 22));
}

#[test]
fn machines_that_look_alike_act_alike_by_every_input() {
    for scope in ["one", "renewal", "ticks"] {
        let checked = walk(None, &Wanted { tests_views: true, ..wanted(scope) });
        assert_eq!(checked.verdict, Verdict::Holds, "{scope}");
        assert!(checked.sizes[3] > 500, "{scope}: only {} comparisons", checked.sizes[3]);
    }
    let bounds = Bounds { states: 20_000, ..Bounds::default() };
    for scope in ["restart", "cut", "reboot", "release"] {
        let checked = walk(None, &Wanted { tests_views: true, bounds, ..wanted(scope) });
        assert_eq!(checked.verdict, Verdict::Bounded, "{scope}");
        assert!(checked.sizes[3] > 500, "{scope}: only {} comparisons", checked.sizes[3]);
    }
}

/// Scope, mutant, what it breaks, and after how many steps.
const MUTANTS: [(&str, &str, &str, usize); 19] = [
    ("one", "swap-rho", "quorum-behind-leader", 6),
    ("one", "no-step8-check", "elected-in-time", 6),
    ("one", "e-from-completion", "quorum-behind-leader", 7),
    ("one", "late-ok-merged", "edicts-ordered", 7),
    ("renewal", "f-no-max", "grants-kept", 7),
    ("renewal", "revoke-keeps-e", "quorum-behind-leader", 10),
    ("renewal", "renew-after-lapse", "terms-unbroken", 12),
    ("ticks", "no-tick-pad", "quorum-behind-leader", 12),
    ("ticks", "e-not-floored", "quorum-behind-leader", 15),
    ("two", "second-suitor", "grants-kept", 4),
    ("two", "no-wait-on-takeover", "grants-kept", 4),
    ("two", "aborted-ok", "quorum-behind-leader", 8),
    ("release", "release-no-id", "grants-kept", 5),
    ("release", "zombie-authority", "quorum-behind-leader", 7),
    ("release", "term-ge", "terms-rise", 11),
    ("restart", "volatile-promise", "grants-kept", 5),
    ("restart", "reconnect-race", "quorum-behind-leader", 7),
    ("reboot", "no-silence", "grants-kept", 5),
    ("reboot", "short-silence", "grants-kept", 6),
];

#[test]
fn mutants_are_found_by_a_shortest_way() {
    for (scope, mutant, property, length) in MUTANTS {
        let checked = walk(Some(mutant), &wanted(scope));
        let found = checked.counterexample.unwrap_or_else(|| panic!("{mutant} survives {scope}"));
        assert_eq!((found.broken.property, found.length), (property, length), "{mutant} in {scope}");
    }
}

#[test]
fn the_sound_machine_keeps_everything_as_deep_as_mutants_are_found() {
    let deepest = |scope: &str| {
        let lengths = MUTANTS.iter().filter(|(of, ..)| *of == scope).map(|(.., length)| *length);
        u32::try_from(lengths.max().unwrap()).unwrap()
    };
    // The whole scopes have millions of states: so many of them lie as deep as the mutants.
    let bounds = Bounds { states: 120_000, ..Bounds::default() };
    for scope in ["release", "restart", "reboot"] {
        let checked = walk(None, &Wanted { bounds, ..wanted(scope) });
        assert_eq!(checked.verdict, Verdict::Bounded, "{scope}: {:?}", checked.counterexample);
        let depth = checked.found.progress.depth;
        assert!(depth >= deepest(scope).min(10), "{scope}: walked {depth} steps deep");
    }
}

#[test]
fn the_laboratory_repeats_a_counterexample_on_the_exact_machine() {
    for (scope, mutant) in [
        ("ticks", "e-not-floored"),
        ("ticks", "no-tick-pad"),
        ("two", "aborted-ok"),
        ("restart", "volatile-promise"),
    ] {
        let found = walk(Some(mutant), &wanted(scope)).counterexample.unwrap();
        let trail = found.trail.unwrap();
        assert_eq!(trail.confirmed.map(|violation| violation.property), Some(found.broken.property));
        let replay = nerio().replay(&trail.script, None).unwrap();
        assert!(replay.as_expected, "{mutant}: {}", replay.came);
        let sound = nerio().replay(&trail.script, Some(None)).unwrap();
        assert_eq!(sound.report.violation, None, "{mutant}: the sound machine breaks nothing by it");
    }
}

#[test]
fn a_kill_between_any_two_effects_of_an_acquisition_breaks_nothing() {
    let cut = Wanted { budgets: vec![(Budget::Cuts, 1)], ..wanted("one") };
    let checked = walk(None, &Wanted { clocks: Some(Clocks::Worst), ..cut });
    assert_eq!(checked.verdict, Verdict::Holds, "{:?}", checked.counterexample);
}

#[test]
fn a_scope_in_which_nothing_happens_fails() {
    let nothing = Wanted { budgets: vec![(Budget::Acquisitions, 0)], ..wanted("two") };
    let checked = walk(None, &nothing);
    assert_eq!((checked.verdict, checked.found.progress.states), (Verdict::Unexercised, 1));
}

#[test]
fn a_walk_that_a_bound_ends_does_not_hold() {
    let bounds = Bounds { states: 1_000, ..Bounds::default() };
    let checked = walk(None, &Wanted { bounds, ..wanted("two") });
    assert_eq!(checked.verdict, Verdict::Bounded);
}

#[test]
fn a_flaw_of_a_driver_is_refused_for_the_explorer_walks_the_machine() {
    let refused = nerio().check(Some("stale-memory"), &wanted("one"), &mut |_| ()).unwrap_err();
    assert!(refused.to_string().contains("driver"), "{refused}");
    let refused = nerio().check(None, &wanted("tow"), &mut |_| ()).unwrap_err();
    assert!(refused.to_string().contains("did you mean two"), "{refused}");
}
