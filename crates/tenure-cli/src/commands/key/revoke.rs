//! `tenure key revoke`: members refuse a key from now on.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tenure::{Key as AnyKey, Serial};

use super::read;
use crate::api::keys::{RevokeOrder, RevokedKey};
use crate::arguments::Common;
use crate::client::{self, Asking};
use crate::failure::{Failure, messages};
use crate::output::{Answer, Verdict};

/// How long to wait: a daemon waits three seconds for the other members.
const PATIENCE: Duration = Duration::from_secs(10);

/// Let all members refuse a key, without a restart.
#[derive(Args, Debug)]
#[command(
    after_help = "Sessions under the key end at once. A leader under it leads until its lease ends and does not
renew it. The revocation holds once a quorum of the members has it on the disk: the command says
who has. The others get it when they are reached; to ask again is harmless.

The cluster's own key is not revoked but changed: `tenure key rotate`, which also ends all keys
that were made from the old one. Members forget a revocation when that is done, or 90 days after
the key has expired, if FILE was given.

Examples:
  tenure key show app1.key            prints the id
  tenure key revoke 9f86d081884c7d65
  tenure key revoke app1.key

Exit codes: 0 a quorum has it, 1 fewer have it, 2 refused or error, 69 nobody answers, 77 not
allowed, 78 no daemon is known, or FILE has no key that can be revoked"
)]
pub(super) struct Revoke {
    /// The key's id, or a file with the key
    #[arg(value_name = "ID|FILE")]
    key: String,
    /// Whom to ask
    #[command(flatten)]
    asking: Asking,
}

impl Revoke {
    pub(super) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let order = order(&self.key)?;
        let client = self.asking.client_within(common, PATIENCE)?;
        let revoked: RevokedKey = client::block_on(client.query("/v1/keys/revoke", &order))??;
        let mut answer = Answer::new(common.output, || json!(revoked), || text(&revoked));
        if !revoked.quorum {
            answer.verdict = Verdict::Broken;
            answer.notes.push(
                "tenure: the revocation does not hold yet: too few members have it; start them, and ask again"
                    .to_owned(),
            );
        }
        Ok(answer)
    }
}

/// By its id, or by all that a file says of it.
fn order(text: &str) -> Result<RevokeOrder, Failure> {
    if text.parse::<Serial>().is_ok() {
        return Ok(RevokeOrder { key: text.to_owned(), not_after: None });
    }
    if !Path::new(text).exists() {
        return Err(messages::key_to_revoke_unknown(text));
    }
    match read(Path::new(text))? {
        AnyKey::Scoped(key) => Ok(RevokeOrder { key: key.serial().to_string(), not_after: key.expires() }),
        AnyKey::Cluster(_) => Err(messages::key_not_revocable(text)),
    }
}

fn text(revoked: &RevokedKey) -> String {
    let list = |names: &[String]| if names.is_empty() { "nobody".to_owned() } else { names.join(", ") };
    let mut text = format!("Key {} is refused by {}.\n", revoked.key, list(&revoked.held_by));
    if !revoked.missing.is_empty() {
        text += &format!("Not confirmed by {}.\n", list(&revoked.missing));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_named_by_its_id_or_its_file_and_a_clusters_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let cluster = tenure::ClusterKey::generate();
        let claims = tenure::Claims::operator(tenure::NodeName::new("op").unwrap()).not_after(77);
        let key = cluster.derive(tenure::ClusterId(1), claims);
        std::fs::write(path("op"), key.reveal()).unwrap();
        std::fs::write(path("key"), cluster.reveal()).unwrap();
        let id = key.serial().to_string();
        assert_eq!(order(&id).unwrap(), RevokeOrder { key: id.clone(), not_after: None });
        assert_eq!(order(&path("op")).unwrap(), RevokeOrder { key: id, not_after: Some(77) });
        assert_eq!(order(&path("key")).unwrap_err().code(), 78);
        assert_eq!(order("nothing").unwrap_err().code(), 78);
    }
}
