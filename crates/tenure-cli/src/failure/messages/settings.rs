//! Configurations, the files that they name, and keys.

super::messages! {
    config_missing(local, system) 78,
        "there is no configuration",
        "none was named, and neither {local} nor {system} is here",
        "start a cluster here with `tenure up`, or name a file with -c FILE or TENURE_CONFIG";
    config_unreadable(path, error) 78,
        "the configuration {path} cannot be read",
        "{error}",
        "check the path, or name another file with -c FILE";
    config_distrusted(path, place, flaw) 78,
        "{path} was found here and is not believed",
        "{place} {flaw}",
        "look what it says, then give it to yourself (`chown`, `chmod go-w`), or name it with -c {path}";
    config_malformed(path, flaw) 78,
        "{path} cannot be understood",
        "{flaw}",
        "correct it there (`tenure config reference` has every key)";
    setting_refused(key, flaw) 78,
        "{key} is refused",
        "{flaw}",
        "see `tenure config reference` for what it may be";
    setting_missing(key, purpose) 78,
        "{key} is missing",
        "{purpose}",
        "see `tenure config reference` for how it is written";
    variable_refused(name, value, flaw) 78,
        "{name}='{value}' in the environment is refused",
        "{flaw}",
        "correct it, or `unset {name}`";
    name_refused(flaw) 78,
        "a name is refused",
        "{flaw}",
        "choose another name";
    config_differs(key, here, there, epoch) 78,
        "the configuration does not fit the cluster",
        "{key} is {here} in the configuration but {there} in the cluster (epoch {epoch}), and the cluster rules",
        "put {there} into the file, or change the cluster with `tenure members set`";
    config_other_lineage(here, there) 78,
        "the configuration is of another founding than the cluster",
        "lineage is {here} in the configuration but {there} in the cluster: two clusters were founded under one id",
        "find out which is meant, and correct the file or end the other cluster";
    config_unforeseen(error) 78,
        "the configuration is refused",
        "{error}",
        "correct it, and look with `tenure config check`";
    file_of_client(path, role) 78,
        "no daemon runs with {path}",
        "it is for clients (role = \"{role}\")",
        "name the file of a member with -c FILE, as in -c .tenure/n1/tenure.toml";
    secret_unreadable(key, path, error) 78,
        "{key} {path} cannot be read",
        "{error}",
        "correct the path in {key}, or bring the file there; it must belong to the user who runs this, with mode 600";
    secret_exposed(key, path, flaw, remedy) 78,
        "{key} {path} is not used",
        "{flaw}",
        "{remedy}";
    token_file_empty(key, path) 78,
        "{key} {path} has no token",
        "there is no line of plain letters, digits and signs in it",
        "put one line with the token into it (`tenure token create` prints one)";
    token_from_empty(path) 2,
        "{path} has no token",
        "there is none of `tenure token create` in it",
        "name another file with --from, or leave it out to draw a new token";
    token_list_refused(path, flaw) 78,
        "daemon.tokens_file {path} is refused",
        "{flaw}",
        "make tokens with `tenure token create`";
    certificates_refused(key, path, flaw) 78,
        "{key} {path} is refused",
        "{flaw}",
        "name a file of certificates in PEM";
    authorities_refused(key) 78,
        "{key} is refused",
        "no authority in it can be used",
        "name a file with the certificate of the authority, in PEM";
    private_key_refused(key, flaw) 78,
        "{key} is refused",
        "{flaw}",
        "name a file with a private key in PEM";
    certificate_pair_refused(keys, flaw) 78,
        "{keys} cannot be used for TLS",
        "{flaw}",
        "name a certificate in PEM and the private key that it was made for";
    certificate_pair_halved(keys) 78,
        "half of what TLS needs is set",
        "{keys} belong together",
        "set both, or neither";
    client_ca_alone() 78,
        "daemon.tls_client_ca is set alone",
        "certificates of clients are asked for over TLS, which needs one of the daemon too",
        "set daemon.tls_cert and daemon.tls_key";
    http_open_to_all(address) 78,
        "daemon.http is refused",
        "other hosts can reach {address} and nobody could be told apart",
        "set daemon.tokens_file, or daemon.tls_client_ca with tls_cert and tls_key, or use 127.0.0.1";
    roles_without_certificates() 78,
        "daemon.roles is refused",
        "it gives roles to certificates, and none is asked for",
        "set daemon.tls_client_ca too";
    port_wanted_twice(http, listen) 78,
        "daemon.http ({http}) and listen ({listen}) want the same port",
        "a node listens on its port by UDP and by TCP",
        "choose another port for one of them";
    port_refused(key, address, error) 78,
        "{key}: cannot listen on {address}",
        "{error}",
        "change {key}, or stop the program that has this port (`ss -tulpn` shows it)";
    socket_refused(path, error) 78,
        "daemon.socket: cannot listen on {path}",
        "{error}",
        "name a file in a folder that the daemon may write to";
    socket_group_unknown(group) 78,
        "daemon.socket_group is refused",
        "there is no group '{group}' in /etc/group",
        "make it, or write its number";
    log_level_unknown(text, near) 78,
        "daemon.log is refused",
        "'{text}' is no level{near}",
        "write error, warn, info, debug or trace, or directives such as info,tenure=debug";
    replace_too_soon() 78,
        "daemon.replace_after is too short",
        "a member is silent for about the longest lease after a reboot",
        "write at least twice the longest lease";
    replace_without_standbys() 78,
        "daemon.replace_after means nothing here",
        "there are no daemon.standbys who could take over",
        "name them, as in standbys = [{{ name = \"n4\", address = \"10.0.0.4:7400\" }}]";
    cluster_id_missing() 78,
        "it is not known which cluster the store is for",
        "neither --cluster-id nor cluster_id in the file says so",
        "give the id that `tenure init` printed and `tenure status` shows";
    key_file_malformed(path, flaw) 78,
        "{path} is no key that can be used here",
        "{flaw}",
        "name the file of a key, or make one with `tenure key new` or `tenure key derive`";
    key_file_unreadable(path, error) 78,
        "the key {path} cannot be read",
        "{error}",
        "check the path, and that this user may read it";
    key_of_whom() 2,
        "it is not said for whom the key is",
        "none of --candidate, --observer and --operator is given",
        "write --candidate NAME --groups PATTERNS, --observer NAME --groups PATTERNS or --operator NAME; `tenure key new` makes a cluster's key";
    key_without_groups() 2,
        "--groups is missing",
        "a key of a candidate or an observer is for certain groups",
        "write --groups PATTERNS, as in --groups 'jobs*'";
    key_without_cluster(path) 78,
        "a key cannot be derived",
        "{path} does not say which cluster",
        "write cluster_id, which `tenure init` printed, into it";
    key_not_the_clusters(path) 78,
        "only the cluster's key can derive others",
        "{path} has another",
        "name a member's configuration with -c FILE, or the cluster's key as client.cluster_key_file";
    key_to_revoke_unknown(text) 78,
        "'{text}' names no key",
        "it is neither the id of a key (16 hexadecimal digits) nor a file",
        "give a key's file, or its id, which `tenure key show` prints";
    key_not_revocable(path) 78,
        "{path} cannot be revoked",
        "it is the cluster's key, which all members have",
        "change it with `tenure key rotate`";
    rotate_with_later() 2,
        "--with is refused",
        "it is for step 1, which alone takes a new key",
        "leave it out";
    rotate_without_key_file(path) 78,
        "{path} has no key_file",
        "a rotation replaces the file of the key",
        "put the key into a file of its own first";
    rotate_step_begun(path) 78,
        "step 1 comes too late",
        "{path} is there, so a rotation has come to step 2",
        "finish it with --step 3";
    rotate_other_key(path) 78,
        "{path} has another key",
        "all members must get the same",
        "remove the one that is wrong";
    rotate_not_begun(path) 78,
        "step 2 comes too early",
        "{path} is missing",
        "begin with --step 1";
    rotate_step_incomplete(path, config) 78,
        "step 1 is not complete here",
        "{path} has the new key, but old_key_files in {config} does not name it",
        "do --step 1 again, and let the node read its files";
    rotate_step_early(path) 78,
        "step 3 comes too early",
        "{path} is there, so this member speaks the old key still",
        "do --step 2 first";
    rotate_line_missing(path, value) 78,
        "{path} cannot be changed",
        "it has no line `old_key_files = […]`, or several",
        "write old_key_files = {value} there yourself, above all tables";
    rotate_line_unclear(path, value) 78,
        "{path} cannot be changed",
        "the line `old_key_files = […]` is not what it seems to be",
        "write old_key_files = {value} there yourself, above all tables";
    rotate_file_refused(path, error) 78,
        "{path} cannot be read or replaced",
        "{error}",
        "run this as its owner or as root, and do the step again";
    calc_setting_refused(path, key, flaw) 78,
        "{path}: {key} is refused",
        "{flaw}",
        "correct it there, or give the flag in its place";
}
