//! Which entry of the table an error of the library is.
//!
//! The library's own words are for programs that embed it. Here the same errors are told to
//! somebody who runs commands.

use tenure::repair::RepairError;
use tenure::{CampaignError, ConfigError, NameError, StartError, Stopped, StoreError};
use tenure_lab::catalogue;

use super::{Failure, messages};

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Config(error) => error.into(),
            StartError::Store(error) => error.into(),
            StartError::Listen { address, error } => messages::port_refused("listen", address, error),
            StartError::Trace { path, error } => messages::trace_unwritable(path.display(), error),
            StartError::System(error) => messages::system_refuses("what a node needs", error),
            other => messages::start_unforeseen(other),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Name { key, error } => messages::setting_refused(key, error),
            ConfigError::Missing { key, why } => messages::setting_missing(key, why),
            ConfigError::Invalid { key, why } => messages::setting_refused(key, why),
            ConfigError::Differs { key, here, there, epoch } => {
                messages::config_differs(key, here, there, epoch)
            }
            ConfigError::Lineage { here, there } => {
                messages::config_other_lineage(format!("{here:032x}"), format!("{there:032x}"))
            }
            ConfigError::Secret { key, path, why } => messages::secret_unreadable(key, path, why),
            ConfigError::Exposed { key, path, flaw, remedy } => {
                messages::secret_exposed(key, path, flaw, remedy)
            }
            ConfigError::Toml { path, flaw } => malformed(path, &flaw),
            ConfigError::File { path, why } => messages::config_unreadable(path, why),
            other => messages::config_unforeseen(other),
        }
    }
}

/// A file that is no TOML, or says something wrong in it: `flaw` is as the library explains it, in
/// one line, with lines of the file after it.
pub(crate) fn malformed(path: impl std::fmt::Display, flaw: &str) -> Failure {
    let (said, excerpt) = flaw.split_once('\n').unwrap_or((flaw, ""));
    messages::config_malformed(path, said).with_excerpt(excerpt)
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Missing { dir } => messages::store_missing(dir.display()),
            StoreError::AlreadyThere { dir } => messages::store_there(dir.display()),
            StoreError::InUse { dir } => messages::store_in_use(dir.display()),
            StoreError::Twin { memory } => messages::store_twin(memory.display()),
            StoreError::OtherCluster { dir, found, wanted } => {
                messages::store_of_other_cluster(dir.display(), found, wanted)
            }
            StoreError::OtherNode { dir, found, wanted } => {
                messages::store_of_other_node(dir.display(), found, wanted)
            }
            StoreError::NewerFormat { file, found, known } => {
                messages::store_newer(file.display(), found, known)
            }
            StoreError::Damaged { file, what } => messages::store_damaged(file.display(), what),
            StoreError::WentBack { store, memory } => messages::store_went_back(store, memory),
            StoreError::Changed { dir } => messages::store_changed(dir.display()),
            StoreError::Founding { what } => messages::founding_refused(what),
            StoreError::Unfit { file } => messages::store_unfit(file.display()),
            StoreError::Io { what, path, source } => messages::store_disk(what, path.display(), source),
            other => messages::store_unforeseen(other),
        }
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        messages::name_refused(error)
    }
}

impl From<&Stopped> for Failure {
    fn from(why: &Stopped) -> Self {
        match why {
            Stopped::ShutDown => messages::node_shut_down(),
            Stopped::Store { reason } => messages::node_store_failed(reason),
            Stopped::Clock { reason } => messages::node_clock_refused(reason),
            Stopped::Config { reason } => messages::node_config_refused(reason),
            Stopped::NameTaken { name } => messages::node_name_taken(name),
            Stopped::RolledBack { name, life, highest } => messages::node_rolled_back(name, life, highest),
            Stopped::Crashed => messages::node_crashed(),
            other => messages::node_stopped(other),
        }
    }
}

impl From<&CampaignError> for Failure {
    fn from(error: &CampaignError) -> Self {
        match error {
            CampaignError::OutOfScope { group } => messages::campaign_out_of_scope(group),
            CampaignError::KeyRefused { why } => messages::campaign_key_refused(why),
            CampaignError::TooManyGroups { group } => messages::campaign_too_many_groups(group),
            CampaignError::Barred { group } => messages::campaign_barred(group),
            CampaignError::NameInUse { name } => messages::campaign_name_in_use(name),
            CampaignError::Name(error) => messages::name_refused(error),
            CampaignError::Stopped(why) => why.into(),
            other => messages::campaign_refused(other),
        }
    }
}

impl From<RepairError> for Failure {
    fn from(error: RepairError) -> Self {
        match error {
            RepairError::Config(error) => error.into(),
            RepairError::Store(error) => error.into(),
            RepairError::Text { what, why } => messages::repair_text_refused(what, why),
            RepairError::Reports(flaw) => messages::repair_refused(flaw),
            RepairError::Name(error) => error.into(),
            other => messages::start_unforeseen(other),
        }
    }
}

impl From<catalogue::Error> for Failure {
    fn from(error: catalogue::Error) -> Self {
        messages::lab_refused(error)
    }
}
