//! All that a walk knows: each local state, each message and each local step, once.

mod next;

use tenure_proto::explore::{Explore, View};
use tenure_proto::time::{Incarnation, LocalSpan, Stamp};
use tenure_proto::{Chooser, Context, Effect, Elects, GroupId, LocalTime, NodeId, Protocol, Ticket};

use super::hash::{self, Map, mix};
use super::host::Host;
use super::scope::{BASE, Scope};
use super::state::{MOST_HOSTS, State};
use super::{Broken, Command, Machine, Message, Rename, Walk};

/// Something that happens to one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// It handles a message.
    Deliver(u16),
    /// Its user makes this wish of the scope.
    Tell(u8),
    /// It looks at its deadlines.
    Wake,
    /// Its clock advances by so many quanta.
    Pass(u8),
    /// Its disk writes one record.
    Write,
    /// It ends, if it runs, and starts again.
    Start {
        /// Without memory.
        reboot: bool,
        /// So many of the records that the disk was given are durable.
        durable: u8,
    },
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Time passes; the clocks of these hosts are fast.
    Pass(u8),
    /// A host takes a step.
    Step {
        /// Which.
        host: u8,
        /// By what.
        input: Input,
        /// A message that it handles stays on its way.
        again: bool,
        /// It is killed after so many effects, if that is not zero.
        cut: u8,
    },
}

/// A state that follows, and what was noticed on the way.
#[derive(Clone, Debug)]
pub struct Successor<G> {
    /// The action.
    pub act: Act,
    /// The state after it.
    pub state: State<G>,
    /// The property that it breaks.
    pub broken: Option<Box<Broken>>,
    /// The witnesses that were seen, as bits.
    pub seen: u32,
}

/// A message that was sent at least once.
pub(super) struct Flight<W: Walk>
where
    Machine<W>: Explore,
{
    pub(super) from: u8,
    pub(super) to: u8,
    pub(super) message: Message<W>,
    /// By renaming: its hash, and its stamp.
    looks: Vec<(u64, Option<(u8, u8)>)>,
}

/// A local state, and what the walk asks of it again and again.
struct Known<W: Walk>
where
    Machine<W>: Explore,
{
    host: Host<Machine<W>>,
    index: u8,
    /// By renaming: its hash, and its stamps.
    looks: Vec<(u64, Vec<(u8, u8)>)>,
    due: bool,
    leads: bool,
    timed: bool,
    up: bool,
    life: u8,
    pending: u8,
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome<N> {
    host: u32,
    notes: Vec<N>,
    pub(super) sends: Vec<u16>,
    effects: u8,
}

/// The smallest draw. Deadlines may be handled at any time once they have come, and draws only set
/// deadlines: a larger draw is a late look.
struct Least;

impl Chooser for Least {
    fn choose(&mut self, _bound: u32) -> u32 {
        0
    }
}

/// All that a walk knows: each local state, message and local step once.
pub struct World<W: Walk>
where
    Machine<W>: Explore,
{
    /// How the protocol is judged.
    pub walk: W,
    /// The bounds of the walk.
    pub scope: Scope<Command<W>>,
    config: <Machine<W> as Protocol>::Config,
    names: Vec<Vec<u8>>,
    known: Vec<Known<W>>,
    by_view: Map<Vec<u8>, u32>,
    pub(super) flights: Vec<Flight<W>>,
    by_message: Map<(u8, u8, Message<W>), u16>,
    pub(super) outcomes: Vec<Outcome<W::Note>>,
    memo: Map<(u32, u64), u32>,
    trouble: Option<String>,
    /// Whether machines that look alike are compared.
    tests_views: bool,
    compared: u64,
}

impl<W: Walk> World<W>
where
    Machine<W>: Explore,
{
    /// An empty world. An error says what is wrong with the scope.
    pub fn new(walk: W, scope: Scope<Command<W>>, tests_views: bool) -> Result<Self, String> {
        if scope.hosts > MOST_HOSTS || scope.members > scope.hosts {
            return Err(format!("{} hosts are too many: at most {MOST_HOSTS}", scope.hosts));
        }
        let config = walk.config(&scope)?;
        let names = renamings(scope.members, scope.hosts, scope.symmetry);
        Ok(Self {
            walk,
            scope,
            config,
            names,
            known: Vec::new(),
            by_view: Map::default(),
            flights: Vec::new(),
            by_message: Map::default(),
            outcomes: Vec::new(),
            memo: Map::default(),
            trouble: None,
            tests_views,
            compared: 0,
        })
    }

    /// How many local states, messages and local steps there are, and how often two machines that
    /// look alike were compared.
    pub fn sizes(&self) -> [u64; 4] {
        [self.known.len() as u64, self.flights.len() as u64, self.outcomes.len() as u64, self.compared]
    }

    /// Why the walk proves nothing, if that is so.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    fn fails(&mut self, why: impl Into<String>) {
        self.trouble.get_or_insert_with(|| why.into());
    }

    /// The state in which the walk begins: all processes have started, what they gave their disks
    /// is durable, and the scope's first commands are carried out.
    pub fn initial(&mut self) -> State<W::Ghost> {
        let mut state = State::new(self.scope.budget, self.walk.ghost());
        for index in 0..self.scope.hosts {
            let ahead = if index < self.scope.members { self.scope.grain.ahead } else { 0 };
            let name = u8::try_from(index).unwrap_or(u8::MAX);
            let mut host = Host::founded(ahead, LocalSpan::from_nanos(self.scope.grain.reading));
            self.start(&mut host, name, (false, 0), None);
            let before: Vec<Command<W>> =
                self.scope.before.iter().filter(|(who, _)| *who == index).map(|(_, c)| c.clone()).collect();
            for command in before {
                let effects = handle(&mut host, tenure_proto::Input::Command(command));
                self.perform(&mut host, name, effects, None);
            }
            while host.pending() > 0 {
                host.write();
            }
            state.hosts[index] = self.intern(host, name);
        }
        state
    }

    fn start(
        &mut self,
        host: &mut Host<Machine<W>>,
        index: u8,
        (reboot, durable): (bool, u8),
        most: Option<u8>,
    ) -> (Vec<W::Note>, Vec<u16>, usize) {
        let boot = host.begin_life(reboot, usize::from(durable));
        let (mut effects, mut least) = (Vec::new(), Least);
        let mut cx = Context::new(BASE, &mut least, &mut host.tickets, &mut effects);
        let machine = Machine::<W>::start(&self.config, NodeId(u64::from(index)), boot, &mut cx);
        host.machine = Some(machine);
        let count = effects.len();
        let (notes, sends) = self.perform(host, index, effects, most);
        if most.is_none() {
            host.claim();
        }
        (notes, sends, count)
    }

    /// Carries out effects in order; the first `most` of them if the process is killed then.
    fn perform(
        &mut self,
        host: &mut Host<Machine<W>>,
        index: u8,
        effects: Vec<Effect<Machine<W>>>,
        most: Option<u8>,
    ) -> (Vec<W::Note>, Vec<u16>) {
        let (mut notes, mut sends) = (Vec::new(), Vec::new());
        let writes_at_once = most.is_none() && !self.scope.late_disks;
        for effect in effects.into_iter().take(most.map_or(usize::MAX, usize::from)) {
            match effect {
                Effect::Persist { ticket, record } => {
                    host.persist(ticket, record);
                    if writes_at_once {
                        sends.extend(host.write());
                    }
                }
                Effect::Remember(record) => host.remember(record),
                Effect::Publish(event) => notes.extend(self.note(host, &event)),
                Effect::Send { to, message, after } => {
                    let Some(flight) = self.flight(host, index, to, message) else { continue };
                    match after.filter(|ticket| !host.is_durable(*ticket)) {
                        Some(ticket) => host.waiting.push((ticket, flight)),
                        None => sends.push(flight),
                    }
                }
            }
        }
        if most.is_some() {
            host.end_life();
        }
        (notes, sends)
    }

    fn note(&self, host: &Host<Machine<W>>, event: &<Machine<W> as Protocol>::Event) -> Option<W::Note> {
        let quantum = self.scope.grain.quantum();
        let left = |until: LocalTime| host.left(until.remaining(BASE).as_nanos(), quantum);
        self.walk.note(event, BASE, &left)
    }

    /// A message as the network keeps it: without what means nothing to its receiver.
    fn flight(
        &mut self,
        host: &mut Host<Machine<W>>,
        from: u8,
        to: NodeId,
        mut message: Message<W>,
    ) -> Option<u16> {
        let to = u8::try_from(to.0).ok().filter(|to| usize::from(*to) < self.scope.hosts)?;
        if let Some(machine) = &host.machine {
            machine.plain(&mut message);
        }
        if let Some(stamp) = W::stamp(&mut message) {
            let number = host.number(*stamp);
            if number > 62 {
                self.fails("a process gives more than 62 stamps");
            }
            *stamp = numbered(number);
        }
        let key = (from, to, message);
        if let Some(known) = self.by_message.get(&key) {
            return Some(*known);
        }
        let Ok(number) = u16::try_from(self.flights.len()) else {
            self.fails("there are more than 65536 different messages");
            return None;
        };
        let looks = self.names.iter().map(|names| look::<W>(from, to, &key.2, names)).collect();
        self.flights.push(Flight { from, to, message: key.2.clone(), looks });
        self.by_message.insert(key, number);
        Some(number)
    }

    /// The sender of a message, its receiver, and the message.
    pub(super) fn flight_parts(&self, flight: u16) -> (usize, usize, &Message<W>) {
        let Flight { from, to, message, .. } = &self.flights[usize::from(flight)];
        (usize::from(*from), usize::from(*to), message)
    }

    /// A message without its stamp, and without what means nothing to its receiver.
    pub(super) fn without_stamp(&self, message: &Message<W>) -> Message<W> {
        let mut message = message.clone();
        if let Some(machine) = self.known.iter().find_map(|known| known.host.machine.as_ref()) {
            machine.plain(&mut message);
        }
        if let Some(stamp) = W::stamp(&mut message) {
            *stamp = numbered(0);
        }
        message
    }

    /// The number of a local state. Machines with the same future have the same.
    fn intern(&mut self, host: Host<Machine<W>>, index: u8) -> u32 {
        let mut key = self.exact_view(&host, index);
        if let Some(known) = self.by_view.get(&key).copied() {
            if self.tests_views && self.known[known as usize].host != host {
                self.compare(known, &host, index);
            }
            return known;
        }
        let broken = host.view(index, &self.names[0], true).broken();
        if let Some(broken) = broken {
            self.fails(format!("a view says too little, for it assumes: {broken}"));
        }
        let number = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        let known = self.know(host, index);
        self.known.push(known);
        key.shrink_to_fit();
        self.by_view.insert(key, number);
        number
    }

    /// All that tells this local state from others, with stamps and messages by number.
    fn exact_view(&self, host: &Host<Machine<W>>, index: u8) -> Vec<u8> {
        let view = host.view(index, &self.names[0], self.scope.ends_lives());
        let mut key = view.bytes().to_vec();
        key.push(host.stamps);
        key.push(u8::from(host.may_tie() && self.walk.stamps_may_tie()));
        let mut waiting = host.waiting.clone();
        waiting.sort_unstable_by_key(|(ticket, flight)| (*flight, *ticket));
        for (ticket, flight) in waiting {
            key.extend(ticket.0.saturating_sub(host.durable_upto().0).to_le_bytes());
            key.extend(flight.to_le_bytes());
        }
        for (owner, stamp) in view.stamps() {
            key.extend([*owner, number_of(*stamp)]);
        }
        key
    }

    fn know(&self, host: Host<Machine<W>>, index: u8) -> Known<W> {
        let looks = self.names.iter().map(|names| self.look_of_host(&host, index, names)).collect();
        let machine = host.machine.as_ref();
        let timed = host.view(index, &self.names[0], self.scope.ends_lives()).is_timed();
        Known {
            index,
            looks,
            due: machine.and_then(Protocol::next_deadline).is_some_and(|at| at <= BASE),
            leads: machine.is_some_and(|machine| machine.leadership(GroupId(0), BASE).is_some()),
            timed: timed || self.scope.grain.quanta > 1,
            up: machine.is_some(),
            life: u8::try_from(host.life.0).unwrap_or(u8::MAX),
            pending: u8::try_from(host.pending()).unwrap_or(u8::MAX),
            host,
        }
    }

    fn look_of_host(&self, host: &Host<Machine<W>>, index: u8, names: &[u8]) -> (u64, Vec<(u8, u8)>) {
        let view = host.view(index, names, self.scope.ends_lives());
        let tie = host.may_tie() && self.walk.stamps_may_tie();
        let mut hash = mix(hash::bytes(u64::from(tie), view.bytes()));
        let mut stamps: Vec<(u8, u8)> =
            view.stamps().iter().map(|(owner, stamp)| (*owner, number_of(*stamp))).collect();
        let mut late: Vec<(u64, Option<(u8, u8)>)> = Vec::new();
        for (ticket, flight) in &host.waiting {
            let Flight { from, to, message, .. } = &self.flights[usize::from(*flight)];
            let (look, stamp) = look::<W>(*from, *to, message, names);
            let after = ticket.0.saturating_sub(host.durable_upto().0);
            late.push((mix(look ^ after), stamp));
        }
        late.sort_unstable();
        for (look, stamp) in late {
            hash = mix(hash ^ look);
            stamps.extend(stamp);
        }
        (hash, stamps)
    }

    /// A local step: carried out once, and looked up ever after.
    pub(super) fn step(&mut self, host: u32, input: Input, cut: u8) -> u32 {
        let key = (host, key_of(input, cut));
        if let Some(known) = self.memo.get(&key) {
            return *known;
        }
        let Known { host, index, .. } = &self.known[host as usize];
        let (host, index) = (host.clone(), *index);
        let outcome = self.carry_out(host, index, input, cut);
        let number = u32::try_from(self.outcomes.len()).unwrap_or(u32::MAX);
        self.outcomes.push(outcome);
        self.memo.insert(key, number);
        number
    }

    fn carry_out(
        &mut self,
        mut host: Host<Machine<W>>,
        index: u8,
        input: Input,
        cut: u8,
    ) -> Outcome<W::Note> {
        let most = (cut > 0).then_some(cut);
        let (notes, sends, effects) = match input {
            Input::Pass(by) => {
                host.pass(by, self.scope.grain.quanta);
                (Vec::new(), Vec::new(), 0)
            }
            Input::Write => (Vec::new(), host.write(), 0),
            Input::Start { reboot, durable } => self.start(&mut host, index, (reboot, durable), most),
            Input::Deliver(_) | Input::Tell(_) | Input::Wake => self.handle(&mut host, index, input, most),
        };
        if !self.scope.keeps_all
            && let Some(machine) = &mut host.machine
        {
            machine.forget();
        }
        let host = self.intern(host, index);
        Outcome { host, notes, sends, effects: u8::try_from(effects).unwrap_or(u8::MAX) }
    }

    fn handle(
        &mut self,
        host: &mut Host<Machine<W>>,
        index: u8,
        input: Input,
        most: Option<u8>,
    ) -> (Vec<W::Note>, Vec<u16>, usize) {
        let input = match input {
            Input::Deliver(flight) => {
                let Flight { from, message, .. } = &self.flights[usize::from(flight)];
                let (from, message) = (NodeId(u64::from(*from)), message.clone());
                tenure_proto::Input::Message { from, received: BASE, message }
            }
            Input::Tell(wish) => {
                tenure_proto::Input::Command(self.scope.wishes[usize::from(wish)].command.clone())
            }
            _ => tenure_proto::Input::Deadline,
        };
        let effects = handle(host, input);
        let count = effects.len();
        let (notes, sends) = self.perform(host, index, effects, most);
        (notes, sends, count)
    }

    /// Whether two hosts that look alike also act alike, by every input there is.
    fn compare(&mut self, known: u32, host: &Host<Machine<W>>, index: u8) {
        self.tests_views = false;
        let fast = self.scope.grain.fast;
        let mut inputs: Vec<Input> = (1..=fast).map(Input::Pass).collect();
        if self.scope.ends_lives() {
            let durables = 0..=u8::try_from(host.pending()).unwrap_or(u8::MAX);
            let starts = durables.flat_map(|durable| [false, true].map(|reboot| (reboot, durable)));
            inputs.extend(starts.map(|(reboot, durable)| Input::Start { reboot, durable }));
        }
        if host.machine.is_some() {
            inputs.extend([Input::Write, Input::Wake]);
            let wishes = self.scope.wishes.iter().enumerate();
            let mine = wishes.filter(|(_, wish)| wish.host == usize::from(index));
            inputs.extend(mine.filter_map(|(at, _)| u8::try_from(at).ok()).map(Input::Tell));
            let flights = self.flights.iter().enumerate().filter(|(_, flight)| flight.to == index);
            inputs.extend(flights.filter_map(|(at, _)| u16::try_from(at).ok()).map(Input::Deliver));
        }
        for input in inputs {
            let before = self.known[known as usize].host.clone();
            let first = self.carry_out(before, index, input, 0);
            let second = self.carry_out(host.clone(), index, input, 0);
            self.compared += 1;
            if first != second {
                let what = format!("n{index}, {input:?}: {first:?} and {second:?}");
                self.fails(format!("two machines that look alike act differently: {what}"));
                break;
            }
        }
        self.tests_views = true;
    }

    /// The smallest hash of a state over all renamings.
    pub fn fingerprint(&self, state: &State<W::Ghost>) -> u64 {
        let hashes = (0..self.names.len()).map(|renaming| self.hash(state, renaming));
        hashes.min().unwrap_or(0)
    }

    fn hash(&self, state: &State<W::Ghost>, renaming: usize) -> u64 {
        let names = &self.names[renaming];
        let live = self.live_stamps(state, renaming);
        let rename = Rename { names, live: &live };
        let ranked = |hash: u64, (owner, stamp): (u8, u8)| {
            let owner = u64::from(owner);
            mix(hash ^ rename.rank(owner, stamp) ^ owner << 32)
        };
        let mut sum = 0u64;
        for host in 0..self.scope.hosts {
            let (hash, stamps) = &self.known[state.hosts[host] as usize].looks[renaming];
            let hash = stamps.iter().fold(*hash, |hash, stamp| ranked(hash, *stamp));
            sum = sum.wrapping_add(mix(hash));
        }
        for flight in state.flights() {
            let (hash, stamp) = self.flights[usize::from(*flight)].looks[renaming];
            let hash = stamp.map_or(hash, |stamp| ranked(hash, stamp));
            sum = sum.wrapping_add(mix(hash ^ 0x6d65_7373_6167_6573));
        }
        let ghost = self.walk.hash(&state.ghost, &rename);
        mix(mix(sum ^ ghost) ^ u64::from_le_bytes(state.budget))
    }

    /// For each new name of a grantor a bit for each stamp of it that anybody still has.
    fn live_stamps(&self, state: &State<W::Ghost>, renaming: usize) -> [u64; MOST_HOSTS] {
        let mut live = [0u64; MOST_HOSTS];
        let mut note = |owner: u8, stamp: u8| live[usize::from(owner)] |= 1 << (stamp & 63);
        for host in 0..self.scope.hosts {
            let known = &self.known[state.hosts[host] as usize];
            known.looks[renaming].1.iter().for_each(|(owner, stamp)| note(*owner, *stamp));
            if self.walk.stamps_may_tie() {
                note(self.names[renaming][host], known.host.stamps);
            }
        }
        for flight in state.flights() {
            let stamp = self.flights[usize::from(*flight)].looks[renaming].1;
            stamp.into_iter().for_each(|(owner, stamp)| note(owner, stamp));
        }
        let names = &self.names[renaming];
        self.walk.stamps(&state.ghost, &mut |grantor, stamp| note(names[grantor], stamp));
        live
    }
}

/// One step of a host's machine: its effects.
fn handle<P: Explore>(host: &mut Host<P>, input: tenure_proto::Input<P>) -> Vec<Effect<P>> {
    let (mut effects, mut least) = (Vec::new(), Least);
    if let Some(machine) = &mut host.machine {
        machine.handle(input, &mut Context::new(BASE, &mut least, &mut host.tickets, &mut effects));
    }
    effects
}

/// The parts of a message that tell it from others: its hash, and its stamp.
fn look<W: Walk>(from: u8, to: u8, message: &Message<W>, names: &[u8]) -> (u64, Option<(u8, u8)>)
where
    Machine<W>: Explore,
{
    let mut view = View::new((BASE, LocalSpan::from_nanos(1)), Ticket(0), names);
    view.node(NodeId(u64::from(to)));
    Machine::<W>::view_message(message, NodeId(u64::from(from)), &mut view);
    let stamp = view.stamps().first().map(|(owner, stamp)| (*owner, number_of(*stamp)));
    (hash::bytes(1, view.bytes()), stamp)
}

/// A stamp that is a number: larger for later ones.
fn numbered(number: u8) -> Stamp {
    let at = LocalTime::from_nanos(u64::from(number));
    Stamp { incarnation: Incarnation(0), at, count: 0 }
}

/// The number of a numbered stamp.
pub fn number_of(stamp: Stamp) -> u8 {
    u8::try_from(stamp.at.as_nanos()).unwrap_or(u8::MAX)
}

fn key_of(input: Input, cut: u8) -> u64 {
    let (kind, what) = match input {
        Input::Deliver(flight) => (1, u64::from(flight)),
        Input::Tell(wish) => (2, u64::from(wish)),
        Input::Wake => (3, 0),
        Input::Pass(by) => (4, u64::from(by)),
        Input::Write => (5, 0),
        Input::Start { reboot, durable } => (6, u64::from(durable) << 1 | u64::from(reboot)),
    };
    what << 16 | kind << 8 | u64::from(cut)
}

/// The ways to rename hosts: members among themselves, and the others.
fn renamings(members: usize, hosts: usize, symmetry: bool) -> Vec<Vec<u8>> {
    let all: Vec<u8> = (0..hosts).filter_map(|host| u8::try_from(host).ok()).collect();
    if !symmetry {
        return vec![all];
    }
    let (members, others) = all.split_at(members);
    let others = orders(others);
    let each =
        |first: Vec<u8>| others.iter().map(move |rest| [&first[..], rest].concat()).collect::<Vec<_>>();
    orders(members).into_iter().flat_map(each).collect()
}

/// All orders of some names, the given one first.
fn orders(names: &[u8]) -> Vec<Vec<u8>> {
    if names.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, first) in names.iter().enumerate() {
        let rest: Vec<u8> = names.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, n)| *n).collect();
        all.extend(orders(&rest).into_iter().map(|rest| [&[*first], &rest[..]].concat()));
    }
    all
}
