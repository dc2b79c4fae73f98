//! A message counts for the life that its session belongs to, and for no other.

use tenure_proto::quorum::NodeSet;
use tenure_proto::strong::epoch::Epoch;
use tenure_proto::strong::{GrantRequest, How, InstanceId, Kind, Talk};
use tenure_proto::time::Span;

use super::*;
use crate::seal::Rights;

const GROUP: &str = "app/main";
const OTHER: Incarnation = Incarnation(77);

impl Founded {
    /// A process with a candidate's key for these groups.
    pub(super) fn candidate(&self, name: &str, groups: &str) -> Config {
        let (node, scope) = (NodeName::new(name).unwrap(), Scope::new(groups).unwrap());
        let mut config = self.config(name, Key::Scoped(self.key.candidate(self.id, node, scope)));
        config.role = Role::Candidate;
        config
    }
}

fn run(holder: Holder, seq: u64) -> InstanceId {
    InstanceId { holder, seq }
}

fn request(holder: Holder, kind: Kind, term: u64) -> GrantRequest {
    GrantRequest {
        group: GroupName::new(GROUP).unwrap().id(),
        epoch: Epoch(0),
        id: run(holder, 1),
        start: LocalTime::from_nanos(1),
        lease: Span::from_millis(1000),
        kind,
        term: Term(term),
    }
}

fn item(message: Message) -> Item {
    Item::Machine { group: Some(GroupName::new(GROUP).unwrap()), message }
}

fn talk(talk: Talk) -> Item {
    item(Message::Talk { group: GroupName::new(GROUP).unwrap().id(), talk })
}

/// One of each kind that speaks for a life.
fn words(speaker: Holder, successor: Holder) -> Vec<Item> {
    let group = GroupName::new(GROUP).unwrap().id();
    vec![
        item(Message::Request(request(speaker, Kind::Acquire, 50))),
        item(Message::Extend {
            request: request(speaker, Kind::Renew, 50),
            alive: NodeSet::EMPTY,
            priority: 0,
        }),
        item(Message::Release { group, upto: run(speaker, u64::MAX) }),
        talk(Talk::Relay { release: run(speaker, u64::MAX), request: request(successor, Kind::Acquire, 60) }),
        talk(Talk::Ready(request(speaker, Kind::Acquire, 70))),
        talk(Talk::Prefer { holder: speaker, priority: 1 }),
        talk(Talk::Verify { id: run(speaker, 9), wanted: Span::from_millis(1) }),
        talk(Talk::Seek { id: run(speaker, 9), how: How::Redirect, hops: 1 }),
        talk(Talk::Here { id: run(speaker, 9), hops: 1, leader: speaker, term: Term(1) }),
    ]
}

/// Until a member has counted so many messages as not the sender's to say.
async fn refuses(member: &Launched, count: usize) -> Status {
    loop {
        let status = status(member).await;
        if status.tally.out_of_scope >= count as u64 {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_is_said_for_another_life_of_ones_own_name_is_not_heard() {
    let founded = Founded::new(&["a"], drift());
    let member = founded.launch(0, |_| ()).await;
    let app = founded.candidate("app", "app/*");
    let other = |own: Holder| words(Holder { incarnation: OTHER, ..own }, own);
    let count =
        words(Holder { node: NodeId(1), incarnation: OTHER }, Holder { node: NodeId(1), incarnation: OTHER })
            .len();
    let refused = speaks(&app, &founded, other, within(SOON, refuses(&member, count))).await;
    let tally = refused.expect("all of them are refused").tally;
    assert_eq!((tally.out_of_scope, tally.granted, tally.refused), (count as u64, 0, 0));
}

#[tokio::test]
async fn what_is_said_for_the_own_life_is_heard() {
    let founded = Founded::new(&["a"], drift());
    let member = founded.launch(0, |_| ()).await;
    let app = founded.candidate("app", "app/*");
    let granted = async {
        // The extension, and the successor's request that the relay passed on.
        while status(&member).await.tally.granted < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let own = |own: Holder| {
        let passed_on = GrantRequest { id: run(own, 3), ..request(own, Kind::Renew, 50) };
        // Words of different kinds may overtake each other: what it gives back is older than all.
        let relay = talk(Talk::Relay { release: run(own, 0), request: passed_on });
        vec![words(own, own)[1].clone(), relay]
    };
    speaks(&app, &founded, own, within(SOON, granted)).await.expect("it is granted");
    assert_eq!(status(&member).await.tally.out_of_scope, 0);
}

#[tokio::test]
async fn a_release_of_a_later_life_does_not_free_what_an_earlier_one_holds() {
    let founded = Founded::new(&["a"], drift());
    let member = founded.launch(0, |_| ()).await;
    let app = founded.candidate("app", "app/*");
    let (mut holder, group) = (None, GroupName::new(GROUP).unwrap().id());
    let granted = async {
        while status(&member).await.tally.granted < 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let asks = |own: Holder| {
        holder = Some(own);
        let long = GrantRequest { lease: Span::from_millis(5000), ..request(own, Kind::Acquire, 50) };
        vec![item(Message::Request(long))]
    };
    speaks(&app, &founded, asks, within(SOON, granted)).await.expect("it is granted");
    let former = holder.expect("it has asked");
    let release = |_| vec![item(Message::Release { group, upto: run(former, u64::MAX) })];
    let refused = speaks(&app, &founded, release, within(SOON, refuses(&member, 1))).await;
    assert!(refused.is_some(), "a second process of the name gave back what the first holds");
}

#[tokio::test]
async fn a_relay_is_for_a_successor_that_is_there_and_may_lead_the_group() {
    let founded = Founded::new(&["a"], drift());
    let member = founded.launch(0, |_| ()).await;
    let app = founded.candidate("app", "app/*");
    let stranger = Holder { node: NodeName::new("ghost").unwrap().id(), incarnation: OTHER };
    let relay = |own: Holder| {
        let former = Holder { incarnation: OTHER, ..own };
        let member = Holder { node: NodeName::new("a").unwrap().id(), incarnation: OTHER };
        let to = |successor| {
            let request = request(successor, Kind::Acquire, 60);
            talk(Talk::Relay { release: run(own, 1), request })
        };
        vec![to(stranger), to(former), to(member)]
    };
    let refused = speaks(&app, &founded, relay, within(SOON, refuses(&member, 3))).await;
    assert_eq!(refused.expect("all are refused").tally.granted, 0);
}

#[tokio::test]
async fn who_has_no_key_of_the_cluster_is_not_believed_about_which_members_live() {
    let founded = Founded::new(&["a"], drift());
    let (driver, _ends, _launched) = prepare(Checked::new(&founded.member(0)).unwrap()).unwrap();
    let holder = Holder { node: NodeId(9), incarnation: OTHER };
    let alive: NodeSet = [0].into_iter().collect();
    let extend = Message::Extend { request: request(holder, Kind::Renew, 1), alive, priority: 0 };
    let said = |rights| match driver.bounded(&rights, extend.clone()) {
        Message::Extend { alive, .. } => alive,
        other => panic!("{other:?}"),
    };
    assert_eq!(said(Rights::Member), alive);
    assert_eq!(said(Rights::Candidate(Scope::new("*").unwrap())), NodeSet::EMPTY);
}

/// A member that was told by another, in this life of that, where it comes from.
fn is_told(driver: &mut Driver, life: u128, start: u128, echo: Option<u128>) -> bool {
    let peer = Peer::proved("b", Rights::Member, life);
    let charter = driver.machine.as_ref().expect("it has started").charter().clone();
    let store = charter.body.stores.get(peer.id);
    driver.on_origin(&peer, &Origin { goes_by: Some(charter.id()), store, start, echo });
    driver.kin.is_condemned(store.expect("the charter names it"))
}

#[tokio::test]
async fn only_an_answer_to_a_question_that_followed_a_higher_life_condemns_a_store() {
    let founded = Founded::new(&["a", "b"], drift());
    let (mut driver, _ends, _launched) = prepare(Checked::new(&founded.member(0)).unwrap()).unwrap();
    driver.begin();
    let peer = NodeName::new("b").unwrap().id();
    assert!(!is_told(&mut driver, 5, 50, None));
    assert!(!is_told(&mut driver, 4, 40, None), "it may be late");
    assert!(!is_told(&mut driver, 4, 40, Some(0)), "it answers what any peer is asked");
    let asked = driver.kin.doubts[&peer];
    assert!(!is_told(&mut driver, 4, 40, Some(asked ^ 1)), "or guesses");
    assert!(!is_told(&mut driver, 5, 50, Some(asked)), "the newest life answers");
    assert!(!is_told(&mut driver, 6, 60, None), "it has restarted");
    assert!(!is_told(&mut driver, 5, 50, Some(asked)), "an answer from before that is late");
    let asked = driver.kin.doubts[&peer];
    assert!(is_told(&mut driver, 5, 50, Some(asked)), "it was asked after life 6 was heard, and is there");
    assert!(is_told(&mut driver, 7, 70, None), "for good");
}
