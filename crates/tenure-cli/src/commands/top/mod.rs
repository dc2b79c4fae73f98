//! `tenure top`: the cluster live, in a terminal. Elsewhere, one look at it.
//!
//! A thread asks every daemon four times a second; this one draws and listens to the keyboard, so
//! that a daemon that hangs never holds up a key.

mod draw;
mod view;

use std::io::IsTerminal;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::time::{ClockId, clock_gettime};

use crate::arguments::Common;
use crate::client::{Asking, block_on};
use crate::clock::clock;
use crate::commands::asked::{Asked, ask_all, endpoints};
use crate::failure::{Failure, messages};
use crate::output::{Answer, Format, Table, readable};
use crate::settings::Settings;
use view::View;

/// How often daemons are asked.
const EVERY: Duration = Duration::from_millis(250);

/// How long a daemon has to answer, unless --timeout says otherwise.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait for a key before looking for news.
const KEY: Duration = Duration::from_millis(50);

/// Watch the cluster live.
///
/// Nodes, groups with their leaders, what is left of each lease as a bar that shrinks until it is
/// renewed, and what has changed. It shows what the daemons knew a moment ago; to be
/// certain of a leader, `tenure verify`. Off a terminal, or with -o json, one look is printed. A
/// daemon that does not answer within 2 s (--timeout) is shown as such.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure top
  tenure top --endpoint http://10.0.0.1:7401 --endpoint http://10.0.0.2:7401
  tenure top | cat                  one look, as text
  tenure top -o json | jq '.groups[] | select(.leader == null)'

Keys: q or Ctrl-C quits, arrows and PgUp PgDn move, / filters by group and leader, s sorts by
name, lease left, leader, term.

JSON: nodes (name, endpoint, state, why, version, epoch, peers_answering, peers, round_trip_us,
led), groups (group, leader, weak, unknown, term, lease_left_ms).

Exit codes: 0 seen, 2 error, 69 no daemon answers, 77 the token is refused, 78 the configuration
must be changed first.")]
pub(crate) struct Top {
    #[command(flatten)]
    asking: Asking,
}

impl Top {
    /// Shows it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        let settings = Settings::find_or_none(common.config.as_deref())?;
        let endpoints = endpoints(&settings, &self.asking.endpoint);
        let patience = self.asking.timeout.unwrap_or(PATIENCE);
        let first = block_on(ask_all(&settings, &endpoints, patience))?;
        if first.iter().all(|one| one.status.is_err()) {
            self.asking.client(common)?; // Says so if there is nobody to ask at all.
            let said = first.into_iter().find_map(|one| one.status.err());
            return Err(said.unwrap_or_else(messages::no_endpoint));
        }
        let mut view = View::default();
        view.update(&first, &time_of_day());
        let is_screen = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        if !is_screen || common.output == Format::Json {
            return Ok(Answer::new(common.output, || view.json(), || text(&view)));
        }
        let (tell, news) = mpsc::channel();
        thread::spawn(move || ask_on(&settings, &endpoints, patience, &tell));
        let wrong = |error: std::io::Error| messages::terminal_not_drawn(error);
        let mut terminal = ratatui::try_init().map_err(wrong)?;
        let result = show(&mut terminal, &mut view, &news);
        ratatui::restore();
        result.map_err(wrong)?;
        Ok(Answer::text(String::new()))
    }
}

/// Asks all daemons again and again, until nobody listens any more.
fn ask_on(settings: &Settings, endpoints: &[String], patience: Duration, tell: &Sender<Vec<Asked>>) {
    let asking = async {
        loop {
            let start = clock();
            if tell.send(ask_all(settings, endpoints, patience).await).is_err() {
                return;
            }
            tokio::time::sleep(EVERY.saturating_sub(clock() - start)).await;
        }
    };
    let _ = block_on(asking); // Without an event loop the screen stands still: the first look is there.
}

/// Draws, and does what keys say, until one of them says to stop.
fn show(terminal: &mut DefaultTerminal, view: &mut View, news: &Receiver<Vec<Asked>>) -> std::io::Result<()> {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut stale = true;
    loop {
        for asked in news.try_iter() {
            view.update(&asked, &time_of_day());
            stale = true;
        }
        if stale {
            terminal.draw(|frame| draw::draw(frame, view, colours))?;
            stale = false;
        }
        if !event::poll(KEY)? {
            continue;
        }
        stale = true;
        if let Event::Key(key) = event::read()?
            && !press(view, key)
        {
            return Ok(());
        }
    }
}

/// Handles a key. Says whether to go on.
fn press(view: &mut View, key: KeyEvent) -> bool {
    if key.kind == KeyEventKind::Release {
        return true;
    }
    if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
        return false;
    }
    if view.typing {
        type_filter(view, key.code);
        return true;
    }
    match key.code {
        KeyCode::Char('q') => return false,
        KeyCode::Char('s') => view.sort = view.sort.next(),
        KeyCode::Char('/') => view.typing = true,
        KeyCode::Esc => view.filter.clear(),
        KeyCode::Up => view.step(-1),
        KeyCode::Down => view.step(1),
        KeyCode::PageUp => view.step(-10),
        KeyCode::PageDown => view.step(10),
        _ => {}
    }
    true
}

fn type_filter(view: &mut View, code: KeyCode) {
    match code {
        KeyCode::Enter => view.typing = false,
        KeyCode::Esc => {
            view.typing = false;
            view.filter.clear();
        }
        KeyCode::Backspace => {
            view.filter.pop();
        }
        KeyCode::Char(letter) => view.filter.push(letter),
        _ => {}
    }
    view.step(0);
}

/// One look, as text.
fn text(view: &View) -> String {
    let mut nodes = Table::new(["NODE", "STATE", "EPOCH", "PEERS", "RTT", "LEADS", "WHERE"]);
    for row in &view.nodes {
        nodes.row([
            row.name.clone(),
            row.state.to_owned(),
            row.epoch.map(|epoch| epoch.to_string()).unwrap_or_default(),
            row.peers.map(|(up, all)| format!("{up} of {all}")).unwrap_or_default(),
            row.trip.map(readable).unwrap_or_default(),
            row.led.to_string(),
            if row.why.is_empty() { row.endpoint.clone() } else { row.why.clone() },
        ]);
    }
    let mut groups = Table::new(["GROUP", "LEADER", "TERM", "LEFT"]);
    for row in view.shown() {
        let nobody = if row.unknown { "not known" } else { "nobody" };
        let leader = row.leader.clone().unwrap_or_else(|| nobody.to_owned());
        groups.row([
            row.group.clone(),
            if row.weak { format!("({leader})") } else { leader },
            row.term.map(|term| term.to_string()).unwrap_or_default(),
            row.left.map(readable).unwrap_or_default(),
        ]);
    }
    if view.total() == 0 {
        return format!("{}\n  no groups yet: `tenure run -g NAME -- COMMAND` makes one\n", nodes.render());
    }
    format!("{}\n{}", nodes.render(), groups.render())
}

/// The time of day, by the calendar of this machine (UTC).
fn time_of_day() -> String {
    let seconds = clock_gettime(ClockId::Realtime).tv_sec.rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::view::tests::daemon;
    use super::*;

    fn keys(view: &mut View, codes: &[KeyCode]) -> bool {
        codes.iter().all(|code| press(view, KeyEvent::from(*code)))
    }

    #[test]
    fn keys_sort_filter_and_quit() {
        let mut view = View::default();
        view.update(&[daemon("n1", &[("jobs", Some("a"), 1, 1), ("mail", Some("b"), 2, 2)])], "12:00:00");
        assert!(keys(
            &mut view,
            &[KeyCode::Char('/'), KeyCode::Char('q'), KeyCode::Backspace, KeyCode::Char('m')]
        ));
        assert!(
            (view.typing, view.filter.as_str(), view.shown().len()) == (true, "m", 1),
            "q is a letter there"
        );
        assert!(keys(&mut view, &[KeyCode::Enter, KeyCode::Down]));
        assert_eq!((view.typing, view.chosen), (false, 0));
        assert!(keys(&mut view, &[KeyCode::Esc, KeyCode::Down, KeyCode::Char('s')]));
        assert_eq!((view.filter.as_str(), view.chosen, view.sort.name()), ("", 1, "lease left"));
        assert!(!keys(&mut view, &[KeyCode::Char('q')]));
        assert!(!press(&mut view, KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    }

    #[test]
    fn one_look_is_text_that_names_who_leads() {
        let mut view = View::default();
        view.update(&[daemon("n1", &[("jobs", Some("app1"), 7, 1500), ("mail", None, 2, 0)])], "12:00:00");
        let text = text(&view);
        assert!(text.contains("jobs   app1       7  1.5s") && text.contains("nobody"), "{text}");
    }
}
