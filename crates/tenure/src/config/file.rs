//! The configuration as a TOML file. Unknown keys are errors: a misspelt one would otherwise
//! silently mean the default.
//!
//! ```toml
//! name = "a"
//! listen = ["10.0.0.1:7400"]
//! store = "/var/lib/tenure"
//! key_file = "/etc/tenure/key"
//!
//! [cluster]                  # founds the cluster; afterwards the epoch in the store rules
//! drift_ppm = 1000           # every host: chrony with maxslewrate 500
//! [[cluster.members]]
//! name = "a"
//! address = "10.0.0.1:7400"
//!
//! [lease]
//! length = "1s"
//!
//! [election]                 # whose turn it is when nobody leads; no safety rests on it
//! weak = "ring"              # or "omega", or "random"
//! detector = "phi"           # with "ring" only; "heartbeat" unless it is written
//! ```

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::complaint::explain_toml;
use super::secrets::Secrets;
use super::{
    AdaptiveLease, ClockBound, Config, ConfigError, Key, Limits, Peer, Role, Watching, WeakElection,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a configuration")]
struct File {
    name: String,
    #[serde(default)]
    role: RoleName,
    #[serde(default, deserialize_with = "one_or_many")]
    listen: Vec<SocketAddr>,
    advertise: Option<String>,
    store: Option<PathBuf>,
    memory: Option<PathBuf>,
    key: Option<String>,
    key_file: Option<PathBuf>,
    #[serde(default)]
    old_key_files: Vec<PathBuf>,
    cluster_id: Option<String>,
    lineage: Option<String>,
    groups: Option<Vec<String>>,
    trace: Option<PathBuf>,
    #[serde(default)]
    cluster: ClusterTable,
    #[serde(default)]
    lease: LeaseTable,
    #[serde(default)]
    election: ElectionTable,
    #[serde(default)]
    limits: LimitsTable,
    /// For the command `tenure`, which reads these two itself.
    #[serde(rename = "daemon")]
    _daemon: Option<toml::Table>,
    #[serde(rename = "client")]
    _client: Option<toml::Table>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RoleName {
    #[default]
    Member,
    Witness,
    Candidate,
    Observer,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table [cluster]")]
struct ClusterTable {
    members: Vec<PeerTable>,
    quorums: Option<String>,
    clock: ClockName,
    drift_ppm: Option<u32>,
    skew: Option<Length>,
    longest_lease: Option<Length>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { name = \"a\", address = \"10.0.0.1:7400\" }")]
struct PeerTable {
    name: String,
    address: String,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ClockName {
    #[default]
    Drift,
    Skew,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table [lease]")]
struct LeaseTable {
    length: Option<Length>,
    retry: Option<Length>,
    window: Option<Length>,
    hold: Option<Length>,
    longest_pledge: Option<Length>,
    adapt: Option<AdaptTable>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table [limits]")]
struct LimitsTable {
    groups_per_key: Option<usize>,
    watches_per_key: Option<usize>,
    forget_after: Option<Length>,
}

impl LimitsTable {
    fn apply(self, limits: &mut Limits) {
        limits.groups_per_key = self.groups_per_key.unwrap_or(limits.groups_per_key);
        limits.watches_per_key = self.watches_per_key.unwrap_or(limits.watches_per_key);
        limits.forget_after = self.forget_after.map_or(limits.forget_after, |Length(length)| length);
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { shortest = \"100ms\", interval = \"50ms\" }")]
struct AdaptTable {
    shortest: Length,
    interval: Length,
    #[serde(default = "two")]
    retries: u32,
}

fn two() -> u32 {
    2
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table [election]")]
struct ElectionTable {
    weak: WeakName,
    detector: Option<DetectorName>,
    phi: Option<u32>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WeakName {
    #[default]
    Ring,
    Omega,
    Random,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DetectorName {
    Heartbeat,
    Phi,
}

/// A length of time, as people write it.
#[derive(Clone, Copy)]
struct Length(Duration);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_length(&text).map(Self).ok_or_else(|| {
            D::Error::custom(format!(
                "'{text}' is no length of time: write a number and ns, us, ms, s or m, as in \"250ms\""
            ))
        })
    }
}

/// A length of time as people write it: `250ms`, `1.5s`, `2m`.
pub fn parse_length(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let nanos: u64 = match unit.trim() {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        _ => return None,
    };
    let (whole, rest) = number.split_once('.').unwrap_or((number, ""));
    let mut total = whole.parse::<u64>().ok()?.checked_mul(nanos)?;
    if !rest.is_empty() {
        let scale = 10u64.checked_pow(u32::try_from(rest.len()).ok()?)?;
        let part = u128::from(rest.parse::<u64>().ok()?) * u128::from(nanos) / u128::from(scale);
        total = total.checked_add(u64::try_from(part).ok()?)?;
    }
    Some(Duration::from_nanos(total))
}

fn parse_lineage(text: &str) -> Result<u128, ConfigError> {
    let plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(text, 16).ok().filter(|_| plain).ok_or_else(|| ConfigError::Invalid {
        key: "lineage",
        why: format!("'{text}' is none: it has 32 hexadecimal digits; `tenure init` writes it, `tenure members list` shows it"),
    })
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SocketAddr>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected an address, or a list of addresses in brackets")]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    let texts = match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(text) => vec![text],
        OneOrMany::Many(texts) => texts,
    };
    let address = |text: &String| {
        text.parse().map_err(|_| {
            D::Error::custom(format!("'{text}' is no address to listen on: write digits and a port, as in 0.0.0.0:7400 or [::]:7400"))
        })
    };
    texts.iter().map(address).collect()
}

impl Config {
    /// Reads the settings from a TOML file. Relative paths in it start from its folder.
    ///
    /// # Errors
    /// If the file or a key file cannot be read, or a setting is unknown or malformed.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        Self::from_toml(&text, path)
    }

    /// Reads the settings from a text in TOML.
    ///
    /// `path` names it in errors; relative paths start from its folder.
    ///
    /// # Errors
    /// As [`from_path`](Self::from_path).
    pub fn from_toml(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let file = toml::from_str(text).map_err(|error| malformed(path, &error, text))?;
        Self::from_file(file, path)
    }

    /// Reads the settings from a table: a file with some values replaced.
    ///
    /// # Errors
    /// As [`from_path`](Self::from_path).
    pub fn from_table(table: toml::Table, path: &Path) -> Result<Self, ConfigError> {
        let file = table.try_into().map_err(|error| malformed(path, &error, ""))?;
        Self::from_file(file, path)
    }

    fn from_file(file: File, path: &Path) -> Result<Self, ConfigError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let secrets = Secrets::of_config(path);
        let key = read_key(&file, folder, secrets)?;
        let mut config = Self::new(&file.name, key);
        config.old_keys = file
            .old_key_files
            .iter()
            .map(|path| cluster_key(&folder.join(path), secrets))
            .collect::<Result<_, _>>()?;
        config.role = match file.role {
            RoleName::Member => Role::Member,
            RoleName::Witness => Role::Witness,
            RoleName::Candidate => Role::Candidate,
            RoleName::Observer => Role::Observer,
        };
        config.cluster = match &file.cluster_id {
            Some(text) => Some(text.parse().map_err(|error| ConfigError::Name { key: "cluster_id", error })?),
            None => None,
        };
        config.lineage = match &file.lineage {
            Some(text) => Some(parse_lineage(text)?),
            None => None,
        };
        config.listen = file.listen;
        config.advertise = file.advertise;
        config.groups = file.groups;
        [config.store, config.memory, config.trace] =
            [file.store, file.memory, file.trace].map(|path| path.map(|path| folder.join(path)));
        file.cluster.apply(&mut config)?;
        file.lease.apply(&mut config);
        file.election.apply(&mut config)?;
        file.limits.apply(&mut config.limits);
        Ok(config)
    }
}

impl ClusterTable {
    fn apply(self, config: &mut Config) -> Result<(), ConfigError> {
        let peer = |PeerTable { name, address }| Peer { name, address };
        config.members = self.members.into_iter().map(peer).collect();
        if let Some(quorums) = self.quorums {
            config.quorums = quorums;
        }
        if let Some(Length(longest)) = self.longest_lease {
            config.longest_lease = longest;
        }
        config.bound = match (self.clock, self.drift_ppm, self.skew) {
            (ClockName::Drift, ppm, None) => ClockBound::Drift { ppm: ppm.unwrap_or(100_000) },
            (ClockName::Skew, None, Some(Length(bound))) => ClockBound::Skew { bound },
            (ClockName::Skew, None, None) => {
                let why =
                    "clock = \"skew\" needs the bound; write skew = \"10ms\", or what your clocks keep to";
                return Err(ConfigError::Missing { key: "cluster.skew", why });
            }
            (ClockName::Skew, Some(_), _) => {
                let why = "with clock = \"skew\" there is no bound on drift; leave it out".to_owned();
                return Err(ConfigError::Invalid { key: "cluster.drift_ppm", why });
            }
            (ClockName::Drift, _, Some(_)) => {
                let why = "it means something with clock = \"skew\" only; write that too, or leave it out"
                    .to_owned();
                return Err(ConfigError::Invalid { key: "cluster.skew", why });
            }
        };
        if self.clock == ClockName::Skew {
            config.time = crate::Clock::real();
        }
        Ok(())
    }
}

impl LeaseTable {
    fn apply(self, config: &mut Config) {
        let settings = [
            (&mut config.lease, self.length),
            (&mut config.retry, self.retry),
            (&mut config.window, self.window),
            (&mut config.longest_pledge, self.longest_pledge),
        ];
        for (setting, written) in settings {
            if let Some(Length(length)) = written {
                *setting = length;
            }
        }
        config.hold = self.hold.map(|Length(length)| length);
        config.adapt = self.adapt.map(|adapt| AdaptiveLease {
            shortest: adapt.shortest.0,
            interval: adapt.interval.0,
            retries: adapt.retries,
        });
    }
}

impl ElectionTable {
    fn apply(self, config: &mut Config) -> Result<(), ConfigError> {
        let only_with = |key, other| {
            let why = format!("it means something with {other} only; write that too, or leave it out");
            Err(ConfigError::Invalid { key, why })
        };
        config.weak = match (self.weak, self.detector, self.phi) {
            (WeakName::Ring, Some(DetectorName::Phi), threshold) => {
                WeakElection::Ring(Watching::Phi { threshold: threshold.unwrap_or(8) })
            }
            (_, _, Some(_)) => return only_with("election.phi", "weak = \"ring\" and detector = \"phi\""),
            (WeakName::Ring, _, None) => WeakElection::Ring(Watching::Heartbeat),
            (_, Some(_), None) => return only_with("election.detector", "weak = \"ring\""),
            (WeakName::Omega, None, None) => WeakElection::Omega,
            (WeakName::Random, None, None) => WeakElection::Random,
        };
        Ok(())
    }
}

fn read_key(file: &File, folder: &Path, secrets: Secrets) -> Result<Key, ConfigError> {
    let (text, from) = match (&file.key, &file.key_file) {
        (Some(_), Some(_)) => {
            let why = "key and key_file are both given; leave one of them out".to_owned();
            return Err(ConfigError::Invalid { key: "key", why });
        }
        (Some(text), None) => (text.clone(), "key"),
        (None, Some(path)) => (secrets.read("key_file", &folder.join(path))?, "key_file"),
        (None, None) => {
            let why = "every process proves who it is; write key_file, and make a key with `tenure key new`";
            return Err(ConfigError::Missing { key: "key_file", why });
        }
    };
    text.trim()
        .parse()
        .map_err(|error: crate::KeyError| ConfigError::Invalid { key: from, why: error.to_string() })
}

fn cluster_key(path: &Path, secrets: Secrets) -> Result<crate::ClusterKey, ConfigError> {
    let text = secrets.read("old_key_files", path)?;
    let invalid =
        |error: crate::KeyError| ConfigError::Invalid { key: "old_key_files", why: error.to_string() };
    text.trim().parse().map_err(invalid)
}

fn unreadable(path: &Path, error: &std::io::Error) -> ConfigError {
    ConfigError::File { path: path.display().to_string(), why: error.to_string() }
}

fn malformed(path: &Path, error: &toml::de::Error, text: &str) -> ConfigError {
    ConfigError::Toml { path: path.display().to_string(), flaw: explain_toml(error, text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "key = \"KEY\"\n";

    fn parse(text: &str) -> Result<Config, ConfigError> {
        let key = crate::ClusterKey::from_bytes([7; 32]).reveal();
        Config::from_toml(
            &format!("{}{text}", KEY.replace("KEY", &key)),
            Path::new("/etc/tenure/tenure.toml"),
        )
    }

    #[test]
    fn a_file_says_everything_that_a_program_can() {
        let config = parse(
            r#"
            name = "a"
            role = "witness"
            listen = ["127.0.0.1:7", "[::1]:7"]
            advertise = "a.example:7"
            store = "data"
            groups = ["jobs"]
            cluster_id = "000102030405060708090a0b0c0d0e0f"
            [cluster]
            quorums = "weights:1,1"
            drift_ppm = 500
            longest_lease = "3s"
            members = [{ name = "a", address = "10.0.0.1:7" }, { name = "b", address = "b.example:7" }]
            [lease]
            length = "1.5s"
            retry = "20ms"
            hold = "1m"
            adapt = { shortest = "500ms", interval = "250ms" }
            [election]
            detector = "phi"
            phi = 10
            "#,
        )
        .expect("it is whole");
        assert_eq!((config.role, config.listen.len(), config.members.len()), (Role::Witness, 2, 2));
        assert_eq!(config.store.as_deref(), Some(Path::new("/etc/tenure/data")), "relative to the file");
        assert_eq!((config.lease, config.hold), (Duration::from_millis(1500), Some(Duration::from_secs(60))));
        assert_eq!(config.bound, ClockBound::Drift { ppm: 500 });
        assert_eq!(config.weak, WeakElection::Ring(Watching::Phi { threshold: 10 }));
        assert_eq!(config.adapt.map(|adapt| adapt.retries), Some(2));
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_line() {
        let error =
            parse("name = \"a\"\n[lease]\nlenght = \"1s\"\n").expect_err("it is misspelt").to_string();
        assert!(
            error.contains("lenght") && error.contains("line 4") && error.contains("tenure.toml"),
            "{error}"
        );
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        for (text, named) in [
            ("name = \"a\"\n[cluster]\nclock = \"skew\"\n", "cluster.skew"),
            (
                "name = \"a\"\n[cluster]\nclock = \"skew\"\nskew = \"1ms\"\ndrift_ppm = 5\n",
                "cluster.drift_ppm",
            ),
            ("name = \"a\"\n[cluster]\nskew = \"1ms\"\n", "cluster.skew"),
            ("name = \"a\"\n[election]\nphi = 8\n", "election.phi"),
            ("name = \"a\"\n[election]\nweak = \"omega\"\ndetector = \"phi\"\n", "election.detector"),
            ("name = \"a\"\n[election]\nweak = \"random\"\ndetector = \"heartbeat\"\n", "election.detector"),
            ("name = \"a\"\nkey_file = \"k\"\n", "key"),
            ("name = \"a\"\nlisten = \"localhost:7\"\n", "localhost:7"),
            ("name = \"a\"\n[lease]\nlength = \"2 hours\"\n", "2 hours"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn every_weak_election_has_a_name_and_another_name_is_answered_with_those_there_are() {
        for (name, weak) in [
            ("ring", WeakElection::Ring(Watching::Heartbeat)),
            ("omega", WeakElection::Omega),
            ("random", WeakElection::Random),
        ] {
            let config =
                parse(&format!("name = \"a\"\n[election]\nweak = \"{name}\"\n")).expect("it has this name");
            assert_eq!(config.weak, weak);
        }
        let error =
            parse("name = \"a\"\n[election]\nweak = \"omga\"\n").expect_err("it is misspelt").to_string();
        assert!(["omga", "ring", "omega", "random"].iter().all(|name| error.contains(name)), "{error}");
    }

    #[test]
    fn a_file_without_a_key_says_how_to_make_one() {
        let error = Config::from_toml("name = \"a\"\n", Path::new("x.toml")).expect_err("no key").to_string();
        assert!(error.contains("key_file") && error.contains("tenure key"), "{error}");
    }

    #[test]
    fn lengths_of_time_are_read_exactly() {
        assert_eq!(parse_length("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(parse_length("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse_length("7ns"), Some(Duration::from_nanos(7)));
        for text in ["", "5", "s", "1h", "-1s", "1.2.3s", "99999999999999999999s"] {
            assert_eq!(parse_length(text), None, "{text}");
        }
    }
}
