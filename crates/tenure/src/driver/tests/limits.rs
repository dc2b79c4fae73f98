//! Limits of what one key may cost a member, and what a member forgets.

use super::*;
use crate::config::Limits;
use crate::error::CampaignError;
use crate::observe::Leadership;

/// A member with these limits.
fn member(founded: &Founded, limits: Limits) -> Config {
    let mut config = founded.member(0);
    config.limits = limits;
    config
}

async fn groups(node: &Node) -> Vec<String> {
    node.groups().await.unwrap().into_iter().map(|status| status.group.to_string()).collect()
}

#[tokio::test]
async fn a_key_that_has_as_many_groups_as_it_may_is_told_so_and_others_are_not_touched() {
    let founded = Founded::new(&["a"], drift());
    let limits = Limits { groups_per_key: 2, ..Limits::default() };
    let grantor = Node::start(member(&founded, limits)).await.unwrap();
    let app = Node::start(founded.candidate("app", "app/*")).await.unwrap();
    let one = within(SOON, app.campaign("app/1")).await.unwrap().unwrap();
    let two = within(SOON, app.campaign("app/2")).await.unwrap().unwrap();
    let refused = within(SOON, app.campaign("app/3")).await.expect("it waits without end");
    let group = GroupName::new("app/3").unwrap();
    assert_eq!(refused.err(), Some(CampaignError::TooManyGroups { group }));
    let other = Node::start(founded.candidate("other", "app/*")).await.unwrap();
    let three = within(SOON, other.campaign("app/3")).await.unwrap().unwrap();
    assert!(one.is_leader() && two.is_leader() && three.is_leader());
    assert_eq!(groups(&grantor).await, ["app/1", "app/2", "app/3"]);
    assert!(grantor.status().await.unwrap().tally.over_limit > 0);
}

#[tokio::test]
async fn a_group_that_nobody_has_to_do_with_is_forgotten_and_its_terms_rise_on() {
    let founded = Founded::new(&["a"], drift());
    let limits = Limits { groups_per_key: 1, forget_after: Duration::from_millis(50), ..Limits::default() };
    let mut config = member(&founded, limits);
    (config.lease, config.longest_lease) = (Duration::from_secs(1), Duration::from_secs(1));
    let founded = Founded { dir: tempfile::tempdir().unwrap(), ..founded };
    config.store = Some(founded.dir.path().join("a"));
    Node::found(&config, founded.id, Term(1)).unwrap();
    let grantor = Node::start(config).await.unwrap();
    let mut app = founded.candidate("app", "app/*");
    app.lease = Duration::from_secs(1);
    let app = Node::start(app).await.unwrap();
    let first = within(SOON, app.campaign("app/1")).await.unwrap().unwrap();
    let term = first.term();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(groups(&grantor).await, ["app/1"], "it is led");
    drop(first);
    let forgotten = async {
        while !groups(&grantor).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(SOON, forgotten).await.expect("it is not forgotten");
    assert_eq!(grantor.status().await.unwrap().tally.forgotten, 1);
    let second = within(SOON, app.campaign("app/2")).await.unwrap().unwrap();
    assert!(second.term() > term, "{} after {term}", second.term());
}

#[tokio::test]
async fn a_key_that_watches_much_does_not_keep_others_from_being_told() {
    let founded = Founded::new(&["a"], drift());
    let limits = Limits { watches_per_key: 5, ..Limits::default() };
    let grantor = Node::start(member(&founded, limits)).await.unwrap();
    let led = within(SOON, grantor.campaign("jobs")).await.unwrap().unwrap();
    let nosy = NodeName::new("nosy").unwrap();
    let mut config =
        founded.config("nosy", Key::Scoped(founded.key.observer(founded.id, nosy, Scope::new("*").unwrap())));
    config.role = Role::Observer;
    let watches = |_| {
        (0..50)
            .map(|n| Item::Watch { group: GroupName::new(&format!("g{n}")).unwrap(), asked: LocalTime::ZERO })
            .collect()
    };
    let limited = async {
        while grantor.status().await.unwrap().tally.over_limit < 45 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    speaks(&config, &founded, watches, within(SOON, limited)).await.expect("45 of them are too many");
    let honest = NodeName::new("honest").unwrap();
    let key = founded.key.observer(founded.id, honest, Scope::new("*").unwrap());
    let mut config = founded.config("honest", Key::Scoped(key));
    config.role = Role::Observer;
    let observer = Node::start(config).await.unwrap();
    let mut watch = observer.observe("jobs").await.unwrap();
    let told = async {
        while !matches!(watch.now().leadership, Leadership::Leader { .. }) {
            watch.next().await.unwrap();
        }
    };
    within(SOON, told).await.expect("it is told");
    assert!(led.is_leader());
}

#[tokio::test]
async fn a_packet_full_of_short_questions_is_answered_once() {
    let founded = Founded::new(&["a"], drift());
    let member = founded.launch(0, |_| ()).await;
    let before = status(&member).await;
    let questions = |_| (0..20_000).map(|_| Item::AskCharter).collect();
    let heard = async {
        while status(&member).await.tally.over_limit < 1000 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        status(&member).await
    };
    let app = founded.candidate("app", "app/*");
    let after = speaks(&app, &founded, questions, within(SOON, heard)).await.expect("it is heard");
    let [asked, sent] = [after.traffic.bytes_received, after.traffic.bytes_sent];
    let asked = asked - before.traffic.bytes_received;
    let sent = sent - before.traffic.bytes_sent;
    assert!(asked > 30_000 && sent < 2 * asked, "{asked} bytes asked, {sent} answered");
}

#[tokio::test]
async fn whoever_reads_what_is_shown_of_groups_does_not_keep_the_driver_from_its_work() {
    let founded = Founded::new(&["a"], drift());
    let node = founded.launch(0, |_| ()).await;
    let campaign = |group: &str, number| {
        let (prize, won) = oneshot::channel();
        let group = GroupName::new(group).unwrap();
        node.mailbox.send(Request::Campaign(Entry { group, number, health: None, prize }, None));
        won
    };
    let first = within(SOON, campaign("first", 1)).await.unwrap().unwrap().unwrap();
    let shown = async {
        while node.board.count() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(SOON, shown).await.expect("it is shown");
    {
        let _reader = node.board.hold();
        let second = within(SOON, campaign("second", 2)).await.expect("the driver waits for a reader");
        assert!(second.unwrap().unwrap().is_leader());
        let renewals = status(&node).await.tally.renewals;
        while status(&node).await.tally.renewals == renewals {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(first.is_leader());
    }
    let both = async {
        while node.board.count() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(SOON, both).await.expect("what could not be written then is written later");
    let names: Vec<String> = node.board.page(None, 9).iter().map(|shown| shown.group.to_string()).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(node.board.page(Some(&GroupName::new("first").unwrap()), 1).len(), 1);
}
