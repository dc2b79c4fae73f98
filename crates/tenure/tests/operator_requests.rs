//! Operators ask leaders to resign, to hand over, to proclaim: wherever the leader is, and at most
//! once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tenure::{AskError, Clock, Config, Fulfilled, Key, Node, NodeName, OperatorRequest, Role, Scope, Tenure};
use tenure_testkit::cluster::Cluster;
use tenure_testkit::waiting::within;

const SOON: Duration = Duration::from_secs(60);
/// A leader renews at half of it: one that is not run for two seconds, on a machine that does much
/// else, leads on.
const LEASE: Duration = Duration::from_secs(5);
const GROUP: &str = "app/main";

fn name(text: &str) -> NodeName {
    NodeName::new(text).expect("a name")
}

/// A candidate with a key for the groups under `app/` only: no other process can begin a session
/// with it.
fn scoped(cluster: &Cluster, who: &str) -> Config {
    let key = cluster.key.candidate(cluster.id, name(who), Scope::new("app/*").expect("a scope"));
    let mut config = cluster.outsider(who, Role::Candidate);
    config.key = Key::Scoped(key);
    config
}

async fn operator(cluster: &Cluster) -> Node {
    let mut config = cluster.outsider("op", Role::Observer);
    config.key = Key::Scoped(cluster.key.operator(cluster.id, name("op")));
    Node::start(config).await.expect("it starts")
}

async fn start(config: Config) -> Node {
    Node::start(config).await.expect("it starts")
}

async fn leads(node: &Node) -> Tenure {
    within("a leader", SOON, node.campaign(GROUP)).await.expect("it is elected")
}

async fn ask(node: &Node, request: OperatorRequest) -> Result<Fulfilled, AskError> {
    within("an answer", SOON, node.ask(GROUP, request)).await
}

fn proclaim(text: &str) -> OperatorRequest {
    OperatorRequest::Proclaim { body: text.as_bytes().to_vec() }
}

/// Asks again for as long as the leader has not heard that the successor campaigns.
async fn transferred(node: &Node, to: &str) -> Fulfilled {
    loop {
        match ask(node, OperatorRequest::Transfer { to: name(to) }).await {
            Ok(granted) => return granted,
            Err(AskError::Declined { .. } | AskError::NoLeader { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn an_operator_reaches_a_leader_that_is_no_member() {
    let cluster = Cluster::found(3, LEASE);
    let _members = cluster.start().await;
    let (app1, app2, op) = (
        start(scoped(&cluster, "app1")).await,
        start(scoped(&cluster, "app2")).await,
        operator(&cluster).await,
    );
    let tenure = leads(&app1).await;
    let (term, guard) = (tenure.term(), tenure.clone());
    let listener = tokio::spawn(async move {
        let asked = guard.asked().await;
        assert_eq!(asked.request(), &proclaim("hear ye"));
        let edict = guard.proclaim(b"hear ye").expect("it leads");
        asked.fulfil_as(edict);
        edict
    });
    let granted = ask(&op, proclaim("hear ye")).await.expect("it is done");
    let edict = within("the edict", SOON, listener).await.expect("no panic");
    assert_eq!((granted.leader.as_str(), granted.term, granted.token), ("app1", term, Some(edict.token())));

    let second = tokio::spawn(async move { (leads(&app2).await, app2) });
    let guard = tenure.clone();
    let listener = tokio::spawn(async move {
        loop {
            let asked = guard.asked().await;
            let OperatorRequest::Transfer { to } = asked.request().clone() else { panic!("{asked:?}") };
            match guard.transfer(&to).await {
                Ok(()) => return asked.fulfil(),
                Err(error) => asked.decline(&error.to_string()),
            }
        }
    });
    let granted = within("the hand-over", SOON, transferred(&op, "app2")).await;
    assert_eq!((granted.leader.as_str(), granted.token), ("app1", None));
    within("the listener", SOON, listener).await.expect("no panic");
    assert!(!tenure.is_leader());
    let (second, _app2) = within("the successor", SOON, second).await.expect("no panic");
    assert!(second.is_leader() && second.term() > term);

    let listener = tokio::spawn(async move {
        let asked = second.asked().await;
        assert_eq!(asked.request(), &OperatorRequest::Resign);
        second.resign();
        asked.fulfil();
    });
    assert_eq!(ask(&op, OperatorRequest::Resign).await.expect("it is done").leader.as_str(), "app2");
    within("the listener", SOON, listener).await.expect("no panic");
}

#[tokio::test]
async fn a_request_that_is_repeated_while_the_leader_thinks_is_heard_once() {
    let cluster = Cluster::found(3, LEASE);
    let _members = cluster.start().await;
    let (app, op) = (start(scoped(&cluster, "app1")).await, operator(&cluster).await);
    let tenure = leads(&app).await;
    let (heard, guard) = (Arc::new(AtomicUsize::new(0)), tenure.clone());
    let count = heard.clone();
    let _listener = tokio::spawn(async move {
        loop {
            let asked = guard.asked().await;
            count.fetch_add(1, SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await; // The asker asks again some ten times.
            asked.fulfil_as(guard.proclaim(b"once").expect("it leads"));
        }
    });
    let before = op.status().await.expect("it runs").traffic.datagrams_sent;
    let granted = ask(&op, proclaim("once")).await.expect("it is done");
    assert!(
        op.status().await.expect("it runs").traffic.datagrams_sent > before + 5,
        "it was sent only once: no test"
    );
    assert_eq!(granted.token.map(|token| token.number()), Some(1));
    assert_eq!(heard.load(SeqCst), 1);
    assert_eq!(tenure.edict().expect("it leads").number, 2, "one edict was made for it");
}

#[tokio::test]
async fn who_may_lead_some_groups_may_not_ask_anything_of_their_leaders() {
    let cluster = Cluster::found(3, LEASE);
    let members = cluster.start().await;
    let app = start(scoped(&cluster, "app1")).await;
    let tenure = leads(&members[0]).await;
    assert_eq!(ask(&app, OperatorRequest::Resign).await, Err(AskError::NotAllowed));
    assert!(tenure.is_leader());
}

#[tokio::test]
async fn a_leader_that_does_not_listen_leads_on_and_the_asker_is_told() {
    let cluster = Cluster::found(3, LEASE);
    let members = cluster.start().await;
    let tenure = leads(&members[0]).await;
    for asker in [&members[1], &members[0]] {
        assert_eq!(ask(asker, OperatorRequest::Resign).await, Err(AskError::NotListening));
    }
    assert!(tenure.is_leader());
    let heard = tokio::time::timeout(LEASE / 10, tenure.asked()).await;
    assert!(heard.is_err(), "what was given up is not heard later: {heard:?}");
}

#[tokio::test]
async fn a_request_is_declined_with_a_reason_or_by_being_dropped() {
    let cluster = Cluster::found(3, LEASE);
    let members = cluster.start().await;
    let tenure = leads(&members[0]).await;
    let guard = tenure.clone();
    let _listener = tokio::spawn(async move {
        guard.asked().await.decline("in the\nmiddle of something");
        drop(guard.asked().await);
    });
    let declined = |reason: &str| Err(AskError::Declined { reason: reason.to_owned() });
    assert_eq!(ask(&members[2], OperatorRequest::Resign).await, declined("in the middle of something"));
    assert_eq!(ask(&members[2], OperatorRequest::Resign).await, declined("the leader dropped it"));
    assert!(tenure.is_leader());
}

#[tokio::test]
async fn nobody_is_asked_where_nobody_leads() {
    let cluster = Cluster::found(3, LEASE);
    let members = cluster.start().await;
    let nobody = ask(&members[0], OperatorRequest::Resign).await;
    assert!(matches!(nobody, Err(AskError::NoLeader { .. })), "{nobody:?}");
    let long = ask(&members[0], OperatorRequest::Proclaim { body: vec![0; 513] }).await;
    assert_eq!(long, Err(AskError::TooLong { length: 513 }));
    assert!(matches!(members[0].ask("no such name", OperatorRequest::Resign).await, Err(AskError::Name(_))));
}

/// Notes when it was dropped.
struct Ending(Arc<AtomicU64>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.store(Clock::boot().read().as_nanos(), SeqCst);
    }
}

#[tokio::test]
async fn work_that_leads_ends_before_its_leadership_is_given_up_and_may_lead_again() {
    let cluster = Cluster::found(3, LEASE);
    let members = cluster.start().await;
    let (app1, app2, op) = (
        start(scoped(&cluster, "app1")).await,
        start(scoped(&cluster, "app2")).await,
        operator(&cluster).await,
    );
    let (ended, terms) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
    let (ending, begun) = (ended.clone(), terms.clone());
    let _work = tokio::spawn(async move {
        let work = app1.lead(GROUP, async move |tenure| {
            begun.fetch_add(1, SeqCst);
            let _held = (tenure, Ending(ending.clone()));
            std::future::pending::<()>().await;
        });
        work.await
    });
    let begins = async |count| {
        while terms.load(SeqCst) < count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    within("the work", SOON, begins(1)).await;
    assert!(ask(&op, proclaim("hear ye")).await.expect("it is done").token.is_some());
    assert_eq!(ended.load(SeqCst), 0, "to proclaim, nothing need end");

    let nobody = ask(&members[0], OperatorRequest::Transfer { to: name("nobody") }).await;
    assert!(matches!(nobody, Err(AskError::Declined { .. })), "{nobody:?}");
    assert_eq!(ended.load(SeqCst), 0, "to hand over to nobody, nothing need end");

    let next = tokio::spawn(async move {
        let tenure = leads(&app2).await;
        (tenure, Clock::boot().read().as_nanos(), app2)
    });
    assert_eq!(ask(&members[0], OperatorRequest::Resign).await.expect("it is done").leader.as_str(), "app1");
    let (tenure, elected, _app2) = within("the next", SOON, next).await.expect("no panic");
    assert!((1..elected).contains(&ended.load(SeqCst)), "the work had ended when another was elected");
    tenure.resign();
    within("the work leads again", SOON, begins(2)).await;
}
