//! The parts of messages and records: one way to write each, for the wire and the disk alike.

use std::sync::Arc;

use tenure_proto::quorum::{MAX_LISTED, MAX_MEMBERS, NodeSet, Quorums, Rule};
use tenure_proto::strong::epoch::{
    Ballot, Barred, Body, Charter, CharterId, Epoch, Lineage, StoreId, Stores,
};
use tenure_proto::strong::{Grant, Holder, InstanceId, Term};
use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Span, Stamp};
use tenure_proto::{GroupId, Incarnation, LocalTime, NodeId};

use super::{DecodeError, Reader, Writer};
use crate::name::{GroupName, MAX_GROUP_NAME, MAX_NODE_NAME, NodeName};

/// A value with one form in bytes.
pub(crate) trait Wire: Sized {
    fn write(&self, to: &mut Writer);
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// A list of at most `most`, in practice a few.
pub(crate) fn read_list<T: Wire>(from: &mut Reader<'_>, most: usize) -> Result<Vec<T>, DecodeError> {
    let count = from.small::<usize>()?;
    if count > most {
        return Err(DecodeError::TooLong);
    }
    (0..count).map(|_| T::read(from)).collect()
}

pub(crate) fn write_list<T: Wire>(to: &mut Writer, list: &[T]) {
    to.number(list.len() as u64);
    list.iter().for_each(|value| value.write(to));
}

impl Wire for u64 {
    fn write(&self, to: &mut Writer) {
        to.number(*self);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.number()
    }
}

impl Wire for NodeId {
    fn write(&self, to: &mut Writer) {
        to.raw(&self.0.to_be_bytes());
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        read_hash(from).map(Self)
    }
}

impl Wire for GroupId {
    fn write(&self, to: &mut Writer) {
        to.raw(&self.0.to_be_bytes());
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        read_hash(from).map(Self)
    }
}

/// 64 bits of a hash: as a number of seven bits a byte they would only be longer.
fn read_hash(from: &mut Reader<'_>) -> Result<u64, DecodeError> {
    let bytes = from.raw(8)?;
    Ok(bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

impl Wire for NodeName {
    fn write(&self, to: &mut Writer) {
        to.text(self.as_str());
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::new(from.text(MAX_NODE_NAME)?).map_err(|_| DecodeError::Invalid)
    }
}

impl Wire for GroupName {
    fn write(&self, to: &mut Writer) {
        to.text(self.as_str());
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::new(from.text(MAX_GROUP_NAME)?).map_err(|_| DecodeError::Invalid)
    }
}

impl Wire for LocalTime {
    fn write(&self, to: &mut Writer) {
        to.number(self.as_nanos());
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.number().map(Self::from_nanos)
    }
}

impl Wire for LocalSpan {
    fn write(&self, to: &mut Writer) {
        to.number(self.as_nanos());
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.number().map(Self::from_nanos)
    }
}

impl Wire for Span {
    fn write(&self, to: &mut Writer) {
        to.number(self.as_nanos());
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.number().map(Self::from_nanos)
    }
}

impl Wire for Term {
    fn write(&self, to: &mut Writer) {
        to.number(self.0);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.number().map(Self)
    }
}

impl Wire for Epoch {
    fn write(&self, to: &mut Writer) {
        to.number(self.0);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.number().map(Self)
    }
}

impl Wire for NodeSet {
    fn write(&self, to: &mut Writer) {
        to.number(self.bits());
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.number().map(Self::from_bits)
    }
}

impl Wire for Incarnation {
    /// Members count their lives; candidates draw a number of 128 bits.
    fn write(&self, to: &mut Writer) {
        match u64::try_from(self.0) {
            Ok(small) => {
                to.byte(0);
                to.number(small);
            }
            Err(_) => {
                to.byte(1);
                to.wide(self.0);
            }
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.byte()? {
            0 => from.number().map(|small| Self(u128::from(small))),
            1 => from.wide().map(Self),
            other => Err(DecodeError::Kind(u64::from(other))),
        }
    }
}

impl Wire for Holder {
    fn write(&self, to: &mut Writer) {
        self.node.write(to);
        self.incarnation.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { node: NodeId::read(from)?, incarnation: Incarnation::read(from)? })
    }
}

impl Wire for InstanceId {
    fn write(&self, to: &mut Writer) {
        self.holder.write(to);
        to.number(self.seq);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { holder: Holder::read(from)?, seq: from.number()? })
    }
}

impl Wire for Stamp {
    fn write(&self, to: &mut Writer) {
        self.incarnation.write(to);
        self.at.write(to);
        to.number(u64::from(self.count));
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { incarnation: Incarnation::read(from)?, at: LocalTime::read(from)?, count: from.small()? })
    }
}

impl Wire for Grant {
    fn write(&self, to: &mut Writer) {
        self.holder.write(to);
        self.epoch.write(to);
        self.newest.write(to);
        self.term.write(to);
        self.until.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            holder: Holder::read(from)?,
            epoch: Epoch::read(from)?,
            newest: InstanceId::read(from)?,
            term: Term::read(from)?,
            until: LocalTime::read(from)?,
        })
    }
}

impl Wire for Ballot {
    fn write(&self, to: &mut Writer) {
        to.number(self.number);
        to.option(self.node.as_ref(), |to, node| node.write(to));
        self.incarnation.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            number: from.number()?,
            node: from.option(NodeId::read)?,
            incarnation: Incarnation::read(from)?,
        })
    }
}

impl Wire for Clockwork {
    fn write(&self, to: &mut Writer) {
        match self.bound {
            Bound::Drift(drift) => {
                to.byte(0);
                to.number(u64::from(drift.as_ppm()));
            }
            Bound::Skew(skew) => {
                to.byte(1);
                skew.write(to);
            }
        }
        self.tick.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let bound = match from.byte()? {
            0 => Bound::Drift(Drift::from_ppm(from.small()?).ok_or(DecodeError::Invalid)?),
            1 => Bound::Skew(LocalSpan::read(from)?),
            other => return Err(DecodeError::Kind(u64::from(other))),
        };
        Ok(Self { bound, tick: LocalSpan::read(from)? })
    }
}

impl Wire for Quorums {
    fn write(&self, to: &mut Writer) {
        write_list(to, self.members());
        match self.rule() {
            Rule::Majority => to.byte(0),
            Rule::Weighted(weights) => {
                to.byte(1);
                write_list(to, weights);
            }
            Rule::Grid { rows, columns } => {
                to.byte(2);
                to.number(*rows as u64);
                to.number(*columns as u64);
            }
            Rule::List(sets) => {
                to.byte(3);
                write_list(to, sets);
            }
        }
    }
    /// Whatever comes in is checked like what an operator types: quorums that need not meet are
    /// refused.
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let members = read_list(from, MAX_MEMBERS)?;
        let rule = match from.byte()? {
            0 => Rule::Majority,
            1 => Rule::Weighted(read_list(from, MAX_MEMBERS)?),
            2 => Rule::Grid { rows: from.small()?, columns: from.small()? },
            3 => Rule::List(read_list(from, MAX_LISTED)?),
            other => return Err(DecodeError::Kind(u64::from(other))),
        };
        Self::new(members, rule).map_err(|_| DecodeError::Invalid)
    }
}

impl Wire for Body {
    fn write(&self, to: &mut Writer) {
        to.boxed(|to| {
            self.quorums.write(to);
            self.clocks.write(to);
            self.longest_lease.write(to);
            write_stores(&self.stores, self.quorums.members(), to);
            // Few clusters ever bar a group: for the others not a byte changes.
            if !self.barred.is_empty() {
                write_list(to, self.barred.groups());
            }
        });
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.boxed(|from| {
            let quorums = Quorums::read(from)?;
            let (clocks, longest_lease) = (Clockwork::read(from)?, Span::read(from)?);
            let stores = read_stores(quorums.members(), from)?;
            let groups = if from.is_empty() { Vec::new() } else { read_list(from, Barred::MOST)? };
            let barred = Barred::new(groups).map_err(|_| DecodeError::TooLong)?;
            Ok(Self { quorums, clocks, longest_lease, stores, barred })
        })
    }
}

/// The stores of members, in their order; nothing else can be said of them.
fn write_stores(stores: &Stores, members: &[NodeId], to: &mut Writer) {
    for member in members {
        to.option(stores.get(*member).as_ref(), |to, store| to.wide(store.0));
    }
}

fn read_stores(members: &[NodeId], from: &mut Reader<'_>) -> Result<Stores, DecodeError> {
    let store = |member: &NodeId| Ok(from.option(Reader::wide)?.map(|store| (*member, StoreId(store))));
    members.iter().map(store).filter_map(Result::transpose).collect()
}

impl Wire for Lineage {
    fn write(&self, to: &mut Writer) {
        to.number(self.draws().len() as u64);
        self.draws().iter().for_each(|draw| to.wide(*draw));
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = from.small::<usize>()?;
        if count > Self::MOST {
            return Err(DecodeError::TooLong);
        }
        let draws = (0..count).map(|_| from.wide()).collect::<Result<_, _>>()?;
        Self::new(draws).ok_or(DecodeError::Invalid)
    }
}

impl Wire for CharterId {
    fn write(&self, to: &mut Writer) {
        self.lineage.write(to);
        self.epoch.write(to);
        to.wide(self.digest);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { lineage: Lineage::read(from)?, epoch: Epoch::read(from)?, digest: from.wide()? })
    }
}

impl Wire for Arc<Charter> {
    fn write(&self, to: &mut Writer) {
        to.boxed(|to| {
            self.epoch.write(to);
            self.lineage.write(to);
            self.body.write(to);
            to.option(self.before.as_ref(), |to, before| before.write(to));
            self.floor.write(to);
        });
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from.boxed(|from| {
            Ok(Self::new(Charter {
                epoch: Epoch::read(from)?,
                lineage: Lineage::read(from)?,
                body: Body::read(from)?,
                before: from.option(Body::read)?,
                floor: Term::read(from)?,
            }))
        })
    }
}
