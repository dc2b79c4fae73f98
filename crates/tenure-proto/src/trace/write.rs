//! Writes entries. Nothing is allocated but what the buffer itself needs to grow.

use super::value::{Value, show};
use super::{Common, Decision, EdictMade, Line, Start, What};
use crate::strong::epoch::{Body, Charter, CharterId, Halt};
use crate::strong::{Event, GrantRequest, Refusal};
use crate::time::Bound;
use crate::{Incarnation, LocalTime};

impl Line {
    /// Adds this entry to a buffer, with the end of its line.
    pub fn write(&self, out: &mut String) {
        let Self { own, common, what } = self;
        let mut entry = Entry { out, own: *own, common: *common };
        match what {
            What::Start(start) => entry.start(start),
            What::Part(life) => {
                entry.begin("part").put("node", &life.node).put("incarnation", &life.incarnation);
                entry.cluster(life.cluster);
            }
            What::Group { group, name } => _ = entry.begin("group").put("group", group).put("name", name),
            What::Event(event) => entry.event(event),
            What::LocalStart(start) => entry.local_start(start),
            What::Local { group, event } => entry.local_event(*group, event),
            What::LocalEnd { group } => _ = entry.begin("local-end").put("group", group),
            What::Edict(edict) => entry.edict(edict),
            What::Admitted(decision) => entry.begin("fence-admitted").decision(decision),
            What::Refused(decision) => entry.begin("fence-refused").decision(decision),
            What::Stop => _ = entry.begin("stop"),
        }
        out.push('\n');
    }
}

/// Adds what a machine has published to a buffer, as [`Line::write`] does, without a copy of it.
pub fn write_event(out: &mut String, own: LocalTime, common: Option<Common>, event: &Event) {
    Entry { out, own, common }.event(event);
    out.push('\n');
}

/// A charter, as the line has it in which its epoch is adopted.
pub(crate) fn write_charter(out: &mut String, charter: &Charter) {
    Entry { out, own: LocalTime::ZERO, common: None }.charter(charter);
}

/// A line that is being written.
pub(super) struct Entry<'a> {
    out: &'a mut String,
    own: LocalTime,
    common: Option<Common>,
}

impl Entry<'_> {
    /// The kind of the line, and when it was.
    pub(super) fn begin(&mut self, kind: &str) -> &mut Self {
        self.out.push_str(kind);
        let (own, common) = (self.own, self.common);
        self.put("own", &own).maybe("common", common.as_ref())
    }

    pub(super) fn put(&mut self, key: &str, value: &impl Value) -> &mut Self {
        self.key("", key);
        value.put(self.out);
        self
    }

    fn maybe(&mut self, key: &str, value: Option<&impl Value>) -> &mut Self {
        match value {
            Some(value) => self.put(key, value),
            None => self,
        }
    }

    /// A fixed word.
    fn word(&mut self, key: &str, word: &str) -> &mut Self {
        self.key("", key);
        self.out.push_str(word);
        self
    }

    fn key(&mut self, before: &str, key: &str) {
        show(self.out, format_args!(" {before}{key}="));
    }

    fn cluster(&mut self, cluster: u128) {
        self.key("", "cluster");
        show(self.out, format_args!("{cluster:032x}"));
    }

    fn start(&mut self, start: &Start) {
        let Start { life, name, charter } = start;
        self.begin("start").put("node", &life.node).put("name", name).put("incarnation", &life.incarnation);
        self.cluster(life.cluster);
        self.charter(charter);
    }

    fn edict(&mut self, edict: &EdictMade) {
        let EdictMade { group, epoch, term, number, after, first } = edict;
        self.begin("edict").put("group", group).put("epoch", epoch).put("term", term).put("number", number);
        self.put("after", after).maybe("first", first.as_ref());
    }

    fn decision(&mut self, decision: &Decision) {
        let Decision { resource, rule, token, at } = decision;
        self.put("resource", resource).put("rule", rule).put("token", token).put("at", at);
    }

    fn charter(&mut self, charter: &Charter) {
        let Charter { epoch, lineage, body, before, floor } = charter;
        self.put("epoch", epoch).put("floor", floor).put("lineage", lineage).body("", body);
        if let Some(before) = before {
            self.body("before-", before);
        }
    }

    fn body(&mut self, before: &str, body: &Body) {
        self.key(before, "members");
        for (i, member) in body.quorums.members().iter().enumerate() {
            self.out.push_str(if i > 0 { "," } else { "" });
            member.put(self.out);
        }
        self.key(before, "quorums");
        body.quorums.rule().put(self.out);
        match body.clocks.bound {
            Bound::Drift(drift) => {
                self.key(before, "drift");
                drift.put(self.out);
            }
            Bound::Skew(skew) => {
                self.key(before, "skew");
                skew.put(self.out);
            }
        }
        self.key(before, "tick");
        body.clocks.tick.put(self.out);
        self.key(before, "longest-lease");
        body.longest_lease.put(self.out);
        if !body.stores.is_empty() {
            self.key(before, "stores");
            body.stores.put(self.out);
        }
        if !body.barred.is_empty() {
            self.key(before, "barred");
            body.barred.put(self.out);
        }
    }

    fn request(&mut self, request: &GrantRequest) -> &mut Self {
        let GrantRequest { group, epoch, id, start, lease, kind, term } = request;
        self.put("group", group).put("epoch", epoch).put("run", id).put("start", start).put("lease", lease);
        self.put("kind", kind).put("term", term)
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Asked(request) => _ = self.begin("asked").request(request),
            Event::Granted { request, at, until } => {
                self.begin("granted").request(request).put("stamp", at).put("until", until);
            }
            Event::Refused { request, refusal } => self.begin("refused").request(request).refusal(refusal),
            Event::Leads { group, epoch, id, kind, term, lease, until, quorum, stamps } => {
                self.begin("leads").put("group", group).put("epoch", epoch).put("run", id).put("kind", kind);
                self.put("term", term).put("lease", lease).put("until", until).put("quorum", quorum);
                self.put("stamps", stamps);
            }
            Event::GaveBack { group, upto } => {
                self.begin("gave-back").put("group", group).put("upto", upto);
            }
            Event::Freed { group, newest } => {
                self.begin("freed").put("group", group).put("newest", newest);
            }
            Event::Failed { group, id, failure } => {
                self.begin("failed").put("group", group).put("run", id).put("failure", failure);
            }
            Event::Lost { group, term, loss } => {
                self.begin("lost").put("group", group).put("term", term).put("loss", loss);
            }
            Event::Silent { until } => _ = self.begin("silent").put("until", until),
            Event::Mute => _ = self.begin("mute"),
            Event::SplitBrain { other } => {
                let CharterId { lineage, epoch, digest } = other;
                self.begin("split-brain").put("lineage", lineage).put("epoch", epoch);
                self.put("digest", &Incarnation(*digest));
            }
            Event::LineageAccepted => _ = self.begin("lineage-accepted"),
            Event::ClockWentBack { by } => _ = self.begin("clock-went-back").put("by", by),
            Event::Recovering => _ = self.begin("recovering"),
            Event::Implausible { by, term, known } => {
                self.begin("implausible").put("by", by).put("term", term).put("known", known);
            }
            Event::Confirmed { term } => _ = self.begin("confirmed").put("term", term),
            Event::HeldBack { group, term, wait } => {
                self.begin("held-back").put("group", group).put("term", term).put("wait", wait);
            }
            Event::Recovered { top } => _ = self.begin("recovered").put("top", top),
            Event::Wedged { .. }
            | Event::Adopted { .. }
            | Event::Accepted { .. }
            | Event::Decided { .. }
            | Event::Changed { .. }
            | Event::ChangeHalted { .. } => self.epoch_event(event),
            Event::Pledged { .. }
            | Event::Verified { .. }
            | Event::Sought { .. }
            | Event::Found { .. }
            | Event::NotFound { .. }
            | Event::WeakLeader { .. }
            | Event::Paced { .. }
            | Event::Strained { .. }
            | Event::Yields { .. } => self.talk_event(event),
        }
    }

    fn refusal(&mut self, refusal: &Refusal) {
        let word = match refusal {
            Refusal::Busy { .. } => "busy",
            Refusal::StaleTerm => "stale-term",
            Refusal::LeaseTooLong => "lease-too-long",
            Refusal::Released => "released",
            Refusal::FromTheFuture => "from-the-future",
            Refusal::Young => "young",
            Refusal::TooManyGroups => "too-many-groups",
            Refusal::Barred => "barred",
            Refusal::Wedged => "wedged",
            Refusal::Draining => "draining",
            Refusal::TooHigh { .. } => "too-high",
            Refusal::Implausible => "implausible",
        };
        self.word("refusal", word);
        match refusal {
            Refusal::Busy { holder, remaining } => _ = self.put("holder", holder).put("remaining", remaining),
            Refusal::TooHigh { wait } => _ = self.put("wait", wait),
            _ => {}
        }
    }

    /// About the members, of all groups at once.
    fn epoch_event(&mut self, event: &Event) {
        match event {
            Event::Adopted { charter, joined } => {
                self.begin("adopted").put("joined", joined).charter(charter);
            }
            Event::Accepted { ballot, charter } => {
                self.begin("accepted").put("ballot", ballot).charter(charter);
            }
            Event::Decided { charter } => self.begin("decided").charter(charter),
            Event::Changed { epoch } => _ = self.begin("changed").put("epoch", epoch),
            Event::ChangeHalted { halt } => {
                self.begin("change-halted");
                match halt {
                    Halt::Conflict => _ = self.word("halt", "conflict"),
                    Halt::Impossible(why) => _ = self.word("halt", "impossible").put("why", why),
                    Halt::Fixed => _ = self.word("halt", "fixed"),
                }
            }
            Event::Wedged { epoch, ballot } => {
                self.begin("wedged").put("epoch", epoch).put("ballot", ballot);
            }
            _ => {}
        }
    }

    /// About who leads, and how.
    fn talk_event(&mut self, event: &Event) {
        match event {
            Event::Pledged { group, leader, until } => {
                self.begin("pledged").put("group", group).put("leader", leader).put("until", until);
            }
            Event::Verified { group, leader, term, until } => {
                self.begin("verified").put("group", group).put("leader", leader).put("term", term);
                self.put("until", until);
            }
            Event::Sought { group, id, ask, hops } => {
                self.begin("sought").put("group", group).put("question", id).put("ask", ask);
                self.put("hops", hops);
            }
            Event::Found { group, id, leader, term, hops } => {
                self.begin("found").put("group", group).put("question", id).put("leader", leader);
                self.put("term", term).put("hops", hops);
            }
            Event::NotFound { group, id, why, hint } => {
                self.begin("not-found").put("group", group).put("question", id).put("why", why);
                if let Some(hint) = hint {
                    self.put("hint", &hint.holder).put("hint-term", &hint.term);
                    self.put("hint-remaining", &hint.remaining);
                }
            }
            Event::WeakLeader { group, leader } => {
                self.begin("weak-leader").put("group", group).maybe("leader", leader.as_ref());
            }
            Event::Paced { group, lease } => {
                self.begin("paced").put("group", group).put("lease", lease);
            }
            Event::Strained { group, needed, longest } => {
                self.begin("strained").put("group", group).put("needed", needed).put("longest", longest);
            }
            Event::Yields { group, to } => _ = self.begin("yields").put("group", group).put("to", to),
            _ => {}
        }
    }
}
