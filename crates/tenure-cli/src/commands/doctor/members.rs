//! The members: whether datagrams reach them and come back, and whether the lease leaves room for
//! that.
//!
//! Tried with the library itself, as an observer that joins nothing: a session with a member is a
//! datagram there and one back under the cluster's key, which is all that a lease needs.

use std::time::Duration;

use tenure::{CharterStatus, ClockBound, Config, Key, Node, NotReady, Role, Status};

use super::clocks::Second;
use super::finding::Finding;
use crate::clock::clock;
use crate::output::readable;

/// How long members have to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long after the charter the names of all its members may come.
const NAMES: Duration = Duration::from_millis(500);

/// A group that is asked about so that every member has something to answer.
const PROBE: &str = "doctor";

/// How often to look.
const LOOK: Duration = Duration::from_millis(5);

/// A member that was greeted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Greeted {
    /// Its name.
    pub(super) name: String,
    /// Where.
    pub(super) address: String,
    /// How long it took until there was a session; `None` if there was none in time.
    pub(super) took: Option<Duration>,
}

/// The result of greeting all members.
#[derive(Clone, Debug, Default)]
pub(super) struct Greeting {
    /// The members of the newest epoch, or of the configuration if no epoch was learnt.
    pub(super) members: Vec<Greeted>,
    /// The charter that they go by.
    pub(super) charter: Option<CharterStatus>,
    /// Those that the file names and that are no members any more.
    pub(super) former: Vec<String>,
    /// Members that the file does not name.
    pub(super) unnamed: Vec<String>,
}

/// Whether the members may be greeted with this configuration's key, and if not, why.
pub(super) fn may_greet(config: &Config, anyway: bool) -> Result<(), Finding> {
    const CHECK: &str = "udp";
    if config.members.is_empty() {
        let advice = "write [[cluster.members]] with name and address";
        return Err(Finding::warn(CHECK, "the configuration names no members to greet", advice));
    }
    match &config.key {
        Key::Scoped(key) if !anyway && key.names().prefix().is_none() => Err(Finding::warn(
            CHECK,
            format!(
                "not tried: the key is {}'s, and a second process under that name would disturb the first",
                key.names()
            ),
            format!("stop {} and run `tenure doctor --greet`, or run it on a member", key.names()),
        )),
        Key::Cluster(_) if config.cluster.is_none() => Err(Finding::warn(
            CHECK,
            "not tried: the configuration does not say which cluster this is",
            "write cluster_id, as `tenure init` did for the others",
        )),
        _ => Ok(()),
    }
}

/// Greets all members and waits until all have answered, for a while.
pub(super) async fn greet(config: &Config) -> Result<Greeting, Finding> {
    let mut observer = config.clone();
    observer.role = Role::Observer;
    let name = format!("doctor-{}", std::process::id());
    match &observer.key {
        Key::Cluster(_) => observer.name = name,
        Key::Scoped(key) => observer.name = key.names().fit(&name),
    }
    observer.listen = Vec::new();
    observer.advertise = None;
    observer.groups = None;
    (observer.store, observer.memory, observer.trace) = (None, None, None);
    let start = clock();
    let node = Node::start(observer).await.map_err(|error| {
        Finding::bad("udp", format!("no node can be started here: {error}"), "mend that first")
    })?;
    // Makes the node speak to every member of the newest epoch, those that the file lacks included.
    let _watch = node.observe(PROBE).await.ok();
    let mut greeting = Greeting::default();
    for peer in &config.members {
        let (name, address) = (peer.name.clone(), peer.address.clone());
        greeting.members.push(Greeted { name, address, took: None });
    }
    let mut since = None;
    while clock() - start < PATIENCE {
        let status = node.status().await.map_err(|why| {
            let advice = "change the configuration, or `tenure members set` what the cluster goes by";
            Finding::bad("udp", format!("a node by this configuration stops: {why}"), advice)
        })?;
        if let Some(refused) = refused(&status) {
            node.shutdown().await;
            return Err(refused);
        }
        greeting.note(&status, clock() - start);
        let known = *since.get_or_insert_with(clock);
        if greeting.charter.is_none() {
            since = None;
        } else if clock() - known >= NAMES && greeting.members.iter().all(|member| member.took.is_some()) {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    node.shutdown().await;
    Ok(greeting)
}

/// Whether the members say that the key is not good any more.
fn refused(status: &Status) -> Option<Finding> {
    let said = |why: &NotReady| match why {
        NotReady::KeyRefused { why } => Some(*why),
        _ => None,
    };
    let why = status.not_ready.iter().find_map(said)?;
    let advice = "ask for a new key: `tenure key derive` on a member makes one";
    Some(Finding::bad("udp", format!("the members refuse the key of this configuration: it {why}"), advice))
}

impl Greeting {
    fn note(&mut self, status: &Status, passed: Duration) {
        if let (None, Some(charter)) = (&self.charter, &status.charter) {
            self.charter = Some(charter.clone());
            // Now it is known who the members are: the file may be older.
            let is_member = |member: &Greeted| status.members.iter().any(|name| name.as_str() == member.name);
            let (members, former): (Vec<_>, Vec<_>) = self.members.drain(..).partition(is_member);
            self.former = former.into_iter().map(|member| member.name).collect();
            self.members = members;
        }
        for peer in status.peers_known.iter().filter(|peer| peer.is_member || self.charter.is_none()) {
            let name = peer.name.as_str();
            let known = self.members.iter_mut().find(|member| member.name == name);
            let took = peer.has_session.then_some(passed);
            match known {
                Some(member) => member.took = member.took.or(took),
                None if peer.is_member => {
                    self.unnamed.push(name.to_owned());
                    let address = peer.address.clone().unwrap_or_default();
                    self.members.push(Greeted { name: name.to_owned(), address, took });
                }
                None => {}
            }
        }
    }

    /// The slowest answer.
    pub(super) fn slowest(&self) -> Option<Duration> {
        self.members.iter().filter_map(|member| member.took).max()
    }
}

/// Whether the file names the members that there are.
pub(super) fn named(greeting: &Greeting) -> Option<Finding> {
    let Greeting { former, unnamed, .. } = greeting;
    if former.is_empty() && unnamed.is_empty() {
        return None;
    }
    let part =
        |names: &[String], what: &str| (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")));
    let parts = [part(former, "names former members:"), part(unnamed, "lacks members:")];
    let says = parts.into_iter().flatten().collect::<Vec<_>>().join("; it ");
    let advice = "bring [[cluster.members]] up to date by `tenure members list`: if all that it names go, nobody is found";
    Some(Finding::warn("members", format!("the configuration {says}"), advice))
}

/// Whether datagrams go both ways. `answering` are members whose daemons were heard over HTTP.
pub(super) fn udp(greeting: &Greeting, answering: &[String]) -> Finding {
    const CHECK: &str = "udp";
    let (all, heard) =
        (greeting.members.len(), greeting.members.iter().filter(|member| member.took.is_some()).count());
    let silent: Vec<&Greeted> = greeting.members.iter().filter(|member| member.took.is_none()).collect();
    if silent.is_empty() {
        let slowest = readable(greeting.slowest().unwrap_or_default());
        return Finding::ok(CHECK, format!("{heard} of {all} members answer, the slowest within {slowest}"));
    }
    let names: Vec<String> =
        silent.iter().map(|member| format!("{} ({})", member.name, member.address)).collect();
    let says = format!("{heard} of {all} members answer; nothing comes back from {}", names.join(", "));
    let runs = silent.iter().find(|member| answering.contains(&member.name));
    let advice = match runs {
        Some(member) => format!(
            "{} runs, for it answers over HTTP: open its UDP port both ways ({}), and see that it has the same key",
            member.name, member.address
        ),
        None => "see whether they run, whether UDP is open both ways, and whether they have the same key (`tenure key show`)".to_owned(),
    };
    Finding::bad(CHECK, says, advice)
}

/// Whether the lease is long enough for this network and this machine.
pub(super) fn lease(
    lease: Duration,
    bound: Option<ClockBound>,
    trip: Option<Duration>,
    second: Second,
) -> Finding {
    const CHECK: &str = "lease";
    let Some(trip) = trip else {
        return Finding::warn(
            CHECK,
            format!("{}, and no round trip could be measured", readable(lease)),
            "let the members answer first",
        );
    };
    let usable = match bound {
        Some(ClockBound::Drift { ppm }) => lease.mul_f64(1.0 - f64::from(ppm) / 1e6),
        _ => lease,
    };
    let (needed, room) = (trip * 3 + second.hole, usable / 2);
    let found = format!(
        "{}: from the first try to renew to its end there are {}; three round trips of {} and the longest wait for a processor take {}",
        readable(lease),
        readable(room),
        readable(trip),
        readable(needed)
    );
    let longer = readable(lease.mul_f64((needed.as_secs_f64() * 2.0 / room.as_secs_f64()).max(1.0)));
    if needed >= room {
        return Finding::bad(
            CHECK,
            found,
            format!("a leader would lose it now and then: make it {longer} or more"),
        );
    }
    if needed * 2 >= room {
        return Finding::warn(CHECK, found, format!("there is little to spare: {longer} would be safer"));
    }
    Finding::ok(CHECK, found)
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    fn greeting(took: [Option<u64>; 3]) -> Greeting {
        let member = |(index, took): (usize, Option<u64>)| Greeted {
            name: format!("n{}", index + 1),
            address: format!("10.0.0.{}:7400", index + 1),
            took: took.map(Duration::from_millis),
        };
        Greeting { members: took.into_iter().enumerate().map(member).collect(), ..Greeting::default() }
    }

    #[test]
    fn members_that_do_not_answer_are_named() {
        assert_eq!(udp(&greeting([Some(1), Some(2), Some(9)]), &[]).state, State::Ok);
        let finding = udp(&greeting([Some(1), None, None]), &[]);
        assert_eq!(finding.state, State::Bad);
        assert!(finding.says.contains("n2 (10.0.0.2:7400), n3 (10.0.0.3:7400)"), "{}", finding.says);
    }

    #[test]
    fn a_file_that_names_former_members_is_told() {
        let mut told = greeting([Some(1), Some(2), Some(9)]);
        assert!(named(&told).is_none());
        (told.former, told.unnamed) = (vec!["n0".to_owned()], vec!["n4".to_owned()]);
        let finding = named(&told).unwrap();
        assert_eq!(finding.state, State::Warn);
        assert!(finding.says.ends_with("names former members: n0; it lacks members: n4"), "{}", finding.says);
    }

    #[test]
    fn a_member_that_answers_over_http_alone_needs_its_port_opened() {
        let finding = udp(&greeting([Some(1), None, Some(1)]), &["n2".to_owned()]);
        let advice = finding.advice.unwrap();
        assert!(advice.contains("n2 runs") && advice.contains("open its UDP port"), "{advice}");
    }

    #[test]
    fn a_lease_must_outlast_round_trips_and_holes() {
        let second =
            |hole| Second { against_counter: 0.0, against_calendar: 0.0, hole: Duration::from_millis(hole) };
        let bound = Some(ClockBound::Drift { ppm: 100_000 });
        let judge = |millis, trip, hole| {
            lease(Duration::from_millis(millis), bound, Some(Duration::from_millis(trip)), second(hole)).state
        };
        assert_eq!(judge(2000, 5, 20), State::Ok);
        assert_eq!(judge(2000, 100, 200), State::Warn, "500 of 900 ms");
        assert_eq!(judge(2000, 5, 1000), State::Bad);
        assert_eq!(lease(Duration::from_secs(2), bound, None, second(1)).state, State::Warn);
    }
}
