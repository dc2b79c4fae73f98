//! The writes of this process's users: which session each uses, and who waits for which answer.
//!
//! In a session one write follows the other, so as many are open as writes are on their way at
//! once. They are opened when they are needed, used again, and belong to one life of the process:
//! those of former lives are forgotten by the log in time.
//!
//! The answer of each session's last write is kept beside the state, on every process, and is part
//! of its snapshot. A process that was restored from a snapshot that has its write in it finds the
//! answer there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tenure_proto::log::{Command, Key, Session, Sessions, Slot};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::Chosen;
use super::error::ProposeError;
use crate::chance;
use crate::codec::{DecodeError, Reader, Writer};

/// A write that a user wants.
pub(super) struct Proposal {
    pub(super) bytes: std::sync::Arc<[u8]>,
    pub(super) reply: oneshot::Sender<Result<Chosen, ProposeError>>,
    pub(super) _place: OwnedSemaphorePermit,
}

/// A write on its way.
struct Flight {
    proposal: Proposal,
    /// The state was restored meanwhile: it may have been carried out unseen.
    unseen: bool,
}

/// The answer to the last write of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    number: u64,
    index: u64,
    /// The message of the panic, if the write was refused by one.
    answer: Result<Vec<u8>, String>,
}

impl Kept {
    fn told(&self) -> Result<Chosen, ProposeError> {
        match &self.answer {
            Ok(answer) => Ok(Chosen { index: self.index, answer: answer.clone() }),
            Err(message) => Err(ProposeError::Panicked { index: self.index, message: message.clone() }),
        }
    }
}

#[derive(Default)]
pub(super) struct Users {
    /// Sessions that nobody uses, and the number of the next write in each.
    idle: Vec<(Session, u64)>,
    opening: BTreeSet<u128>,
    waiting: VecDeque<Proposal>,
    flights: BTreeMap<(Session, u64), Flight>,
    kept: BTreeMap<Session, Kept>,
    /// The commands that the machine is to be told.
    commands: Vec<Command>,
}

impl Users {
    /// Takes the commands that the machine is to be told now.
    pub(super) fn commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    pub(super) fn propose(&mut self, proposal: Proposal) {
        self.waiting.push_back(proposal);
        match self.idle.pop() {
            Some((session, number)) => self.free(session, number),
            None => self.open_more(),
        }
    }

    /// A session for each that waits.
    fn open_more(&mut self) {
        while self.opening.len() < self.waiting.len() {
            let nonce = chance::wide();
            self.opening.insert(nonce);
            self.commands.push(Command::Open { nonce });
        }
    }

    /// A session has nothing on its way: the next user who still waits may have it.
    fn free(&mut self, session: Session, number: u64) {
        while let Some(proposal) = self.waiting.pop_front() {
            if proposal.reply.is_closed() {
                continue;
            }
            let bytes = proposal.bytes.clone();
            self.commands.push(Command::Write { session, number, bytes });
            self.flights.insert((session, number), Flight { proposal, unseen: false });
            return;
        }
        self.idle.push((session, number));
    }

    pub(super) fn on_opened(&mut self, nonce: u128, session: Session, closed: Option<Session>) {
        if let Some(closed) = closed {
            self.kept.remove(&closed);
            self.idle.retain(|(session, _)| *session != closed);
        }
        if self.opening.remove(&nonce) {
            self.free(session, 1);
        }
    }

    /// A write was carried out, or refused because the state machine panicked.
    pub(super) fn on_written(
        &mut self,
        session: Session,
        number: u64,
        slot: Slot,
        answer: Result<Vec<u8>, String>,
    ) {
        self.kept.insert(session, Kept { number, index: slot.0, answer });
        self.on_done(session, number);
    }

    /// A write is carried out, now or before: its answer is kept.
    pub(super) fn on_done(&mut self, session: Session, number: u64) {
        let Some(flight) = self.flights.remove(&(session, number)) else { return };
        let kept = self.kept.get(&session).filter(|kept| kept.number == number);
        let _ = flight.proposal.reply.send(kept.map_or(Err(ProposeError::Unknown), Kept::told));
        self.free(session, number + 1);
    }

    /// A write came to the log in a session that is closed. Slots are applied in turn here: had it
    /// been carried out, that would have been seen, unless slots were skipped by a snapshot. So it
    /// was not, and may be tried again in another session.
    pub(super) fn on_expired(&mut self, session: Session, number: u64) {
        let Some(flight) = self.flights.remove(&(session, number)) else { return };
        if flight.unseen {
            let _ = flight.proposal.reply.send(Err(ProposeError::Unknown));
        } else {
            self.waiting.push_front(flight.proposal);
            self.open_more();
        }
    }

    pub(super) fn on_refused(&mut self, key: Key) {
        match key {
            Key::Open(nonce) => {
                self.opening.remove(&nonce);
                if let Some(proposal) = self.waiting.pop_front() {
                    let _ = proposal.reply.send(Err(ProposeError::Overloaded));
                }
            }
            Key::Write(session, number) => {
                if let Some(flight) = self.flights.remove(&(session, number)) {
                    let _ = flight.proposal.reply.send(Err(ProposeError::Overloaded));
                    self.free(session, number + 1);
                }
            }
        }
    }

    /// The state was restored, and slots were skipped. The machine says what it knows to be done;
    /// all else that is on its way may have been carried out unseen.
    pub(super) fn on_restored(&mut self, sessions: &Sessions) {
        self.idle.retain(|(session, _)| sessions.get(*session).is_some());
        self.flights.values_mut().for_each(|flight| flight.unseen = true);
    }

    /// The kept answers, as a part of a snapshot.
    pub(super) fn write(&self, to: &mut Writer) {
        to.number(self.kept.len() as u64);
        for (session, kept) in &self.kept {
            to.number(session.0);
            to.number(kept.number);
            to.number(kept.index);
            to.bytes(kept.answer.as_deref().unwrap_or_default());
        }
    }

    /// The messages of the panics among them, behind the state: older versions do not look there.
    pub(super) fn write_panics(&self, to: &mut Writer) {
        let panics =
            || self.kept.iter().filter_map(|(session, kept)| Some((session, kept.answer.as_ref().err()?)));
        to.number(panics().count() as u64);
        for (session, message) in panics() {
            to.number(session.0);
            to.bytes(message.as_bytes());
        }
    }

    pub(super) fn read_panics(&mut self, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        if from.is_empty() {
            return Ok(()); // An older version wrote it.
        }
        for _ in 0..from.number()? {
            let session = Session(from.number()?);
            let message = String::from_utf8_lossy(from.bytes(usize::MAX)?).into_owned();
            if let Some(kept) = self.kept.get_mut(&session) {
                kept.answer = Err(message);
            }
        }
        Ok(())
    }

    pub(super) fn read(&mut self, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        let mut kept = BTreeMap::new();
        for _ in 0..from.number()? {
            let session = Session(from.number()?);
            let (number, index) = (from.number()?, from.number()?);
            kept.insert(session, Kept { number, index, answer: Ok(from.bytes(usize::MAX)?.to_vec()) });
        }
        self.kept = kept;
        Ok(())
    }
}

impl Users {
    /// Reads over kept answers.
    pub(super) fn skip(from: &mut Reader<'_>) -> Result<(), DecodeError> {
        Self::default().read(from)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tenure_proto::log::Seen;
    use tokio::sync::Semaphore;

    use super::*;

    type Answer = oneshot::Receiver<Result<Chosen, ProposeError>>;

    fn propose(users: &mut Users, text: &str) -> Answer {
        let (reply, answer) = oneshot::channel();
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        users.propose(Proposal { bytes: text.as_bytes().into(), reply, _place: place });
        answer
    }

    /// One user whose write is on its way in session 7.
    fn one_on_its_way() -> (Users, Answer) {
        let mut users = Users::default();
        let answer = propose(&mut users, "x");
        let [Command::Open { nonce }] = users.commands()[..] else { panic!("a session is opened") };
        users.on_opened(nonce, Session(7), None);
        assert!(matches!(users.commands()[..], [Command::Write { session: Session(7), number: 1, .. }]));
        (users, answer)
    }

    #[test]
    fn a_session_is_opened_used_and_used_again() {
        let (mut users, mut answer) = one_on_its_way();
        users.on_written(Session(7), 1, Slot(9), Ok(b"done".to_vec()));
        assert_eq!(answer.try_recv().unwrap(), Ok(Chosen { index: 9, answer: b"done".to_vec() }));
        let _again = propose(&mut users, "y");
        assert!(matches!(users.commands()[..], [Command::Write { session: Session(7), number: 2, .. }]));
    }

    #[test]
    fn two_users_at_once_have_two_sessions() {
        let (mut users, _one) = one_on_its_way();
        let _two = propose(&mut users, "y");
        assert!(matches!(users.commands()[..], [Command::Open { .. }]));
    }

    #[test]
    fn a_write_in_a_closed_session_is_tried_again_unless_slots_were_skipped() {
        let (mut users, mut answer) = one_on_its_way();
        users.on_expired(Session(7), 1);
        assert!(matches!(users.commands()[..], [Command::Open { .. }]));
        assert!(answer.try_recv().is_err(), "it is still on its way");

        let (mut users, mut answer) = one_on_its_way();
        users.on_restored(&Sessions::default());
        users.on_expired(Session(7), 1);
        assert_eq!(answer.try_recv().unwrap(), Err(ProposeError::Unknown));
    }

    #[test]
    fn a_write_that_a_snapshot_has_carried_out_is_answered_from_it() {
        let (mut users, mut answer) = one_on_its_way();
        let mut elsewhere = Users::default();
        elsewhere.on_written(Session(7), 1, Slot(9), Ok(b"done".to_vec()));
        let mut to = Writer::new();
        elsewhere.write(&mut to);
        users.read(&mut Reader::new(&to.into_bytes())).unwrap();
        users.on_restored(&Sessions::from_parts([(Session(7), Seen { nonce: 1, last: 1, used: Slot(9) })]));
        users.on_done(Session(7), 1);
        assert_eq!(answer.try_recv().unwrap(), Ok(Chosen { index: 9, answer: b"done".to_vec() }));
    }

    #[test]
    fn a_write_that_was_refused_by_a_panic_is_told_so_from_a_snapshot_too() {
        let (mut users, mut answer) = one_on_its_way();
        let mut elsewhere = Users::default();
        elsewhere.on_written(Session(7), 1, Slot(9), Err("no such account".to_owned()));
        let (mut kept, mut panics) = (Writer::new(), Writer::new());
        elsewhere.write(&mut kept);
        elsewhere.write_panics(&mut panics);
        users.read(&mut Reader::new(&kept.into_bytes())).unwrap();
        users.read_panics(&mut Reader::new(&panics.into_bytes())).unwrap();
        users.on_done(Session(7), 1);
        let refused = ProposeError::Panicked { index: 9, message: "no such account".to_owned() };
        assert_eq!(answer.try_recv().unwrap(), Err(refused));
    }

    #[test]
    fn a_session_that_made_room_for_another_is_not_used_again() {
        let (mut users, _answer) = one_on_its_way();
        users.on_written(Session(7), 1, Slot(9), Ok(Vec::new()));
        users.on_opened(0, Session(20), Some(Session(7)));
        let _next = propose(&mut users, "y");
        assert!(matches!(users.commands()[..], [Command::Open { .. }]));
    }
}
