//! The JSON of the HTTP interface, version 1. Server and client share these types, so that they
//! cannot disagree.
//!
//! Version 1 promises: fields keep their names, types and meanings; new ones may come, and readers
//! skip fields that they do not know. A field that has no value is `null`, never left out. Units
//! are in the names: `_ms` are milliseconds, `_us` microseconds; both are rounded down.
//! `docs/reference/http.md` has an example of each.

pub(crate) mod access;
pub(crate) mod keys;
pub(crate) mod members;

use serde::{Deserialize, Serialize};

/// The answer of `GET /v1/status` and each event of `GET /v1/watch`: the node that answers, and the
/// cluster as it sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    /// The node that answers.
    pub(crate) name: String,
    /// The role of the node: `member`, `witness`, `candidate` or `observer`.
    pub(crate) role: String,
    /// The version of its program.
    pub(crate) version: String,
    /// The cluster's id.
    pub(crate) cluster: String,
    /// The newest epoch that it knows; null if it knows none yet.
    pub(crate) epoch: Option<u64>,
    /// Whether it is a member of that epoch.
    pub(crate) is_member: bool,
    /// Whether it can do its part: it knows the members, is not silent after a restart, and reaches
    /// a quorum.
    pub(crate) ready: bool,
    /// Why it cannot, a sentence each; empty if it is ready.
    pub(crate) not_ready: Vec<String>,
    /// For how much longer it waits out what it may have promised before a restart; null if it does
    /// not.
    pub(crate) silent_for_ms: Option<u64>,
    /// For how long it has run.
    pub(crate) uptime_ms: u64,
    /// Where it listens for other nodes.
    pub(crate) addresses: Vec<String>,
    /// How long the leases are that it asks for itself.
    pub(crate) lease_ms: u64,
    /// The charter that the members have agreed on; null if it is not known yet.
    pub(crate) charter: Option<Charter>,
    /// The members, as this node sees them.
    pub(crate) members: Vec<Member>,
    /// The groups that this node knows, by name; at most a thousand.
    pub(crate) groups: Vec<Group>,
    /// How many it knows.
    pub(crate) groups_total: u64,
    /// How many of them are not listed, for nobody has led them or asked about them for an hour;
    /// `?all` lists them.
    #[serde(default)]
    pub(crate) groups_idle: u64,
    /// How many are led by this process.
    pub(crate) led: u64,
    /// How high terms are, as far as this node knows.
    pub(crate) terms: Terms,
    /// The counts since it started.
    pub(crate) counts: Counts,
}

/// How high terms are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// The largest term that this member may have granted, in any group.
    pub(crate) top: u64,
    /// How much is used of the terms that packed tokens hold.
    pub(crate) packed: Packed,
    /// When they end if terms go on rising as they have since this node started; null if they have
    /// not risen.
    pub(crate) packed_left_days: Option<u64>,
    /// A term that is too high to be believed until an operator confirms it; null if there is none.
    pub(crate) doubted: Option<DoubtedTerm>,
    /// The groups that nobody leads since terms were repaired, by name or as `id=NUMBER`.
    pub(crate) barred: Vec<String>,
}

/// How much is used of the terms that packed tokens hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Packed {
    /// Less than half.
    Plenty,
    /// Half or more.
    Half,
    /// New terms do not fit.
    Exhausted,
}

/// A term that a member speaks of and the one that answers does not believe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DoubtedTerm {
    /// The member that said it.
    pub(crate) member: String,
    /// The term.
    pub(crate) term: u64,
}

/// The charter that the members have agreed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Charter {
    /// Which founding it comes from, and which force-removes and repairs of terms: 32 hexadecimal
    /// digits each, joined by commas.
    pub(crate) lineage: String,
    /// Which sets of members suffice, as in the configuration: `majority`, `weights:3,1,1` …
    pub(crate) quorums: String,
    /// By how much clocks' rates may be off, in parts per million; null where clocks are
    /// synchronised.
    pub(crate) drift_ppm: Option<u64>,
    /// By how much synchronised clocks may differ; null where they are not.
    pub(crate) skew_us: Option<u64>,
    /// The longest lease.
    pub(crate) longest_lease_ms: u64,
    /// Whether a change of it is under way, as far as the node can tell.
    pub(crate) changing: bool,
}

/// A member, as the node that answers sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    /// Its name.
    pub(crate) name: String,
    /// Where it is reached, if that is known.
    pub(crate) address: Option<String>,
    /// Whether it is the node that answers.
    pub(crate) me: bool,
    /// Whether it answers what it is asked; always true of the node itself.
    pub(crate) answers: bool,
    /// How long ago it was last heard; null if never, and for the node itself.
    pub(crate) heard_ago_ms: Option<u64>,
    /// The last round trip; null if none was measured.
    pub(crate) round_trip_us: Option<u64>,
    /// Whether its clock keeps to the bound, as far as can be seen. If not, its grants do not
    /// count.
    pub(crate) clock_trusted: bool,
    /// The id of the store that holds its promises: 32 hexadecimal digits; null if it is not known.
    pub(crate) store: Option<String>,
    /// Whether an older copy of that store was used. Nothing of it counts until the member is
    /// replaced.
    pub(crate) condemned: bool,
}

/// All that is known about who leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Somebody led when it was last heard of.
    Leader,
    /// Nobody led any more when enough members were last heard of.
    Nobody,
    /// Too few members hear each other to elect anybody; `leader` speaks for those that do, without
    /// authority.
    Weak,
    /// Not enough was heard yet.
    Unknown,
}

/// A group, as the node that answers knows it. All of it is about the past: to be certain, verify.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Group {
    /// Its name.
    pub(crate) group: String,
    /// The leadership, in a word.
    pub(crate) state: State,
    /// The leader, or the process that speaks for a minority; null if there is none, or if its name
    /// was not heard yet.
    pub(crate) leader: Option<String>,
    /// The term of the leader, or the last term that was heard of if nobody leads; null if none
    /// was.
    pub(crate) term: Option<u64>,
    /// For how much longer the leader leads at least, if it renews no more, as a quorum reports;
    /// null if none is named.
    #[serde(default)]
    pub(crate) leads_for_ms: Option<u64>,
    /// For how much longer this member supports the leader; null if it does not. Longer than the
    /// lease, by what clocks may be off.
    pub(crate) granted_for_ms: Option<u64>,
    /// Whether the node that answers leads it.
    pub(crate) led_here: bool,
    /// For how much longer it does if it renews no more; null if it does not.
    pub(crate) lease_remaining_ms: Option<u64>,
    /// Whether the node that answers campaigns for it.
    pub(crate) campaigned_here: bool,
    /// The newest edict that was proclaimed, if one was heard.
    pub(crate) edict: Option<Edict>,
    /// Where nobody leads: a group of a similar name that somebody does lead; else null.
    pub(crate) nearest: Option<String>,
}

/// The answer of `GET /v1/groups/{group}/candidates`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Candidates {
    /// The group.
    pub(crate) group: String,
    /// The processes that stand by, by name: they have asked for it lately and do not lead it.
    pub(crate) candidates: Vec<String>,
}

/// The answer of `GET /v1/groups`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Groups {
    /// The groups that this node knows, by name, after `?after=` and at most `?limit=` of them.
    pub(crate) groups: Vec<Group>,
    /// How many it knows.
    pub(crate) total: u64,
    /// The value of `?after=` for the next page; null if there are no more.
    pub(crate) next: Option<String>,
}

/// Something that a leader proclaimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Edict {
    /// The token that orders it among all edicts of the group: a decimal number of up to 128 bits,
    /// in a string.
    pub(crate) token: String,
    /// The term of the leader.
    pub(crate) term: u64,
    /// Its number in that term.
    pub(crate) number: u64,
    /// The body; null if it is no UTF-8.
    pub(crate) text: Option<String>,
    /// The body in hexadecimal; null if it is text.
    pub(crate) hex: Option<String>,
}

/// One event of `GET /v1/groups/{group}/watch`, whose `event:` is the same word as the field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sight {
    /// The group.
    pub(crate) group: String,
    /// `leader`, `nobody`, `weak` or `edict`.
    pub(crate) event: Seen,
    /// The leader, or the process that speaks for a minority; null if there is none, or if its name
    /// was not heard yet.
    pub(crate) leader: Option<String>,
    /// The term of the leader or of the edict; for `nobody` the last that was heard of; null for
    /// `weak`.
    pub(crate) term: Option<u64>,
    /// The proclamation, for `edict`; else null.
    pub(crate) edict: Option<Edict>,
}

/// The kinds of news of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Seen {
    /// Somebody leads.
    Leader,
    /// Nobody does.
    Nobody,
    /// Too few members hear each other.
    Weak,
    /// Too few members report to tell.
    Unknown,
    /// A leader has proclaimed something.
    Edict,
}

impl Seen {
    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Nobody => "nobody",
            Self::Weak => "weak",
            Self::Unknown => "unknown",
            Self::Edict => "edict",
        }
    }
}

/// The body of `POST /v1/groups/{group}/verify`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VerifyOrder {
    /// For how long it should be certain. The leader pledges no more than its configuration allows,
    /// 100 ms by default.
    #[serde(default)]
    pub(crate) for_ms: Option<u64>,
}

/// The answer to it: no other process leads for as long as this says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verified {
    /// The group.
    pub(crate) group: String,
    /// The leader.
    pub(crate) leader: String,
    /// In which term.
    pub(crate) term: u64,
    /// For how long that is certain, **counted on the asker's clock from before it sent the
    /// request**. The difference between two clocks is taken off already. Zero if it is certain no
    /// more.
    pub(crate) certain_for_ms: u64,
}

/// The body of `POST /v1/groups/{group}/proclaim`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProclaimOrder {
    /// The text: at most 512 bytes.
    pub(crate) text: String,
    /// How long the leader may take; ten seconds if null, at most a minute.
    #[serde(default)]
    pub(crate) within_ms: Option<u64>,
}

/// The body of `POST /v1/groups/{group}/resign`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResignOrder {
    /// How long the leader may take; ten seconds if null, at most a minute.
    #[serde(default)]
    pub(crate) within_ms: Option<u64>,
}

/// The body of `POST /v1/groups/{group}/transfer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TransferOrder {
    /// The successor. It must campaign for the group.
    pub(crate) to: String,
    /// How long the leader may take; ten seconds if null, at most a minute.
    #[serde(default)]
    pub(crate) within_ms: Option<u64>,
}

/// The answer to proclaim, resign and transfer: the leader has done it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// The group.
    pub(crate) group: String,
    /// The leader that did it.
    pub(crate) leader: String,
    /// The term in which it did so.
    pub(crate) term: u64,
    /// The token of what was proclaimed; null for the others.
    pub(crate) token: Option<String>,
}

/// The answer of `/leader/{group}`, with 200 if somebody leads and 503 if not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leader {
    /// The group.
    pub(crate) group: String,
    /// The leadership, in a word: a quorum has answered, or it is `unknown`.
    pub(crate) state: State,
    /// The leader; null if there is none.
    pub(crate) leader: Option<String>,
    /// In which term; null if nobody leads.
    pub(crate) term: Option<u64>,
    /// Where nobody leads: the last term that was heard of; else null.
    pub(crate) after: Option<u64>,
    /// Whether it runs on the host of the node that answers.
    pub(crate) here: bool,
}

/// The answer of `GET /v1/members`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Members {
    /// The newest epoch that the node knows; null if it knows none yet.
    pub(crate) epoch: Option<u64>,
    /// The charter that they have agreed on; null if it is not known yet.
    pub(crate) charter: Option<Charter>,
    /// The members.
    pub(crate) members: Vec<Member>,
}

/// The counts of a node since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Terms that this process won.
    pub(crate) terms_won: u64,
    /// Terms that it lost, for whatever reason.
    pub(crate) terms_lost: u64,
    /// Renewals of its leases.
    pub(crate) renewals: u64,
    /// Grants that it gave, renewals among them.
    pub(crate) granted: u64,
    /// Requests that it refused.
    pub(crate) refused: u64,
    /// How often its clock was found beyond the bound.
    pub(crate) clock_faults: u64,
    /// Datagrams that were sent.
    pub(crate) datagrams_sent: u64,
    /// Datagrams that came in.
    pub(crate) datagrams_received: u64,
    /// Records that were handed to the disk.
    pub(crate) persisted: u64,
}

/// Every error has this form: `{"error": {"code": "no_leader", "message": "…"}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// The error.
    pub(crate) error: Problem,
}

/// The error of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Problem {
    /// For programs: see [`Code`]. A word that is not known is to be taken by the status of the
    /// answer.
    pub(crate) code: String,
    /// For people: what is wrong and what to do, in one line.
    pub(crate) message: String,
}

/// The codes of errors, each with its HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The request makes no sense.
    BadRequest,
    /// A token, or a client's certificate, is needed and was not shown.
    NoToken,
    /// The token is wrong.
    BadToken,
    /// The request is not allowed: the key does not suffice, or the host is not one that is
    /// answered.
    Forbidden,
    /// There is no such path.
    NotFound,
    /// The path knows no such method.
    BadMethod,
    /// The body is too large.
    TooLarge,
    /// Nobody leads the group, or its leader does not answer.
    NoLeader,
    /// The leader will not do it, or cannot.
    Declined,
    /// The leader did not answer in time, and may still do it.
    Timeout,
    /// Only members change the members.
    NotAMember,
    /// There are too many connections, in all or from this address.
    Busy,
    /// A member that is said to be powered off was heard a moment ago.
    StillHeard,
    /// The node has stopped, or is about to.
    Stopped,
    /// Something unforeseen.
    Internal,
}

impl Code {
    /// All of them.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 15] = [
        Self::BadRequest,
        Self::NoToken,
        Self::BadToken,
        Self::Forbidden,
        Self::NotFound,
        Self::BadMethod,
        Self::TooLarge,
        Self::NoLeader,
        Self::Declined,
        Self::Timeout,
        Self::NotAMember,
        Self::Busy,
        Self::StillHeard,
        Self::Stopped,
        Self::Internal,
    ];

    /// As it is written, and the HTTP status that goes with it.
    fn told(self) -> (&'static str, u16) {
        match self {
            Self::BadRequest => ("bad_request", 400),
            Self::NoToken => ("no_token", 401),
            Self::BadToken => ("bad_token", 401),
            Self::Forbidden => ("forbidden", 403),
            Self::NotFound => ("not_found", 404),
            Self::BadMethod => ("bad_method", 405),
            Self::TooLarge => ("too_large", 413),
            Self::NoLeader => ("no_leader", 503),
            Self::Declined => ("declined", 409),
            Self::Timeout => ("timeout", 504),
            Self::NotAMember => ("not_a_member", 409),
            Self::Busy => ("busy", 503),
            Self::StillHeard => ("still_heard", 409),
            Self::Stopped => ("stopped", 503),
            Self::Internal => ("internal", 500),
        }
    }

    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        self.told().0
    }

    /// The HTTP status that goes with it.
    pub(crate) fn status(self) -> u16 {
        self.told().1
    }
}

/// A name as a segment of a path: groups have `/` and `:` in them.
pub(crate) fn segment(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text += &format!("%{byte:02X}");
        }
    }
    text
}

/// The path of a group, and of what can be asked of it: `group_path("a/b", "/watch")`.
pub(crate) fn group_path(group: &str, rest: &str) -> String {
    format!("/v1/groups/{}{rest}", segment(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_one_segment_of_a_path_whatever_is_in_its_name() {
        assert_eq!(group_path("app1/jobs:nightly", "/watch"), "/v1/groups/app1%2Fjobs%3Anightly/watch");
        assert_eq!(segment("n1.a_b-c"), "n1.a_b-c");
        assert_eq!(segment("ä b"), "%C3%A4%20b");
    }

    #[test]
    fn each_error_has_a_code_of_its_own() {
        let mut names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
    }

    #[test]
    fn a_field_without_a_value_is_null_and_one_that_is_unknown_is_passed_over() {
        let state = State::Nobody;
        let group =
            Leader { group: "g".to_owned(), state, leader: None, term: None, after: None, here: false };
        let text = serde_json::to_string(&group).unwrap();
        let same = r#""group":"g","state":"nobody","leader":null,"term":null,"after":null,"here":false"#;
        assert_eq!(text, format!("{{{same}}}"));
        let newer = &format!(r#"{{{same},"colour":"blue"}}"#);
        assert_eq!(serde_json::from_str::<Leader>(newer).unwrap(), group);
    }
}
