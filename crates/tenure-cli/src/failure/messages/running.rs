//! Nodes that stop, and `tenure run`.
//!
//! 70 is the exit code of a node whose clock or disk failed. The service manager must not start it
//! again: it would be trusted again although nothing has changed.

super::messages! {
    node_shut_down() 70,
        "the node was shut down",
        "something in this process ended it",
        "start it again";
    node_store_failed(reason) 70,
        "the store failed",
        "{reason}; so the node has stopped, for it may no longer promise anything",
        "mend the disk and restart";
    node_clock_refused(reason) 70,
        "the clock cannot be trusted",
        "{reason}; so the node has stopped leading and granting",
        "look with `tenure doctor`, mend the clock and restart";
    node_config_refused(reason) 78,
        "the node does not fit its cluster",
        "{reason}",
        "correct the configuration and restart";
    node_name_taken(name) 78,
        "the cluster has a member called '{name}' already",
        "that one has another store",
        "choose another name; one that lost its disk comes back under a new name, by `tenure members replace`";
    node_rolled_back(name, life, highest) 78,
        "the store of '{name}' has forgotten promises",
        "it is in life {life}, but members have heard life {highest}: it is a copy, or was put back from a backup",
        "delete it and bring the host back under a new name with `tenure members replace`";
    node_crashed() 2,
        "the node's thread has ended unexpectedly",
        "this is a bug",
        "report it with the log, and start the node again";
    node_stopped(reason) 70,
        "the node has stopped",
        "{reason}",
        "mend that and start it again";
    lease_too_short(parts, lease, needed) 78,
        "the lease of {lease} is too short",
        "{parts} do not fit into half of it",
        "use --lease {needed}, or shorten --grace";
    grace_too_long(parts, needed, longest) 78,
        "no lease of this cluster is long enough",
        "{parts} need a lease of {needed}, but the cluster's longest is {longest}",
        "shorten --grace, or raise longest_lease by `tenure members set`";
    run_no_quorum(group, wait, reason) 69,
        "not elected in '{group}' within {wait}",
        "{reason}",
        "look with `tenure status` and `tenure doctor`, or wait longer with --wait";
    run_key_refused(group, wait, reason) 69,
        "not elected in '{group}' within {wait}",
        "{reason}",
        "write a key that the members know into the file of key_file (`tenure key derive`)";
    run_other_leads(group, wait, leader) 75,
        "not elected in '{group}' within {wait}",
        "{leader} leads",
        "try again later, or wait longer with --wait";
    run_not_over(group, wait) 75,
        "not elected in '{group}' within {wait}",
        "nobody leads: the election was not over",
        "wait longer with --wait";
    run_never_started(times, reason, lease) 78,
        "the command was not started, {times} times",
        "{reason}; the cluster may allow no lease of {lease}",
        "shorten --grace, or raise longest_lease by `tenure members set`";
    run_no_folder(error) 2,
        "there is no folder for the socket of this runner",
        "{error}",
        "set XDG_RUNTIME_DIR to a folder that only this user can write to, or make room in /tmp";
    run_no_sentinel(error) 2,
        "the sentinel cannot be started",
        "{error}",
        "look at the limits of this process and its container (`ulimit -u`), then try again";
    sentinel_failed(error) 2,
        "the sentinel cannot go on",
        "{error}",
        "look at the limits of this process and its container, then start the runner again";
    sentinel_gone() 2,
        "the command is not started",
        "the sentinel has ended, and nobody would stop the command in time",
        "start the runner again";
    sentinel_no_command() 2,
        "there is no command to run",
        "the sentinel was started by hand",
        "use `tenure run`";
    command_not_found(program, error) 127,
        "{program} cannot be run",
        "{error}",
        "check its name and PATH";
    command_not_run(program, error) 126,
        "{program} cannot be run",
        "{error}",
        "check that it is a program and that this user may execute it";
    campaign_out_of_scope(group) 77,
        "this process may not lead '{group}'",
        "the group is not among those of `groups` or of its key",
        "add it to `groups`, or ask for a key whose scope has it (`tenure key derive --groups`)";
    campaign_key_refused(reason) 77,
        "the members refuse this key",
        "it {reason}",
        "ask for a new one (`tenure key derive`)";
    campaign_too_many_groups(group) 2,
        "the members do not take '{group}' as well",
        "they know as many groups of this key as one key may have",
        "lead fewer at once, wait until they forget some (`limits.forget_after`), use another key, or raise `limits.groups_per_key` at the members";
    campaign_barred(group) 2,
        "nobody may lead '{group}'",
        "it is barred since terms were repaired, because it holds a higher term",
        "reset the fences of its resources, then `tenure members repair-terms lift {group}`; or use a group of another name";
    campaign_name_in_use(name) 78,
        "another process speaks under the name '{name}'",
        "it began later, and members serve the one that began last",
        "give each a name of its own, or one key for many names (`tenure key derive`)";
    campaign_refused(reason) 2,
        "this process cannot campaign",
        "{reason}",
        "correct that and start it again";
}
