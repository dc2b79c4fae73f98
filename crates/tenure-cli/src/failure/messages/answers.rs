//! Daemons that are asked: over the network, by the commands of an operator.

super::messages! {
    endpoint_malformed(text) 78,
        "'{text}' is no endpoint",
        "it has another form than a URL of HTTP",
        "write http://HOST:PORT or https://HOST:PORT, as in http://127.0.0.1:7401";
    no_endpoint() 78,
        "there is no daemon to ask",
        "neither flags nor environment nor configuration name one",
        "start a cluster here with `tenure up`, or name one with --endpoint URL, TENURE_ENDPOINTS or [client] endpoints";
    no_daemon(complaints) 69,
        "no daemon answers",
        "{complaints}",
        "start one with `tenure up` or `tenure node`, or name another with --endpoint URL";
    tls_not_trusted(complaints) 69,
        "no daemon can be trusted",
        "{complaints}",
        "mend that (docs/guides/deploy.md says how), or ask another with --endpoint URL";
    not_a_daemon(url, error) 69,
        "{url} gives no answer of a daemon",
        "{error}",
        "look which program has that port, or name a daemon with --endpoint URL";
    order_unclear(endpoint, error) 69,
        "{endpoint} was asked and did not answer",
        "{error}: it may have been done or not",
        "look with `tenure status` before asking again";
    stream_broken(endpoint, flaw) 69,
        "the answer of {endpoint} broke off",
        "{flaw}",
        "look whether the daemon runs (`tenure status`), and ask again";
    event_unforeseen(error) 2,
        "an event of the daemon is not what was expected",
        "{error}",
        "use the same version of tenure here as for the daemon";
    token_refused(endpoint, said) 77,
        "{endpoint} does not know who asks",
        "{said}",
        "name a token as token_file under [client] or as TENURE_TOKEN_FILE, or ask as the daemon's own user";
    role_refused(endpoint, said) 77,
        "{endpoint} does not allow this",
        "{said}",
        "use a token whose role may do it (`tenure token create --role ROLE`), or ask as the daemon's own user";
    not_now(endpoint, said) 69,
        "{endpoint} cannot do this now",
        "{said}",
        "look with `tenure status`, and ask again";
    declined(endpoint, said) 2,
        "{endpoint} declines",
        "{said}",
        "correct the request, then ask again";
    leader_unknown(group) 69,
        "it is not known who leads '{group}'",
        "the daemon hears too few members",
        "see `tenure status`";
    runner_silent(socket, error) 69,
        "the runner does not answer on {socket} (TENURE_SOCKET)",
        "{error}",
        "to ask a daemon, name it with --endpoint URL";
    no_page() 78,
        "this daemon serves no page",
        "it has no daemon.http",
        "set daemon.http in its configuration, and restart it";
    change_late(within) 69,
        "the change is not done after {within}",
        "too few members have answered yet",
        "look with `tenure members list`: it goes on by itself as soon as enough do";
    change_failed(reason) 2,
        "the change was not made",
        "{reason}",
        "correct the request, then ask again";
    change_interrupted(endpoint) 69,
        "{endpoint} ended before the change did",
        "the daemon was stopped, or the connection broke",
        "look with `tenure members list`: it may go on";
    set_not_whole(flag, unit) 2,
        "{flag} is refused",
        "it is kept in whole {unit}",
        "write it in whole {unit}";
}
