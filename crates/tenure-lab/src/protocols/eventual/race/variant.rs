//! In how many ways a world is made harder for the elections of eventual leaders.

use crate::catalogue::{Error, Trial};
use crate::simulate::{Fault, Faults, Named, Setup};
use crate::world::RealTime;

/// A world with something more that goes wrong, or with other constants.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name.
    pub name: &'static str,
    /// The difference, in words.
    pub says: &'static str,
    /// The faults besides crashes.
    faults: &'static [Fault],
    /// Constants that are not those of [`PLAIN`].
    sets: &'static [(&'static str, &'static str)],
    kind: Kind,
}

/// The members, and whose answers suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// f+1 to write, n-f to read, with the greatest f.
    Counted,
    /// The same with an f that is one less.
    Fewer,
    /// The rows of the smallest grid for so many processes, and one of each row.
    Grid,
    /// As `Counted`, and the bound on round trips is not known: nothing for elections that rest on
    /// it.
    Learnt,
}

/// The constants common to all variants that do not say otherwise: only the events are left to the
/// seed.
const PLAIN: [(&str, &str); 5] =
    [("drift", "0ppm"), ("tick", "1ns"), ("step", "0.1ms"), ("durable", "0"), ("restarts", "0")];

const fn variant(
    name: &'static str,
    faults: &'static [Fault],
    sets: &'static [(&'static str, &'static str)],
    kind: Kind,
    says: &'static str,
) -> Variant {
    Variant { name, says, faults, sets, kind }
}

/// All of them.
pub const VARIANTS: &[Variant] = &[
    variant("plain", &[], &[], Kind::Counted, "up to f crash for good"),
    variant(
        "loss",
        &[Fault::Loss, Fault::Dup],
        &[],
        Kind::Counted,
        "60 % of what is slow is lost, 20 % of all answers and of what is slow comes twice",
    ),
    variant(
        "drift",
        &[Fault::Clock, Fault::Delay],
        &[("drift", "1000ppm"), ("step", "1ms")],
        Kind::Counted,
        "clocks drift by up to 1000 ppm, processes wake up to 1 ms late",
    ),
    variant("grid", &[], &[], Kind::Grid, "rows of a grid are written, one of each row is read"),
    variant(
        "kept",
        &[Fault::Dup],
        &[("restarts", "1"), ("durable", "1"), ("gone", "25")],
        Kind::Counted,
        "who crashes comes back, again and again, with what it kept, but for one in four; 20 % of answers and of what is slow comes twice",
    ),
    variant(
        "lost",
        &[],
        &[("restarts", "2"), ("gone", "25")],
        Kind::Counted,
        "who crashes comes back with nothing, but for one in four",
    ),
    variant(
        "learn",
        &[],
        &[("learn", "50")],
        Kind::Learnt,
        "the round is learnt, from a fiftieth of the truth (not omega-stable)",
    ),
    variant("fewer", &[], &[], Kind::Fewer, "one fewer may fail than could, as in 7/2 (from 5 processes on)"),
];

impl Variant {
    /// The variants of these names, all if one of them is `all`; or the nearest names.
    pub fn find(names: &[String]) -> Result<Vec<&'static Self>, Error> {
        if names.iter().any(|name| name == "all") {
            return Ok(VARIANTS.iter().collect());
        }
        let find = |name: &String| {
            let found = VARIANTS.iter().find(|variant| variant.name == name);
            let known = VARIANTS.iter().map(|variant| variant.name).chain(["all"]);
            found.ok_or_else(|| Error::unknown("variant", name, known))
        };
        names.iter().map(find).collect()
    }

    /// Why it is nothing to an election among so many processes, if it is not.
    pub(super) fn leaves_out(&self, election: &str, nodes: usize) -> Option<&'static str> {
        match self.kind {
            Kind::Learnt if election == "omega-stable" => Some("it must know the round"),
            Kind::Fewer if nodes < 5 => Some("it takes 5 processes"),
            Kind::Counted | Kind::Fewer | Kind::Grid | Kind::Learnt => None,
        }
    }

    /// The row tried in it, with how many processes and how many that may fail; `None` if it means
    /// nothing to this election.
    pub(super) fn line(
        &self,
        election: &str,
        nodes: usize,
        (world, horizon): (&'static Named, RealTime),
    ) -> Option<Line> {
        if self.leaves_out(election, nodes).is_some() {
            return None;
        }
        let most = nodes.saturating_sub(1) / 2;
        let mut line = Line {
            nodes,
            may_fail: most.to_string(),
            trial: Trial { setup: self.setup(nodes, (world, horizon)), mutant: None, property: None },
        };
        match self.kind {
            Kind::Counted | Kind::Learnt => {}
            Kind::Fewer => {
                line.may_fail = (most - 1).to_string();
                line.trial.setup.sets.push(("f".to_owned(), line.may_fail.clone()));
            }
            Kind::Grid => {
                let rows = nodes.isqrt().max(2);
                let columns = nodes.div_ceil(rows);
                line.nodes = rows * columns;
                line.may_fail = format!("{rows}x{columns}");
                line.trial.setup.nodes = line.nodes;
                line.trial.setup.quorums = format!("grid:{rows}x{columns}");
            }
        }
        Some(line)
    }

    fn setup(&self, nodes: usize, (world, horizon): (&'static Named, RealTime)) -> Setup {
        let own = |key: &str| self.sets.iter().any(|(name, _)| *name == key);
        let sets = PLAIN.iter().filter(|(key, _)| !own(key)).chain(self.sets);
        Setup {
            nodes,
            quorums: "majority".to_owned(),
            faults: self.faults.iter().copied().fold(Faults::NONE.with(Fault::Crash), Faults::with),
            sets: sets.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            horizon: Some(horizon),
            world: Some(world),
        }
    }
}

/// The content of a row of the table.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// How many processes.
    pub(super) nodes: usize,
    /// How many of them may fail, or in which grid they stand.
    pub(super) may_fail: String,
    /// The run.
    pub(super) trial: Trial,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(variant: &str, election: &str, nodes: usize) -> Option<(usize, String)> {
        let variant = Variant::find(&[variant.to_owned()]).unwrap()[0];
        let at = (Named::find("moving-set").unwrap(), RealTime(1));
        variant.line(election, nodes, at).map(|line| (line.nodes, line.may_fail))
    }

    #[test]
    fn every_variant_has_as_many_processes_as_were_asked_for_but_a_grid_is_filled_up() {
        let lines = [3, 5, 7, 9].map(|nodes| line("grid", "omega", nodes).unwrap());
        assert_eq!(lines.map(|(nodes, _)| nodes), [4, 6, 8, 9]);
        assert_eq!(line("grid", "omega", 7), Some((8, "2x4".to_owned())));
        assert_eq!(line("plain", "omega", 7), Some((7, "3".to_owned())));
        assert_eq!(line("fewer", "omega", 7), Some((7, "2".to_owned())));
    }

    #[test]
    fn what_is_nothing_to_an_election_is_left_out() {
        assert_eq!(line("fewer", "omega", 3), None);
        assert_eq!(line("learn", "omega-stable", 3), None);
        assert!(line("learn", "omega-lean", 3).is_some());
    }

    #[test]
    fn an_unknown_variant_is_answered_with_the_nearest_and_all_means_all() {
        let error = Variant::find(&["los".to_owned()]).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(error, Err("there is no variant 'los'; did you mean loss or lost?".to_owned()));
        assert_eq!(Variant::find(&["all".to_owned()]).unwrap().len(), VARIANTS.len());
    }
}
