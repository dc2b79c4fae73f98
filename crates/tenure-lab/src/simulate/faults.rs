//! Which kinds of faults a run may have.

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Clocks run at any rate within the drift bound, and change it.
    Clock,
    /// Messages take long, in several manners.
    Delay,
    /// Messages are lost.
    Loss,
    /// Messages come twice.
    Dup,
    /// Messages overtake each other.
    Reorder,
    /// The network falls apart in every shape.
    Partition,
    /// Processes crash, restart, reboot; between two steps, or between two effects of one step,
    /// with any first part of what the disk was given durable.
    Crash,
    /// Disks are lost.
    Amnesia,
    /// Processes and machines stand still for a while.
    Pause,
    /// Disks are slow.
    Disk,
    /// Operators change the members, several at a time and without waiting for each other.
    Members,
    /// Processes say under their own names what others have said, or give back what others asked
    /// for.
    Forgery,
    /// A clock breaks the drift bound. The assumption of every promise; so never part of `all`.
    ClockBeyondRho,
}

/// All kinds, with their names.
pub const FAULTS: [(Fault, &str); 13] = [
    (Fault::Clock, "clock"),
    (Fault::Delay, "delay"),
    (Fault::Loss, "loss"),
    (Fault::Dup, "dup"),
    (Fault::Reorder, "reorder"),
    (Fault::Partition, "partition"),
    (Fault::Crash, "crash"),
    (Fault::Amnesia, "amnesia"),
    (Fault::Pause, "pause"),
    (Fault::Disk, "disk"),
    (Fault::Members, "members"),
    (Fault::Forgery, "forgery"),
    (Fault::ClockBeyondRho, "clock-beyond-rho"),
];

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults(u32);

impl Faults {
    /// No faults.
    pub const NONE: Self = Self(0);

    /// All that a protocol must bear.
    pub fn all() -> Self {
        let within = FAULTS.iter().filter(|(fault, _)| *fault != Fault::ClockBeyondRho);
        within.fold(Self::NONE, |set, (fault, _)| set.with(*fault))
    }

    /// With one kind more.
    #[must_use]
    pub fn with(self, fault: Fault) -> Self {
        Self(self.0 | 1 << fault as u32)
    }

    /// With one kind less.
    #[must_use]
    pub fn without(self, fault: Fault) -> Self {
        Self(self.0 & !(1 << fault as u32))
    }

    /// Whether a kind is in.
    pub fn has(self, fault: Fault) -> bool {
        self.0 >> (fault as u32) & 1 == 1
    }

    /// Reads `none`, `all`, or a list of names. A clock beyond its bound comes with all else,
    /// unless listed with others.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => return Ok(Self::NONE),
            "all" => return Ok(Self::all()),
            "clock-beyond-rho" => return Ok(Self::all().with(Fault::ClockBeyondRho)),
            _ => {}
        }
        let mut set = Self::NONE;
        for name in text.split(',').map(str::trim) {
            let Some((fault, _)) = FAULTS.iter().find(|(_, known)| *known == name) else {
                let known: Vec<&str> = FAULTS.iter().map(|(_, known)| *known).collect();
                return Err(format!(
                    "there is no fault '{name}': write none, all, or some of {}",
                    known.join(",")
                ));
            };
            set = set.with(*fault);
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names_is_a_set_and_an_unknown_name_an_error() {
        let faults = Faults::parse("loss,crash").unwrap();
        assert!(faults.has(Fault::Loss) && faults.has(Fault::Crash) && !faults.has(Fault::Dup));
        assert!(Faults::parse("loss,rain").unwrap_err().contains("'rain'"));
    }

    #[test]
    fn all_faults_keep_to_the_drift_bound() {
        assert!(!Faults::all().has(Fault::ClockBeyondRho));
    }
}
