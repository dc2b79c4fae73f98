//! The common options of `run`, `sweep` and `mutants`.

use clap::Args;
use tenure_lab::catalogue::{Experiment, Trial};
use tenure_lab::random::Random;
use tenure_lab::simulate::{FAULTS, Fault, Faults, Named, Setup, WORLDS};
use tenure_lab::subject::constants::parse_time;
use tenure_lab::world::RealTime;

use crate::failure::{Failure, messages};
use crate::output::quoted;

/// How many members there are if nobody says so.
pub(super) const NODES: usize = 5;

/// The world in which a protocol is tried.
#[derive(Args, Clone, Debug)]
pub(super) struct Common {
    /// How many members there are: 1 to 64, called n0, n1, ... Processes that are no members follow
    /// them (outsiders, observers: see --set). Rings may have hundreds of millions
    #[arg(long, value_name = "N", default_value_t = NODES, value_parser = nodes, allow_negative_numbers = true)]
    pub(super) nodes: usize,
    /// The seed that decides everything else; the first one, where there are many [default: 1 for
    /// run, else 0]
    #[arg(long, value_name = "S", value_parser = seed, allow_negative_numbers = true)]
    pub(super) seed: Option<u64>,
    /// The faults that may occur: none, all, or some of
    /// clock,delay,loss,dup,reorder,partition,crash,amnesia,pause,disk,members, forgery. Beyond
    /// that, clock-beyond-rho breaks the assumption itself (alone it comes with all the others)
    /// [default: all; for run, each kind with one chance in two, drawn from the seed]
    #[arg(long, value_name = "LIST", value_parser = Faults::parse)]
    pub(super) faults: Option<Faults>,
    /// A world by name: calm (nothing goes wrong) or chaos (everything may), both instead of
    /// --faults; or one of moving-set, blocks, f-source, partition, graph, star, in which an
    /// adversary decides the fate of every message (`tenure lab list NAME` says how, and which of
    /// them are for a protocol)
    #[arg(long, value_name = "WORLD", value_parser = World::parse)]
    pub(super) world: Option<World>,
    /// Which sets of processes can elect: majority, weights:3,1,1, grid:ROWSxCOLUMNS, or
    /// list:01,12,02 (sets of processes by number)
    #[arg(long, value_name = "Q", default_value = "majority")]
    pub(super) quorums: String,
    /// Fix a constant that the seed would draw, such as lease=200ms; `tenure lab list NAME` knows
    /// them all
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub(super) sets: Vec<(String, String)>,
    /// How long each run lasts, such as 10s [default: as long as its faults, and then 20 longest
    /// leases]
    #[arg(long, value_name = "D", value_parser = length)]
    pub(super) horizon: Option<RealTime>,
    /// Break one rule on purpose; `tenure lab list NAME` knows which
    #[arg(long, value_name = "M")]
    pub(super) mutant: Option<String>,
    /// Look for a violation of this property alone
    #[arg(long, value_name = "P")]
    pub(super) property: Option<String>,
}

/// Worlds that have a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum World {
    /// Nothing goes wrong.
    Calm,
    /// Everything may go wrong.
    Chaos,
    /// An adversary decides the fate of every message.
    Named(&'static Named),
}

impl World {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "calm" => Ok(Self::Calm),
            "chaos" => Ok(Self::Chaos),
            name => Named::find(name).map(Self::Named).map_err(|_| {
                let named: Vec<&str> = WORLDS.iter().map(|world| world.name).collect();
                format!("there is no world '{name}': write calm, chaos, {}", named.join(", "))
            }),
        }
    }
}

impl Common {
    /// The same in the protocol's own world, if nothing was said about the world.
    pub(super) fn at_home(&self, experiment: &dyn Experiment) -> Self {
        let mut common = self.clone();
        if let (None, None, Some((world, faults))) = (self.world, self.faults, experiment.home()) {
            (common.world, common.faults) = (Some(World::Named(world)), Some(faults));
        }
        common
    }

    /// The request, or `default`.
    pub(super) fn faults_or(&self, default: Faults) -> Faults {
        match self.world {
            Some(World::Calm) => Faults::NONE,
            Some(World::Chaos) => Faults::all(),
            Some(World::Named(world)) => {
                let usual = if world.stormy { Faults::all() } else { Faults::NONE.with(Fault::Crash) };
                self.faults.unwrap_or(usual)
            }
            None => self.faults.unwrap_or(default),
        }
    }

    fn named_world(&self) -> Option<&'static Named> {
        match self.world? {
            World::Named(world) => Some(world),
            World::Calm | World::Chaos => None,
        }
    }

    /// The trial that the laboratory is asked for.
    pub(super) fn trial(&self, faults: Faults) -> Result<Trial, Failure> {
        if self.nodes > 64 {
            return Err(messages::lab_too_many_nodes(1));
        }
        if matches!(self.world, Some(World::Calm | World::Chaos)) && self.faults.is_some() {
            return Err(messages::lab_world_and_faults());
        }
        let setup = Setup {
            nodes: self.nodes,
            quorums: self.quorums.clone(),
            faults,
            sets: self.sets.clone(),
            horizon: self.horizon,
            world: self.named_world(),
        };
        setup
            .parse_quorums()
            .map_err(|error| messages::flag_refused(format!("--quorums {}", self.quorums), error))?;
        Ok(Trial { setup, mutant: self.mutant.clone(), property: self.property.clone() })
    }

    /// The command that runs one seed of this.
    pub(super) fn command(&self, protocol: &str, seed: u64, faults: Faults) -> String {
        let mut words = format!("tenure lab run {protocol} --seed {seed} --faults {}", faults_text(faults));
        let mut flag = |name: &str, value: &str| words += &format!(" --{name} {}", quoted(value));
        if let Some(world) = self.named_world() {
            flag("world", world.name);
        }
        if self.nodes != NODES {
            flag("nodes", &self.nodes.to_string());
        }
        if self.quorums != "majority" {
            flag("quorums", &self.quorums);
        }
        for (key, value) in &self.sets {
            flag("set", &format!("{key}={value}"));
        }
        if let Some(horizon) = self.horizon {
            flag("horizon", &horizon.to_string());
        }
        if let Some(mutant) = &self.mutant {
            flag("mutant", mutant);
        }
        if let Some(property) = &self.property {
            flag("property", property);
        }
        words
    }
}

/// The faults of a run for which none were named: of the kinds in `all`, in the order of the list,
/// each is in if the seed's stream `faults` draws it with one chance in two, and the protocol must
/// bear it.
pub(super) fn drawn_faults(seed: u64, bears: Faults) -> Faults {
    let mut random = Random::stream(seed, "faults");
    let kinds = FAULTS.iter().map(|(fault, _)| *fault).filter(|fault| Faults::all().has(*fault));
    let drawn = kinds.filter(|_| random.percent(50));
    drawn.filter(|fault| bears.has(*fault)).fold(Faults::NONE, Faults::with)
}

/// Faults as `--faults` takes them.
pub(super) fn faults_text(faults: Faults) -> String {
    if faults == Faults::NONE {
        return "none".to_owned();
    }
    if faults == Faults::all() {
        return "all".to_owned();
    }
    if faults == Faults::all().with(Fault::ClockBeyondRho) {
        return "clock-beyond-rho".to_owned();
    }
    let names: Vec<&str> =
        FAULTS.iter().filter(|(fault, _)| faults.has(*fault)).map(|(_, name)| *name).collect();
    names.join(",")
}

fn nodes(text: &str) -> Result<usize, String> {
    let nodes = text.parse().ok().filter(|nodes| (1..=1 << 30).contains(nodes));
    nodes.ok_or_else(|| "there must be 1 to 64 nodes, on a ring up to 2^30".to_owned())
}

/// A seed.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write a whole number from 0".to_owned())
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, for example lease=200ms")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// A length of time.
pub(super) fn length(text: &str) -> Result<RealTime, String> {
    let length = parse_time(text).filter(|length| length.0 > 0);
    length.ok_or_else(|| "write a length of time, for example 10s or 2500ms".to_owned())
}

/// A number of seeds.
pub(super) fn at_least_one(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number >= 1);
    number.ok_or_else(|| "write a whole number from 1".to_owned())
}

/// A number of threads.
pub(super) fn threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=1024).contains(number));
    number.ok_or_else(|| "write a whole number from 1 to 1024".to_owned())
}

/// As many threads as there are cores.
pub(super) fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_back_as_they_are_written() {
        for seed in 0..50 {
            let faults = drawn_faults(seed, Faults::all());
            assert_eq!(Faults::parse(&faults_text(faults)), Ok(faults), "seed {seed}");
        }
        for text in ["none", "all", "clock-beyond-rho", "clock,crash"] {
            assert_eq!(Faults::parse(text).map(faults_text), Ok(text.to_owned()));
        }
    }

    #[test]
    fn every_kind_of_fault_is_drawn_by_about_half_of_the_seeds() {
        for (fault, name) in FAULTS.iter().filter(|(fault, _)| *fault != Fault::ClockBeyondRho) {
            let seeds = (0..1000).filter(|seed| drawn_faults(*seed, Faults::all()).has(*fault)).count();
            assert!((430..570).contains(&seeds), "{name}: {seeds} of 1000");
        }
        assert!((0..1000).all(|seed| !drawn_faults(seed, Faults::all()).has(Fault::ClockBeyondRho)));
    }
}
