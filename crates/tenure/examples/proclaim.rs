//! Proclaim and observe: a leader tells the world what it has decided, and observers hear it in
//! order.
//!
//! ```sh
//! cargo run -p tenure --example proclaim
//! ```

mod support;

use std::error::Error;

use support::Members;
use tenure::{Key, Leadership, Node, NodeName, Role, Scope, Sight};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let members = Members::start().await?;

    let key = members.key.observer(members.cluster, NodeName::new("dashboard")?, Scope::new("*")?);
    let mut config = members.outsider("dashboard", Key::Scoped(key));
    config.role = Role::Observer;
    let dashboard = Node::start(config).await?;
    let mut watch = dashboard.observe("primary").await?;

    let tenure = members.nodes[0].campaign("primary").await?;
    tenure.proclaim(b"10.0.0.1:5432")?;

    let mut leaving = Some(tenure);
    while let Some(sight) = watch.next().await {
        match sight {
            Sight::Leadership(Leadership::Leader { name: Some(name), term }) => {
                println!("{name} leads in term {term}");
            }
            Sight::Leadership(Leadership::Nobody { after }) if leaving.is_none() => {
                println!("nobody leads any more after term {after}");
                break;
            }
            Sight::Leadership(other) => println!("{other:?}"),
            Sight::Edict(edict) => {
                println!("edict {}: {}", edict.token, String::from_utf8_lossy(&edict.body));
                if let Some(tenure) = leaving.take() {
                    tenure.resign();
                }
            }
        }
    }
    dashboard.shutdown().await;
    Ok(())
}
