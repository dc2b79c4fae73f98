//! Nerio in the laboratory.

mod advice;
mod find;
mod forge;
mod height;
mod keys;
mod members;
mod text;

use tenure_proto::quorum::Quorums;
use tenure_proto::strong::epoch::{Body, Change, EpochTalk, StoreId};
use tenure_proto::strong::wedge::WedgeTalk;
use tenure_proto::strong::{
    Command, Event, Kind, Message, Nerio, RecoveryTalk, Rules, Settings, Succession, Talk, Term,
};
use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Span};
use tenure_proto::{GroupId, NodeId, Protocol};

use self::keys::{DRIFT_KEYS, SKEW_KEYS, WEDGE_KEYS};
use self::text::{failure_text, loss_text, refusal_text, talk_text};
use crate::count::Counts;
use crate::draw::{BarKind, MarkKind, Words};
use crate::property::Property;
use crate::protocols::strong::judge::{ALL, StrongJudge, WEDGE_ALL};
use crate::protocols::strong::mutants::Broken;
use crate::protocols::strong::subject::members::{
    any_members, change_text, disk_text, draw_for, epoch_text, members_text, recovery_text, wedge_text,
};
use crate::random::Random;
use crate::subject::candidates;
use crate::subject::constants::parse_time;
use crate::subject::{Assumption, Constants, Key, LeaderThreads, Order, Role, Shape, Subject};
use crate::world::{Flaws, Guise, MOST_HOSTS, RealTime, clock::MILLI, node_id};

/// Nerio under some rules and some driver: sound, or a mutant. On clocks with bounded drift, or
/// with bounded skew; with members that change gaplessly, or with the paper's own change and
/// recovery from a lost disk.
#[derive(Clone, Debug)]
pub struct Strong<R: Rules> {
    /// The rules of the machine.
    pub rules: R,
    /// The driver's flaws.
    pub flaws: Flaws,
    /// In which order a leader's threads work.
    pub order: Order,
    /// The clocks, and how members change.
    pub model: Model,
}

/// The clocks of a run, and how its members change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Clocks with bounded drift; members change gaplessly.
    Drift,
    /// Clocks with bounded skew; members change gaplessly.
    Skew,
    /// Clocks with bounded drift; an epoch ends before the next begins, or lost disks recover.
    Wedge,
}

impl Strong<Broken> {
    /// The subject as a node runs it. Its rules have the type of the mutants', because the
    /// catalogue has that machine compiled anyway.
    pub const fn sound(model: Model) -> Self {
        Self { rules: Broken::Nothing, flaws: Flaws::NONE, order: Order::Sound, model }
    }
}

impl<R: Rules> Strong<R> {
    fn wedges(&self) -> bool {
        self.model == Model::Wedge
    }

    /// The assumptions about the clocks; nothing that makes sense if drift is a million or more.
    fn bound(&self, constants: &Constants) -> Option<Bound> {
        match self.assumption(constants) {
            Assumption::Skew { nanos } => Some(Bound::Skew(LocalSpan::from_nanos(nanos))),
            Assumption::Drift { ppm } => u32::try_from(ppm).ok().and_then(Drift::from_ppm).map(Bound::Drift),
        }
    }
}

impl<R: Rules> Subject for Strong<R> {
    type Machine = Nerio<R>;
    type Judge = StrongJudge;

    const WORDS: Words = Words {
        leads: "leads (until E)",
        supports: "supports (until F)",
        silent: "silent after restart",
        elected: "elected",
        zones: "partition",
        tracks: ["E", "F"],
        routine: "",
    };

    fn keys(&self) -> &'static [Key] {
        match self.model {
            Model::Drift => &DRIFT_KEYS,
            Model::Skew => &SKEW_KEYS,
            Model::Wedge => &WEDGE_KEYS,
        }
    }

    fn properties(&self) -> &'static [Property] {
        if self.wedges() { &WEDGE_ALL } else { &ALL }
    }

    fn is_gapless(&self) -> bool {
        !self.wedges()
    }

    fn assumption(&self, constants: &Constants) -> Assumption {
        if self.model == Model::Skew {
            Assumption::Skew { nanos: constants.get("skew") }
        } else {
            Assumption::Drift { ppm: constants.get("drift") }
        }
    }

    fn on_resume() -> Option<Command> {
        Some(Command::Disturbed)
    }

    /// After a lost disk a driver makes a new store, and asks the rule whether that is the member
    /// which the charter names. If it is not, the process takes no part. Else it starts as after a
    /// reboot: it waits, but knows no term and no promise.
    fn flaws(&self) -> Flaws {
        let (lost, new) = (Some(StoreId(0)), Some(StoreId(1)));
        let taken = self.rules.is_same_store(lost, new);
        Flaws { missing_is_reboot: self.flaws.missing_is_reboot || taken, ..self.flaws }
    }

    /// Exaggerated drift and coarse ticks make mistakes visible; short leases make many elections.
    fn draw(&self, random: &mut Random, members: usize) -> Constants {
        let lease = random.pick(&[60, 100, 200, 400]) * MILLI;
        let retry = lease / random.pick(&[6, 10, 20]);
        let bound = if self.model == Model::Skew {
            ("skew", lease / random.pick(&[4, 10, 40]))
        } else {
            ("drift", random.pick(&[1_000, 100_000]))
        };
        let constants = Constants::new(self.keys())
            .with(bound.0, bound.1)
            .with("tick", random.pick(&[1, 1, MILLI, 4 * MILLI, 10 * MILLI]))
            .with("lease", lease)
            .with("longest-lease", random.pick(&[lease, lease * 2, 400 * MILLI]).max(lease))
            .with("window", members as u64 * retry)
            .with("retry", retry)
            .with("block", random.pick(&[1, 4, 256]))
            .with("groups", random.pick(&[1, 1, 1, 2]));
        // The last draws: a constant more must not change the others.
        let room = (MOST_HOSTS as u64).saturating_sub(members as u64);
        let outsiders = random.pick(&[0, 0, 1, 2]).min(room);
        let observers = random.pick(&[0, 0, 0, 1]).min(room - outsiders);
        let witnesses = random.pick(&[0, 0, 1]);
        let constants = constants
            .with("outsiders", outsiders)
            .with("observers", observers)
            .with("witnesses", if members >= 3 { witnesses } else { 0 });
        let constants = advice::draw(random, constants);
        if self.wedges() {
            return constants.with("groups", 1).with("recovery", random.below(2));
        }
        constants
    }

    fn forgets_often(&self, constants: &Constants) -> bool {
        self.wedges() && constants.get("recovery") > 0
    }

    fn roles(constants: &Constants, members: usize) -> Result<Vec<Role>, String> {
        let many = |name| usize::try_from(constants.get(name)).unwrap_or(usize::MAX);
        let (witnesses, outsiders, observers) = (many("witnesses"), many("outsiders"), many("observers"));
        if witnesses > members {
            return Err(format!("witnesses={witnesses}, but there are only {members} members"));
        }
        let hosts = members.saturating_add(outsiders).saturating_add(observers);
        if hosts > MOST_HOSTS {
            return Err(format!("members, outsiders and observers must be at most {MOST_HOSTS} together"));
        }
        if witnesses == members && outsiders == 0 {
            return Err("nobody campaigns: take fewer witnesses, or some outsiders".to_owned());
        }
        let of = |role, many| std::iter::repeat_n(role, many);
        let members = of(Role::Member, members - witnesses).chain(of(Role::Witness, witnesses));
        Ok(members.chain(of(Role::Outsider, outsiders)).chain(of(Role::Observer, observers)).collect())
    }

    fn without_last(constants: &Constants, members: usize) -> (Constants, usize) {
        let fewer = |name| constants.clone().with(name, constants.get(name).saturating_sub(1));
        let has = |name| constants.get(name) > 0;
        if has("observers") {
            (fewer("observers"), members)
        } else if has("outsiders") {
            (fewer("outsiders"), members)
        } else {
            (fewer("witnesses"), members.saturating_sub(1))
        }
    }

    fn config(
        &self,
        quorums: &Quorums,
        constants: &Constants,
    ) -> Result<<Nerio<R> as Protocol>::Config, String> {
        let bound = self.bound(constants).ok_or("drift must be below 1000000ppm")?;
        let groups = constants.get("groups");
        if !(1..=10_000).contains(&groups) {
            return Err(format!("groups must be 1 to 10000, not {groups}"));
        }
        if self.wedges() && groups != 1 {
            return Err("an epoch is ended for all groups at once: groups must be 1".to_owned());
        }
        let span = |name| Span::from_nanos(constants.get(name));
        let settings = Settings {
            quorums: quorums.clone(),
            clocks: Clockwork { bound, tick: LocalSpan::from_nanos(constants.get("tick")) },
            lease: span("lease"),
            reserve: Span::from_nanos(0),
            eager: false,
            longest_lease: span("longest-lease"),
            window: span("window"),
            retry: span("retry"),
            block: constants.get("block"),
            succession: match (self.wedges(), self.forgets_often(constants)) {
                (true, true) => Succession::Fixed,
                (true, false) => Succession::Wedge,
                (false, _) => Succession::Adjacent,
            },
            weak: advice::weak(constants)?,
            adapt: advice::adapt(constants)?,
            hold: advice::hold(constants),
            rules: self.rules.clone(),
        };
        settings.validate().map_err(|error| error.to_string())
    }

    fn order(&self) -> Order {
        self.order
    }

    fn tell_threads(threads: &mut LeaderThreads, event: &Event) {
        threads.hear(event);
    }

    fn judge(&self, quorums: &Quorums, constants: &Constants) -> StrongJudge {
        let founding = Body {
            quorums: quorums.clone(),
            clocks: Clockwork {
                bound: self.bound(constants).unwrap_or(Bound::Skew(LocalSpan::ZERO)),
                tick: LocalSpan::from_nanos(constants.get("tick")),
            },
            longest_lease: Span::from_nanos(constants.get("longest-lease")),
            stores: tenure_proto::strong::epoch::Stores::default(),
            barred: tenure_proto::strong::epoch::Barred::default(),
        };
        let roles = Self::roles(constants, quorums.members().len()).unwrap_or_default();
        let judge = StrongJudge::new(founding, constants.get("groups"), candidates(&roles));
        if self.wedges() { judge.for_wedge(self.flaws.trusts_lost_stamps) } else { judge }
    }

    fn opening(&self, constants: &Constants, role: Role) -> Vec<Command> {
        let groups = if role.campaigns() { constants.get("groups") } else { 0 };
        (0..groups).map(|group| Command::Campaign(GroupId(group))).collect()
    }

    /// Mostly a run out of turn, for any length, now and then longer than any grantor may accept. A
    /// process that does not campaign only asks.
    fn whim(&self, random: &mut Random, constants: &Constants, roles: &[Role], node: NodeId) -> Command {
        let group = GroupId(random.below(constants.get("groups")));
        if let Some(command) = advice::whim(random, constants, group) {
            return command;
        }
        let longest = constants.get("longest-lease");
        let lease = match random.below(10) {
            0 => longest + random.between(1, 3 * longest),
            1..=4 => longest,
            _ => random.between(longest / 8, longest),
        };
        let wanted = Span::from_nanos(lease);
        let asks = roles.get(node.index()).is_none_or(|role| !role.campaigns());
        match random.below(23) {
            20 | 21 => find::whim(random, group, roles.len(), longest),
            11 => Command::Forget(group),
            what if asks || (12..=15).contains(&what) => {
                Command::Verify { group, leader: node_id(random.index(roles.len())), wanted }
            }
            16..=19 => Command::Transfer { group, to: random.pick(&candidates(roles)) },
            22 => Command::Offer(group),
            0 => Command::Resign(group),
            1 => Command::StandDown(group),
            2..=4 => Command::Campaign(group),
            _ => Command::Attempt { group, lease: wanted },
        }
    }

    fn reform(&self, random: &mut Random, constants: &Constants, nodes: usize) -> Option<Command> {
        if self.forgets_often(constants) {
            return None; // Members are fixed.
        }
        if self.wedges() && random.percent(40) {
            return any_members(random, nodes).map(Command::Change);
        }
        let node = |random: &mut Random| NodeId(random.below(nodes as u64));
        let change = match random.below(10) {
            0..=2 => Change::Add(node(random)),
            3..=5 => Change::Remove(node(random)),
            6 | 7 => Change::Replace { old: node(random), new: node(random) },
            8 => {
                let (lease, longest) = (constants.get("lease"), constants.get("longest-lease"));
                Change::LongestLease(Span::from_nanos(random.pick(&[lease, longest, (lease + longest) / 2])))
            }
            _ => {
                let members: Vec<NodeId> =
                    (0..nodes).map(crate::world::node_id).filter(|_| random.percent(80)).collect();
                let weights = members.iter().map(|_| random.between(1, 3)).collect();
                Change::Quorums(Quorums::weighted(members, weights).ok()?)
            }
        };
        Some(Command::Change(change))
    }

    fn message_kind(message: &Message) -> &'static str {
        match message {
            Message::Request(_) | Message::Extend { .. } => "request",
            Message::Here { .. } => "heartbeat",
            Message::Ok { .. } => "ok",
            Message::Nack { .. } => "nack",
            Message::Release { .. } => "release",
            Message::Talk { talk, .. } => match talk {
                Talk::TakeOver { .. } => "take-over",
                Talk::Ready(_) => "ready",
                Talk::Relay { .. } => "relay",
                Talk::Verify { .. } => "verify",
                Talk::Certain { .. } => "certain",
                Talk::Seek { .. } => "seek",
                Talk::Here { .. } => "here",
                Talk::There { .. } => "there",
                Talk::Nowhere { .. } => "nowhere",
                Talk::Free => "free",
                Talk::Prefer { .. } => "prefer",
            },
            Message::Epoch(talk) => match talk {
                EpochTalk::Decided(_) => "decided",
                EpochTalk::GoesBy(_) => "goes-by",
                EpochTalk::Unknown { .. } => "unknown-epoch",
                EpochTalk::Prepare { .. } => "prepare",
                EpochTalk::Promise { .. } => "promise",
                EpochTalk::Accept { .. } => "accept",
                EpochTalk::Accepted { .. } => "accepted",
                EpochTalk::Denied { .. } => "denied",
            },
            Message::Wedge(talk) => match talk {
                WedgeTalk::Wedge(_) => "wedge",
                WedgeTalk::Wedged { .. } => "wedged",
                WedgeTalk::Accept { .. } => "accept",
                WedgeTalk::Accepted(_) => "accepted",
                WedgeTalk::NotYet { .. } => "not-yet",
            },
            Message::Recovery(RecoveryTalk::Read { .. }) => "read",
            Message::Recovery(RecoveryTalk::Known { .. }) => "known",
            Message::Height(talk) => height::message_kind(*talk),
        }
    }

    fn forged(message: &Message, by: NodeId, guise: Guise, receiver: &Nerio<R>) -> Option<Message> {
        forge::forged(message, by, guise, receiver)
    }

    fn answers(message: &Message) -> Option<&'static str> {
        match message {
            Message::Ok { .. } | Message::Nack { .. } => Some("request"),
            _ => None,
        }
    }

    fn number(message: &Message) -> u64 {
        match message {
            Message::Request(request) | Message::Extend { request, .. } => request.id.seq,
            Message::Ok { id, .. } | Message::Nack { id, .. } => id.seq,
            _ => 0,
        }
    }

    fn message_kinds(&self) -> Vec<&'static str> {
        let asking = ["request", "ok", "nack", "release", "free", "heartbeat"];
        let talking = ["take-over", "ready", "relay", "prefer", "verify", "certain"];
        let finding = ["seek", "here", "there", "nowhere"];
        let changing = ["decided", "unknown-epoch", "accept", "accepted", "ask-top", "top"];
        let own: &[&str] = match self.wedges() {
            true => &["wedge", "wedged", "not-yet", "read", "known"],
            false => &["prepare", "promise", "denied"],
        };
        [&asking[..], &talking, &finding, &changing, own].concat()
    }

    fn message_text(message: &Message) -> String {
        match message {
            Message::Here { .. } => "I live".to_owned(),
            Message::Request(request) | Message::Extend { request, .. } => {
                let what = match request.kind {
                    Kind::Acquire => "acquire",
                    Kind::Renew => "renew",
                };
                format!(
                    "{what} {} for {}, term {}, run {}",
                    request.group, request.lease, request.term, request.id.seq
                )
            }
            Message::Ok { group, id, at, .. } => format!("ok for {group} to run {} at {}", id.seq, at.at),
            Message::Nack { group, id, refusal, max_term } => {
                let why = refusal_text(refusal);
                format!("no for {group} to run {}: {why}; largest term {max_term}", id.seq)
            }
            Message::Release { group, upto } => format!("give back {group} up to run {}", upto.seq),
            Message::Talk { group, talk } => talk_text(*group, talk),
            Message::Epoch(talk) => epoch_text(talk),
            Message::Wedge(talk) => wedge_text(talk),
            Message::Recovery(talk) => recovery_text(talk),
            Message::Height(talk) => height::message_text(*talk),
        }
    }

    fn command_text(command: &Command) -> String {
        match command {
            Command::Disturbed => "disturbed".to_owned(),
            Command::Campaign(group) => format!("campaign {group}"),
            Command::Resign(group) => format!("resign {group}"),
            Command::StandDown(group) => format!("stand-down {group}"),
            Command::Offer(group) => format!("offer {group}"),
            Command::Forget(group) => format!("forget {group}"),
            Command::Transfer { group, to } => format!("transfer {group} to {to}"),
            Command::Verify { group, leader, wanted } => {
                format!("verify {group} with {leader} for {}", RealTime(wanted.as_nanos()))
            }
            Command::Attempt { group, lease } => {
                format!("attempt {group} for {}", RealTime(lease.as_nanos()))
            }
            Command::Find { group, ask, how, hops } => find::command_text(*group, *ask, *how, *hops),
            Command::Rank { group, priority } => format!("rank {group} {priority}"),
            Command::Raise { .. } | Command::KeyOf { .. } | Command::Confirm(_) | Command::Close => {
                height::command_text(command)
            }
            Command::Change(change) => change_text(change),
            Command::AcceptLineage => "members accept-lineage".to_owned(),
        }
    }

    fn parse_command(text: &str) -> Option<Command> {
        let group = |text: &str| text.strip_prefix('g')?.parse().ok().map(GroupId);
        let node = |text: &str| text.strip_prefix('n')?.parse().ok().map(NodeId);
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["disturbed"] => Some(Command::Disturbed),
            ["campaign", id] => group(id).map(Command::Campaign),
            ["resign", id] => group(id).map(Command::Resign),
            ["stand-down", id] => group(id).map(Command::StandDown),
            ["offer", id] => group(id).map(Command::Offer),
            ["forget", id] => group(id).map(Command::Forget),
            ["transfer", id, "to", to] => {
                let to = node(to)?;
                group(id).map(|group| Command::Transfer { group, to })
            }
            ["verify", id, "with", leader, "for", wanted] => {
                let (leader, wanted) = (node(leader)?, Span::from_nanos(parse_time(wanted)?.0));
                group(id).map(|group| Command::Verify { group, leader, wanted })
            }
            ["find", id, "at", ask, how @ .., "hops", hops] => {
                let (ask, how, hops) = (node(ask)?, find::parse_how(how)?, hops.parse().ok()?);
                group(id).map(|group| Command::Find { group, ask, how, hops })
            }
            ["attempt", id, "for", lease] => {
                let lease = Span::from_nanos(parse_time(lease)?.0);
                group(id).map(|group| Command::Attempt { group, lease })
            }
            ["rank", id, priority] => {
                let priority = priority.parse().ok()?;
                group(id).map(|group| Command::Rank { group, priority })
            }
            ["members", "add", new] => node(new).map(Change::Add).map(Command::Change),
            ["members", "remove", old] => node(old).map(Change::Remove).map(Command::Change),
            ["members", "replace", old, "by", new] => {
                let (old, new) = (node(old)?, node(new)?);
                Some(Command::Change(Change::Replace { old, new }))
            }
            ["members", "force-remove", gone @ .., "above", least, "by", margin] => {
                let gone = gone.iter().map(|name| node(name)).collect::<Option<Vec<NodeId>>>()?;
                let (least, margin) = (Term(least.parse().ok()?), margin.parse().ok()?);
                let draw = draw_for(&gone);
                Some(Command::Change(Change::ForceRemove { gone, least, margin, draw }))
            }
            ["members", "accept-lineage"] => Some(Command::AcceptLineage),
            ["members", "weigh", weighed @ ..] => {
                let weighed = weighed.iter().map(|word| {
                    let (name, weight) = word.split_once('=')?;
                    Some((node(name)?, weight.parse().ok()?))
                });
                let (members, weights) = weighed.collect::<Option<Vec<(NodeId, u64)>>>()?.into_iter().unzip();
                let quorums = Quorums::weighted(members, weights).ok()?;
                Some(Command::Change(Change::Quorums(quorums)))
            }
            ["longest-lease", span] => {
                Some(Command::Change(Change::LongestLease(Span::from_nanos(parse_time(span)?.0))))
            }
            other => height::parse_command(other),
        }
    }

    fn event_text(node: NodeId, event: &Event) -> String {
        match event {
            Event::Asked(request) => {
                let what = match request.kind {
                    Kind::Acquire => "asks all for",
                    Kind::Renew => "asks all to extend",
                };
                let (id, group, term, lease) = (request.id.seq, request.group, request.term, request.lease);
                format!("{node} {what} {group}, {lease} in term {term} (run {id})")
            }
            Event::Granted { request, until, .. } => format!(
                "{node} supports {} in {} until {until} on its clock",
                request.id.holder.node, request.group
            ),
            Event::Refused { request, refusal } => {
                format!(
                    "{node} refuses {} in {}: {}",
                    request.id.holder.node,
                    request.group,
                    refusal_text(refusal)
                )
            }
            Event::Leads { group, kind, term, until, .. } => {
                let verb = if *kind == Kind::Acquire { "leads" } else { "leads on" };
                format!("{node} {verb} {group} in term {term} until {until} on its clock")
            }
            Event::GaveBack { group, upto } => format!("{node} gives back {group} up to run {}", upto.seq),
            Event::Freed { group, newest } => {
                format!("{node} is free of {}'s run {} in {group}", newest.holder.node, newest.seq)
            }
            Event::Verified { group, leader, term, until } => {
                let leader = leader.node;
                format!(
                    "{node} is certain that {leader} leads {group} in term {term}, until {until} on its clock"
                )
            }
            Event::Pledged { group, until, .. } => {
                format!("{node} gives nothing of {group} back until {until} on its clock")
            }
            Event::Sought { .. } | Event::Found { .. } | Event::NotFound { .. } => {
                find::event_text(node, event)
            }
            Event::Failed { group, id, failure } => {
                let why = failure_text(*failure);
                format!("{node} ends run {} for {group} without success: {why}", id.seq)
            }
            Event::Lost { group, term, loss } => {
                format!("{node} leads {group} no more, term {term}: {}", loss_text(*loss))
            }
            Event::WeakLeader { .. }
            | Event::Paced { .. }
            | Event::Strained { .. }
            | Event::Yields { .. } => advice::event_text(node, event),
            Event::Silent { until } => format!("{node} keeps silent until {until} on its clock"),
            Event::Mute | Event::Recovering | Event::Recovered { .. } => disk_text(node, event),
            Event::Wedged { .. }
            | Event::Adopted { .. }
            | Event::Accepted { .. }
            | Event::Decided { .. }
            | Event::Changed { .. }
            | Event::SplitBrain { .. }
            | Event::LineageAccepted
            | Event::ChangeHalted { .. } => members_text(node, event),
            Event::Implausible { .. } | Event::Confirmed { .. } | Event::HeldBack { .. } => {
                height::event_text(node, event)
            }
            Event::ClockWentBack { by } => format!("{node} sees its clock go back by {by}"),
        }
    }

    fn event_shape(node: NodeId, event: &Event) -> Shape {
        match event {
            Event::Granted { request, until, .. } if request.group == GroupId(0) => {
                let holder = request.id.holder.node;
                let label = format!("{node} supports {holder}");
                Shape::Until { kind: BarKind::Grant { to: holder.index() }, until: *until, label, mark: None }
            }
            Event::Leads { group: GroupId(0), kind, until, term, .. } => {
                let mark = (*kind == Kind::Acquire).then_some(MarkKind::Elected);
                let label = format!("{node} leads, term {term}");
                Shape::Until { kind: BarKind::Lease, until: *until, label, mark }
            }
            Event::Lost { group: GroupId(0), .. } => {
                Shape::Ends { kind: BarKind::Lease, mark: Some(MarkKind::Lost) }
            }
            Event::Freed { group: GroupId(0), newest } => {
                let to = newest.holder.node.index();
                Shape::Ends { kind: BarKind::Grant { to }, mark: None }
            }
            Event::Silent { until } => {
                let label = format!("{node} keeps silent");
                Shape::Until { kind: BarKind::Silent, until: *until, label, mark: None }
            }
            _ => Shape::Nothing,
        }
    }

    fn count(event: &Event, counts: &mut Counts) {
        if let Some(kind) = text::count_kind(event) {
            counts.add(kind);
        }
    }

    fn count_kinds(&self) -> &'static [&'static str] {
        if self.wedges() {
            return &crate::protocols::strong::subject::members::COUNTS;
        }
        &[
            "runs",
            "grants",
            "refusals-busy",
            "refusals-stale-term",
            "refusals-too-long",
            "refusals-released",
            "releases",
            "grants-given-back",
            "resignations",
            "transfers",
            "verifications",
            "pledges",
            "searches",
            "leaders-found",
            "leaders-not-found",
            "edicts",
            "elections",
            "renewals",
            "runs-aborted",
            "runs-too-late",
            "runs-failed",
            "leases-lapsed",
            "silences",
            "weak-leaders",
            "weak-leaders-ended",
            "lease-changes",
            "lease-alarms",
            "preferred-handed-over",
            "members-joined",
            "epochs-adopted",
            "charters-accepted",
            "epochs-decided",
            "changes-done",
            "messages-forged",
        ]
    }
}
