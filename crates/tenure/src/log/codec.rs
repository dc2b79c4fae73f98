//! Messages of a log and records of its disk, as bytes. Lengths are bounded by the frame or the
//! file that they came in: the reader takes no more memory than the bytes account for.

use tenure_proto::log::{
    Ballot, Bytes, Entry, Message, Record, Seen, Session, Sessions, Slot, Standing, Vote,
};
use tenure_proto::quorum::MAX_MEMBERS;
use tenure_proto::{Incarnation, eventual};

use super::link::Talk;
use super::snapshots::Held;
use super::transfer::Resume;
use crate::codec::{DecodeError, Reader, Wire, Writer, read_list, write_list};

impl Wire for Slot {
    fn write(&self, to: &mut Writer) {
        to.number(self.0);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.number().map(Self)
    }
}

impl Wire for Ballot {
    fn write(&self, to: &mut Writer) {
        to.number(self.term);
        to.number(self.round);
        self.node.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { term: from.number()?, round: from.number()?, node: Wire::read(from)? })
    }
}

impl Wire for Bytes {
    fn write(&self, to: &mut Writer) {
        to.bytes(self);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.bytes(usize::MAX).map(Self::from)
    }
}

impl Wire for Entry {
    fn write(&self, to: &mut Writer) {
        match self {
            Self::Noop => to.byte(0),
            Self::Open { nonce } => {
                to.byte(1);
                to.wide(*nonce);
            }
            Self::Write { session, number, bytes } => {
                to.byte(2);
                to.number(session.0);
                to.number(*number);
                bytes.write(to);
            }
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.byte()? {
            0 => Ok(Self::Noop),
            1 => Ok(Self::Open { nonce: from.wide()? }),
            2 => Ok(Self::Write {
                session: Session(from.number()?),
                number: from.number()?,
                bytes: Wire::read(from)?,
            }),
            other => Err(DecodeError::Kind(u64::from(other))),
        }
    }
}

impl Wire for Vote {
    fn write(&self, to: &mut Writer) {
        let ballot = match &self.standing {
            Standing::Accepted(ballot) => Some(ballot),
            Standing::Chosen => None,
        };
        to.option(ballot, |to, ballot| ballot.write(to));
        self.entry.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let standing = from.option(Ballot::read)?.map_or(Standing::Chosen, Standing::Accepted);
        Ok(Self { standing, entry: Wire::read(from)? })
    }
}

impl Wire for (Slot, Entry) {
    fn write(&self, to: &mut Writer) {
        self.0.write(to);
        self.1.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok((Wire::read(from)?, Wire::read(from)?))
    }
}

impl Wire for (Slot, Vote) {
    fn write(&self, to: &mut Writer) {
        self.0.write(to);
        self.1.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok((Wire::read(from)?, Wire::read(from)?))
    }
}

impl Wire for (Session, Seen) {
    fn write(&self, to: &mut Writer) {
        to.number(self.0.0);
        to.wide(self.1.nonce);
        to.number(self.1.last);
        self.1.used.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let session = Session(from.number()?);
        Ok((session, Seen { nonce: from.wide()?, last: from.number()?, used: Wire::read(from)? }))
    }
}

impl Wire for Sessions {
    fn write(&self, to: &mut Writer) {
        write_list(to, &self.iter().collect::<Vec<_>>());
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let parts: Vec<(Session, Seen)> = read_list(from, usize::MAX)?;
        Ok(Self::from_parts(parts))
    }
}

impl Wire for Message {
    fn write(&self, to: &mut Writer) {
        match self {
            Self::Prepare { ballot, from } => {
                to.byte(0);
                ballot.write(to);
                from.write(to);
            }
            Self::Promise { ballot, from, votes, next, base, applied } => {
                to.byte(1);
                ballot.write(to);
                from.write(to);
                write_list(to, votes);
                next.unwrap_or_default().write(to);
                base.write(to);
                applied.write(to);
            }
            Self::Accept { ballot, entries, upto } => {
                to.byte(2);
                ballot.write(to);
                write_list(to, entries);
                upto.write(to);
            }
            Self::Accepted { ballot, slots } => {
                to.byte(3);
                ballot.write(to);
                write_list(to, slots);
            }
            Self::Nack { promised } => {
                to.byte(4);
                promised.write(to);
            }
            Self::Commit { ballot, upto } => {
                to.byte(5);
                ballot.write(to);
                upto.write(to);
            }
            other => write_rest(other, to),
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match from.byte()? {
            0 => Self::Prepare { ballot: Wire::read(from)?, from: Wire::read(from)? },
            1 => Self::Promise {
                ballot: Wire::read(from)?,
                from: Wire::read(from)?,
                votes: read_list(from, usize::MAX)?,
                // Nothing is ever in slot 0.
                next: Some(Slot::read(from)?).filter(|slot| *slot != Slot(0)),
                base: Wire::read(from)?,
                applied: Wire::read(from)?,
            },
            2 => Self::Accept {
                ballot: Wire::read(from)?,
                entries: read_list(from, usize::MAX)?,
                upto: Wire::read(from)?,
            },
            3 => Self::Accepted { ballot: Wire::read(from)?, slots: read_list(from, usize::MAX)? },
            4 => Self::Nack { promised: Wire::read(from)? },
            5 => Self::Commit { ballot: Wire::read(from)?, upto: Wire::read(from)? },
            6 => Self::Fetch { from: Wire::read(from)? },
            7 => Self::Learn { entries: read_list(from, usize::MAX)?, upto: Wire::read(from)? },
            8 => Self::Install {
                upto: Wire::read(from)?,
                sessions: Wire::read(from)?,
                state: Wire::read(from)?,
            },
            9 => Self::Forward { entries: read_list(from, usize::MAX)? },
            10 => Self::Confirm { ballot: Wire::read(from)?, round: from.number()? },
            11 => Self::Confirmed { ballot: Wire::read(from)?, round: from.number()? },
            12 => Self::AskIndex { id: from.number()?, life: Incarnation::read(from)? },
            13 => Self::Index { id: from.number()?, life: Incarnation::read(from)?, upto: Wire::read(from)? },
            other => return Err(DecodeError::Kind(u64::from(other))),
        })
    }
}

/// Learning, wishes and reads.
fn write_rest(message: &Message, to: &mut Writer) {
    match message {
        Message::Fetch { from } => {
            to.byte(6);
            from.write(to);
        }
        Message::Learn { entries, upto } => {
            to.byte(7);
            write_list(to, entries);
            upto.write(to);
        }
        Message::Install { upto, sessions, state } => {
            to.byte(8);
            upto.write(to);
            sessions.write(to);
            state.write(to);
        }
        Message::Forward { entries } => {
            to.byte(9);
            write_list(to, entries);
        }
        Message::Confirm { ballot, round } => {
            to.byte(10);
            ballot.write(to);
            to.number(*round);
        }
        Message::Confirmed { ballot, round } => {
            to.byte(11);
            ballot.write(to);
            to.number(*round);
        }
        Message::AskIndex { id, life } => {
            to.byte(12);
            to.number(*id);
            life.write(to);
        }
        Message::Index { id, life, upto } => {
            to.byte(13);
            to.number(*id);
            life.write(to);
            upto.write(to);
        }
        _ => unreachable!("the others are written above"),
    }
}

/// A message with a snapshot, up to the bytes of that.
pub(super) fn write_install(upto: Slot, sessions: &Sessions, length: u64) -> Vec<u8> {
    let mut to = Writer::new();
    to.byte(0); // Of the log.
    to.byte(8);
    upto.write(&mut to);
    sessions.write(&mut to);
    to.number(length);
    to.into_bytes()
}

/// Reads the bytes of [`write_install`].
pub(super) fn read_install(from: &mut Reader<'_>) -> Result<(Slot, Sessions, u64), DecodeError> {
    match (from.byte()?, from.byte()?) {
        (0, 8) => Ok((Wire::read(from)?, Wire::read(from)?, from.number()?)),
        (_, other) => Err(DecodeError::Kind(u64::from(other))),
    }
}

impl Wire for Record {
    fn write(&self, to: &mut Writer) {
        match self {
            Self::Promised(ballot) => {
                to.byte(0);
                ballot.write(to);
            }
            Self::Accepted { slot, ballot, entry } => {
                to.byte(1);
                slot.write(to);
                ballot.write(to);
                entry.write(to);
            }
            // 2: the state itself, as older versions wrote it. 5: it is in a file of its own.
            Self::Snapshot { upto, sessions, state } => {
                to.byte(if Held::of_state(state).is_some() { 5 } else { 2 });
                upto.write(to);
                sessions.write(to);
                state.write(to);
            }
            Self::Base(slot) => {
                to.byte(3);
                slot.write(to);
            }
            Self::Forgot => to.byte(4),
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match from.byte()? {
            0 => Self::Promised(Wire::read(from)?),
            1 => Self::Accepted {
                slot: Wire::read(from)?,
                ballot: Wire::read(from)?,
                entry: Wire::read(from)?,
            },
            2 | 5 => Self::Snapshot {
                upto: Wire::read(from)?,
                sessions: Wire::read(from)?,
                state: Wire::read(from)?,
            },
            3 => Self::Base(Wire::read(from)?),
            4 => Self::Forgot,
            other => return Err(DecodeError::Kind(u64::from(other))),
        })
    }
}

impl Wire for Talk {
    fn write(&self, to: &mut Writer) {
        match self {
            Self::Log(message) => {
                to.byte(0);
                message.write(to);
            }
            Self::Election(message) => {
                to.byte(1);
                message.write(to);
            }
            Self::Resume(Resume { upto, length, got }) => {
                to.byte(2);
                upto.write(to);
                to.number(*length);
                to.number(*got);
            }
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.byte()? {
            0 => Wire::read(from).map(Self::Log),
            1 => Wire::read(from).map(Self::Election),
            2 => Ok(Self::Resume(Resume {
                upto: Wire::read(from)?,
                length: from.number()?,
                got: from.number()?,
            })),
            other => Err(DecodeError::Kind(u64::from(other))),
        }
    }
}

impl Wire for eventual::State {
    fn write(&self, to: &mut Writer) {
        to.number(self.epoch.serial);
        to.option(self.epoch.process.as_ref(), |to, process| process.write(to));
        to.number(self.fresh);
        self.bound.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let epoch = eventual::Epoch { serial: from.number()?, process: from.option(Wire::read)? };
        Ok(Self { epoch, fresh: from.number()?, bound: Wire::read(from)? })
    }
}

impl Wire for eventual::Message {
    fn write(&self, to: &mut Writer) {
        match self {
            Self::Refresh { state, round } => {
                to.byte(0);
                state.write(to);
                to.number(*round);
            }
            Self::Ack { round, ahead } => {
                to.byte(1);
                to.number(*round);
                to.option(ahead.as_ref(), |to, ahead| to.number(*ahead));
            }
            Self::Collect { read } => {
                to.byte(2);
                to.number(*read);
            }
            Self::Status { read, registry, recovers } => {
                to.byte(3);
                to.number(*read);
                write_list(to, registry);
                to.byte(u8::from(*recovers));
            }
            Self::GetEpoch { attempt } => {
                to.byte(4);
                to.number(*attempt);
            }
            Self::RetEpoch { attempt, serial } => {
                to.byte(5);
                to.number(*attempt);
                to.number(*serial);
            }
            // Of elections that run in the laboratory alone: no reader knows them.
            Self::Alive { .. } | Self::Accuse { .. } => to.byte(u8::MAX),
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match from.byte()? {
            0 => Self::Refresh { state: Wire::read(from)?, round: from.number()? },
            1 => Self::Ack { round: from.number()?, ahead: from.option(Reader::number)? },
            2 => Self::Collect { read: from.number()? },
            3 => Self::Status {
                read: from.number()?,
                registry: read_list(from, MAX_MEMBERS)?,
                recovers: from.byte()? != 0,
            },
            4 => Self::GetEpoch { attempt: from.number()? },
            5 => Self::RetEpoch { attempt: from.number()?, serial: from.number()? },
            other => return Err(DecodeError::Kind(u64::from(other))),
        })
    }
}

/// Reads one value and nothing after it.
pub(super) fn whole<T: Wire>(bytes: &[u8]) -> Result<T, DecodeError> {
    let mut from = Reader::new(bytes);
    let value = T::read(&mut from)?;
    if from.is_empty() { Ok(value) } else { Err(DecodeError::TooLong) }
}

pub(super) fn bytes_of<T: Wire>(value: &T) -> Vec<u8> {
    let mut to = Writer::new();
    value.write(&mut to);
    to.into_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tenure_proto::NodeId;
    use tenure_proto::time::Span;

    use super::*;

    fn messages() -> Vec<Message> {
        let ballot = Ballot { term: 3, round: 300, node: NodeId(u64::MAX) };
        let write = Entry::Write { session: Session(9), number: 2, bytes: b"x".to_vec().into() };
        let entries = vec![(Slot(1), Entry::Noop), (Slot(2), Entry::Open { nonce: 7 }), (Slot(3), write)];
        let votes = vec![
            (Slot(4), Vote { standing: Standing::Chosen, entry: entries[2].1.clone() }),
            (Slot(5), Vote { standing: Standing::Accepted(ballot), entry: Entry::Noop }),
        ];
        let sessions = Sessions::from_parts([(Session(9), Seen { nonce: 7, last: 2, used: Slot(3) })]);
        let (slot, life) = (Slot(1 << 40), Incarnation(1 << 100));
        vec![
            Message::Prepare { ballot, from: slot },
            Message::Promise {
                ballot,
                from: Slot(4),
                votes: votes.clone(),
                next: Some(Slot(7)),
                base: Slot(2),
                applied: Slot(3),
            },
            Message::Promise { ballot, from: slot, votes, next: None, base: Slot(2), applied: Slot(3) },
            Message::Accept { ballot, entries: entries.clone(), upto: slot },
            Message::Accepted { ballot, slots: vec![slot, Slot(0)] },
            Message::Nack { promised: ballot },
            Message::Commit { ballot, upto: slot },
            Message::Fetch { from: slot },
            Message::Learn { entries: entries.clone(), upto: slot },
            Message::Install { upto: slot, sessions, state: vec![1, 2, 3].into() },
            Message::Forward { entries: entries.into_iter().map(|(_, entry)| entry).collect() },
            Message::Confirm { ballot, round: 4 },
            Message::Confirmed { ballot, round: 4 },
            Message::AskIndex { id: 5, life },
            Message::Index { id: 5, life, upto: slot },
        ]
    }

    #[test]
    fn every_message_comes_back_and_no_part_of_one_is_taken_for_a_whole() {
        for message in messages() {
            let bytes = bytes_of(&message);
            assert_eq!(whole::<Message>(&bytes), Ok(message.clone()));
            for length in 0..bytes.len() {
                assert!(whole::<Message>(&bytes[..length]).is_err(), "{message:?} cut to {length}");
            }
        }
    }

    #[test]
    fn what_an_election_says_comes_back() {
        let epoch = eventual::Epoch::of(7, NodeId(3));
        let state = eventual::State { epoch, fresh: 9, bound: Span::from_nanos(1 << 40) };
        let registry = vec![state, eventual::State::NOTHING];
        for message in [
            eventual::Message::Refresh { state, round: 1 << 40 },
            eventual::Message::Ack { round: 2, ahead: Some(3) },
            eventual::Message::Ack { round: 2, ahead: None },
            eventual::Message::Collect { read: 4 },
            eventual::Message::Status { read: 4, registry, recovers: true },
            eventual::Message::GetEpoch { attempt: 5 },
            eventual::Message::RetEpoch { attempt: 5, serial: 6 },
        ] {
            let talk = Talk::Election(message);
            assert_eq!(whole::<Talk>(&bytes_of(&talk)), Ok(talk));
        }
    }

    #[test]
    fn every_record_comes_back() {
        let ballot = Ballot { term: 1, round: 2, node: NodeId(3) };
        let sessions = Sessions::from_parts([(Session(9), Seen { nonce: 7, last: 2, used: Slot(3) })]);
        for record in [
            Record::Promised(ballot),
            Record::Accepted { slot: Slot(4), ballot, entry: Entry::Open { nonce: u128::MAX } },
            Record::Snapshot { upto: Slot(5), sessions, state: vec![0; 300].into() },
            Record::Base(Slot(6)),
            Record::Forgot,
        ] {
            assert_eq!(whole::<Record>(&bytes_of(&record)), Ok(record));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(message) = whole::<Message>(&bytes) {
                prop_assert_eq!(whole::<Message>(&bytes_of(&message)), Ok(message));
            }
        }
    }
}
