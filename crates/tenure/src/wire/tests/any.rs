//! Any item that can be said: one function a type.

use std::sync::Arc;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use tenure_proto::detect::weak::Beat;
use tenure_proto::quorum::{MAX_MEMBERS, NodeSet, Quorums, Rule};
use tenure_proto::strong::epoch::{
    Ballot, Barred, Body, Charter, CharterId, Denial, Epoch, EpochTalk, Lineage, StoreId,
};
use tenure_proto::strong::{
    GrantRequest, HeightTalk, Hint, Holder, How, InstanceId, Kind, Message, Miss, Refusal, Talk, Term, Token,
};
use tenure_proto::time::{Bound, Clockwork, Drift, Incarnation, LocalSpan, LocalTime, Pledge, Span, Stamp};
use tenure_proto::{GroupId, NodeId};

use super::super::*;
use crate::name::NodeName;
use crate::operator_request::{MAX_REASON, OperatorRequest, Reply};
use crate::seal::ClusterKey;
use crate::timing::Timing;

pub(super) fn item() -> BoxedStrategy<Item> {
    prop_oneof![
        12 => machine(),
        1 => vec(contact(), 0..=MAX_CONTACTS).prop_map(Item::Contacts),
        1 => (group_name(), time()).prop_map(|(group, asked)| Item::Watch { group, asked }),
        1 => group().prop_map(|group| Item::Unwatch { group }),
        1 => group().prop_map(|group| Item::Limited { group }),
        1 => report().prop_map(Item::Report),
        1 => measures().prop_map(|measures| Item::Measures(Box::new(measures))),
        1 => proclaim().prop_map(Item::Proclaim),
        1 => Just(Item::AskCharter),
        1 => any::<u128>().prop_map(|nonce| Item::AskOrigin { nonce }),
        1 => (any::<u128>(), incarnation()).prop_map(|(store, highest)| Item::Condemned {
            store: StoreId(store),
            highest,
        }),
        1 => (option::of(charter_id()), option::of(any::<u128>()), any::<u128>()).prop_map(
            |(goes_by, store, start)| {
                Item::Origin(Origin { goes_by, store: store.map(StoreId), start, echo: store })
            }
        ),
        1 => charter().prop_map(Item::Charter),
        1 => time().prop_map(|at| Item::Ping { at }),
        1 => (time(), time()).prop_map(|(echo, at)| Item::Pong { echo, at }),
        2 => ask().prop_map(Item::Ask),
        2 => told().prop_map(Item::Told),
        1 => pass().prop_map(Item::Pass),
        2 => hinting().prop_map(Item::Eventual),
        2 => neighbourly().prop_map(Item::Local),
        1 => (vec(revocation(), 0..=MAX_TOLD), any::<bool>())
            .prop_map(|(keys, answer)| Item::Revoked { keys, answer }),
        1 => vec(any::<u64>().prop_map(Serial), 0..=MAX_TOLD).prop_map(Item::RevokedKept),
    ]
    .boxed()
}

fn revocation() -> BoxedStrategy<Revocation> {
    (any::<u64>(), option::of(any::<u64>()), vec(any::<[u8; 32]>(), 0..6))
        .prop_map(|(serial, not_after, keys)| {
            let roots: Vec<_> = keys.into_iter().map(|key| ClusterKey::from_bytes(key).id()).collect();
            Revocation::new(Serial(serial), not_after, &roots)
        })
        .boxed()
}

fn machine() -> BoxedStrategy<Item> {
    let named = group_name().prop_flat_map(|name| {
        let group = Some(name.clone());
        of_group(name.id()).prop_map(move |message| Item::Machine { group: group.clone(), message })
    });
    let numbered = group().prop_flat_map(of_group);
    let top = option::of(term()).prop_map(|top| top.map_or(HeightTalk::Ask, HeightTalk::Top));
    let unnamed = prop_oneof![
        4 => numbered,
        2 => here(),
        2 => epoch_talk().prop_map(Message::Epoch),
        1 => top.prop_map(Message::Height),
    ]
    .prop_map(|message| Item::Machine { group: None, message });
    prop_oneof![unnamed, named].boxed()
}

fn of_group(group: GroupId) -> BoxedStrategy<Message> {
    prop_oneof![
        request(group).prop_map(Message::Request),
        (request(group), any::<u64>(), any::<u8>()).prop_map(|(request, alive, priority)| {
            Message::Extend { request, alive: NodeSet::from_bits(alive), priority }
        }),
        (epoch(), instance(), stamp()).prop_map(move |(epoch, id, at)| Message::Ok { group, epoch, id, at }),
        (instance(), refusal(), term()).prop_map(move |(id, refusal, max_term)| Message::Nack {
            group,
            id,
            refusal,
            max_term
        }),
        instance().prop_map(move |upto| Message::Release { group, upto }),
        talk(group).prop_map(move |talk| Message::Talk { group, talk }),
    ]
    .boxed()
}

fn talk(group: GroupId) -> BoxedStrategy<Talk> {
    prop_oneof![
        term().prop_map(|term| Talk::TakeOver { term }),
        request(group).prop_map(Talk::Ready),
        (instance(), request(group)).prop_map(|(release, request)| Talk::Relay { release, request }),
        (instance(), span()).prop_map(|(id, wanted)| Talk::Verify { id, wanted }),
        (holder(), any::<u8>()).prop_map(|(holder, priority)| Talk::Prefer { holder, priority }),
        (instance(), holder(), term(), pledge()).prop_map(|(id, leader, term, pledge)| Talk::Certain {
            id,
            leader,
            term,
            pledge
        }),
        (instance(), how(), any::<u8>()).prop_map(|(id, how, hops)| Talk::Seek { id, how, hops }),
        (instance(), any::<u8>(), holder(), term()).prop_map(|(id, hops, leader, term)| Talk::Here {
            id,
            hops,
            leader,
            term
        }),
        (instance(), any::<u8>(), hint()).prop_map(|(id, hops, hint)| Talk::There { id, hops, hint }),
        (instance(), any::<u8>(), miss()).prop_map(|(id, hops, why)| Talk::Nowhere { id, hops, why }),
        Just(Talk::Free),
    ]
    .boxed()
}

fn epoch_talk() -> BoxedStrategy<EpochTalk> {
    let head = || (epoch(), ballot());
    prop_oneof![
        charter().prop_map(EpochTalk::Decided),
        charter_id().prop_map(EpochTalk::GoesBy),
        epoch().prop_map(|newest| EpochTalk::Unknown { newest }),
        head().prop_map(|(epoch, ballot)| EpochTalk::Prepare { epoch, ballot }),
        (head(), option::of((ballot(), charter())), term()).prop_map(|((epoch, ballot), accepted, top)| {
            EpochTalk::Promise { epoch, ballot, accepted, top }
        }),
        (head(), charter()).prop_map(|((epoch, ballot), charter)| EpochTalk::Accept {
            epoch,
            ballot,
            charter
        }),
        head().prop_map(|(epoch, ballot)| EpochTalk::Accepted { epoch, ballot }),
        (head(), denial()).prop_map(|((epoch, ballot), denial)| EpochTalk::Denied { epoch, ballot, denial }),
    ]
    .boxed()
}

fn here() -> impl Strategy<Value = Message> {
    let beat = (incarnation(), number()).prop_map(|(incarnation, count)| Beat { incarnation, count });
    (epoch(), vec(option::of(beat), 0..=MAX_MEMBERS))
        .prop_map(|(epoch, beats)| Message::Here { epoch, beats })
}

pub(super) fn request(group: GroupId) -> impl Strategy<Value = GrantRequest> {
    let kind = prop_oneof![Just(Kind::Acquire), Just(Kind::Renew)];
    (epoch(), instance(), time(), span(), kind, term()).prop_map(
        move |(epoch, id, start, lease, kind, term)| GrantRequest {
            group,
            epoch,
            id,
            start,
            lease,
            kind,
            term,
        },
    )
}

fn refusal() -> impl Strategy<Value = Refusal> {
    prop_oneof![
        (node(), local_span()).prop_map(|(holder, remaining)| Refusal::Busy { holder, remaining }),
        Just(Refusal::StaleTerm),
        Just(Refusal::LeaseTooLong),
        Just(Refusal::Released),
        Just(Refusal::FromTheFuture),
        Just(Refusal::Young),
        Just(Refusal::TooManyGroups),
        Just(Refusal::Barred),
        Just(Refusal::Wedged),
        Just(Refusal::Draining),
        local_span().prop_map(|wait| Refusal::TooHigh { wait }),
        Just(Refusal::Implausible),
    ]
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        Just(How::Redirect),
        span().prop_map(|wait| How::Campaign { wait }),
        span().prop_map(|wait| How::Buffer { wait }),
        Just(How::Refuse),
    ]
}

fn miss() -> impl Strategy<Value = Miss> {
    prop_oneof![
        Just(Miss::NotLeader),
        Just(Miss::Unknown),
        Just(Miss::Full),
        Just(Miss::TimedOut),
        Just(Miss::Outdated),
        Just(Miss::NoHopsLeft),
        Just(Miss::Unanswered),
    ]
}

fn hint() -> impl Strategy<Value = Hint> {
    (node(), term(), local_span()).prop_map(|(holder, term, remaining)| Hint { holder, term, remaining })
}

fn pledge() -> impl Strategy<Value = Pledge> {
    (span(), time()).prop_map(|(lasts, until)| Pledge { lasts, until })
}

fn denial() -> impl Strategy<Value = Denial> {
    prop_oneof![
        ballot().prop_map(Denial::Outbid),
        local_span().prop_map(|remaining| Denial::TooSoon { remaining }),
        Just(Denial::NotAdjacent),
        epoch().prop_map(Denial::Sealed),
        term().prop_map(Denial::Granted),
        term().prop_map(Denial::Implausible),
    ]
}

fn charter() -> impl Strategy<Value = Arc<Charter>> {
    (epoch(), lineage(), body(), option::of(body()), term()).prop_map(
        |(epoch, lineage, body, before, floor)| Arc::new(Charter { epoch, lineage, body, before, floor }),
    )
}

fn lineage() -> impl Strategy<Value = Lineage> {
    vec(any::<u128>(), 1..=Lineage::MOST).prop_map(|draws| Lineage::new(draws).expect("not too many"))
}

fn charter_id() -> impl Strategy<Value = CharterId> {
    (lineage(), epoch(), any::<u128>()).prop_map(|(lineage, epoch, digest)| CharterId {
        lineage,
        epoch,
        digest,
    })
}

fn body() -> impl Strategy<Value = Body> {
    let stores = vec(option::of(any::<u128>()), MAX_MEMBERS);
    let barred = vec(group(), 0..=Barred::MOST).prop_map(|groups| Barred::new(groups).expect("not too many"));
    (quorums(), clocks(), span(), stores, barred).prop_map(
        |(quorums, clocks, longest_lease, stores, barred)| {
            let store = |(member, store): (&NodeId, Option<u128>)| Some((*member, StoreId(store?)));
            let stores = quorums.members().iter().zip(stores).filter_map(store).collect();
            Body { quorums, clocks, longest_lease, stores, barred }
        },
    )
}

fn quorums() -> impl Strategy<Value = Quorums> {
    let members = btree_set(any::<u64>(), 1..=MAX_MEMBERS);
    (members, 0..4, vec(1..1000u64, MAX_MEMBERS)).prop_map(|(members, rule, weights)| {
        let members: Vec<NodeId> = members.into_iter().map(NodeId).collect();
        let count = members.len();
        let rule = match rule {
            0 => Rule::Majority,
            1 => Rule::Weighted(weights[..count].to_vec()),
            2 => Rule::Grid { rows: 1, columns: count },
            _ => Rule::List((0..count).map(|last| (0..=last).collect()).collect()),
        };
        Quorums::new(members, rule).expect("any two of these quorums meet")
    })
}

fn clocks() -> impl Strategy<Value = Clockwork> {
    let drift = (0..1_000_000u32).prop_filter_map("a clock", Drift::from_ppm).prop_map(Bound::Drift);
    let bound = prop_oneof![drift, local_span().prop_map(Bound::Skew)];
    (bound, local_span()).prop_map(|(bound, tick)| Clockwork { bound, tick })
}

fn ballot() -> impl Strategy<Value = Ballot> {
    (number(), option::of(node()), incarnation()).prop_map(|(number, node, incarnation)| Ballot {
        number,
        node,
        incarnation,
    })
}

fn timing() -> impl Strategy<Value = Timing> {
    vec(0..60_000_000_u64, 0..5).prop_map(|lengths| {
        let mut timing = Timing::default();
        lengths.into_iter().for_each(|micros| timing.note(std::time::Duration::from_micros(micros)));
        timing
    })
}

fn measures() -> impl Strategy<Value = Measures> {
    let numbers = (number(), number(), number(), number());
    (numbers, timing(), timing()).prop_map(|((won, lost, renewals, failed), acquire_times, renew_times)| {
        Measures {
            terms_won: won,
            terms_lost: lost,
            renewals,
            runs_failed: failed,
            acquire_times,
            renew_times,
        }
    })
}

fn report() -> impl Strategy<Value = Report> {
    let state = prop_oneof![
        term().prop_map(|after| GroupState::Free { after }),
        (node(), term(), any::<bool>()).prop_map(|(holder, term, leads)| GroupState::Bound {
            holder,
            term,
            leads
        }),
        node().prop_map(|leader| GroupState::Weak { leader }),
    ];
    let left = number().prop_map(LocalSpan::from_nanos);
    let when = (time(), time(), left).prop_map(|(echo, at, left)| When { echo, at, left });
    (group(), epoch(), state, option::of(when)).prop_map(|(group, epoch, state, when)| Report {
        group,
        epoch,
        state,
        when,
    })
}

fn proclaim() -> impl Strategy<Value = Proclaim> {
    let token = (term(), number()).prop_map(|(term, number)| Token::new(term, number));
    let body = option::of(vec(any::<u8>(), 0..=MAX_PROCLAIM));
    (group(), epoch(), node(), token, body).prop_map(|(group, epoch, leader, token, body)| Proclaim {
        group,
        epoch,
        leader,
        token,
        body,
    })
}

fn ask() -> impl Strategy<Value = Ask> {
    let request = prop_oneof![
        Just(OperatorRequest::Resign),
        node_name().prop_map(|to| OperatorRequest::Transfer { to }),
        vec(any::<u8>(), 0..=MAX_PROCLAIM).prop_map(|body| OperatorRequest::Proclaim { body }),
    ];
    let order =
        (holder(), term(), request).prop_map(|(leader, term, request)| Order { leader, term, request });
    (any::<u128>(), group_name(), option::of(order)).prop_map(|(id, group, order)| Ask { id, group, order })
}

fn told() -> impl Strategy<Value = Told> {
    let token = (term(), number()).prop_map(|(term, number)| Token::new(term, number));
    let said = prop_oneof![
        (holder(), term()).prop_map(|(leader, term)| Said::There { leader, term }),
        Just(Said::Nowhere),
        (term(), any::<bool>()).prop_map(|(term, same_life)| Said::NotLeading { term, same_life }),
        option::of(token).prop_map(|token| Said::Of(Reply::Fulfilled { token })),
        text(&REASON, MAX_REASON / 2).prop_map(|reason| Said::Of(Reply::Declined { reason })),
        Just(Said::Of(Reply::NotListening)),
        Just(Said::Of(Reply::NotAllowed)),
    ];
    (any::<u128>(), said).prop_map(|(id, said)| Told { id, said })
}

fn pass() -> impl Strategy<Value = Pass> {
    let passed = |name: GroupName| {
        let talk = prop_oneof![
            term().prop_map(|term| Talk::TakeOver { term }),
            request(name.id()).prop_map(Talk::Ready),
        ];
        (Just(name), talk)
    };
    let on_the_way = (node(), node(), group_name().prop_flat_map(passed));
    on_the_way.prop_map(|(from, to, (group, talk))| Pass { from, to, group, talk })
}

fn hinting() -> impl Strategy<Value = EventualTalk> {
    use tenure_proto::eventual::{self, Message, State};
    let state =
        || {
            (number(), option::of(node()), number(), span()).prop_map(|(serial, process, fresh, bound)| {
                State { epoch: eventual::Epoch { serial, process }, fresh, bound }
            })
        };
    let message = prop_oneof![
        (state(), number()).prop_map(|(state, round)| Message::Refresh { state, round }),
        (number(), option::of(number())).prop_map(|(round, ahead)| Message::Ack { round, ahead }),
        number().prop_map(|read| Message::Collect { read }),
        (number(), vec(state(), 0..=MAX_MEMBERS), any::<bool>())
            .prop_map(|(read, registry, recovers)| Message::Status { read, registry, recovers }),
        number().prop_map(|attempt| Message::GetEpoch { attempt }),
        (number(), number()).prop_map(|(attempt, serial)| Message::RetEpoch { attempt, serial }),
    ];
    (group_name(), epoch(), message).prop_map(|(group, charter, message)| EventualTalk {
        group,
        charter,
        message,
    })
}

fn neighbourly() -> impl Strategy<Value = LocalTalk> {
    use tenure_proto::detect::fail_aware::{Header, HelperStamp};
    use tenure_proto::local::{Body, Datagram, RequestId};
    let helper = || {
        let parts = (time(), time(), incarnation());
        option::of(parts.prop_map(|(sent, received, incarnation)| HelperStamp {
            sent,
            received,
            incarnation,
        }))
    };
    let header = (incarnation(), number(), time(), helper(), helper()).prop_map(
        |(incarnation, number, sent, newest, best)| Header {
            incarnation,
            number,
            sent,
            helpers: [newest, best],
        },
    );
    let request =
        || (incarnation(), number()).prop_map(|(incarnation, number)| RequestId { incarnation, number });
    let set = || any::<u64>().prop_map(NodeSet::from_bits);
    let body = prop_oneof![
        (request(), set(), any::<bool>(), set()).prop_map(|(request, alive, collate, members)| {
            Body::Election { request, alive, collate, members }
        }),
        (node(), request(), set(), set()).prop_map(|(root, request, answered, support)| Body::Reply {
            root,
            request,
            answered,
            support
        }),
        request().prop_map(|request| Body::Release { request }),
        Just(Body::Helper),
    ];
    (group_name(), header, number(), number(), body).prop_map(|(group, header, fingerprint, turn, body)| {
        LocalTalk { group, datagram: Datagram { header, fingerprint, turn, body } }
    })
}

fn node_name() -> impl Strategy<Value = NodeName> {
    text(&NODE, 64).prop_map(|name| NodeName::new(&name).expect("made of such characters"))
}

fn contact() -> impl Strategy<Value = Contact> {
    (text(&NODE, 64), option::of(text(&ADDRESS, MAX_ADDRESS))).prop_map(|(name, address)| Contact {
        name: NodeName::new(&name).expect("made of such characters"),
        address,
    })
}

fn group_name() -> impl Strategy<Value = GroupName> {
    text(&GROUP, 100).prop_map(|name| GroupName::new(&name).expect("made of such characters"))
}

const NODE: [char; 7] = ['a', 'Z', '0', '9', '.', '_', '-'];
const GROUP: [char; 7] = ['a', 'Z', '0', '9', '.', '/', ':'];
const REASON: [char; 7] = ['a', 'é', ' ', '0', ':', '\'', '~'];
const ADDRESS: [char; 7] = ['a', '1', '.', ':', '[', ']', '~'];

fn text(alphabet: &'static [char], most: usize) -> impl Strategy<Value = String> {
    vec(proptest::sample::select(alphabet), 1..=most).prop_map(String::from_iter)
}

fn instance() -> impl Strategy<Value = InstanceId> {
    (holder(), number()).prop_map(|(holder, seq)| InstanceId { holder, seq })
}

fn holder() -> impl Strategy<Value = Holder> {
    (node(), incarnation()).prop_map(|(node, incarnation)| Holder { node, incarnation })
}

fn stamp() -> impl Strategy<Value = Stamp> {
    (incarnation(), time(), any::<u32>()).prop_map(|(incarnation, at, count)| Stamp {
        incarnation,
        at,
        count,
    })
}

fn incarnation() -> impl Strategy<Value = Incarnation> {
    prop_oneof![number().prop_map(u128::from), any::<u128>()].prop_map(Incarnation)
}

/// Of every length in bytes.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64u32).prop_map(|(value, shift)| value >> shift)
}

fn node() -> impl Strategy<Value = NodeId> {
    any::<u64>().prop_map(NodeId)
}

fn group() -> impl Strategy<Value = GroupId> {
    any::<u64>().prop_map(GroupId)
}

fn epoch() -> impl Strategy<Value = Epoch> {
    number().prop_map(Epoch)
}

fn term() -> impl Strategy<Value = Term> {
    number().prop_map(Term)
}

fn time() -> impl Strategy<Value = LocalTime> {
    number().prop_map(LocalTime::from_nanos)
}

fn span() -> impl Strategy<Value = Span> {
    number().prop_map(Span::from_nanos)
}

fn local_span() -> impl Strategy<Value = LocalSpan> {
    number().prop_map(LocalSpan::from_nanos)
}
