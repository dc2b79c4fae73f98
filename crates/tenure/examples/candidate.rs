//! An external candidate: an application that leads by the quorum of others, with a key for its own
//! groups only.
//!
//! ```sh
//! cargo run -p tenure --example candidate
//! ```
//!
//! In production the members are a few `tenure node` daemons that serve many applications. The
//! lease is judged on the application's own clock, inside the application: nothing between it and
//! the truth can be late.

mod support;

use std::error::Error;

use support::Members;
use tenure::{CampaignError, Key, Node, NodeName, Role, Scope};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let members = Members::start().await?;

    // The holder of the cluster's key makes a key for app1, which works for app1's groups and no
    // others.
    let scope = Scope::new("app1/*")?;
    let key = members.key.candidate(members.cluster, NodeName::new("app1")?, scope);
    let mut config = members.outsider("app1", Key::Scoped(key));
    config.role = Role::Candidate;
    let app = Node::start(config).await?;

    let done = app.lead("app1/jobs", async |tenure| {
        println!("app1 leads app1/jobs in term {}", tenure.term());
        for job in 1..=3 {
            let edict = tenure.edict()?;
            println!("job {job} goes out with token {}", edict.token());
        }
        Ok::<_, tenure::NotLeader>(3)
    });
    println!("{} jobs done, resigned", done.await??);

    // The members do not even hear it in a group that its key does not have.
    let refused = tokio::time::timeout(std::time::Duration::from_secs(1), app.campaign("app2/jobs")).await;
    match refused {
        Ok(Err(CampaignError::OutOfScope { group })) => println!("app1 may not lead {group}"),
        Ok(other) => return Err(format!("app1 leads what is not its own: {other:?}").into()),
        Err(_) => return Err("app1 was not told that app2/jobs is out of its scope".into()),
    }
    app.shutdown().await;
    Ok(())
}
