//! The command line, the system, files that commands read and write, and the laboratory.

super::messages! {
    usage_unknown(mistake, command, tip) 2,
        "{mistake}",
        "`{command}` knows no such word{tip}",
        "see {command} --help";
    usage_missing(mistake, command) 2,
        "something is missing on the command line",
        "{mistake}",
        "see {command} --help";
    usage_refused(mistake, command, tip) 2,
        "the command line makes no sense",
        "{mistake}{tip}",
        "see {command} --help";
    run_without_dashes(word, line) 2,
        "'{word}' is no flag of tenure run",
        "the command that is to run comes after two dashes, so that its own flags are not taken for ours",
        "write {line}";
    flag_means_nothing(flag, to, reason) 2,
        "{flag} means nothing to {to}",
        "{reason}",
        "leave it out";
    flag_refused(flag, reason) 2,
        "{flag} is refused",
        "{reason}",
        "write another value";
    stdout_not_written(error) 2,
        "cannot write to stdout",
        "{error}",
        "make room where the output goes, or send it elsewhere";
    stdin_not_read(error) 2,
        "the answer to the question cannot be read from stdin",
        "{error}",
        "run it on a terminal, or with --yes";
    not_confirmed(wanted) 2,
        "nothing was done",
        "the answer was not '{wanted}'",
        "ask again, and write just that if it is what you want";
    no_terminal(command, meaning) 2,
        "{command} asks back on a terminal, and this is none",
        "nobody could answer",
        "give --yes if {meaning}";
    terminal_not_drawn(error) 2,
        "this terminal cannot be drawn on",
        "{error}",
        "use another terminal, or `tenure status`";
    system_refuses(what, error) 2,
        "the system refuses {what}",
        "{error}",
        "look at the limits of this process and its container (`ulimit -a`, `systemctl show`), then try again";
    parent_gone() 2,
        "--parent-pid names no parent of this process",
        "the process that started this one has ended",
        "leave the flag out; `tenure up` gives it";
    not_written_as_json(error) 2,
        "the order cannot be written as JSON",
        "{error}",
        "report this: it is a bug";
    script_not_text(error) 2,
        "what was made is no text",
        "{error}",
        "report this: it is a bug";
    file_missing(path) 2,
        "{path}: there is no such file",
        "nothing is at that path, seen from this folder",
        "check the path";
    file_no_text(path) 2,
        "{path} is no scenario, trace or history",
        "it is no text",
        "name a file that `tenure lab` or a node has written";
    file_unreadable(path, error) 2,
        "{path} cannot be read",
        "{error}",
        "check the path, and that this user may read it";
    file_unwritable(path, error) 2,
        "{path} cannot be written",
        "{error}",
        "name a file in a folder that exists and that this user may write to";
    pages_unwritable(path, error) 2,
        "the pages cannot be written to {path}",
        "{error}",
        "name another folder with --out";
    outputs_collide(path) 2,
        "two outputs would go to {path}",
        "the second would replace the first",
        "name another file for one of them";
    file_malformed(path, error) 2,
        "{path} is not what was expected",
        "{error}",
        "correct it, or name another file";
    fence_unreadable(error) 2,
        "the fence cannot be read",
        "{error}",
        "name a file that `FileFence` has made, and run this as its owner";
    lab_refused(error) 2,
        "the laboratory cannot do this",
        "{error}",
        "correct the command (`tenure lab list` shows what there is)";
    lab_not_audited(error) 2,
        "these traces cannot be judged",
        "{error}",
        "give the whole traces of all members of one run (`trace` in their files)";
    lab_history_wrong(error) 2,
        "these histories cannot be judged together",
        "{error}",
        "give the files of one run, each once";
    lab_no_scenario(name, folder) 2,
        "there is no scenario '{name}'",
        "the folder {folder} with them is not here",
        "change to the folder that has it, or give the path of a file";
    lab_other_scenario(path, of, wanted) 2,
        "{path} does not fit this command",
        "it is a scenario of {of}, not of {wanted}",
        "name the protocol and the mutant that it is of, or another file";
    lab_not_as_expected(path, expected, came) 2,
        "{path} does not come out as it says",
        "expected '{expected}', but {came}",
        "correct its line 'expect', or try --mutant or --sound";
    lab_too_many_nodes(fewest) 2,
        "--nodes is refused",
        "there must be {fewest} to 64 nodes; only rings may have more",
        "write fewer";
    lab_world_and_faults() 2,
        "--world and --faults contradict each other",
        "--world calm and --world chaos say what goes wrong",
        "leave --faults out";
    lab_not_drawn() 2,
        "this cannot be drawn or traced",
        "only a single election can be drawn or traced",
        "leave out --svg, --html and --trace";
    calc_no_nodes() 2,
        "--nodes 0 is refused",
        "somebody must grant leases",
        "write 1 or more";
    calc_lease_too_long(lease, longest) 2,
        "a lease of {lease} is refused",
        "it is longer than the longest that members grant, {longest}",
        "write a shorter --lease or a longer --longest-lease";
    calc_lease_too_short(lease, rtt) 2,
        "a lease of {lease} is too short",
        "it does not last two round trips of {rtt}, so no leader could renew it",
        "write a longer --lease";
    edict_outside_run() 2,
        "there is nobody to ask for an edict",
        "TENURE_SOCKET is not set, and only what `tenure run` has started can make edicts",
        "call this from the command of `tenure run`";
    edict_too_wide() 2,
        "this token does not fit into 64 bits",
        "its term or its number is too large for the packed form",
        "use the wide one, without --packed";
    proclaim_too_long(length, most) 2,
        "{length} bytes cannot be proclaimed",
        "at most {most} fit into a message",
        "proclaim something shorter, such as where the rest can be read";
}
