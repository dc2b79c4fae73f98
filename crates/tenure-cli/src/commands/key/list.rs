//! `tenure key list`: the keys that members refuse because they were revoked.

use clap::Args;
use serde_json::json;

use crate::api::keys::RevokedKeys;
use crate::arguments::Common;
use crate::client::{self, Asking};
use crate::clock::date;
use crate::failure::Failure;
use crate::output::{Answer, Table};

/// List the keys that members refuse because they were revoked.
#[derive(Args, Debug)]
#[command(
    after_help = "The daemon that is asked says what it refuses itself. A member that was down gets the list from
the others within about ten seconds. Keys that have expired are refused too and are not on it:
`tenure key show FILE` says when a key expires.

Examples:
  tenure key list
  tenure key list -o json --endpoint http://127.0.0.1:7403

Exit codes: 0 listed, 2 error, 69 nobody answers, 77 not allowed, 78 no daemon is known"
)]
pub(super) struct List {
    /// Whom to ask
    #[command(flatten)]
    asking: Asking,
}

impl List {
    pub(super) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let client = self.asking.client(common)?;
        let keys: RevokedKeys = client::block_on(client.get("/v1/keys"))??;
        Ok(Answer::new(common.output, || json!(keys), || text(&keys)))
    }
}

fn text(keys: &RevokedKeys) -> String {
    if keys.revoked.is_empty() {
        return "No key is revoked.\n".to_owned();
    }
    let mut table = Table::new(["revoked key", "expires"]);
    for entry in &keys.revoked {
        table.row([entry.key.clone(), entry.not_after.map_or_else(|| "not known".to_owned(), date)]);
    }
    table.render()
}
