//! Every daemon asked how it is, all at once: for `doctor` and `top`, which want to know of each.

use std::time::Duration;

use futures_util::future::join_all;

use crate::api;
use crate::client::Client;
use crate::failure::Failure;
use crate::settings::Settings;

/// A daemon that was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Where.
    pub(crate) endpoint: String,
    /// Its status, or why it has none.
    pub(crate) status: Result<api::Status, Failure>,
}

/// The daemons that are known: those that are `given`, else those of the configuration, else its
/// own.
pub(crate) fn endpoints(settings: &Settings, given: &[String]) -> Vec<String> {
    let named = if given.is_empty() { &settings.client.endpoints } else { given };
    if named.is_empty() { settings.own_endpoint().into_iter().collect() } else { named.to_vec() }
}

/// Asks each of them.
pub(crate) async fn ask_all(settings: &Settings, endpoints: &[String], patience: Duration) -> Vec<Asked> {
    join_all(endpoints.iter().map(|endpoint| ask(settings, endpoint, patience))).await
}

async fn ask(settings: &Settings, endpoint: &str, patience: Duration) -> Asked {
    let status = match Client::new(settings, &[endpoint.to_owned()], patience) {
        Ok(client) => client.get::<api::Status>("/v1/status").await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    Asked { endpoint: endpoint.to_owned(), status }
}
