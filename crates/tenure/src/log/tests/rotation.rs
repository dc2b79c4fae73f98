//! The cluster's key is changed while the log is in use.

use super::*;
use crate::Keyring;

#[tokio::test]
async fn keys_change_in_three_steps_while_the_log_is_written() {
    let cluster = Cluster::found();
    cluster.lead("a");
    let logs = NAMES.map(|name| cluster.open(name));
    let (old, new) = (cluster.key.clone(), ClusterKey::generate());
    let mut written = Vec::new();
    let ring = |speak: &ClusterKey, accept: &[&ClusterKey]| Keyring {
        speak: speak.clone(),
        accept: accept.iter().copied().cloned().collect(),
    };
    propose(&logs[0], "before").await;
    for (step, keys) in [ring(&old, &[&new]), ring(&new, &[&old]), ring(&new, &[])].into_iter().enumerate() {
        for (log, name) in logs.iter().zip(NAMES) {
            log.set_keys(keys.clone());
            written.push(format!("{step}{name}"));
            propose(&logs[1], &written[written.len() - 1]).await;
        }
    }
    for log in &logs {
        assert_eq!(lines(log).await[1..], written);
    }
}

#[tokio::test]
async fn a_member_whose_key_is_taken_away_is_not_heard_until_it_has_the_new_one() {
    let cluster = Cluster::found();
    cluster.lead("a");
    let [a, b, c] = NAMES.map(|name| cluster.open(name));
    propose(&c, "one").await;
    let new = Keyring::new(ClusterKey::generate());
    a.set_keys(new.clone());
    b.set_keys(new.clone());
    until("a hears b and not c", &a, |status| status.reached == [NodeName::new("b").unwrap()]).await;
    until("c hears nobody", &c, |status| status.reached.is_empty()).await;
    propose(&b, "two").await;
    assert!(timeout(Duration::from_millis(300), c.read(|state| state.0.len())).await.is_err());
    c.set_keys(new);
    assert_eq!(lines(&c).await, ["one", "two"]);
}
