//! The cells of the store and of the memory: one form for both.

use std::sync::Arc;

use tenure_proto::strong::epoch::{Ballot, Charter, CharterId, Epoch, StoreId};
use tenure_proto::strong::{Cell, Grant, Term};
use tenure_proto::{GroupId, Incarnation, LocalTime};

use super::{DecodeError, Reader, Wire, Writer};

const CEILING: u8 = 0;
const GRANT: u8 = 1;
const SILENCE: u8 = 2;
const CHARTER: u8 = 3;
const BALLOT: u8 = 4;
const WEDGE: u8 = 5;
const ADOPTED: u8 = 6;
const SPLIT_BRAIN: u8 = 7;
const LIFE: u8 = 8;

impl Wire for Cell {
    fn write(&self, to: &mut Writer) {
        match self {
            Self::Ceiling(term) => {
                to.byte(CEILING);
                term.write(to);
            }
            Self::Grant(group, grant) => {
                to.byte(GRANT);
                group.write(to);
                to.option(grant.as_ref(), |to, grant| grant.write(to));
            }
            Self::Silence(until) => {
                to.byte(SILENCE);
                until.write(to);
            }
            Self::Charter(charter) => {
                to.byte(CHARTER);
                charter.write(to);
            }
            Self::Ballot { epoch, promised, accepted } => {
                to.byte(BALLOT);
                epoch.write(to);
                promised.write(to);
                to.option(accepted.as_ref(), |to, (ballot, charter)| {
                    ballot.write(to);
                    charter.write(to);
                });
            }
            Self::Wedge { epoch, accepted } => {
                to.byte(WEDGE);
                epoch.write(to);
                to.option(accepted.as_ref(), |to, (term, charter)| {
                    term.write(to);
                    charter.write(to);
                });
            }
            Self::SplitBrain(other) => {
                to.byte(SPLIT_BRAIN);
                to.option(other.as_ref(), |to, other| other.write(to));
            }
            Self::Life { store, highest, start, condemned } => {
                to.byte(LIFE);
                to.wide(store.0);
                highest.write(to);
                to.wide(*start);
                to.byte(u8::from(*condemned));
            }
            Self::Adopted { epoch, at, young_until } => {
                to.byte(ADOPTED);
                epoch.write(to);
                at.write(to);
                young_until.write(to);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match from.byte()? {
            CEILING => Self::Ceiling(Term::read(from)?),
            GRANT => Self::Grant(GroupId::read(from)?, from.option(Grant::read)?),
            SILENCE => Self::Silence(LocalTime::read(from)?),
            CHARTER => Self::Charter(Arc::<Charter>::read(from)?),
            BALLOT => Self::Ballot {
                epoch: Epoch::read(from)?,
                promised: Ballot::read(from)?,
                accepted: from.option(|from| Ok((Ballot::read(from)?, Arc::<Charter>::read(from)?)))?,
            },
            WEDGE => Self::Wedge {
                epoch: Epoch::read(from)?,
                accepted: from.option(|from| Ok((Term::read(from)?, Arc::<Charter>::read(from)?)))?,
            },
            SPLIT_BRAIN => Self::SplitBrain(from.option(CharterId::read)?),
            LIFE => Self::Life {
                store: StoreId(from.wide()?),
                highest: Incarnation::read(from)?,
                start: from.wide()?,
                condemned: from.byte()? != 0,
            },
            ADOPTED => Self::Adopted {
                epoch: Epoch::read(from)?,
                at: LocalTime::read(from)?,
                young_until: LocalTime::read(from)?,
            },
            other => return Err(DecodeError::Kind(u64::from(other))),
        })
    }
}

#[cfg(test)]
mod tests {
    use tenure_proto::NodeId;
    use tenure_proto::quorum::Quorums;
    use tenure_proto::strong::epoch::{Barred, Body};
    use tenure_proto::strong::{Holder, InstanceId};
    use tenure_proto::time::{Bound, Clockwork, Drift, LocalSpan, Span};

    use super::*;

    fn charter() -> Arc<Charter> {
        Charter::founding(Body {
            quorums: Quorums::majority(vec![NodeId(1), NodeId(2), NodeId(3)]).unwrap(),
            clocks: Clockwork {
                bound: Bound::Drift(Drift::from_ppm(1000).unwrap()),
                tick: LocalSpan::from_nanos(1),
            },
            longest_lease: Span::from_millis(5000),
            stores: [(NodeId(2), StoreId(u128::MAX))].into_iter().collect(),
            barred: Barred::new(vec![GroupId(u64::MAX), GroupId(3)]).unwrap(),
        })
    }

    fn grant() -> Grant {
        let holder = Holder { node: NodeId(u64::MAX), incarnation: Incarnation(u128::MAX) };
        Grant {
            holder,
            epoch: Epoch(u64::MAX),
            newest: InstanceId { holder, seq: u64::MAX },
            term: Term(u64::MAX),
            until: LocalTime::from_nanos(u64::MAX),
        }
    }

    #[test]
    fn every_cell_comes_back_as_it_was_written() {
        let ballot = Ballot { number: 3, node: Some(NodeId(2)), incarnation: Incarnation(1 << 90) };
        let cells = [
            Cell::Ceiling(Term(256)),
            Cell::Grant(GroupId(u64::MAX), Some(grant())),
            Cell::Grant(GroupId(7), None),
            Cell::Silence(LocalTime::from_nanos(5)),
            Cell::Charter(charter()),
            Cell::Ballot { epoch: Epoch(1), promised: ballot, accepted: Some((ballot, charter())) },
            Cell::Ballot { epoch: Epoch(1), promised: ballot, accepted: None },
            Cell::Wedge { epoch: Epoch(0), accepted: Some((Term(9), charter())) },
            Cell::SplitBrain(Some(charter().id())),
            Cell::SplitBrain(None),
            Cell::Life { store: StoreId(1), highest: Incarnation(2), start: 3, condemned: true },
            Cell::Adopted {
                epoch: Epoch(u64::MAX),
                at: LocalTime::from_nanos(1),
                young_until: LocalTime::from_nanos(2),
            },
        ];
        for cell in cells {
            let mut writer = Writer::new();
            cell.write(&mut writer);
            let bytes = writer.into_bytes();
            let mut reader = Reader::new(&bytes);
            assert_eq!(Cell::read(&mut reader), Ok(cell));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_cell_of_an_unknown_kind_is_refused() {
        assert_eq!(Cell::read(&mut Reader::new(&[77])), Err(DecodeError::Kind(77)));
        assert_eq!(Cell::read(&mut Reader::new(&[])), Err(DecodeError::Truncated));
    }
}
