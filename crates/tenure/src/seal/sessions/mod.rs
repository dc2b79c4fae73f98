//! All sessions of one process. See [`super`] for how they begin, and why nothing old is ever taken
//! again.

mod queries;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use aws_lc_rs::aead::LessSafeKey;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use tenure_proto::time::LocalSpan;
use tenure_proto::{LocalTime, NodeId};

use super::claims::{Serial, Stated};
use super::floors::{Floors, Holder};
use super::identity::{Credentials, Identity, Me};
use super::keys::{KeyId, Pair};
use super::known::{Known, Peer, Place};
use super::limit::{Limiter, Rate};
use super::link::{End, Link, Terms};
use super::packet::{self, Answer, DATA_HEAD, Greeting, Hello, Introduction, Kind, Verdict, Welcome};
use super::refusal::{Counters, KeyRefusal, Refusal};
use super::scope::Rights;
use super::secret::Secret;
use crate::name::NodeName;

/// Limits on the cost of sessions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Peers with sessions, of about 2 KiB each. When there are more, the one that was silent for
    /// longest begins anew.
    pub(crate) peers: usize,
    /// How long to wait for an answer: the interval of retransmission. Shorter than a round trip,
    /// it only costs greetings.
    pub(crate) retry: LocalSpan,
    /// How long a Welcome can be used.
    pub(crate) welcome_valid: LocalSpan,
    /// Greetings answered each second, and sessions begun by them. Each costs as much as ten
    /// packets or so.
    pub(crate) welcomes: u32,
    /// The same, from one part of the network.
    pub(crate) welcomes_from_one_source: u32,
    /// Sessions that one outsider's key begins each second; five seconds' worth may begin at once.
    /// Members' are not counted.
    pub(crate) beginnings_of_one_key: u32,
    /// Peers with sessions under one outsider's key. When there are more, the one of that key that
    /// was silent for longest begins anew.
    pub(crate) peers_of_one_key: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            peers: 16_384,
            retry: LocalSpan::from_nanos(100_000_000),
            welcome_valid: LocalSpan::from_nanos(10_000_000_000),
            welcomes: 20_000,
            welcomes_from_one_source: 5_000,
            beginnings_of_one_key: 200,
            peers_of_one_key: 1_024,
        }
    }
}

/// The outcome of a packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received<'p> {
    /// Nothing. It was counted.
    Dropped(Refusal),
    /// A greeting: send this answer to where it came from.
    Reply(Vec<u8>),
    /// There is a session with this peer, and nothing was said on it yet: send the reply, if any,
    /// to where the packet came from; then whatever waits for the peer can go.
    Ready { peer: Arc<Peer>, reply: Option<Vec<u8>> },
    /// Something from this peer. There is a session: what waits for the peer can go, too.
    Data { peer: Arc<Peer>, plaintext: &'p [u8] },
    /// A peer that was greeted refuses the key of this process.
    KeyRefused { by: NodeId, why: KeyRefusal },
}

/// Whether silence after a packet means that the peer may have lost the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    Answer,
    Nothing,
}

/// How many greetings follow each other at the usual pace, if nobody answers: ten seconds of them.
const PROMPT_GREETINGS: u32 = 100;

/// A peer that this process greets.
struct Greeted {
    name: NodeName,
    /// It has shown the cluster's key.
    is_member: bool,
    sent: Option<LocalTime>,
    /// How often it was greeted since there was a session last.
    tries: u32,
    asked: Option<Asked>,
}

impl Greeted {
    /// How long to wait before the next greeting (back-off): `retry` for as long as a restart may
    /// take, then twice as long each time, up to sixteen times. One that never answers, or refuses
    /// the key, is not asked all the time.
    fn pause(&self, retry: LocalSpan) -> LocalSpan {
        retry.times(1 << self.tries.saturating_sub(PROMPT_GREETINGS).min(4))
    }
}

/// A greeting that was not answered yet.
struct Asked {
    challenge: [u8; 16],
    born: u64,
    since: LocalTime,
    pair: Pair,
    /// Opens the answer.
    welcome: LessSafeKey,
}

pub(crate) struct Sessions {
    me: Me,
    limits: Limits,
    seed: Secret,
    drawn: u64,
    /// Known to this life of this process alone: it makes the stamps of Welcomes.
    stamps: hmac::Key,
    hellos: Limiters,
    /// Somebody who sees packets can put other data behind an introduction: that is tried often,
    /// but not without end.
    firsts: Limiters,
    /// The last instant given out; see [`Self::instant`].
    last: u64,
    /// No session may begin whose Welcome is not newer than the floor of its key.
    floors: Floors,
    /// Keys that are refused although they are genuine.
    revoked: BTreeSet<Serial>,
    /// The date, in seconds since 1970, by which keys expire. `None`: nobody has said, and none
    /// expires.
    date: Option<u64>,
    greeted: BTreeMap<NodeId, Greeted>,
    known: BTreeMap<NodeId, Known>,
    /// How many of the known peers have each outsider's key.
    peers_of: BTreeMap<Holder, usize>,
    by_session: BTreeMap<u64, NodeId>,
    counters: Counters,
}

/// The allowances of members and of all others: no outsider can use up what members need.
struct Limiters {
    members: Limiter,
    outsiders: Limiter,
    /// Keys that are not good any more: they use up nothing of those that are.
    refused: Limiter,
}

impl Limiters {
    fn of(&mut self, is_member: bool) -> &mut Limiter {
        if is_member { &mut self.members } else { &mut self.outsiders }
    }
}

impl Sessions {
    /// `seed` must be random and new in each life of the process: what an earlier life accepted
    /// could otherwise be accepted again.
    pub(crate) fn new(me: Identity, limits: Limits, seed: [u8; 32]) -> Self {
        let seed = Secret::new(seed);
        let limiter = |challenge: Rate, what: &[u8], who: &[u8], share: u32| {
            let places = u64::from_be_bytes(seed.derive(&[b"tenure places\0", what, who]));
            Limiter::new(limits.welcomes / share, limits.welcomes_from_one_source / share, challenge, places)
        };
        let limiters = |challenge: Rate, what: &[u8]| Limiters {
            members: limiter(challenge, what, b" of members", 1),
            outsiders: limiter(challenge, what, b" of outsiders", 1),
            refused: limiter(challenge, what, b" of refused keys", 20),
        };
        let beginnings = limits.beginnings_of_one_key;
        Self {
            me: Me::new(me),
            stamps: seed.derive_mac(&[b"tenure stamps\0"]),
            hellos: limiters(Rate::every(limits.retry.fraction(1, 2), 4), b"hello"),
            firsts: limiters(Rate::per_second(1000, 100), b"first"),
            floors: Floors::new(Rate::per_second(beginnings, beginnings.saturating_mul(5))),
            limits,
            seed,
            drawn: 0,
            last: 0,
            revoked: BTreeSet::new(),
            date: None,
            greeted: BTreeMap::new(),
            known: BTreeMap::new(),
            peers_of: BTreeMap::new(),
            by_session: BTreeMap::new(),
            counters: Counters::default(),
        }
    }

    /// Handles one packet. Bytes from somebody without a key cost no memory and get no answer; a
    /// greeting, even one that is repeated by somebody else, gets at most one, which is shorter.
    pub(crate) fn receive<'p>(
        &mut self,
        packet: &'p mut [u8],
        from: SocketAddr,
        now: LocalTime,
    ) -> Received<'p> {
        let received = match Kind::of(packet) {
            Some(Kind::Data) => self.on_data(DATA_HEAD, packet, Some(from), now),
            Some(Kind::First) => self.on_first(packet, from, now),
            Some(Kind::Hello) => self.on_hello(packet, from, now),
            Some(Kind::Welcome) => self.on_welcome(packet, from, now),
            None => Err(Refusal::Foreign),
        };
        self.counted(received, Some(from))
    }

    /// Handles a packet that came by a stream: data of a session that there is. A stream has a port
    /// of its own, so this says nothing of where the peer is.
    pub(crate) fn receive_by_stream<'p>(&mut self, packet: &'p mut [u8], now: LocalTime) -> Received<'p> {
        let received = match Kind::of(packet) {
            Some(Kind::Data) => self.on_data(DATA_HEAD, packet, None, now),
            _ => Err(Refusal::Foreign),
        };
        self.counted(received, None)
    }

    fn counted<'p>(
        &mut self,
        received: Result<Received<'p>, Refusal>,
        from: Option<SocketAddr>,
    ) -> Received<'p> {
        received.unwrap_or_else(|refusal| {
            self.counters.refuse(&refusal, from);
            Received::Dropped(refusal)
        })
    }

    /// A greeting for a member, unless one was sent within `retry`. Once a greeted peer has shown
    /// the cluster's key, the name is the member's: no candidate's key opens a session under it.
    pub(crate) fn greet(&mut self, peer: &NodeName, now: LocalTime) -> Option<Vec<u8>> {
        let id = peer.id();
        let greeted = self.greeted.get(&id);
        let retry = self.limits.retry;
        let too_soon =
            |greeted: &Greeted| greeted.sent.is_some_and(|sent| now < sent.after(greeted.pause(retry)));
        if *peer == self.me.name || greeted.is_some_and(|greeted| greeted.name != *peer || too_soon(greeted))
        {
            return None;
        }
        let former = self.greeted.remove(&id);
        let tries = former.as_ref().map_or(0, |former| former.tries.saturating_add(1));
        let is_member = former.as_ref().is_some_and(|former| former.is_member)
            || self.known.get(&id).is_some_and(|known| known.peer.rights.is_cluster());
        let asked = match former.and_then(|former| former.asked) {
            Some(asked) if now < asked.since.after(self.limits.welcome_valid.fraction(1, 2)) => asked,
            _ => self.ask(peer, now),
        };
        let greeting = Greeting {
            cluster: self.me.cluster_tag,
            to: id,
            challenge: asked.challenge,
            sender: &self.me.sender,
            versions: self.me.versions,
            boot: self.me.boot,
        };
        let packet = greeting.seal(&hello_key(&asked.pair, self.me.name.as_str()), &self.me.knock);
        self.greeted.insert(
            id,
            Greeted { name: peer.clone(), sent: Some(now), tries, asked: Some(asked), is_member },
        );
        self.counters.hellos += 1;
        Some(packet)
    }

    /// Seals for a peer with a session: the packet, and where to send it. `None`: there is no
    /// session, greet first. A message that is longer than a datagram with the overhead is for a
    /// stream.
    pub(crate) fn seal(
        &mut self,
        peer: NodeId,
        plaintext: &[u8],
        expect: Expect,
        now: LocalTime,
    ) -> Option<(Vec<u8>, SocketAddr)> {
        let known = self.known.get_mut(&peer)?;
        if expect == Expect::Answer {
            known.wait(now);
        }
        let link = known.speak()?;
        Some((link.seal(plaintext)?, link.address))
    }

    /// Speaks and accepts other keys from now on. Sessions under keys that are accepted no more end
    /// at once; those under keys that are only not spoken any more go on until [`Self::unanswered`]
    /// has led to new ones.
    pub(crate) fn set_keyring(&mut self, credentials: Credentials) {
        self.me.set_credentials(credentials);
        for greeted in self.greeted.values_mut() {
            (greeted.sent, greeted.tries, greeted.asked) = (None, 0, None);
        }
        let ids: Vec<NodeId> = self.known.keys().copied().collect();
        for id in ids {
            self.end(id, |me, link| !me.accepts(link.key));
        }
    }

    /// The cluster's keys that are accepted. An outsider accepts none.
    pub(crate) fn accepted(&self) -> Vec<KeyId> {
        self.me.accepted_ids()
    }

    /// Refuses these keys from now on, and no others. Sessions under them end at once.
    pub(crate) fn set_revoked(&mut self, revoked: impl IntoIterator<Item = Serial>) {
        self.revoked = revoked.into_iter().collect();
        self.end_refused();
    }

    /// Says what the date is: keys that expired before it are refused, and sessions under them end.
    pub(crate) fn set_date(&mut self, date: u64) {
        self.date = Some(date);
        self.end_refused();
    }

    /// Ends the sessions of all keys that are refused now.
    fn end_refused(&mut self) {
        let refused = |known: &Known| self.check_key(known.peer.serial, known.peer.not_after).is_err();
        let ids: Vec<NodeId> =
            self.known.iter().filter(|(_, known)| refused(known)).map(|(id, _)| *id).collect();
        for id in ids {
            self.end(id, |_, _| true);
        }
    }

    /// Whether a genuine key is still good.
    fn check_key(&self, serial: Option<Serial>, not_after: Option<u64>) -> Result<(), KeyRefusal> {
        if serial.is_some_and(|serial| self.revoked.contains(&serial)) {
            return Err(KeyRefusal::Revoked);
        }
        match (not_after, self.date) {
            (Some(last), Some(date)) if date > last => Err(KeyRefusal::Expired),
            _ => Ok(()),
        }
    }

    fn on_hello<'p>(
        &mut self,
        packet: &'p mut [u8],
        from: SocketAddr,
        now: LocalTime,
    ) -> Result<Received<'p>, Refusal> {
        let hello = Hello::read(packet).ok_or(Refusal::Malformed)?;
        if hello.cluster != self.me.cluster_tag {
            return Err(Refusal::OtherCluster);
        }
        if hello.to != self.me.id {
            return Err(Refusal::NotForMe);
        }
        let sender = hello.sender;
        let accepted = self.me.accepted(sender.key).ok_or(Refusal::UnknownKey)?;
        let as_member = sender.claims.is_none();
        if !hello.knocks(accepted.knock(as_member)) {
            return Err(Refusal::Forged);
        }
        let not_after = sender.claims.and_then(|claims| claims.not_after);
        let good = self.check_key(serial_of(&sender.claims), not_after);
        let limiter = if good.is_ok() { self.hellos.of(as_member) } else { &mut self.hellos.refused };
        if !limiter.allows(from.ip(), &hello.challenge, now) {
            return Err(Refusal::Limited);
        }
        let challenge = hello.challenge;
        let pair = self.me.pair_of(&accepted.root, &sender);
        let (theirs, boot) = hello.open(&hello_key(&pair, sender.name)).ok_or(Refusal::Forged)?;
        // The claims of the key are true, as the greeting opened: they must allow the name.
        let (name, _) = sender.rights().ok_or(Refusal::Forged)?;
        if name.id() == self.me.id {
            return Err(Refusal::NameTaken);
        }
        let rivals = self.known.get(&name.id()).is_some_and(|known| known.refuses(boot, now));
        let good = if rivals { good.and(Err(KeyRefusal::NameInUse)) } else { good };
        let (issued, ours) = (self.instant(now), self.me.versions);
        // Only now is it known that the sender holds the key, or repeats one that does.
        let verdict = match (good, ours.common(theirs)) {
            (Err(why), _) => Verdict::Refused(why),
            (Ok(()), Some(version)) => Verdict::Version(version),
            (Ok(()), None) => Verdict::NoCommon(ours),
        };
        let said = packet::say(sender.bytes, boot, challenge, verdict.version(), issued);
        let stamp = packet::stamp(&self.stamps, &said, from);
        let answer = Answer { challenge, issued, stamp, verdict, versions: ours, boot: self.me.boot };
        let reply = answer.seal(&welcome_key(&pair, self.me.name.as_str()));
        match verdict {
            Verdict::Version(_) => {}
            Verdict::NoCommon(_) => {
                self.counters.refuse(&Refusal::Versions { peer: name, theirs, ours }, Some(from));
            }
            Verdict::Refused(why) => self.counters.refuse(&Refusal::of_key(why, &name), Some(from)),
        }
        self.counters.welcomes += 1;
        Ok(Received::Reply(reply))
    }

    fn on_welcome<'p>(
        &mut self,
        packet: &'p mut [u8],
        from: SocketAddr,
        now: LocalTime,
    ) -> Result<Received<'p>, Refusal> {
        let welcome = Welcome::read(packet).ok_or(Refusal::Malformed)?;
        let is_meant = |greeted: &&mut Greeted| {
            greeted.asked.as_ref().is_some_and(|asked| asked.challenge == welcome.challenge)
        };
        let greeted = self.greeted.values_mut().find(is_meant).ok_or(Refusal::Unsolicited)?;
        let asked = greeted.asked.as_ref().ok_or(Refusal::Unsolicited)?;
        let (challenge, issued, stamp) = (welcome.challenge, welcome.issued, welcome.stamp);
        let (verdict, boot) = welcome.open(&asked.welcome).ok_or(Refusal::Forged)?;
        let name = greeted.name.clone();
        let asked = greeted.asked.take().ok_or(Refusal::Unsolicited)?;
        let version = match verdict {
            Verdict::Version(version) => version,
            Verdict::Refused(why) => return Ok(Received::KeyRefused { by: name.id(), why }),
            Verdict::NoCommon(theirs) => {
                return Err(Refusal::Versions { peer: name, theirs, ours: self.me.versions });
            }
        };
        if !self.me.versions.has(version) {
            return Err(Refusal::Malformed);
        }
        let mut introduction = packet::say(&self.me.sender, self.me.boot, challenge, version, issued);
        introduction.extend(stamp);
        let terms = Terms {
            pair: &asked.pair,
            key: self.me.spoken,
            introduction: &introduction,
            responder_boot: boot,
            born: asked.born,
        };
        let link = Link::new(End::Initiator, &terms, from);
        let holder = Holder::Member(name.id());
        let peer = Arc::new(Peer {
            id: name.id(),
            name,
            rights: Rights::Member,
            holder,
            serial: None,
            not_after: None,
            boot,
            version,
        });
        self.admit(&peer, Place::Pending, link.born)?;
        self.begin(&peer, Place::Pending, link, now)?;
        let reply = self.seal(peer.id, &[], Expect::Answer, now).map(|(packet, _)| packet);
        Ok(Received::Ready { peer, reply })
    }

    /// A packet of a session that may not be known yet. One that is known has no need of the
    /// introduction.
    fn on_first<'p>(
        &mut self,
        packet: &'p mut [u8],
        from: SocketAddr,
        now: LocalTime,
    ) -> Result<Received<'p>, Refusal> {
        let (session, counter) = packet::session_of(packet).ok_or(Refusal::Malformed)?;
        let introduction = Introduction::read(packet).ok_or(Refusal::Malformed)?;
        let head = DATA_HEAD + introduction.bytes.len();
        if self.by_session.contains_key(&session) {
            return self.on_data(head, packet, Some(from), now);
        }
        self.check_stamp(&introduction, from, now)?;
        let peer = self.introduced(&introduction)?;
        self.admit(&peer, Place::Theirs, introduction.issued)?;
        // First by key: one that begins too much is refused before it costs others anything.
        if !self.floors.may_begin(peer.holder, now)
            || !self.firsts.of(peer.holder.is_member()).allows(from.ip(), &introduction.challenge, now)
        {
            return Err(Refusal::Limited);
        }
        let mut link = self.rebuild(&introduction, from)?;
        if link.id != session {
            return Err(Refusal::Forged);
        }
        let (plaintext, _) = link.open(counter, head, packet, Some(from))?;
        if self.known.get_mut(&peer.id).is_some_and(|known| known.is_rivalled_by(&peer, now)) {
            return Err(Refusal::NameInUse { name: peer.name.clone() });
        }
        let acknowledgement = if plaintext.is_empty() { link.seal(&[]) } else { None };
        self.begin(&peer, Place::Theirs, link, now)?;
        // Counted when it is proved, so that nobody can use up the allowance of another's key.
        self.floors.has_begun(peer.holder, now);
        self.counters.accepted += 1;
        Ok(match plaintext {
            [] => Received::Ready { peer, reply: acknowledgement },
            _ => Received::Data { peer, plaintext },
        })
    }

    fn on_data<'p>(
        &mut self,
        head: usize,
        packet: &'p mut [u8],
        from: Option<SocketAddr>,
        now: LocalTime,
    ) -> Result<Received<'p>, Refusal> {
        let (session, counter) = packet::session_of(packet).ok_or(Refusal::Malformed)?;
        let id = self.by_session.get(&session).ok_or(Refusal::UnknownSession)?;
        let known = self.known.get_mut(id).ok_or(Refusal::UnknownSession)?;
        let (place, link) = known.find(session).ok_or(Refusal::UnknownSession)?;
        let (plaintext, moved) = link.open(counter, head, packet, from)?;
        let ended = known.heard(place, now, self.limits.retry);
        let peer = Arc::clone(&known.peer);
        if let Some(link) = ended {
            self.by_session.remove(&link.id);
        }
        self.counters.accepted += 1;
        self.counters.moved += u64::from(moved);
        Ok(match plaintext {
            [] => Received::Ready { peer, reply: None },
            _ => Received::Data { peer, plaintext },
        })
    }

    /// Whether this life of this process has answered this very greeting, to this address, not long
    /// ago.
    fn check_stamp(
        &self,
        introduction: &Introduction<'_>,
        from: SocketAddr,
        now: LocalTime,
    ) -> Result<(), Refusal> {
        let expected = packet::stamp(&self.stamps, introduction.said(), from);
        let genuine = verify_slices_are_equal(&expected, &introduction.stamp).is_ok();
        let until = LocalTime::from_nanos(introduction.issued).after(self.limits.welcome_valid);
        if genuine && introduction.version != 0 && now <= until { Ok(()) } else { Err(Refusal::Stale) }
    }

    /// The session of an introduction that this process has stamped.
    fn rebuild(&self, introduction: &Introduction<'_>, from: SocketAddr) -> Result<Link, Refusal> {
        let sender = &introduction.sender;
        let accepted = self.me.accepted(sender.key).ok_or(Refusal::UnknownKey)?;
        let terms = Terms {
            pair: &self.me.pair_of(&accepted.root, sender),
            key: sender.key,
            introduction: introduction.bytes,
            responder_boot: self.me.boot,
            born: introduction.issued,
        };
        Ok(Link::new(End::Responder, &terms, from))
    }

    /// The peer of an introduction that this process has stamped, and so knows to be true.
    fn introduced(&self, introduction: &Introduction<'_>) -> Result<Arc<Peer>, Refusal> {
        let sender = &introduction.sender;
        let (name, rights) = sender.rights().ok_or(Refusal::Malformed)?;
        let holder = match rights.is_cluster() {
            true => Holder::Member(name.id()),
            false => {
                let [key, claims] = sender.key_bytes();
                Holder::Outsider(self.seed.derive(&[b"tenure holder\0", key, claims]))
            }
        };
        let (boot, version) = (introduction.boot, introduction.version);
        let not_after = sender.claims.and_then(|claims| claims.not_after);
        let serial = serial_of(&sender.claims);
        Ok(Arc::new(Peer { id: name.id(), name, rights, holder, serial, not_after, boot, version }))
    }

    /// Whether a session with this peer may begin now. This is where everything old is refused.
    fn admit(&self, peer: &Peer, place: Place, born: u64) -> Result<(), Refusal> {
        if place == Place::Theirs && born <= self.floors.floor(peer.holder) {
            return Err(Refusal::Superseded);
        }
        self.check_key(peer.serial, peer.not_after).map_err(|why| Refusal::of_key(why, &peer.name))?;
        let greeted = self.greeted.get(&peer.id);
        let is_taken =
            |greeted: &Greeted| greeted.name != peer.name || (greeted.is_member && !peer.rights.is_cluster());
        if greeted.is_some_and(is_taken) {
            return Err(Refusal::NameTaken);
        }
        match self.known.get(&peer.id) {
            Some(known) if known.peer.name != peer.name => Err(Refusal::NameTaken),
            Some(known) => known.admits(peer, place, born),
            None => Ok(()),
        }
    }

    /// Begins a session that was admitted.
    fn begin(&mut self, peer: &Arc<Peer>, place: Place, link: Link, now: LocalTime) -> Result<(), Refusal> {
        if self.by_session.contains_key(&link.id) {
            return Err(Refusal::Superseded);
        }
        let former = self.known.get(&peer.id).filter(|known| !known.is_same_life(peer));
        let lives = former.map(|known| known.lives_before(peer));
        if lives.is_some() {
            self.end(peer.id, |_, _| true);
        }
        if !self.known.contains_key(&peer.id) {
            self.make_room(peer)?;
            *self.peers_of.entry(peer.holder).or_default() += 1;
        }
        self.by_session.insert(link.id, peer.id);
        let known = self.known.entry(peer.id).or_insert_with(|| Known::new(Arc::clone(peer), now));
        known.peer = Arc::clone(peer);
        if let Some(lives) = lives {
            known.follows(lives);
        }
        if let Some(former) = known.begin(place, link, now) {
            self.by_session.remove(&former.id);
        }
        if let Some(greeted) = self.greeted.get_mut(&peer.id) {
            (greeted.asked, greeted.tries) = (None, 0);
            greeted.is_member |= peer.rights.is_cluster();
        }
        self.counters.begun += 1;
        Ok(())
    }

    /// Makes room for one more peer: at the expense of its own key if that has many, else of the
    /// outsider that was silent for longest. Members make room for members alone.
    fn make_room(&mut self, peer: &Peer) -> Result<(), Refusal> {
        let of_key = self.peers_of.get(&peer.holder).copied().unwrap_or_default();
        if !peer.holder.is_member() && of_key >= self.limits.peers_of_one_key.max(1) {
            return self.evict(|known| known.holder == peer.holder);
        }
        if self.known.len() < self.limits.peers.max(1) {
            return Ok(());
        }
        self.evict(|known| peer.rights.is_cluster() || !known.rights.is_cluster())
    }

    /// Forgets one of these peers. Looks at all of them: this happens once a handshake, not once a
    /// packet.
    fn evict(&mut self, candidate: impl Fn(&Peer) -> bool) -> Result<(), Refusal> {
        let candidates = self.known.iter().filter(|(_, known)| candidate(&known.peer));
        let oldest = candidates.min_by_key(|(_, known)| (known.peer.rights.is_cluster(), known.heard_at));
        let id = *oldest.ok_or(Refusal::Full)?.0;
        self.end(id, |_, _| true);
        self.counters.evicted += 1;
        Ok(())
    }

    /// Ends sessions of a peer without a newer one in their place. Their Welcomes, and all older
    /// ones of the same key, are worth nothing from now on: none of these sessions can begin again.
    fn end(&mut self, id: NodeId, unwanted: impl Fn(&Me, &Link) -> bool) {
        let Some(known) = self.known.get_mut(&id) else { return };
        let holder = known.peer.holder;
        for (place, link) in known.end(|link| unwanted(&self.me, link)) {
            self.by_session.remove(&link.id);
            if place == Place::Theirs {
                self.floors.raise(holder, link.born);
            }
        }
        if known.links().next().is_none() {
            self.known.remove(&id);
            match self.peers_of.get_mut(&holder) {
                Some(peers) if *peers > 1 => *peers -= 1,
                _ => drop(self.peers_of.remove(&holder)),
            }
        }
    }

    /// Whether no session with this peer is under the key that this process speaks, and it is time
    /// to try again.
    fn is_outdated(&self, known: &Known, now: LocalTime) -> bool {
        let pause = self.limits.retry.times(10);
        let sent = self.greeted.get(&known.peer.id).and_then(|greeted| greeted.sent);
        known.links().all(|link| link.key != self.me.spoken)
            && sent.is_none_or(|sent| now >= sent.after(pause))
    }

    fn ask(&mut self, peer: &NodeName, now: LocalTime) -> Asked {
        self.drawn += 1;
        let challenge = self.seed.derive(&[b"tenure challenge\0", &self.drawn.to_be_bytes()]);
        let pair = self.me.pair_with(peer);
        let welcome = welcome_key(&pair, peer.as_str());
        Asked { challenge, born: self.instant(now), since: now, pair, welcome }
    }

    /// The time, but never the same twice and never going back: it orders Welcomes and sessions.
    fn instant(&mut self, now: LocalTime) -> u64 {
        self.last = now.as_nanos().max(self.last + 1);
        self.last
    }
}

fn serial_of(claims: &Option<Stated<'_>>) -> Option<Serial> {
    claims.as_ref().map(|claims| claims.serial)
}

/// Seals greetings from this sender to the other of the pair.
fn hello_key(pair: &Pair, from: &str) -> LessSafeKey {
    pair.0.derive_sealing(&[b"tenure hello from\0", from.as_bytes()])
}

/// Seals answers to greetings, from this sender to the other of the pair.
fn welcome_key(pair: &Pair, from: &str) -> LessSafeKey {
    pair.0.derive_sealing(&[b"tenure welcome from\0", from.as_bytes()])
}
