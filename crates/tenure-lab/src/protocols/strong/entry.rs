//! Nerio in the catalogue: the sound machine, or one of its mutants.

use crate::catalogue::{About, Entry, MutantAbout};
use crate::explore::{self, Checked, ScopeAbout, Wanted};
use crate::protocols::strong::explore::{NerioWalk, scopes};
use crate::protocols::strong::mutants::{self, Broken, Mutant};
use crate::protocols::strong::subject::{Model, Strong};
use crate::subject::Order;
use crate::world::Flaws;

/// OQwBD: clocks with bounded drift.
pub(crate) const NERIO_DRIFT: Nerio = Nerio {
    about: About {
        name: "nerio-drift",
        model: "quorum of grantors, clocks with bounded drift, any message delay and loss, crash and restart",
        promises: "at most one leader at any instant; a leader in the end, and a stable one",
        source: "van Renesse, Schneider, Gehrke: Nerio, section 3 (OQwBD)",
    },
    model: Model::Drift,
};

/// OQwBS: clocks with bounded skew.
pub(crate) const NERIO_SKEW: Nerio = Nerio {
    about: About {
        name: "nerio-skew",
        model: "quorum of grantors, clocks synchronised to within a bound, any message delay and loss, crash and restart",
        promises: "as nerio-drift; and a request that was long on its way blocks nobody for long",
        source: "van Renesse, Schneider, Gehrke: Nerio, section 4 (OQwBS)",
    },
    model: Model::Skew,
};

/// Section 10.6, and recovery from lost disks.
pub(crate) const NERIO_WEDGE: Nerio = Nerio {
    about: About {
        name: "nerio-wedge",
        model: "as nerio-drift; members change by ending an epoch, or are fixed and lost disks recover",
        promises: "as nerio-drift, over epochs with any members; without a leader between two epochs",
        source: "van Renesse, Schneider, Gehrke: Nerio, section 10.6",
    },
    model: Model::Wedge,
};

/// Nerio in one of its models.
pub(crate) struct Nerio {
    about: About,
    model: Model,
}

impl Entry for Nerio {
    type Subject = Strong<Broken>;

    fn about(&self) -> About {
        self.about
    }

    fn sound(&self) -> Self::Subject {
        Strong { rules: Broken::Nothing, flaws: Flaws::NONE, order: Order::Sound, model: self.model }
    }

    fn mutants(&self) -> Vec<(MutantAbout, Self::Subject)> {
        let ready = |mutant: &Mutant| {
            (MutantAbout { name: mutant.name, says: mutant.says }, mutant.subject(self.model))
        };
        mutants_of(self.model).map(ready).collect()
    }

    fn scopes(&self) -> Vec<ScopeAbout> {
        let scopes = scopes(&self.sound());
        scopes.iter().map(|scope| ScopeAbout { name: scope.name, says: scope.says }).collect()
    }

    fn check(
        &self,
        subject: Self::Subject,
        scope: &str,
        named: (&str, Option<&str>),
        wanted: &Wanted,
        report: &mut explore::Report<'_>,
    ) -> Result<Checked, String> {
        if subject.flaws != Flaws::NONE || subject.order != Order::Sound {
            return Err("the explorer walks the machine, and this mutant is a flaw of its driver".to_owned());
        }
        let found = scopes(&subject).into_iter().find(|found| found.name == scope);
        let scope = found.ok_or("there is no such scope")?;
        let walk = NerioWalk { members: scope.members, subject };
        explore::check(walk, scope, wanted, named, report)
    }
}

/// The mutants of a model. A mutant that is wrong on drifting clocks anyway need not be tried once
/// more where epochs are ended.
fn mutants_of(model: Model) -> impl Iterator<Item = &'static Mutant> {
    let wedge = (model == Model::Wedge).then(mutants::wedge);
    let gapless = (model != Model::Wedge).then(mutants::strong);
    let all = wedge.into_iter().flatten().chain(gapless.into_iter().flatten());
    all.filter(move |mutant| mutant.is_wrong_on(model == Model::Skew))
}
