//! `tenure leader`: who leads a group, once or as it changes.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::time::sleep;

use crate::api::{self, Seen, State, group_path};
use crate::arguments::Common;
use crate::client::{self, Asking, Client, Trouble, group_name};
use crate::failure::{Failure, messages};
use crate::output::{self, Answer, Format, Verdict, in_line};

/// How long a watcher waits before it asks the daemons again.
const PAUSE: Duration = Duration::from_millis(500);

/// Say who leads a group (exit code 1: nobody).
#[derive(Args, Debug)]
#[command(after_help = "Prints the leader's name alone, for scripts; -o json has its term too. The answer is
about the past: to be certain that nobody else leads, use `tenure verify`.

With --watch, each change is a line, and what leaders proclaim: it never ends, and asks
another daemon when one ends.

Examples:
  tenure leader jobs
  if [ \"$(tenure leader jobs)\" = \"$HOSTNAME\" ]; then …   to show; to act, use `tenure run`
  tenure leader jobs --watch -o json                     one JSON object a line
  tenure leader jobs --endpoint http://10.0.0.7:7401

Exit codes: 0 somebody leads, 1 nobody leads, 2 error, 69 no daemon answers or it hears no
quorum, 77 the token is refused, 78 no daemon is known")]
pub(crate) struct Leader {
    /// The group
    #[arg(value_parser = group_name)]
    group: String,
    /// Go on, and say each change
    #[arg(short, long)]
    watch: bool,
    /// Whom to ask
    #[command(flatten)]
    asking: Asking,
}

impl Leader {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let client = self.asking.client(common)?;
        if self.watch {
            client::block_on(watch(&client, &self.group, common.output))??;
            return Ok(Answer::text(String::new()));
        }
        let group: api::Group = client::block_on(client.get(&group_path(&self.group, "")))??;
        told(&group, common.output)
    }
}

/// The leader, and the exit code that says so.
fn told(group: &api::Group, format: Format) -> Result<Answer, Failure> {
    if group.state == State::Unknown {
        return Err(messages::leader_unknown(&group.group));
    }
    let leads = group.state == State::Leader;
    let name = group.leader.as_deref().unwrap_or("?");
    let line = if leads { format!("{name}\n") } else { String::new() };
    let mut answer = Answer::new(format, || json!(group), || line);
    if !leads {
        answer.verdict = Verdict::Broken;
        answer.notes.push(nobody(group));
    }
    Ok(answer)
}

/// That nobody leads, and what may be the reason.
pub(super) fn nobody(group: &api::Group) -> String {
    let name = &group.group;
    if group.state == State::Weak {
        return format!("tenure: nobody can be elected in '{name}': too few members hear each other");
    }
    match &group.nearest {
        Some(nearest) => format!("tenure: nobody leads '{name}'; did you mean '{nearest}'?"),
        None => format!("tenure: nobody leads '{name}'"),
    }
}

/// The newest news that was told; only newer ones are told.
#[derive(Debug, Default)]
struct Newest {
    term: Option<u64>,
    last: Option<(Seen, Option<String>, Option<u64>)>,
    edict: Option<(u64, u64)>,
}

impl Newest {
    /// Whether this is news: another daemon may know less than the one before.
    fn is_news(&mut self, sight: &api::Sight) -> bool {
        if let Some(edict) = &sight.edict {
            let order = (edict.term, edict.number);
            let newer = self.edict.is_none_or(|newest| newest < order);
            if newer {
                self.edict = Some(order);
            }
            return newer;
        }
        if sight.term.is_some() && sight.term < self.term {
            return false;
        }
        let this = Some((sight.event, sight.leader.clone(), sight.term));
        self.term = sight.term.max(self.term);
        let news = self.last != this;
        self.last = this;
        news
    }
}

/// Says each change, forever; only the first daemon must be there.
async fn watch(client: &Client, group: &str, format: Format) -> Result<(), Failure> {
    let path = group_path(group, "/watch");
    let mut newest = Newest::default();
    let mut events = client.events(&path).await?;
    loop {
        while let Ok(Some(event)) = events.next().await {
            let sight: api::Sight = event.json()?;
            if newest.is_news(&sight) && !say(&sight, format)? {
                return Ok(());
            }
        }
        output::note(&format!("tenure: {} has ended the stream; asking again", events.endpoint()));
        events = loop {
            sleep(PAUSE).await;
            match client.events(&path).await {
                Ok(events) => break events,
                Err(Trouble::Silent(_)) => {}
                Err(said) => return Err(said.into()),
            }
        };
    }
}

/// Prints a line at once; false if nobody reads any more.
fn say(sight: &api::Sight, format: Format) -> Result<bool, Failure> {
    let line = match format {
        Format::Json => json!(sight).to_string(),
        Format::Table => words(sight),
    };
    output::say(&format!("{line}\n"))
}

fn words(sight: &api::Sight) -> String {
    let name = sight.leader.as_deref().unwrap_or("?");
    let term = sight.term.unwrap_or_default();
    match (sight.event, &sight.edict) {
        (Seen::Leader, _) => format!("leader {name}, term {term}"),
        (Seen::Nobody, _) => format!("nobody, after term {term}"),
        (Seen::Unknown, _) => "not known: the daemon hears too few members".to_owned(),
        (Seen::Weak, _) => "nobody can be elected: too few members hear each other".to_owned(),
        (Seen::Edict, Some(edict)) => {
            let text = edict.text.as_deref().or(edict.hex.as_deref()).unwrap_or_default();
            format!("edict {} of term {}: {}", edict.number, edict.term, in_line(text))
        }
        (Seen::Edict, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(event: Seen, term: u64) -> api::Sight {
        let leader = (event == Seen::Leader).then(|| "n1".to_owned());
        api::Sight { group: "g".to_owned(), event, leader, term: Some(term), edict: None }
    }

    fn edict(term: u64, number: u64) -> api::Sight {
        let edict = api::Edict { token: "1".to_owned(), term, number, text: None, hex: None };
        api::Sight { edict: Some(edict), ..sight(Seen::Edict, term) }
    }

    #[test]
    fn what_a_leader_proclaims_can_neither_command_a_terminal_nor_look_like_a_line_of_ours() {
        let mut sight = edict(5, 2);
        if let Some(edict) = &mut sight.edict {
            edict.text = Some("x\u{1b}[2J\nleader n2, term 9".to_owned());
        }
        assert_eq!(words(&sight), "edict 2 of term 5: x\\u001b[2J\\u000aleader n2, term 9");
    }

    #[test]
    fn a_watcher_that_goes_on_with_another_daemon_is_told_nothing_twice_and_nothing_older() {
        let mut newest = Newest::default();
        for (sight, news) in [
            (sight(Seen::Leader, 5), true),
            (edict(5, 2), true),
            (sight(Seen::Leader, 5), false),
            (edict(5, 2), false),
            (edict(5, 1), false),
            (sight(Seen::Leader, 4), false),
            (sight(Seen::Nobody, 5), true),
            (sight(Seen::Leader, 6), true),
            (edict(6, 0), true),
        ] {
            assert_eq!(newest.is_news(&sight), news, "{sight:?}");
        }
    }
}
