//! The state that the log keeps in the laboratory: a few keys with numbers, and the last answer of
//! each session.

use std::collections::BTreeMap;

use tenure_proto::log::{Bytes, Session};

/// A key.
pub type KeyName = u8;

/// A client's write: the former value is its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    /// Where.
    pub key: KeyName,
    /// What: no value is ever written by two different operations.
    pub value: u64,
}

impl Write {
    /// As the log carries it.
    pub(super) fn encode(self) -> Bytes {
        let mut bytes = vec![self.key];
        bytes.extend(self.value.to_be_bytes());
        bytes.into()
    }

    /// Reads what `encode` wrote.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (key, value) = bytes.split_first()?;
        Some(Self { key: *key, value: u64::from_be_bytes(value.try_into().ok()?) })
    }
}

/// The keys and the answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Kv {
    values: BTreeMap<KeyName, u64>,
    /// The number of each session's last write, and what it answered.
    answers: BTreeMap<Session, (u64, Option<u64>)>,
}

impl Kv {
    pub(super) fn get(&self, key: KeyName) -> Option<u64> {
        self.values.get(&key).copied()
    }

    pub(super) fn write(&mut self, session: Session, number: u64, write: Write) -> Option<u64> {
        let former = self.values.insert(write.key, write.value);
        self.answers.insert(session, (number, former));
        former
    }

    /// The answer of a write that was carried out, if it was the session's last.
    pub(super) fn answer(&self, session: Session, number: u64) -> Option<Option<u64>> {
        self.answers.get(&session).filter(|(last, _)| *last == number).map(|(_, former)| *former)
    }

    pub(super) fn close(&mut self, session: Session) {
        self.answers.remove(&session);
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut bytes = vec![u8::try_from(self.values.len()).unwrap_or(u8::MAX)];
        for (key, value) in &self.values {
            bytes.push(*key);
            bytes.extend(value.to_be_bytes());
        }
        for (session, (number, former)) in &self.answers {
            bytes.extend(session.0.to_be_bytes());
            bytes.extend(number.to_be_bytes());
            bytes.push(u8::from(former.is_some()));
            bytes.extend(former.unwrap_or(0).to_be_bytes());
        }
        bytes.into()
    }

    /// Reads what [`Kv::encode`] wrote; nothing else is ever given to it.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let mut kv = Self::default();
        let Some((many, mut rest)) = bytes.split_first() else { return kv };
        for _ in 0..*many {
            let (Some(key), Some(value)) = (take::<1>(&mut rest), take::<8>(&mut rest)) else { break };
            kv.values.insert(key[0], u64::from_be_bytes(value));
        }
        while let (Some(session), Some(number), Some(some), Some(former)) =
            (take::<8>(&mut rest), take::<8>(&mut rest), take::<1>(&mut rest), take::<8>(&mut rest))
        {
            let former = (some[0] == 1).then_some(u64::from_be_bytes(former));
            kv.answers.insert(Session(u64::from_be_bytes(session)), (u64::from_be_bytes(number), former));
        }
        kv
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, others) = rest.split_first_chunk::<N>()?;
    *rest = others;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_back_as_it_was_written() {
        let mut kv = Kv::default();
        kv.write(Session(3), 1, Write { key: 1, value: 10 });
        kv.write(Session(4), 7, Write { key: 1, value: 11 });
        kv.write(Session(4), 8, Write { key: 2, value: 12 });
        assert_eq!(Kv::decode(&kv.encode()), kv);
        assert_eq!((kv.answer(Session(4), 8), kv.answer(Session(4), 7)), (Some(None), None));
    }
}
