//! Two baseline elections to compare with: both need links that are timely forever.
//!
//! *Lowest id*: every process sends heartbeats, a silent one is suspected, a wrong suspicion
//! lengthens the timeout, and the lowest id that is not suspected leads. It needs a process that
//! all others hear in time.
//!
//! *Accusation* (after Aguilera, Delporte-Gallet, Fauconnier and Toueg): a process that misses
//! another accuses it before all. Each accusation by n-f processes counts, and the process with the
//! fewest accusations leads. It needs a process that the same f others hear in time forever. In a
//! moving set these are not the same ones: in turn each of the others misses it, accusations add
//! up, and the count of every process grows without end.

use crate::quorum::NodeSet;
use crate::time::LocalSpan;
use crate::{Boot, Context, Elects, GroupId, Input, LocalTime, NodeId, Protocol};

use super::config::Config;
use super::rules::{Rules, Sound};
use super::state::{Epoch, Event, Hint, Message, Record};
use super::{Command, Hints};

/// A process of one of the two elections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Baseline<const ACCUSES: bool, R: Rules = Sound> {
    config: Config<R>,
    me: NodeId,
    here: usize,
    /// When it next says that it lives.
    beat: LocalTime,
    others: Vec<Watched>,
    hint: Hint,
}

/// The lowest id that is not suspected leads.
pub type LowestId<R = Sound> = Baseline<false, R>;
/// The process that was accused least leads.
pub type Accusation<R = Sound> = Baseline<true, R>;

/// A member, as this process sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Watched {
    patience: LocalSpan,
    /// When it is suspected, unless it is heard.
    due: LocalTime,
    suspected: bool,
    /// For which count it is accused while it stays silent: once for each silence.
    accused: u64,
    /// How often enough others have accused it, as far as is known here.
    count: u64,
    /// The processes that accuse it for the next time.
    accusers: NodeSet,
}

impl<const ACCUSES: bool, R: Rules> Baseline<ACCUSES, R> {
    fn period(&self) -> LocalSpan {
        self.config.first_pace().period
    }

    fn beat(&mut self, cx: &mut Context<'_, Self>) {
        self.beat = cx.now().after(self.period());
        let counts: Vec<u64> = self.others.iter().map(|other| other.count).collect();
        self.to_others(&Message::Alive { counts }, cx);
    }

    fn to_others(&self, message: &Message, cx: &mut Context<'_, Self>) {
        for other in self.config.access().members().iter().filter(|other| **other != self.me) {
            cx.send(*other, message.clone(), None);
        }
    }

    fn heard(&mut self, from: usize, counts: &[u64], cx: &mut Context<'_, Self>) {
        let (now, more) = (cx.now(), self.period());
        let other = &mut self.others[from];
        if std::mem::take(&mut other.suspected) {
            other.patience = other.patience.plus(more);
        }
        other.due = now.after(other.patience);
        for (other, count) in self.others.iter_mut().zip(counts) {
            if *count > other.count {
                (other.count, other.accusers) = (*count, NodeSet::EMPTY);
            }
        }
    }

    fn suspect(&mut self, now: LocalTime, cx: &mut Context<'_, Self>) {
        for position in 0..self.others.len() {
            let other = &mut self.others[position];
            if position == self.here || other.due > now {
                continue;
            }
            if !std::mem::replace(&mut other.suspected, true) {
                other.accused = other.count;
            }
            // Said again while it stays silent: words are lost.
            other.due = now.after(other.patience);
            if ACCUSES {
                let count = other.accused;
                self.to_others(&Message::Accuse { of: position, count }, cx);
                self.accuse(position, count, self.here);
            }
        }
    }

    fn accuse(&mut self, of: usize, count: u64, by: usize) {
        let Some(accused) = self.others.get_mut(of) else { return };
        if count != accused.count {
            return;
        }
        accused.accusers.insert(by);
        if self.config.access().is_read(accused.accusers) {
            accused.count += 1;
            accused.accusers = NodeSet::EMPTY;
        }
    }

    fn choose(&mut self, cx: &mut Context<'_, Self>) {
        let members = self.config.access().members();
        let best = (0..members.len())
            .filter(|position| ACCUSES || !self.others[*position].suspected)
            .min_by_key(|position| (if ACCUSES { self.others[*position].count } else { 0 }, *position));
        let leader = best.map(|position| members[position]);
        let serial = best.map_or(0, |position| self.others[position].count);
        let hint =
            Hint { leader, epoch: Epoch { serial: if ACCUSES { serial } else { 0 }, process: leader } };
        if hint == self.hint {
            return;
        }
        self.hint = hint;
        cx.publish(Event::Hint(hint));
    }
}

impl<const ACCUSES: bool, R: Rules> Protocol for Baseline<ACCUSES, R> {
    type Config = Config<R>;
    type Command = Command;
    type Message = Message;
    type Record = Record;
    type Event = Event;

    fn start(config: &Config<R>, me: NodeId, _boot: Boot<Record>, cx: &mut Context<'_, Self>) -> Self {
        let pace = config.first_pace();
        let patience = pace.period.plus(pace.timeout);
        let due = cx.now().after(patience);
        let watched =
            Watched { patience, due, suspected: false, accused: 0, count: 0, accusers: NodeSet::EMPTY };
        let here = config.access().position(me).unwrap_or(0);
        let others = vec![watched; config.access().members().len()];
        let mut new =
            Self { config: config.clone(), me, here, beat: cx.now(), others, hint: Hint::default() };
        new.choose(cx);
        new
    }

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) {
        match input {
            Input::Message { from, message, .. } => {
                let Some(position) = self.config.access().position(from) else { return };
                match message {
                    wrong if !wrong.can_be_from(from, self.config.access().members()) => {}
                    Message::Alive { counts } => self.heard(position, &counts, cx),
                    Message::Accuse { of, count } => self.accuse(of, count, position),
                    _ => {}
                }
            }
            Input::Deadline | Input::Command(Command::Abdicate) => {}
        }
        let now = cx.now();
        if self.beat <= now {
            self.beat(cx);
        }
        self.suspect(now, cx);
        self.choose(cx);
    }

    fn next_deadline(&self) -> Option<LocalTime> {
        let watched = self.others.iter().enumerate();
        let due = watched.filter(|(position, _)| *position != self.here);
        due.map(|(_, other)| other.due).chain([self.beat]).min()
    }
}

impl<const ACCUSES: bool, R: Rules> Elects for Baseline<ACCUSES, R> {
    fn leadership(&self, _group: GroupId, now: LocalTime) -> Option<LocalTime> {
        (self.hint.leader == Some(self.me)).then(|| now.after(self.period()))
    }
}

impl<const ACCUSES: bool, R: Rules> Hints for Baseline<ACCUSES, R> {
    fn hint(&self, _now: LocalTime) -> Hint {
        self.hint
    }

    fn epoch(&self) -> Option<Epoch> {
        None
    }
}
