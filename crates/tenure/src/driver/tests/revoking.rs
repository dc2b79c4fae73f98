//! Keys that are revoked, or expire, at running members.

use super::*;
use crate::error::{CampaignError, RevokeError, VerifyError};
use crate::seal::{Claims, KeyRefusal, Names};
use crate::status::NotReady;
use crate::store::RevokedFile;
use crate::sys::clock::{Which, read};
use crate::{CandidateKey, Serial};

const LONG: Duration = Duration::from_secs(30);

fn app_key(founded: &Founded) -> CandidateKey {
    founded.key.candidate(founded.id, NodeName::new("app").unwrap(), Scope::new("*").unwrap())
}

fn candidate(founded: &Founded, name: &str, key: CandidateKey) -> Config {
    let mut config = founded.config(name, Key::Scoped(key));
    config.role = Role::Candidate;
    config
}

async fn start(founded: &Founded, which: &[usize]) -> Vec<Node> {
    let mut nodes = Vec::new();
    for index in which {
        nodes.push(Node::start(founded.member(*index)).await.unwrap());
    }
    for node in &nodes {
        within(LONG, node.ready()).await.expect("it is ready in time").unwrap();
    }
    nodes
}

/// Waits until a member refuses a key.
async fn refuses(node: &Node, key: Serial) {
    let learnt = async {
        while !node.revoked_keys().await.unwrap().iter().any(|revoked| revoked.serial == key) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within(LONG, learnt).await.expect("it hears of the revocation");
}

#[tokio::test]
async fn a_leader_whose_key_is_revoked_loses_its_lease_and_is_not_elected_again() {
    let founded = Founded::new(&["a", "b", "c"], drift());
    let members = start(&founded, &[0, 1, 2]).await;
    let key = app_key(&founded);
    let app = Node::start(candidate(&founded, "app", key.clone())).await.unwrap();
    let tenure = within(LONG, app.campaign("jobs")).await.expect("it leads").unwrap();
    let revoked = members[0].revoke(key.serial(), None).await.unwrap();
    assert!(revoked.is_quorum && revoked.missing.is_empty(), "{revoked:?}");
    assert_eq!(revoked.held_by.len(), 3);
    within(LONG, tenure.lost()).await.expect("its lease ends");
    let why = KeyRefusal::Revoked;
    let again = within(LONG, app.campaign("jobs")).await.expect("it is told");
    assert_eq!(again.err(), Some(CampaignError::KeyRefused { why }));
    let asked = within(LONG, app.verify("jobs", Duration::from_millis(50))).await.expect("it is told");
    assert_eq!(asked.err(), Some(VerifyError::KeyRefused { why }));
    assert!(app.status().await.unwrap().not_ready.contains(&NotReady::KeyRefused { why }));
    app.set_keys(&Key::Scoped(app_key(&founded)), &[]);
    let tenure = within(LONG, app.campaign("jobs")).await.expect("it is elected").unwrap();
    assert!(tenure.is_leader(), "with a new key, without a restart");
    tenure.resign();
    // The name is not what was revoked.
    let other = Node::start(candidate(&founded, "app", app_key(&founded))).await.unwrap();
    drop(within(LONG, other.campaign("jobs")).await.expect("a new key leads").unwrap());
    assert_eq!(members[0].revoke(key.serial(), None).await.unwrap().held_by.len(), 3, "again is harmless");
}

#[tokio::test]
async fn a_revocation_says_who_has_it_and_reaches_those_who_were_down_and_survives_restarts() {
    let founded = Founded::new(&["a", "b", "c"], drift());
    let members = start(&founded, &[0, 1]).await;
    let key = app_key(&founded).serial();
    let revoked = members[0].revoke(key, Some(u64::MAX)).await.unwrap();
    let names = |names: &[NodeName]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut held_by = names(&revoked.held_by);
    held_by.sort();
    assert_eq!((held_by, names(&revoked.missing)), (vec!["a".into(), "b".into()], vec!["c".into()]));
    assert!(revoked.is_quorum);
    let c = Node::start(founded.member(2)).await.unwrap();
    refuses(&c, key).await;
    for node in members.into_iter().chain([c]) {
        node.shutdown().await;
    }
    let alone = Node::start(founded.member(1)).await.unwrap();
    let kept = alone.revoked_keys().await.unwrap();
    let kept: Vec<_> = kept.iter().map(|key| (key.serial, key.not_after)).collect();
    assert_eq!(kept, [(key, Some(u64::MAX))], "from its disk");
    let revoked = alone.revoke(Serial(7), None).await.unwrap();
    assert!(!revoked.is_quorum, "alone it is no quorum: {revoked:?}");
}

#[tokio::test]
async fn an_expired_key_leads_nothing_and_one_that_has_not_expired_does() {
    let founded = Founded::new(&["a"], drift());
    let _members = start(&founded, &[0]).await;
    let now = read(Which::Real) / 1_000_000_000;
    let key = |last| {
        let claims = Claims::candidate(Names::new("web-*").unwrap(), Scope::new("*").unwrap());
        founded.key.derive(founded.id, claims.not_after(last))
    };
    let good = Node::start(candidate(&founded, "web-1", key(now + 3600))).await.unwrap();
    let tenure = within(LONG, good.campaign("jobs")).await.expect("it leads").unwrap();
    assert!(tenure.is_leader());
    let late = Node::start(candidate(&founded, "web-2", key(now - 10))).await.unwrap();
    let refused = within(LONG, late.campaign("jobs")).await.expect("it is told");
    assert_eq!(refused.err(), Some(CampaignError::KeyRefused { why: KeyRefusal::Expired }));
    let status = late.status().await.unwrap();
    assert_eq!(status.not_ready, [NotReady::KeyRefused { why: KeyRefusal::Expired }]);
    assert!(!status.ready);
}

#[tokio::test]
async fn one_member_of_three_that_refuses_a_key_ends_no_campaign() {
    let founded = Founded::new(&["a", "b", "c"], drift());
    let mut members = start(&founded, &[0, 1, 2]).await;
    let now = read(Which::Real) / 1_000_000_000;
    let claims = Claims::candidate(NodeName::new("app").unwrap(), Scope::new("*").unwrap());
    let key = founded.key.derive(founded.id, claims.not_after(now + 3600));
    // One member believes in another century.
    members.remove(0).shutdown().await;
    RevokedFile { keys: Vec::new(), date: Some(now + 86_400 * 30) }
        .write(&founded.dir.path().join("a"))
        .unwrap();
    let a = Node::start(founded.member(0)).await.unwrap();
    let app = Node::start(candidate(&founded, "app", key)).await.unwrap();
    let tenure = within(LONG, app.campaign("jobs")).await.expect("it leads").unwrap();
    let refused = async {
        while !a.status().await.unwrap().sessions.refused().any(|(why, count)| why == "expired" && count > 0)
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within(LONG, refused).await.expect("one member refuses it");
    assert!(tenure.is_leader() && app.status().await.unwrap().not_ready.is_empty());
}

#[tokio::test]
async fn a_candidate_whose_key_is_for_another_founding_does_not_lead() {
    let founded = Founded::new(&["a"], drift());
    let _members = start(&founded, &[0]).await;
    let claims = Claims::candidate(NodeName::new("app").unwrap(), Scope::new("*").unwrap());
    let lineage = Node::founding_lineage(&founded.member(0), founded.id).unwrap();
    let of = |lineage| founded.key.derive(founded.id, claims.clone().lineage(lineage));
    let other = Node::start(candidate(&founded, "app", of(lineage ^ 1))).await.unwrap();
    assert!(within(Duration::from_secs(1), other.campaign("jobs")).await.is_none());
    let right = Node::start(candidate(&founded, "app", of(lineage))).await.unwrap();
    drop(within(LONG, right.campaign("jobs")).await.expect("it leads").unwrap());
}

#[tokio::test]
async fn only_members_revoke_and_a_damaged_list_is_refused() {
    let founded = Founded::new(&["a"], drift());
    let members = start(&founded, &[0]).await;
    let app = Node::start(candidate(&founded, "app", app_key(&founded))).await.unwrap();
    assert_eq!(app.revoke(Serial(1), None).await, Err(RevokeError::NotAMember));
    assert_eq!(members[0].revoke(Serial(1), Some(1)).await, Err(RevokeError::Expired));
    for node in members {
        node.shutdown().await;
    }
    let folder = founded.member(0).store.unwrap();
    assert!(RevokedFile::read(&folder).unwrap().date.is_some(), "the date is kept from the first start");
    std::fs::write(folder.join("revoked"), b"nonsense").unwrap();
    assert!(Node::start(founded.member(0)).await.is_err());
}
