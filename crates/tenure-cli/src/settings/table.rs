//! The table of all configuration keys: one row a key.
//!
//! Unknown keys and their suggestions, variables of the environment, secrets, `tenure config show`
//! and `docs/reference/configuration.md` come from these rows. To add a key: one row here, and the
//! field of the struct that uses its value (`Config` of the library, [`Daemon`](super::Daemon) or
//! [`Client`](super::Client)). Tests compare rows and structs, names and defaults alike.

use super::key::{Fallback, Key, Kind, Section};

/// The part of a row that most keys share.
const KEY: Key = Key {
    name: "",
    kind: Kind::Text,
    fallback: Fallback::Absent("absent"),
    variable: None,
    with: None,
    reread: false,
    what: "",
    choose: "",
};

/// The tables of the file, in the order of the document.
pub(crate) const SECTIONS: &[Section] = &[
    Section { name: "", title: "The node", about: "" },
    Section {
        name: "cluster",
        title: "`[cluster]`: founded once",
        about: "The members found the cluster by these keys. Afterwards the charter in their stores rules.",
    },
    Section { name: "lease", title: "`[lease]`: how long this node leads", about: "" },
    Section {
        name: "election",
        title: "`[election]`: whose turn it is",
        about: "Advice only: no safety rests on it.",
    },
    Section {
        name: "limits",
        title: "`[limits]`: what one key may cost a member",
        about: "The cluster's own key is not limited.",
    },
    Section { name: "daemon", title: "`[daemon]`: what `tenure node` serves", about: "" },
    Section {
        name: "client",
        title: "`[client]`: how commands reach a daemon",
        about: "With a daemon's own file (`-c n1/tenure.toml`) the commands ask that daemon.",
    },
];

/// Every key, in the order of the document.
pub(crate) const KEYS: &[Key] = &[
    Key {
        name: "name",
        fallback: Fallback::Required(""),
        variable: Some("NAME"),
        what: "The name of this process: 1 to 64 letters, digits, `.`, `_` and `-`, unique in the \
               cluster. In a file for clients it is the name under which commands observe; \
               `tenure run` makes a name of its own for each process.",
        choose: "Never use a name again for another store: a member that lost its disk comes back \
                 under a new name.",
        ..KEY
    },
    Key {
        name: "role",
        kind: Kind::Choice(&["member", "witness", "candidate", "observer"]),
        fallback: Fallback::Value("\"member\""),
        variable: Some("ROLE"),
        what: "Whether this process grants leases, and whether it may lead.\n\n\
               | role | grants | may lead | needs |\n\
               |---|---|---|---|\n\
               | `member` | yes | yes | `store`, `listen`, the cluster's key |\n\
               | `witness` | yes | no | the same |\n\
               | `candidate` | no | yes | a key, `cluster.members`; with the cluster's key also `cluster_id` |\n\
               | `observer` | no | no | the same as a candidate |",
        choose: "Three or five members. A witness is a third vote on a small machine. Applications \
                 that use a cluster of others are candidates.",
        ..KEY
    },
    Key {
        name: "listen",
        kind: Kind::List,
        fallback: Fallback::Required("for members and witnesses; others take any free port"),
        variable: Some("LISTEN"),
        what: "Addresses with ports on which this node listens; one may stand without a list. UDP and \
               TCP are opened on the same port: datagrams carry leases, streams carry what does not \
               fit into a datagram.",
        choose: "Digits only, as in `\"10.0.0.1:7400\"`, `\"0.0.0.0:7400\"` or `\"[::]:7400\"`.",
        ..KEY
    },
    Key {
        name: "advertise",
        fallback: Fallback::Absent("the address of `listen`"),
        variable: Some("ADVERTISE"),
        what: "`host:port`, under which the other members reach this one.",
        choose: "Set it where `listen` is a wildcard, or where an address is translated (NAT).",
        ..KEY
    },
    Key {
        name: "store",
        kind: Kind::Path,
        fallback: Fallback::Required("for members and witnesses"),
        variable: Some("STORE"),
        what: "The folder of the durable promise: a few hundred bytes with the largest term and the \
               charter.",
        choose: "A local disk, not tmpfs, not NFS; one process at a time. Never restore or copy it \
                 ([backup.md](../guides/backup.md)).",
        ..KEY
    },
    Key {
        name: "memory",
        kind: Kind::Path,
        fallback: Fallback::Absent(
            "the first of `$RUNTIME_DIRECTORY`, `/run/tenure`, `$XDG_RUNTIME_DIR/tenure`, \
             `/dev/shm/tenure-UID`",
        ),
        variable: Some("MEMORY"),
        what: "The folder in which grants survive a restart of the process, but not a reboot. Without \
               it a silence of about `cluster.longest_lease` follows each restart.",
        choose: "A folder on tmpfs that only the daemon's user can write.",
        ..KEY
    },
    Key {
        name: "key_file",
        kind: Kind::SecretPath,
        fallback: Fallback::Required("unless `key` is there"),
        variable: Some("KEY_FILE"),
        reread: true,
        what: "The file with the key of this process. Members need the cluster's key; candidates and \
               observers take a scoped key ([keys.md](../guides/keys.md)).",
        choose: "Mode 0600, owned by the daemon's user or by root.",
        ..KEY
    },
    Key {
        name: "key",
        kind: Kind::Secret,
        fallback: Fallback::Required("unless `key_file` is there"),
        variable: Some("KEY"),
        reread: true,
        what: "The text of the key itself.",
        choose: "Prefer `key_file`: a key in the configuration makes the whole file a secret.",
        ..KEY
    },
    Key {
        name: "old_key_files",
        kind: Kind::SecretPaths,
        fallback: Fallback::Value("[]"),
        reread: true,
        what: "Files with cluster keys that are accepted from others while the key is rotated.",
        choose: "`tenure key rotate` writes this line. Leave it empty at all other times.",
        ..KEY
    },
    Key {
        name: "cluster_id",
        fallback: Fallback::Absent("the id in the store or in the scoped key"),
        variable: Some("CLUSTER_ID"),
        what: "32 hexadecimal digits that name the cluster. `--join` needs it here, and so do \
               candidates and observers with the cluster's key.",
        choose: "`tenure init` writes it: copy it.",
        ..KEY
    },
    Key {
        name: "lineage",
        fallback: Fallback::Absent(
            "that of the scoped key, else the first charter that a member tells is believed",
        ),
        variable: Some("LINEAGE"),
        what: "32 hexadecimal digits that name the founding of the cluster. A cluster of another \
               founding is refused.",
        choose: "`tenure init` writes it, `tenure members list` shows it. Keep it in every file: it \
                 protects clients from a second cluster under the same id and key.",
        ..KEY
    },
    Key {
        name: "groups",
        kind: Kind::List,
        fallback: Fallback::Absent("a group exists as soon as a process campaigns for it"),
        variable: Some("GROUPS"),
        what: "The closed list of groups: 1 to 100 letters, digits, `.`, `_`, `-`, `:` and `/` each. A \
               campaign for any other group is refused.",
        choose: "Write it where the groups are few and known: it catches misspelt names.",
        ..KEY
    },
    Key {
        name: "trace",
        kind: Kind::Path,
        fallback: Fallback::Absent("no trace"),
        variable: Some("TRACE"),
        what: "The node writes its protocol events to `FILE.N`, where N counts its lives, for \
               `tenure lab audit`.",
        choose: "For tests and for finding faults: it costs a system call a line, and the files grow \
                 without limit.",
        ..KEY
    },
    Key {
        name: "cluster.members",
        kind: Kind::Peers,
        fallback: Fallback::Value("[]"),
        what: "A member that founds the cluster lists all founding members, itself included. \
               Candidates, observers and joining nodes list the members to greet first. An address \
               may be a host name: it is resolved at the start, and again when the peer falls silent.",
        choose: "3 or 5 members: three bear the loss of one, five of two.",
        ..KEY
    },
    Key {
        name: "cluster.quorums",
        fallback: Fallback::Value("\"majority\""),
        variable: Some("QUORUMS"),
        what: "Which sets of members suffice, by their places in `members`: `majority`, \
               `weights:3,1,1` (more than half of the weight), `grid:2x3` (a full row and a full \
               column) or `list:01,12,02`. Any two must intersect, which is checked.",
        choose: "Keep `majority` unless hosts differ much in reliability.",
        ..KEY
    },
    Key {
        name: "cluster.clock",
        kind: Kind::Choice(&["drift", "skew"]),
        fallback: Fallback::Value("\"drift\""),
        what: "The assumption about clocks: a bound on their rate, or a bound on their difference.",
        choose: "`drift` needs no time service. `skew` needs one that never fails, and lets a \
                 candidate take over sooner after a late request.",
        ..KEY
    },
    Key {
        name: "cluster.drift_ppm",
        kind: Kind::Number,
        fallback: Fallback::Value("100000"),
        variable: Some("DRIFT_PPM"),
        with: Some(("cluster.clock", "drift")),
        what: "ρ: how far the rate of any clock may be off, in parts per million. Larger is safer and \
               makes failover longer, by about 2ρ of a lease. If a clock is worse, two processes may \
               lead at once, and only a fence protects ([clocks.md](../explanation/clocks.md)).",
        choose: "The default, a tenth, holds even while a time service slews as fast as it can. `1000` \
                 where every host limits the slew (chrony: `maxslewrate 500`); `tenure doctor` judges \
                 it.",
        ..KEY
    },
    Key {
        name: "cluster.skew",
        kind: Kind::Length,
        fallback: Fallback::Required("with this clock"),
        with: Some(("cluster.clock", "skew")),
        what: "Δ: the largest difference between two clocks at any instant. A node whose clock reports \
               an error bound above half of it stops leading and granting.",
        choose: "Larger than the worst difference that the time service was ever seen to allow.",
        ..KEY
    },
    Key {
        name: "cluster.longest_lease",
        kind: Kind::Length,
        fallback: Fallback::Value("\"5s\""),
        variable: Some("LONGEST_LEASE"),
        what: "δ_max: no grantor promises a longer lease. A member that rebooted is silent for about \
               this long, and changes of members wait for it.",
        choose: "Larger allows longer leases and graces (`tenure run --grace`), and makes those waits \
                 longer.",
        ..KEY
    },
    Key {
        name: "lease.length",
        kind: Kind::Length,
        fallback: Fallback::Value("\"2s\""),
        variable: Some("LEASE"),
        what: "δ: how long a lease lasts, at most `cluster.longest_lease`. When a leader dies, no \
               process leads for about `lease·(1+ρ)/(1-ρ)`. Shorter: faster failover, more datagrams \
               (2(n-1) a renewal), and a smaller pause deposes the leader.",
        choose: "More than the longest pause that a healthy leader should survive; `tenure calc` \
                 computes the rest.",
        ..KEY
    },
    Key {
        name: "lease.retry",
        kind: Kind::Length,
        fallback: Fallback::Value("\"50ms\""),
        variable: Some("RETRY"),
        what: "How long to wait for an answer before asking again (retransmission). Shorter: more \
               datagrams. Longer: one lost datagram costs more of the lease.",
        choose: "About a round trip and its usual delays. `tenure calc --rtt` says what fits.",
        ..KEY
    },
    Key {
        name: "lease.window",
        kind: Kind::Length,
        fallback: Fallback::Value("\"200ms\""),
        variable: Some("WINDOW"),
        what: "The window in which candidates spread out (back-off) after they have met.",
        choose: "A few round trips for each candidate.",
        ..KEY
    },
    Key {
        name: "lease.hold",
        kind: Kind::Length,
        fallback: Fallback::Absent("leaders hand over to no one by priority"),
        what: "How long a process of better priority must be heard without a break before a leader \
               hands over to it.",
        choose: "Longer than the process needs to start. Shorter: a process that comes and goes may \
                 cause flapping.",
        ..KEY
    },
    Key {
        name: "lease.longest_pledge",
        kind: Kind::Length,
        fallback: Fallback::Value("\"100ms\""),
        what: "The longest time for which a leader promises not to hand over when it is asked to \
               verify (`tenure verify --for`). Longer: verifications last longer, hand-overs wait for \
               them.",
        choose: "The longest operation that must run under one verification.",
        ..KEY
    },
    Key {
        name: "lease.adapt",
        kind: Kind::Table("{ shortest = \"500ms\", interval = \"250ms\", retries = 2 }"),
        fallback: Fallback::Absent("all leases have one length"),
        what: "Leases that follow the measured network: longer at once, shorter slowly.",
        choose: "Write it where the network is much faster at some times than at others.",
        ..KEY
    },
    Key {
        name: "lease.adapt.shortest",
        kind: Kind::Length,
        fallback: Fallback::Required("in this table"),
        what: "No lease is shorter.",
        choose: "About the time that the service can be without a leader.",
        ..KEY
    },
    Key {
        name: "lease.adapt.interval",
        kind: Kind::Length,
        fallback: Fallback::Required("in this table"),
        what: "How far apart renewals should be. Larger: fewer messages and longer leases.",
        choose: "At least a few round trips.",
        ..KEY
    },
    Key {
        name: "lease.adapt.retries",
        kind: Kind::Number,
        fallback: Fallback::Value("2"),
        what: "How many lost renewals in a row a leader should survive. Larger: longer leases.",
        choose: "2; more where the network loses many datagrams.",
        ..KEY
    },
    Key {
        name: "election.weak",
        kind: Kind::Choice(&["ring", "omega", "random"]),
        fallback: Fallback::Value("\"ring\""),
        what: "How candidates find out whose turn it is when there is no leader. `ring`: by their \
               places on a ring of live candidates. `omega`: the same, but a member that is not \
               answered in time by enough others is ranked last. `random`: random back-off.",
        choose: "`ring` needs the fewest messages. `omega` is for networks in which some members can \
                 send but not receive. [choosing.md](../explanation/choosing.md) has measurements.",
        ..KEY
    },
    Key {
        name: "election.detector",
        kind: Kind::Choice(&["heartbeat", "phi"]),
        fallback: Fallback::Value("\"heartbeat\""),
        with: Some(("election.weak", "ring")),
        what: "How a stopped process is told from a slow one: by a fixed time, or by how unusual the \
               silence is (phi accrual).",
        choose: "`phi` where the network is uneven.",
        ..KEY
    },
    Key {
        name: "election.phi",
        kind: Kind::Number,
        fallback: Fallback::Value("8"),
        with: Some(("election.detector", "phi")),
        what: "The threshold: each 1 more makes mistakes ten times rarer and detection slower.",
        choose: "8 is usual within a site, 12 between sites.",
        ..KEY
    },
    Key {
        name: "limits.groups_per_key",
        kind: Kind::Number,
        fallback: Fallback::Value("10000"),
        what: "Groups that one key makes a member know at once. An application with more is refused.",
        choose: "Give an application with more groups several keys, or raise this at every member. The \
                 default costs about 40 MB of memory.",
        ..KEY
    },
    Key {
        name: "limits.watches_per_key",
        kind: Kind::Number,
        fallback: Fallback::Value("1000"),
        what: "Groups that one key watches at a member at once; further ones are not served (event \
               `limited`).",
        choose: "At least the number of groups that one application watches.",
        ..KEY
    },
    Key {
        name: "limits.forget_after",
        kind: Kind::Length,
        fallback: Fallback::Value("\"10m\""),
        what: "A group that nobody uses is forgotten after this, at most twice as long. Terms rise on \
               in any case.",
        choose: "Smaller: memory comes back sooner.",
        ..KEY
    },
    Key {
        name: "daemon.http",
        kind: Kind::Address,
        fallback: Fallback::Absent("no HTTP"),
        variable: Some("HTTP"),
        what: "The JSON interface, the metrics, the probes and the page. An address that other hosts \
               can reach is refused unless `tokens_file` or `tls_client_ca` is set.",
        choose: "A loopback address, which `tenure init` writes: reads need no token there.",
        ..KEY
    },
    Key {
        name: "daemon.socket",
        kind: Kind::Path,
        fallback: Fallback::Absent("no socket"),
        what: "A unix socket, mode 0660, over which the daemon's user and root may do everything. The \
               commands use it where they find it, without a token.",
        choose: "A path in the folder of the daemon, or under `/run/tenure`.",
        ..KEY
    },
    Key {
        name: "daemon.socket_group",
        fallback: Fallback::Absent("no group"),
        what: "The group, by name or number, whose members may do everything over the socket, too.",
        choose: "The group of the operators of this host.",
        ..KEY
    },
    Key {
        name: "daemon.tokens_file",
        kind: Kind::SecretPath,
        fallback: Fallback::Absent("no bearer token is accepted"),
        reread: true,
        what: "One token a line: id, role, SHA-256, not after, note. It is read again within a second, \
               too.",
        choose: "Change it with `tenure token`.",
        ..KEY
    },
    Key {
        name: "daemon.open_reads",
        kind: Kind::Flag,
        fallback: Fallback::Absent("`true` on loopback without `tls_client_ca`, else `false`"),
        what: "Whether reads need no token.",
        choose: "`false` where other users of the host must not see names of groups.",
        ..KEY
    },
    Key {
        name: "daemon.tls_cert",
        kind: Kind::Path,
        fallback: Fallback::Absent("no TLS"),
        reread: true,
        what: "HTTPS: the certificate chain, in PEM. It needs `tls_key`.",
        choose: "A certificate that names the host as the commands write it.",
        ..KEY
    },
    Key {
        name: "daemon.tls_key",
        kind: Kind::SecretPath,
        fallback: Fallback::Absent("no TLS"),
        reread: true,
        what: "HTTPS: the private key of the certificate, in PEM.",
        choose: "Mode 0600, owned by the daemon's user or by root.",
        ..KEY
    },
    Key {
        name: "daemon.tls_client_ca",
        kind: Kind::Path,
        fallback: Fallback::Absent("no certificate is asked for"),
        reread: true,
        what: "Mutual TLS: everything but probes needs a certificate by one of these authorities, in \
               PEM.",
        choose: "An authority that issues certificates for this cluster alone.",
        ..KEY
    },
    Key {
        name: "daemon.roles",
        kind: Kind::Table("{ \"CN=alice\" = \"admin\" }"),
        fallback: Fallback::Absent("every accepted certificate has `read`"),
        what: "The role of a client certificate, by `CN=`, `DNS=`, `EMAIL=`, `URI=` or `OU=`: `read`, \
               `operate`, `admin` or `none`. A certificate without an entry has `read`.",
        choose: "One entry for each operator.",
        ..KEY
    },
    Key {
        name: "daemon.sidecar_port",
        kind: Kind::Number,
        fallback: Fallback::Absent("no such port"),
        variable: Some("SIDECAR_PORT"),
        what: "A port, on the address of `http`, that serves the leader's name as the leader-elector \
               sidecar did.",
        choose: "Only for programs that expect that sidecar.",
        ..KEY
    },
    Key {
        name: "daemon.sidecar_group",
        fallback: Fallback::Absent("the path names the group"),
        variable: Some("SIDECAR_GROUP"),
        what: "The group that the sidecar's answer is about.",
        choose: "The group of the program that asks.",
        ..KEY
    },
    Key {
        name: "daemon.log",
        fallback: Fallback::Value("\"info\""),
        variable: Some("LOG"),
        reread: true,
        what: "The level of the log: `error`, `warn`, `info`, `debug`, `trace`, or one for each \
               crate, as in `info,tenure=debug`. [events.md](events.md) lists every event.",
        choose: "`debug` to find a fault; `info` otherwise.",
        ..KEY
    },
    Key {
        name: "daemon.log_format",
        kind: Kind::Choice(&["logfmt", "json"]),
        fallback: Fallback::Value("\"logfmt\""),
        variable: Some("LOG_FORMAT"),
        what: "How a line of the log looks: `key=value` pairs, or one JSON object.",
        choose: "`json` where a program collects the log.",
        ..KEY
    },
    Key {
        name: "daemon.replace_after",
        kind: Kind::Length,
        fallback: Fallback::Absent("no member is replaced automatically"),
        what: "A member that did not answer for this long is replaced by the first standby that \
               answers.",
        choose: "At least twice the longest lease; longer than any maintenance \
                 ([members.md](../guides/members.md)).",
        ..KEY
    },
    Key {
        name: "daemon.standbys",
        kind: Kind::Peers,
        fallback: Fallback::Value("[]"),
        what: "The nodes that take the place of a member that is gone, in this order. They run already, \
               and have joined.",
        choose: "One on another host than any member.",
        ..KEY
    },
    Key {
        name: "client.endpoints",
        kind: Kind::List,
        fallback: Fallback::Value("[]"),
        variable: Some("ENDPOINTS"),
        what: "URLs of daemons, asked in this order until one answers. `--endpoint` wins over it.",
        choose: "All members, the nearest first.",
        ..KEY
    },
    Key {
        name: "client.sockets",
        kind: Kind::List,
        fallback: Fallback::Value("[]"),
        what: "Unix sockets of the same daemons, in the same order. One that is there is used instead \
               of its endpoint, without a token.",
        choose: "Only for daemons on the same host.",
        ..KEY
    },
    Key {
        name: "client.token_file",
        kind: Kind::SecretPath,
        fallback: Fallback::Absent("no token is sent"),
        variable: Some("TOKEN_FILE"),
        what: "The file with the bearer token.",
        choose: "A token of the smallest role that suffices.",
        ..KEY
    },
    Key {
        name: "client.ca",
        kind: Kind::Path,
        fallback: Fallback::Absent("the authorities of this system"),
        what: "TLS: the authorities that the daemons' certificates come from, in PEM.",
        choose: "The authority that signed `daemon.tls_cert`.",
        ..KEY
    },
    Key {
        name: "client.cert",
        kind: Kind::Path,
        fallback: Fallback::Absent("no certificate is sent"),
        what: "Mutual TLS: this client's certificate chain, in PEM. It needs `client.key`.",
        choose: "A certificate whose name has a role in `daemon.roles`.",
        ..KEY
    },
    Key {
        name: "client.key",
        kind: Kind::SecretPath,
        fallback: Fallback::Absent("no certificate is sent"),
        what: "Mutual TLS: the private key of this client's certificate, in PEM.",
        choose: "Mode 0600.",
        ..KEY
    },
    Key {
        name: "client.cluster_key_file",
        kind: Kind::SecretPath,
        fallback: Fallback::Absent("the configuration's own key"),
        what: "The cluster's key, for `tenure key`, where the configuration's own key is a scoped one.",
        choose: "It stays with the operator: never copy it to clients.",
        ..KEY
    },
];
