//! Founding, stores, and `tenure up`.

super::messages! {
    already_founded(path) 78,
        "{path} is there already",
        "a cluster is founded once",
        "choose another --dir, or start the one that is there";
    founding_name_twice(name) 78,
        "two members are called '{name}'",
        "a name stands for one process",
        "give each member a name of its own";
    founding_name_taken(name) 78,
        "a member cannot be called '{name}'",
        "its folder would have that name, and that is taken",
        "choose another name";
    founding_member_malformed(flaw) 78,
        "--member is refused",
        "{flaw}",
        "write each member so";
    founding_ports_shared(one, other, ports) 78,
        "members '{one}' and '{other}' would share a port",
        "they have {ports}",
        "put them two ports apart";
    founding_port_twice(name, port) 78,
        "member '{name}' cannot be reached",
        "it has port {port} for itself and for HTTP",
        "choose another --http-port";
    file_exists(path) 78,
        "{path} cannot be written",
        "it is there already",
        "move it away, or name another";
    folder_missing(path) 78,
        "{path} cannot be written",
        "the folder that it should be in is missing",
        "make the folder first";
    folder_unwritable(path, error) 78,
        "{path} cannot be written",
        "{error}",
        "choose a folder that this user may write to";
    store_missing(dir) 78,
        "there is no store in {dir}",
        "this node was never founded or joined, or has lost its disk",
        "a founding member is made by `tenure init` or `tenure node --found`, a new one by `tenure node --join`; one that lost its disk must not come back under its name: give it another and run `tenure members replace OLD NEW`";
    store_there(dir) 78,
        "there is a store in {dir} already",
        "another would forget its promises",
        "start the node without --found or --join, or choose another folder";
    store_in_use(dir) 78,
        "the store in {dir} is in use",
        "another process runs this node",
        "stop it first, or give this node a folder of its own";
    store_twin(memory) 78,
        "{memory} is in use",
        "a process with a copy of this store runs on this host, and a store is never copied",
        "stop one of the two, and bring it back with `tenure members replace`";
    store_of_other_cluster(dir, found, wanted) 78,
        "the store in {dir} is another cluster's",
        "it belongs to cluster {found}, not to {wanted}",
        "name the folder of this cluster's store, or an empty one and `tenure node --join`";
    store_of_other_node(dir, found, wanted) 78,
        "the store in {dir} is another node's",
        "it belongs to node '{found}', not to '{wanted}', and a store cannot be renamed",
        "correct the node's name or its folder";
    store_newer(file, found, known) 78,
        "{file} cannot be read by this version",
        "it has format {found}, and this version knows formats up to {known}",
        "run the version that wrote it, or a later one";
    store_damaged(file, flaw) 78,
        "{file} is damaged",
        "{flaw}: promises may be lost, so this node must not come back under its name",
        "keep the file, make a member of another name with `tenure node --join`, and run `tenure members replace OLD NEW`";
    store_went_back(store, memory) 78,
        "the store is older than what this node did",
        "it is of life {store}, but this node has lived up to {memory} since this machine was started: an old copy was put back, and promises are lost",
        "put the newest back, or replace this member by one with another name (`tenure members replace OLD NEW`)";
    store_changed(dir) 78,
        "the store in {dir} is not as in the report for this plan",
        "the node has run since, or the plan is another cluster's",
        "stop all members, make new reports and a new plan";
    founding_refused(flaw) 78,
        "the cluster cannot be founded so",
        "{flaw}",
        "correct the members and the quorums";
    store_unfit(file) 78,
        "{file} cannot hold what it was given",
        "an address or a list of quorums is too long, or is not one",
        "correct it, then start the node again";
    store_disk(doing, path, error) 78,
        "cannot {doing} {path}",
        "{error}",
        "look after that disk (room, mode, mount), then start the node again: nothing was confirmed that is not on it";
    store_unforeseen(error) 78,
        "the store is refused",
        "{error}",
        "look after the folder that `store` names, then start the node again";
    trace_unwritable(path, error) 78,
        "cannot write the trace to {path}",
        "{error}",
        "change `trace`, or leave it out";
    start_unforeseen(error) 78,
        "the node does not start",
        "{error}",
        "correct what it names, then start the node again";
    repair_refused(flaw) 2,
        "these reports make no plan",
        "{flaw}",
        "stop all members, and make a report of each with `tenure members repair-terms report`";
    repair_text_refused(text, flaw) 2,
        "{text} is not as it was made",
        "it {flaw}",
        "make it again";
    up_has_no_config() 2,
        "tenure up takes no -c",
        "it has no configuration but that of its folder",
        "leave -c out, and name the folder with --dir";
    up_elsewhere(folder) 78,
        "{folder} cannot be run by `tenure up`",
        "it has members on other hosts",
        "start them there with `tenure node`, or choose another --dir";
    up_other_nodes(folder, number, wanted) 78,
        "the cluster in {folder} has no {wanted} nodes",
        "it was founded with {number} nodes, not {wanted}",
        "leave --nodes out, choose another --dir, or remove {folder} to begin anew";
    up_other_port(folder, first, wanted) 78,
        "the cluster in {folder} does not begin at port {wanted}",
        "it begins at port {first}",
        "leave --port out, choose another --dir, or remove {folder} to begin anew";
    up_other_lease(folder, lease, wanted) 78,
        "the cluster in {folder} has no leases of {wanted}",
        "it has leases of {lease}, not {wanted}",
        "leave --lease out, or change [lease] in its files";
    up_incomplete(file) 78,
        "this folder has no whole cluster",
        "{file} is missing",
        "remove the folder, or choose another --dir";
    up_twice(folder) 78,
        "another `tenure up` runs the cluster in {folder} already",
        "one process looks after a cluster",
        "stop it first, or choose another --dir";
    up_not_locked(file, error) 78,
        "the cluster of {file} cannot be run",
        "{error}",
        "run this as the owner of the folder, or choose another --dir";
    up_too_many_ports(nodes, ports, base) 78,
        "--port {base} is too high",
        "{nodes} nodes have {ports} ports, and after {base} there are not that many",
        "choose a smaller --port";
    up_port_taken(port, state) 78,
        "port {port} {state}",
        "the nodes of a new cluster need it",
        "stop the program there, or choose others with --port BASE";
    up_port_of_cluster_taken(port, state, folder) 78,
        "port {port} {state}",
        "the cluster in {folder} has it",
        "stop the program there, or found another with --port BASE --dir DIR";
    up_node_ended(node, words) 2,
        "{node} did not start",
        "{words}",
        "correct that, then run `tenure up` again";
    up_nobody_left() 2,
        "no node is left",
        "all have ended",
        "see their logs, and start again with `tenure up`";
}
