//! The shared helpers of tests and benchmarks: clusters, networks, servers, attackers.
//!
//! Only dev-dependencies may name this crate, and it is never published. Nothing here knows which
//! crate tests: paths of programs that Cargo builds are passed in.
//!
//! | module | holds |
//! |---|---|
//! | [`cluster`] | a founded cluster whose nodes run in the test's own process |
//! | [`member_files`] | a founded cluster whose members are processes, a file of configuration each |
//! | [`programs`] | examples and the command as processes that say what happens line by line |
//! | [`group_members`] | members as processes that lead thousands of groups |
//! | [`binary`] | the command `tenure`, run in a clean environment |
//! | [`daemons`] | daemons as processes, founded by `tenure init` |
//! | [`http_cluster`] | daemons as processes, asked over HTTP |
//! | [`changing_cluster`] | daemons as processes whose members change |
//! | [`up`] | a whole cluster by `tenure up` |
//! | [`beats`] | heartbeats of processes in shared memory |
//! | [`referee`] | a ledger of commands that were alive, and judgements of answers by it |
//! | [`runners`] | `tenure run` as processes, against a cluster in the test's own process |
//! | [`lab_folder`] | the laboratory's commands in a folder of their own |
//! | [`other_user`] | another user of this machine, who attacks |
//! | [`namespaces`] | network namespaces on one bridge, and cables that can be cut |
//! | [`mounts`] | file systems of a test's own |
//! | [`proxy`] | an attacker on the way between members |
//! | [`attackers`] | attackers without a key: forged addresses, floods |
//! | [`arena`] | a cluster behind a proxy, and somebody who watches its leader |
//! | [`witnesses`] | threads that see how long this machine ran nobody |
//! | [`meters`] | memory, processor time and log lines of this process |
//! | [`arrivals`] | writes as a fenced resource sees them |
//! | [`postgres_server`] | a PostgreSQL server of the test's own |
//! | [`ports`] | free ports, drawn in one place |
//! | [`chance`] | chance that can be repeated |
//! | [`numbers`] | medians and tails of what benchmarks measure |
//! | [`waiting`] | waiting for events, with generous limits |

pub mod arena;
pub mod arrivals;
pub mod attackers;
pub mod beats;
pub mod binary;
pub mod chance;
pub mod changing_cluster;
pub mod cluster;
pub mod daemons;
pub mod group_members;
pub mod http_cluster;
pub mod lab_folder;
pub mod member_files;
pub mod meters;
pub mod mounts;
pub mod namespaces;
pub mod numbers;
pub mod other_user;
pub mod ports;
pub mod postgres_server;
pub mod programs;
pub mod prometheus_server;
pub mod proxy;
pub mod referee;
pub mod runners;
pub mod up;
pub mod waiting;
pub mod witnesses;
