//! The log in the laboratory: members that keep a few keys in it, driven by an election, and
//! clients that use them.
//!
//! The election is Nerio's or one of the Omegas. Nerio's lease is the log's (terms in ballots,
//! local reads), or it only hints, as an Omega does. In all cases anybody may be told for a while
//! that somebody else should lead, or it itself: hints are advice.

mod client;
mod electing;
mod kv;
mod member;
mod text;

pub use kv::{KeyName, Write};

use tenure_proto::detect::weak::{Choice, Watch};
use tenure_proto::log::{self, Ballot, Rules, Session, Slot, Sound};
use tenure_proto::quorum::{NodeSet, Quorums};
use tenure_proto::strong::{self, Succession};
use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Span};
use tenure_proto::{
    Boot, Elects, GroupId, Incarnation, Input, LocalTime, NodeId, Protocol, Record, eventual,
};

use self::client::{Client, Manner};
use self::electing::{ELECTIONS, GROUP, Setting};
use self::member::Member;
use crate::count::Counts;
use crate::draw::Words;
use crate::property::{Kind, Property};
use crate::protocols::eventual::subject::Eventual;
use crate::protocols::log::judge::{ALL, LogJudge, TIMELY};
use crate::protocols::strong::mutants::Broken;
use crate::protocols::strong::subject::Strong;
use crate::random::Random;
use crate::subject::{Assumption, Constants, Key, LeaderThreads, Rhythm, Role, Shape, Subject, Unit};
use crate::world::{Flaws, MOST_HOSTS, clock::MILLI, node_id};

/// The election's machine, always sound. Its rules have the type of the mutants', because the
/// catalogue has that machine compiled anyway.
type Nerio = strong::Nerio<Broken>;

type Context<'a, R> = tenure_proto::Context<'a, Host<R>>;

/// A process: a member of the log, or a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host<R: Rules>(Party<R>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Party<R: Rules> {
    Member(Box<Member<R>>),
    Client(Box<Client>),
}

/// The configuration, the same on every host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config<R: Rules> {
    log: log::Config<R>,
    election: Setting,
    manner: Manner,
    /// How long a thread may take to look at the state.
    look: LocalSpan,
    /// Whether each member has a client of its own.
    own_clients: bool,
}

/// A message between two hosts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Talk {
    /// Of the log.
    Log(log::Message),
    /// Of the election, if it is Nerio's.
    Strong(strong::Message),
    /// Of the election, if it is an Omega's.
    Omega(eventual::Message),
    /// Somebody tells a member that it should lead, for so long.
    Tempt(LocalSpan),
    /// A client asks.
    Ask(Ask),
    /// It is answered.
    Answer {
        /// The question.
        id: AskId,
        /// The answer.
        reply: Reply,
    },
}

/// Names what a client asked, forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId {
    /// Who.
    pub client: NodeId,
    /// In which life.
    pub life: Incarnation,
    /// The number of the try.
    pub number: u64,
}

/// A client's question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// Names it.
    pub id: AskId,
    /// What.
    pub wish: Wish,
}

/// A client's wish.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wish {
    /// A session.
    Open {
        /// Its own word for it.
        nonce: u128,
    },
    /// To write, and to know what was there before.
    Write {
        /// In which session.
        session: Session,
        /// The sequence number of the write.
        number: u64,
        /// What.
        write: Write,
    },
    /// To read.
    Read {
        /// Which key.
        key: KeyName,
    },
}

/// The answer to a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The session is open.
    Opened(Session),
    /// It is not open any more: what became of the write is unknown.
    Expired,
    /// The value that is there, or was before the write.
    Saw(Option<u64>),
}

/// A user's command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Campaign, or begin to ask.
    Go,
    /// Believe for a while that this one should lead.
    Lie {
        /// Who.
        leader: Option<NodeId>,
        /// For how long.
        lasts: LocalSpan,
    },
    /// If this one leads the log: believe so for a while, whatever the election says, and for the
    /// first part of that time neither reach the other members nor hear of them more than the
    /// answers that are still on their way. Clients come through. Meanwhile another is told that it
    /// should lead.
    Estrange {
        /// The other.
        rival: NodeId,
        /// For how long this one is cut off.
        cut: LocalSpan,
        /// For how long both believe.
        lasts: LocalSpan,
    },
    /// A client does this one thing, and asks this member for it.
    Do {
        /// What.
        what: Deed,
        /// Whom it asks first.
        at: NodeId,
    },
    /// To the election, if it is Nerio's.
    Strong(strong::Command),
    /// To the election, if it is an Omega's.
    Omega(eventual::Command),
}

/// A client's deed when it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// Opens a session.
    Open,
    /// Writes a new value.
    Put(KeyName),
    /// Reads.
    Get(KeyName),
}

/// An event for judges and drawings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Happening {
    /// In the log.
    Log(log::Event),
    /// In the election, if it is Nerio's.
    Strong(Box<strong::Event>),
    /// In the election, if it is an Omega's.
    Omega(eventual::Event),
    /// A member is told who should lead.
    Hinted(Option<NodeId>),
    /// A client asks for a session, by this word.
    Asked(u128),
    /// A client begins an operation.
    Invoked {
        /// Names it.
        id: AskId,
        /// What.
        wish: Wish,
    },
    /// It has its answer.
    Returned {
        /// Names it.
        id: AskId,
        /// The value that it saw.
        saw: Option<u64>,
    },
}

/// A record on a disk or in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kept {
    /// For the log.
    Log(log::Record),
    /// For the election.
    Strong(<Nerio as Protocol>::Record),
}

/// The name of a cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeptKey {
    /// Of the log.
    Log(log::Cell),
    /// Of the election.
    Strong(<<Nerio as Protocol>::Record as Record>::Key),
}

impl Record for Kept {
    type Key = KeptKey;

    fn key(&self) -> KeptKey {
        match self {
            Self::Log(record) => KeptKey::Log(record.key()),
            Self::Strong(record) => KeptKey::Strong(record.key()),
        }
    }

    fn makes_worthless(&self, other: &KeptKey) -> bool {
        match (self, other) {
            (Self::Log(record), KeptKey::Log(cell)) => record.makes_worthless(cell),
            _ => false,
        }
    }
}

impl<R: Rules> Protocol for Host<R> {
    type Config = Config<R>;
    type Command = Command;
    type Message = Talk;
    type Record = Kept;
    type Event = Happening;

    fn start(config: &Config<R>, me: NodeId, boot: Boot<Kept>, cx: &mut Context<'_, R>) -> Self {
        Self(if me.0 < config.manner.members {
            Party::Member(Box::new(Member::start(config, me, boot, cx)))
        } else {
            Party::Client(Box::new(Client::new(config.manner, me, boot.incarnation, None)))
        })
    }

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, R>) {
        match (&mut self.0, input) {
            (Party::Member(member), input) => member.handle(input, cx),
            (Party::Client(client), Input::Message { from, message: Talk::Answer { id, reply }, .. }) => {
                client.on_answer(from, id, reply, cx);
            }
            (Party::Client(client), Input::Command(Command::Go)) => client.go(cx),
            (Party::Client(client), Input::Command(Command::Do { what, at })) => client.begin(what, at, cx),
            (Party::Client(client), Input::Deadline) => client.on_deadline(cx),
            (Party::Client(_), _) => {}
        }
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        match &self.0 {
            Party::Member(member) => member.next_deadline(),
            Party::Client(client) => client.next_deadline(),
        }
    }
}

impl<R: Rules> Elects for Host<R> {
    fn leadership(&self, _group: GroupId, now: LocalTime) -> Option<LocalTime> {
        match &self.0 {
            Party::Member(member) => member.leadership(now),
            Party::Client(_) => None,
        }
    }
}

impl<R: Rules> Host<R> {
    /// How far the log is applied here, if this is a member.
    pub fn applied(&self) -> Option<Slot> {
        match &self.0 {
            Party::Member(member) => Some(member.log.applied()),
            Party::Client(_) => None,
        }
    }

    /// The highest ballot promised here, if this is a member.
    pub fn promised(&self) -> Option<Ballot> {
        match &self.0 {
            Party::Member(member) => Some(member.log.promised()),
            Party::Client(_) => None,
        }
    }

    /// Up to where this member, if it leads, takes up what others began.
    pub fn takes_up(&self) -> Option<Slot> {
        match &self.0 {
            Party::Member(member) => member.log.known(),
            Party::Client(_) => None,
        }
    }

    /// Whether this is a member that can promise and accept.
    pub fn votes(&self) -> bool {
        matches!(&self.0, Party::Member(member) if !member.log.is_amnesiac())
    }
}

/// The log under some rules: sound, or a mutant.
#[derive(Clone, Debug)]
pub struct Log<R: Rules> {
    /// The rules of the log. Its election is always sound.
    pub rules: R,
}

impl Log<Sound> {
    /// The subject as a node runs it.
    pub const fn sound() -> Self {
        Self { rules: Sound }
    }
}

const fn key(name: &'static str, unit: Unit, says: &'static str) -> Key {
    Key { name, unit, says, otherwise: None }
}

const fn extra(name: &'static str, unit: Unit, says: &'static str) -> Key {
    Key { name, unit, says, otherwise: Some(0) }
}

const KEYS: [Key; 22] = [
    key("drift", Unit::Ppm, "the bound on a clock's rate error (rho)"),
    key("tick", Unit::Time, "the step in which clocks advance"),
    key("lease", Unit::Time, "how long a lease of the election lasts"),
    key("longest-lease", Unit::Time, "the longest lease that is promised"),
    key("retry", Unit::Time, "how long to wait for an answer before asking again (delta)"),
    key("faults", Unit::Count, "how many members may fail (f): f+1 accept, n-f promise"),
    key("window", Unit::Count, "how many slots may be proposed and not yet chosen"),
    key("snapshot", Unit::Count, "after how many slots a snapshot is wanted"),
    key("keep", Unit::Count, "how many slots are kept below a snapshot"),
    key("sessions", Unit::Count, "how many sessions may be open"),
    key("clients", Unit::Count, "how many clients there are; 0: each member has one of its own"),
    key("keys", Unit::Count, "how many keys they use"),
    key("rest", Unit::Time, "how long a client rests between two operations, at most"),
    key("reads", Unit::Count, "how many of a hundred operations read"),
    key("patience", Unit::Time, "how long a client waits for an answer before it asks another member"),
    key("look", Unit::Time, "how long a thread takes to look at the state, at most"),
    key(
        "election",
        Unit::Word(ELECTIONS),
        "what drives the log: lease (with terms and local reads), hints (of the same election), omega, lean, stable",
    ),
    extra(
        "period",
        Unit::Time,
        "the time between two refreshes of an Omega (Delta; 0: two rounds and a half)",
    ),
    extra(
        "step",
        Unit::Time,
        "how late a process is at most, to an Omega (sigma; 0: a tenth of a millisecond)",
    ),
    extra(
        "restarts",
        Unit::Count,
        "in a named world: 0 who crashes is gone, 1 comes back with what its disk holds",
    ),
    extra(
        "page",
        Unit::Count,
        "how many bytes of entries a message carries, about (0: as many as there are)",
    ),
    extra("departs", Unit::Count, "1: when all other faults have ended a member dies for good"),
];

impl<R: Rules> Subject for Log<R> {
    type Machine = Host<R>;
    type Judge = LogJudge;

    const WORDS: Words = Strong::<Broken>::WORDS;

    fn keys(&self) -> &'static [Key] {
        &KEYS
    }

    fn properties(&self) -> &'static [Property] {
        &ALL
    }

    fn rests_on_network(property: &Property) -> bool {
        property.kind == Kind::Eventually || property.name == TIMELY
    }

    fn assumption(&self, constants: &Constants) -> Assumption {
        Assumption::Drift { ppm: constants.get("drift") }
    }

    fn flaws(&self) -> Flaws {
        Flaws::NONE
    }

    /// Few sessions and short logs, so that both come to their ends.
    fn draw(&self, random: &mut Random, members: usize) -> Constants {
        let lease = random.pick(&[60, 100, 200, 400]) * MILLI;
        let longest = random.pick(&[lease, lease * 2]);
        let most = (members as u64).saturating_sub(1) / 2;
        let clients = random.between(2, 6).min((MOST_HOSTS as u64).saturating_sub(members as u64));
        Constants::new(&KEYS)
            .with("drift", random.pick(&[1_000, 100_000]))
            .with("tick", random.pick(&[1, 1, MILLI, 4 * MILLI]))
            .with("lease", lease)
            .with("longest-lease", longest)
            .with("retry", lease / random.pick(&[6, 10, 20]))
            .with("faults", random.pick(&[most, most, most, most.min(1)]))
            .with("window", random.pick(&[1, 4, 16]))
            .with("snapshot", random.pick(&[4, 12, 40]))
            .with("keep", random.pick(&[0, 2, 8]))
            .with("sessions", random.pick(&[clients, clients + 2, 100]))
            .with("clients", clients)
            .with("keys", random.pick(&[1, 2, 3]))
            .with("rest", longest / random.pick(&[4, 16, 64]))
            .with("look", random.pick(&[1, lease / 10, lease, 3 * lease]))
            .with("election", random.pick(&[0, 0, 1]))
            .with("reads", 50)
            .with("patience", random.pick(&[lease / 4, lease, 4 * lease]))
            .with("step", random.pick(&[MILLI / 10, MILLI / 10, MILLI]))
            .with("restarts", random.pick(&[0, 0, 1]))
            .with("page", random.pick(&[0, 40, 130]))
            .with("departs", random.pick(&[0, 0, 1]))
    }

    /// By Nerio a lease is the longest promise; by an Omega, four of its periods if they are
    /// longer.
    fn rhythm(constants: &Constants) -> Rhythm {
        let longest = constants.get("longest-lease");
        let (longest, step) = match electing::omega(constants) {
            None => (longest, 0),
            Some(_) => (longest.max(4 * electing::period(constants)), electing::step(constants)),
        };
        Rhythm { round: constants.get("retry"), longest, act: constants.get("lease"), step }
    }

    fn loses_one(constants: &Constants) -> bool {
        constants.get("departs") > 0
    }

    fn roles(constants: &Constants, members: usize) -> Result<Vec<Role>, String> {
        let clients = usize::try_from(constants.get("clients")).unwrap_or(usize::MAX);
        if members.saturating_add(clients) > MOST_HOSTS {
            return Err(format!("members and clients must be at most {MOST_HOSTS} together"));
        }
        let of = |role, many| std::iter::repeat_n(role, many);
        Ok(of(Role::Member, members).chain(of(Role::Client, clients)).collect())
    }

    fn without_last(constants: &Constants, members: usize) -> (Constants, usize) {
        match constants.get("clients") {
            0 => (constants.clone(), members.saturating_sub(1)),
            clients => (constants.clone().with("clients", clients - 1), members),
        }
    }

    fn config(&self, quorums: &Quorums, constants: &Constants) -> Result<Config<R>, String> {
        let members = quorums.members().to_vec();
        let many = |name| usize::try_from(constants.get(name)).unwrap_or(usize::MAX);
        let span = |name| LocalSpan::from_nanos(constants.get(name));
        let keys = u32::try_from(constants.get("keys")).unwrap_or(0);
        if !(1..=100).contains(&keys) {
            return Err("keys must be 1 to 100".to_owned());
        }
        if constants.get("restarts") > 1 {
            return Err(
                "restarts must be 0 or 1: a process that lost its disk takes no part any more".to_owned()
            );
        }
        let manner = Manner {
            members: members.len() as u64,
            keys,
            patience: span("patience"),
            rest: span("rest"),
            reads: u32::try_from(constants.get("reads")).unwrap_or(0),
        };
        let log = log::Settings {
            members,
            faults: many("faults"),
            retry: span("retry"),
            window: constants.get("window"),
            snapshot_every: constants.get("snapshot"),
            snapshot_sooner: 0,
            keep: constants.get("keep"),
            sessions: many("sessions"),
            wishes: 64,
            page: if constants.get("page") == 0 { usize::MAX } else { many("page") },
            rules: self.rules.clone(),
        };
        Ok(Config {
            log: log.validate().map_err(|error| error.to_string())?,
            election: Setting::of(quorums, constants)?,
            manner,
            look: span("look"),
            own_clients: constants.get("clients") == 0,
        })
    }

    fn tell_threads(_threads: &mut LeaderThreads, _event: &Happening) {}

    fn judge(&self, quorums: &Quorums, constants: &Constants) -> LogJudge {
        let faults = usize::try_from(constants.get("faults")).unwrap_or(0);
        LogJudge::new(quorums.members().len(), faults, Self::rhythm(constants))
    }

    fn opening(&self, _constants: &Constants, _role: Role) -> Vec<Command> {
        vec![Command::Go]
    }

    /// Mostly lies about who should lead, often that this one should, or a leader cut off that does
    /// not notice; now and then something that makes the lease move.
    fn whim(&self, random: &mut Random, constants: &Constants, roles: &[Role], node: NodeId) -> Command {
        let members = roles.iter().filter(|role| **role == Role::Member).count();
        let any = node_id(random.index(members));
        match random.below(10) {
            0 | 1 if electing::omega(constants).is_some() => Command::Omega(eventual::Command::Abdicate),
            0 if random.percent(50) => Command::Strong(strong::Command::Resign(GROUP)),
            0 => Command::Strong(strong::Command::Transfer { group: GROUP, to: any }),
            1 => Command::Strong(strong::Command::Campaign(GROUP)),
            2..=5 => {
                let longest = constants.get("longest-lease");
                let cut = random.between(longest / 4, longest * 2);
                let lasts = LocalSpan::from_nanos(cut + random.below(longest));
                Command::Estrange { rival: any, cut: LocalSpan::from_nanos(cut), lasts }
            }
            what => {
                let leader = if what < 9 { node } else { any };
                let leader = (!random.percent(5)).then_some(leader);
                let lasts = LocalSpan::from_nanos(random.between(1, constants.get("longest-lease") * 3));
                Command::Lie { leader, lasts }
            }
        }
    }

    fn message_kind(message: &Talk) -> &'static str {
        text::message_kind(message)
    }

    /// Clients answer nothing.
    fn suffices(quorums: &Quorums, constants: &Constants, hosts: NodeSet, kind: &str) -> bool {
        let (n, f) = (quorums.members().len(), usize::try_from(constants.get("faults")).unwrap_or(0));
        let members: NodeSet = hosts.positions().filter(|host| *host < n).collect();
        match kind {
            "prepare" | "get-epoch" => members.len() >= n.saturating_sub(f),
            "accept" | "confirm" | "refresh" | "collect" => members.len() > f,
            _ => quorums.is_quorum(members),
        }
    }

    fn answers(message: &Talk) -> Option<&'static str> {
        text::answers(message)
    }

    fn number(message: &Talk) -> u64 {
        text::number(message)
    }

    fn message_kinds(&self) -> Vec<&'static str> {
        text::KINDS.to_vec()
    }

    fn message_text(message: &Talk) -> String {
        text::message_text(message)
    }

    fn command_text(command: &Command) -> String {
        text::command_text(command)
    }

    fn parse_command(words: &str) -> Option<Command> {
        text::parse_command(words)
    }

    fn event_text(node: NodeId, event: &Happening) -> String {
        text::event_text(node, event)
    }

    fn event_shape(node: NodeId, event: &Happening) -> Shape {
        match event {
            Happening::Strong(event) => Strong::<Broken>::event_shape(node, event),
            Happening::Omega(event) => Eventual::event_shape(node, event),
            _ => Shape::Nothing,
        }
    }

    fn count(event: &Happening, counts: &mut Counts) {
        text::count(event, counts);
    }

    fn count_kinds(&self) -> &'static [&'static str] {
        text::COUNTS
    }
}

/// The election, with as little of its own as possible.
fn strong_config(quorums: &Quorums, constants: &Constants) -> Result<strong::Config<Broken>, String> {
    let drift = u32::try_from(constants.get("drift")).ok().and_then(Drift::from_ppm);
    let span = |name| Span::from_nanos(constants.get(name));
    let settings = strong::Settings {
        quorums: quorums.clone(),
        clocks: Clockwork {
            bound: Bound::Drift(drift.ok_or("drift must be below 1000000ppm")?),
            tick: LocalSpan::from_nanos(constants.get("tick")),
        },
        lease: span("lease"),
        reserve: Span::from_nanos(0),
        eager: false,
        longest_lease: span("longest-lease"),
        window: Span::from_nanos(constants.get("retry").saturating_mul(quorums.members().len() as u64)),
        retry: span("retry"),
        block: 4,
        succession: Succession::Adjacent,
        weak: Choice::Ring(Watch::Heartbeat),
        adapt: None,
        hold: None,
        rules: Broken::Nothing,
    };
    settings.validate().map_err(|error| error.to_string())
}
