//! The wire format: a datagram is a row of items.
//!
//! An item is a tag and a box, that is a length and fields:
//!
//! ```text
//!   tag   length   fields …     tag   length   fields …     …
//! ```
//!
//! So every item can be passed over without being understood. An unknown tag belongs to a later
//! version and is skipped, and so is what a later version appends to the fields. An item that makes
//! no sense is an error of its own, and those after it are read all the same; only where the tags
//! and lengths themselves break off is the rest lost. A later version sends a field that it cannot
//! append (a new kind of talk, for example) only to peers that have greeted it with that version.
//!
//! **A group is named once.** An item says its group by number or by name, never both, and what is
//! nested in it (the request that a hand-over passes on) is about the same group. A process that
//! may ask for some groups only is judged by the name that it gives, and there is no second place
//! in which it could give another.
//!
//! **Reading takes little.** Any bytes give items or errors. Every list and text has a limit, and
//! no length is believed before the bytes are there: what has been read holds at most some 128
//! bytes for each byte that came in.
//!
//! Sizes, with the numbers of a cluster that has run for weeks: a renewal has 45 bytes and the
//! answer to it 36, so that a datagram of [`MAX_DATAGRAM`] carries 25 renewals or 32 answers.

mod epoch;
mod eventual;
mod local;
mod machine;
mod operator_request;
mod talk;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tenure_proto::quorum::MAX_MEMBERS;
use tenure_proto::strong::epoch::{Charter, CharterId, Epoch, StoreId};
use tenure_proto::strong::{Message, Term, Token};
use tenure_proto::time::LocalSpan;
use tenure_proto::{GroupId, Incarnation, LocalTime, NodeId};
use thiserror::Error;

use crate::codec::{DecodeError, Reader, Wire, Writer, read_list, write_list};
pub(crate) use crate::contact::Contact;
use crate::contact::{MAX_ADDRESS, is_address};
use crate::measures::Measures;
use crate::name::GroupName;
use crate::seal::{MAX_TOLD, Revocation, Serial};
pub(crate) use eventual::EventualTalk;
pub(crate) use local::LocalTalk;
pub(crate) use operator_request::{Ask, Order, Pass, Said, Told};

/// The most bytes of one datagram, the seal among them: no network on the way takes it apart.
pub(crate) const MAX_DATAGRAM: usize = 1200;

/// The most bytes that a leader proclaims at a time: two of them fit into a datagram.
pub(crate) const MAX_PROCLAIM: usize = 512;

/// The most contacts of one item: as many as there can be members.
pub(crate) const MAX_CONTACTS: usize = MAX_MEMBERS;

/// One thing that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A message of the strong machine.
    Machine {
        /// The group by name, where the receiver may not know it: for acquisitions, and for all
        /// that is said by those who are no members. Always the name of the message's own group.
        group: Option<GroupName>,
        /// The message.
        message: Message,
    },
    /// Names and addresses of nodes that other items mention by number. At most [`MAX_CONTACTS`].
    Contacts(Vec<Contact>),
    /// An observer wants to be told about a group, for a while.
    Watch {
        /// Which.
        group: GroupName,
        /// The observer's clock: the report that answers has it as its echo. Zero, and an item of
        /// its own, where the observer asks for no echo, as older versions do.
        asked: LocalTime,
    },
    /// ... and no more.
    Unwatch {
        /// Which.
        group: GroupId,
    },
    /// A member tells an observer what it knows of a group.
    Report(Report),
    /// A member does not tell an observer of a group: the observer's key watches or names too many.
    Limited {
        /// Which.
        group: GroupId,
    },
    /// A leader's newest word, passed on by members: nothing older may replace it.
    Proclaim(Proclaim),
    /// Which charter does the cluster go by? From those who have no store to tell them.
    AskCharter,
    /// This one: it is decided, or it founded the cluster.
    Charter(Arc<Charter>),
    /// Whose charter and store the sender has: the first words of a session with a process that has
    /// the cluster's key.
    Origin(Origin),
    /// Tell that again, with this number: nothing of yours counts before.
    AskOrigin {
        /// Drawn for this question alone: the answer proves that its sender lives now.
        nonce: u128,
    },
    /// The receiver's store is not to be used any more: a later life of it, or another process of
    /// the same, was heard.
    Condemned {
        /// Which store.
        store: StoreId,
        /// The highest life that was heard.
        highest: Incarnation,
    },
    /// For the measurement of clock rates.
    Ping {
        /// The sender's clock.
        at: LocalTime,
    },
    /// The answer to it.
    Pong {
        /// The time of the ping.
        echo: LocalTime,
        /// The answering process's clock.
        at: LocalTime,
    },
    /// Something is asked of a leader, or first of members: who leads?
    Ask(Ask),
    /// The answer to that.
    Told(Told),
    /// A word of an eventual group, from one member to another.
    Eventual(EventualTalk),
    /// A datagram of a local group, from one member to another.
    Local(LocalTalk),
    /// These keys were revoked. From one member to another.
    Revoked {
        /// At most [`MAX_TOLD`] of them.
        keys: Vec<Revocation>,
        /// Whether the sender wants to hear when they are on the disk.
        answer: bool,
    },
    /// The sender has these revoked keys on its disk. At most [`MAX_TOLD`].
    RevokedKept(Vec<Serial>),
    /// A word for a hand-over between two who have no session with each other, passed on by a
    /// member.
    Pass(Pass),
    /// The counts of a leader that is no member since it last told.
    Measures(Box<Measures>),
}

/// Where a process comes from: compared before anything that it says counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The charter that it goes by, if it knows one.
    pub goes_by: Option<CharterId>,
    /// Its store, if it has one.
    pub store: Option<StoreId>,
    /// Drawn when the process started: two processes with copies of one store differ in it.
    pub start: u128,
    /// The number of the question that this answers.
    pub echo: Option<u128>,
}

/// A member's report about a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The group.
    pub group: GroupId,
    /// The member's epoch.
    pub epoch: Epoch,
    /// The state of the group at that member.
    pub state: GroupState,
    /// The time of the report; `None` for those who do not ask for it.
    pub when: Option<When>,
}

/// The time of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct When {
    /// The reading at which the observer asked for it; zero if it was not asked for.
    pub echo: LocalTime,
    /// The member's clock: orders the reports of one member.
    pub at: LocalTime,
    /// For how much longer the holder of the grant leads at least, as far as the member can tell;
    /// zero if it cannot.
    pub left: LocalSpan,
}

/// How a member stands to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupState {
    /// There is no live grant here.
    Free {
        /// The largest term seen.
        after: Term,
    },
    /// There is one.
    Bound {
        /// Whose.
        holder: NodeId,
        /// The term of the grant.
        term: Term,
        /// Whether the holder is known to lead: it has renewed, or says so itself.
        leads: bool,
    },
    /// Too few members are heard of to elect anybody: this one speaks for them, without authority.
    Weak {
        /// Which.
        leader: NodeId,
    },
}

/// A leader's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proclaim {
    /// In which group.
    pub group: GroupId,
    /// In which epoch.
    pub epoch: Epoch,
    /// The leader.
    pub leader: NodeId,
    /// Orders what is proclaimed: by term, then by number.
    pub token: Token,
    /// The body, at most [`MAX_PROCLAIM`] bytes; without one it says only "I lead".
    pub body: Option<Vec<u8>>,
}

/// Why an item was not written: nobody would understand it. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum EncodeError {
    /// Nodes change their members gaplessly and never come back without their disk, so they never
    /// say this.
    #[error("nodes do not speak of {0}")]
    Unspoken(&'static str),
    /// A list, text or body is longer than receivers take.
    #[error("a list, text or body is too long")]
    TooLong,
    /// The name given is not that of the message's group, or the message is of two groups.
    #[error("the message is of another group than it is said to be")]
    OtherGroup,
    /// An address is not visible ASCII.
    #[error("an address has characters that no address has")]
    Address,
}

/// Which item follows. Tags are never used again for something else; all are below 128 and take one
/// byte.
mod tag {
    pub(super) const REQUEST: u64 = 1;
    pub(super) const EXTEND: u64 = 2;
    pub(super) const HERE: u64 = 3;
    pub(super) const OK: u64 = 4;
    pub(super) const NACK: u64 = 5;
    pub(super) const RELEASE: u64 = 6;
    pub(super) const TALK: u64 = 7;
    pub(super) const EPOCH: u64 = 8;
    pub(super) const HEIGHT: u64 = 9;
    pub(super) const CONTACTS: u64 = 16;
    pub(super) const WATCH: u64 = 17;
    pub(super) const UNWATCH: u64 = 18;
    pub(super) const REPORT: u64 = 19;
    pub(super) const PROCLAIM: u64 = 20;
    pub(super) const PING: u64 = 21;
    pub(super) const PONG: u64 = 22;
    pub(super) const ASK_CHARTER: u64 = 23;
    pub(super) const CHARTER: u64 = 24;
    pub(super) const ASK: u64 = 25;
    pub(super) const TOLD: u64 = 26;
    pub(super) const PASS: u64 = 27;
    pub(super) const EVENTUAL: u64 = 28;
    pub(super) const LOCAL: u64 = 29;
    pub(super) const REVOKED: u64 = 30;
    pub(super) const REVOKED_KEPT: u64 = 31;
    pub(super) const ORIGIN: u64 = 32;
    pub(super) const ASK_ORIGIN: u64 = 33;
    pub(super) const LIMITED: u64 = 34;
    pub(super) const CONDEMNED: u64 = 35;
    pub(super) const MEASURES: u64 = 36;
    pub(super) const WATCH_TIMED: u64 = 37;
    pub(super) const REPORT_TIMED: u64 = 38;
}

/// Most items are no longer than this, in bytes.
const USUAL: usize = 128;

/// The tag of an item and its length: one byte each, or two for a long one.
const HEAD: usize = 4;

/// One item as bytes. Items one after the other are a datagram. `decode` reads the result back as
/// the same item.
pub(crate) fn encode(item: &Item) -> Result<Vec<u8>, EncodeError> {
    let mut fields = Writer::with_room(USUAL);
    let tag = write(item, &mut fields)?;
    let fields = fields.into_bytes();
    let mut to = Writer::with_room(fields.len() + HEAD);
    to.number(tag);
    to.bytes(&fields);
    Ok(to.into_bytes())
}

/// The items of a datagram, read one by one as they are asked for. Ends after the first length that
/// is no length.
pub(crate) fn decode(bytes: &[u8]) -> impl Iterator<Item = Result<Item, DecodeError>> + '_ {
    Items(Reader::new(bytes))
}

struct Items<'a>(Reader<'a>);

impl<'a> Items<'a> {
    fn next_box(&mut self) -> Result<(u64, Reader<'a>), DecodeError> {
        let tag = self.0.number()?;
        let fields = self.0.bytes(usize::MAX)?;
        Ok((tag, Reader::new(fields)))
    }
}

impl Iterator for Items<'_> {
    type Item = Result<Item, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.0.is_empty() {
            let known = match self.next_box() {
                Ok((tag, mut fields)) => read(tag, &mut fields),
                Err(error) => {
                    self.0 = Reader::new(&[]);
                    Err(error)
                }
            };
            if let Some(item) = known.transpose() {
                return Some(item);
            }
        }
        None
    }
}

/// Writes the fields and says what they are.
fn write(item: &Item, to: &mut Writer) -> Result<u64, EncodeError> {
    match item {
        Item::Machine { group, message } => machine::write(group.as_ref(), message, to),
        Item::Contacts(contacts) => {
            limit(contacts.len(), MAX_CONTACTS)?;
            contacts.iter().try_for_each(check_contact)?;
            write_list(to, contacts);
            Ok(tag::CONTACTS)
        }
        Item::Watch { group, asked: LocalTime::ZERO } => one(group, tag::WATCH, to),
        Item::Watch { group, asked } => {
            group.write(to);
            one(asked, tag::WATCH_TIMED, to)
        }
        Item::Unwatch { group } => one(group, tag::UNWATCH, to),
        Item::Limited { group } => one(group, tag::LIMITED, to),
        Item::Report(report) => {
            report.write(to);
            Ok(if report.when.is_some() { tag::REPORT_TIMED } else { tag::REPORT })
        }
        Item::Proclaim(proclaim) => {
            limit(proclaim.body.as_ref().map_or(0, Vec::len), MAX_PROCLAIM)?;
            proclaim.write(to);
            Ok(tag::PROCLAIM)
        }
        Item::AskCharter => Ok(tag::ASK_CHARTER),
        Item::Charter(charter) => one(charter, tag::CHARTER, to),
        Item::Origin(origin) => one(origin, tag::ORIGIN, to),
        Item::AskOrigin { nonce } => {
            to.wide(*nonce);
            Ok(tag::ASK_ORIGIN)
        }
        Item::Condemned { store, highest } => {
            to.wide(store.0);
            highest.write(to);
            Ok(tag::CONDEMNED)
        }
        Item::Ping { at } => one(at, tag::PING, to),
        Item::Pong { echo, at } => {
            echo.write(to);
            at.write(to);
            Ok(tag::PONG)
        }
        Item::Ask(ask) => {
            ask.check()?;
            ask.write(to);
            Ok(tag::ASK)
        }
        Item::Told(told) => {
            told.check()?;
            told.write(to);
            Ok(tag::TOLD)
        }
        Item::Pass(pass) => {
            pass.write(to)?;
            Ok(tag::PASS)
        }
        Item::Eventual(said) => {
            said.write(to)?;
            Ok(tag::EVENTUAL)
        }
        Item::Local(said) => one(said, tag::LOCAL, to),
        Item::Measures(measures) => one(measures.as_ref(), tag::MEASURES, to),
        Item::Revoked { keys, answer } => {
            to.byte(u8::from(*answer));
            write_keys(to, keys, tag::REVOKED)
        }
        Item::RevokedKept(keys) => write_keys(to, keys, tag::REVOKED_KEPT),
    }
}

/// A value that is all of an item.
fn one(value: &impl Wire, tag: u64, to: &mut Writer) -> Result<u64, EncodeError> {
    value.write(to);
    Ok(tag)
}

fn write_keys<T: Wire>(to: &mut Writer, keys: &[T], tag: u64) -> Result<u64, EncodeError> {
    limit(keys.len(), MAX_TOLD)?;
    write_list(to, keys);
    Ok(tag)
}

/// Reads the fields that belong to a tag; `None` if nobody here knows it.
fn read(tag: u64, from: &mut Reader<'_>) -> Result<Option<Item>, DecodeError> {
    let item = match tag {
        tag::CONTACTS => Item::Contacts(read_list(from, MAX_CONTACTS)?),
        tag::WATCH => Item::Watch { group: GroupName::read(from)?, asked: LocalTime::ZERO },
        tag::WATCH_TIMED => Item::Watch { group: GroupName::read(from)?, asked: LocalTime::read(from)? },
        tag::UNWATCH => Item::Unwatch { group: GroupId::read(from)? },
        tag::LIMITED => Item::Limited { group: GroupId::read(from)? },
        tag::REPORT => Item::Report(Report::read(from)?),
        tag::REPORT_TIMED => {
            let report = Report::read(from)?;
            Item::Report(Report { when: Some(When::read(from)?), ..report })
        }
        tag::PROCLAIM => Item::Proclaim(Proclaim::read(from)?),
        tag::ASK_CHARTER => Item::AskCharter,
        tag::CHARTER => Item::Charter(Arc::read(from)?),
        tag::ORIGIN => Item::Origin(Origin::read(from)?),
        tag::ASK_ORIGIN => Item::AskOrigin { nonce: from.wide()? },
        tag::CONDEMNED => Item::Condemned { store: StoreId(from.wide()?), highest: Incarnation::read(from)? },
        tag::PING => Item::Ping { at: LocalTime::read(from)? },
        tag::PONG => Item::Pong { echo: LocalTime::read(from)?, at: LocalTime::read(from)? },
        tag::ASK => Item::Ask(Ask::read(from)?),
        tag::TOLD => Item::Told(Told::read(from)?),
        tag::PASS => Item::Pass(Pass::read(from)?),
        tag::EVENTUAL => Item::Eventual(EventualTalk::read(from)?),
        tag::LOCAL => Item::Local(LocalTalk::read(from)?),
        tag::MEASURES => Item::Measures(Box::new(Measures::read(from)?)),
        tag::REVOKED => {
            let answer = match from.byte()? {
                0 => false,
                1 => true,
                other => return unknown(other),
            };
            Item::Revoked { answer, keys: read_list(from, MAX_TOLD)? }
        }
        tag::REVOKED_KEPT => Item::RevokedKept(read_list(from, MAX_TOLD)?),
        other => return machine::read(other, from),
    };
    Ok(Some(item))
}

fn limit(count: usize, most: usize) -> Result<(), EncodeError> {
    if count > most { Err(EncodeError::TooLong) } else { Ok(()) }
}

fn check_contact(contact: &Contact) -> Result<(), EncodeError> {
    let Some(address) = &contact.address else { return Ok(()) };
    limit(address.len(), MAX_ADDRESS)?;
    if is_address(address) { Ok(()) } else { Err(EncodeError::Address) }
}

fn unknown<T>(kind: u8) -> Result<T, DecodeError> {
    Err(DecodeError::Kind(u64::from(kind)))
}

impl Wire for Origin {
    fn write(&self, to: &mut Writer) {
        to.option(self.goes_by.as_ref(), |to, charter| charter.write(to));
        to.option(self.store.as_ref(), |to, store| to.wide(store.0));
        to.wide(self.start);
        to.option(self.echo.as_ref(), |to, echo| to.wide(*echo));
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            goes_by: from.option(CharterId::read)?,
            store: from.option(|from| from.wide().map(StoreId))?,
            start: from.wide()?,
            echo: from.option(Reader::wide)?,
        })
    }
}

impl Wire for Report {
    fn write(&self, to: &mut Writer) {
        self.group.write(to);
        self.epoch.write(to);
        self.state.write(to);
        if let Some(when) = &self.when {
            when.write(to);
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (group, epoch, state) = (GroupId::read(from)?, Epoch::read(from)?, GroupState::read(from)?);
        Ok(Self { group, epoch, state, when: None })
    }
}

impl Wire for When {
    fn write(&self, to: &mut Writer) {
        self.echo.write(to);
        self.at.write(to);
        self.left.write(to);
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { echo: LocalTime::read(from)?, at: LocalTime::read(from)?, left: LocalSpan::read(from)? })
    }
}

impl Wire for GroupState {
    fn write(&self, to: &mut Writer) {
        match self {
            Self::Free { after } => {
                to.byte(0);
                after.write(to);
            }
            Self::Bound { holder, term, leads } => {
                to.byte(if *leads { 2 } else { 1 });
                holder.write(to);
                term.write(to);
            }
            Self::Weak { leader } => {
                to.byte(3);
                leader.write(to);
            }
        }
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.byte()? {
            0 => Ok(Self::Free { after: Term::read(from)? }),
            kind @ (1 | 2) => {
                Ok(Self::Bound { holder: NodeId::read(from)?, term: Term::read(from)?, leads: kind == 2 })
            }
            3 => Ok(Self::Weak { leader: NodeId::read(from)? }),
            other => unknown(other),
        }
    }
}

impl Wire for Proclaim {
    fn write(&self, to: &mut Writer) {
        self.group.write(to);
        self.epoch.write(to);
        self.leader.write(to);
        self.token.write(to);
        to.option(self.body.as_ref(), |to, body| to.bytes(body));
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            group: GroupId::read(from)?,
            epoch: Epoch::read(from)?,
            leader: NodeId::read(from)?,
            token: Token::read(from)?,
            body: from.option(|from| Ok(from.bytes(MAX_PROCLAIM)?.to_vec()))?,
        })
    }
}

impl Wire for Token {
    fn write(&self, to: &mut Writer) {
        self.term().write(to);
        to.number(self.number());
    }
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self::new(Term::read(from)?, from.number()?))
    }
}
