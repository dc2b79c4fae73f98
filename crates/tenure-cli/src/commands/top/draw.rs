//! How it looks.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, List, ListItem, Row, Table, TableState};

use super::view::{GroupRow, NodeRow, View};
use crate::output::readable;

/// How wide a full bar is.
const BAR: usize = 20;

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, colours: bool) {
    let nodes = u16::try_from(view.nodes.len()).unwrap_or(u16::MAX).saturating_add(3);
    let [top, middle, bottom, keys] = Layout::vertical([
        Constraint::Length(nodes.min(frame.area().height / 3)),
        Constraint::Min(4),
        Constraint::Length(8),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let paint = Paint(colours);
    draw_nodes(frame, top, view, paint);
    draw_groups(frame, middle, view, paint);
    draw_events(frame, bottom, view);
    frame.render_widget(key_line(view), keys);
}

/// Colours, or none.
#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn of(self, colour: Color) -> Style {
        if self.0 { Style::new().fg(colour) } else { Style::new() }
    }
}

fn block(title: String) -> Block<'static> {
    Block::bordered().title(title)
}

fn head<const N: usize>(cells: [&'static str; N]) -> Row<'static> {
    Row::new(cells).style(Style::new().add_modifier(Modifier::BOLD))
}

fn draw_nodes(frame: &mut Frame<'_>, area: Rect, view: &View, paint: Paint) {
    let row = |node: &NodeRow| {
        let colour = match node.state {
            "ready" => Color::Green,
            "no answer" => Color::Red,
            _ => Color::Yellow,
        };
        Row::new([
            Cell::new(node.name.clone()),
            Cell::new(node.state).style(paint.of(colour)),
            Cell::new(node.epoch.map(|epoch| epoch.to_string()).unwrap_or_default()),
            Cell::new(node.peers.map(|(up, all)| format!("{up} of {all}")).unwrap_or_default()),
            Cell::new(node.trip.map(readable).unwrap_or_default()),
            Cell::new(node.led.to_string()),
            Cell::new(if node.why.is_empty() { node.endpoint.clone() } else { node.why.clone() }),
        ])
    };
    let widths = [
        Constraint::Length(16),
        Constraint::Length(10),
        Constraint::Length(6),
        Constraint::Length(8),
        Constraint::Length(10),
        Constraint::Length(5),
        Constraint::Min(10),
    ];
    let ready = view.nodes.iter().filter(|node| node.state == "ready").count();
    let table = Table::new(view.nodes.iter().map(row), widths)
        .header(head(["NODE", "STATE", "EPOCH", "PEERS", "RTT", "LEADS", "WHERE"]))
        .block(block(format!(" nodes: {ready} of {} ready ", view.nodes.len())));
    frame.render_widget(table, area);
}

fn draw_groups(frame: &mut Frame<'_>, area: Rect, view: &View, paint: Paint) {
    let row = |group: &&GroupRow| {
        let (leader, colour) = match &group.leader {
            Some(leader) if group.weak => (format!("({leader})"), Color::Yellow),
            Some(leader) => (leader.clone(), Color::Green),
            None if group.unknown => ("not known".to_owned(), Color::Yellow),
            None => ("nobody".to_owned(), Color::Red),
        };
        let left = group.left.map(|left| format!("{:>5.1}s", left.as_secs_f64())).unwrap_or_default();
        Row::new([
            Cell::new(group.group.clone()),
            Cell::new(leader).style(paint.of(colour)),
            Cell::new(group.term.map(|term| term.to_string()).unwrap_or_default()),
            Cell::new(bar(group.left.unwrap_or_default(), group.full)).style(paint.of(colour)),
            Cell::new(left),
        ])
    };
    let widths = [
        Constraint::Min(16),
        Constraint::Length(20),
        Constraint::Length(12),
        Constraint::Length(20),
        Constraint::Length(8),
    ];
    let shown = view.shown();
    let filter = if view.filter.is_empty() { String::new() } else { format!(", filter '{}'", view.filter) };
    let title = format!(" groups: {} of {}, by {}{filter} ", shown.len(), view.total(), view.sort.name());
    let table = Table::new(shown.iter().map(row), widths)
        .header(head(["GROUP", "LEADER", "TERM", "LEASE", "LEFT"]))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(block(title));
    let mut state = TableState::new().with_selected((!shown.is_empty()).then_some(view.chosen));
    frame.render_stateful_widget(table, area, &mut state);
}

/// The rest of a lease, as a part of the most that was ever left of it.
fn bar(left: Duration, full: Duration) -> String {
    let (left, full) = (left.as_millis(), full.as_millis().max(1));
    let wide = u128::try_from(BAR).unwrap_or(1);
    let filled = usize::try_from((left * wide).div_ceil(full).min(wide)).unwrap_or(0);
    "█".repeat(filled) + &"░".repeat(BAR - filled)
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let item = |(time, what): &(String, String)| ListItem::new(format!("{time}  {what}"));
    frame.render_widget(List::new(view.events.iter().map(item)).block(block(" events ".to_owned())), area);
}

fn key_line(view: &View) -> Line<'static> {
    if view.typing {
        return Line::from(format!("/{}▏  Enter keeps the filter, Esc drops it", view.filter));
    }
    let key = |key: &'static str| Span::styled(key, Style::new().add_modifier(Modifier::BOLD));
    Line::from(vec![
        key(" q"),
        Span::raw(" quit  "),
        key("↑↓"),
        Span::raw(" groups  "),
        key("/"),
        Span::raw(" filter  "),
        key("s"),
        Span::raw(" sort"),
    ])
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::view::tests::{daemon, dead};
    use super::*;

    fn screen(view: &View) -> String {
        let mut terminal = Terminal::new(TestBackend::new(110, 24)).unwrap();
        terminal.draw(|frame| draw(frame, view, true)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..110).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..24).map(|y| line(y).trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn a_lease_is_a_bar_that_shrinks() {
        let full = Duration::from_secs(2);
        let filled = |millis| bar(Duration::from_millis(millis), full).matches('█').count();
        assert_eq!([filled(2000), filled(1000), filled(10), filled(0), filled(9999)], [20, 10, 1, 0, 20]);
        assert_eq!(bar(Duration::ZERO, Duration::ZERO).chars().count(), BAR);
    }

    #[test]
    fn nodes_groups_events_and_keys_are_all_on_the_screen() {
        let mut view = View::default();
        view.update(&[daemon("n1", &[("jobs", Some("app1"), 7, 2000)]), daemon("n2", &[])], "12:00:00");
        view.update(
            &[daemon("n1", &[("jobs", Some("app1"), 7, 1000), ("mail", None, 3, 0)]), dead("n2")],
            "12:00:01",
        );
        let text = screen(&view);
        for part in [
            "nodes: 1 of 2 ready",
            "n1               ready",
            "n2               no answer",
            "2 of 2",
            "450us",
            "groups: 2 of 2, by name",
            "██████████░░░░░░░░░░   1.0s",
            "nobody",
            "12:00:01  n2 is gone: no daemon answers",
            " q quit",
        ] {
            assert!(text.contains(part), "no '{part}' in\n{text}");
        }
    }

    #[test]
    fn a_filter_that_is_typed_is_seen_at_once() {
        let mut view = View::default();
        view.update(
            &[daemon("n1", &[("jobs", Some("app1"), 7, 2000), ("mail", Some("b"), 3, 5)])],
            "12:00:00",
        );
        (view.typing, view.filter) = (true, "mai".to_owned());
        let text = screen(&view);
        assert!(text.contains("groups: 1 of 2, by name, filter 'mai'") && text.contains("/mai▏"), "{text}");
        assert!(!text.contains("jobs"), "{text}");
    }

    #[test]
    fn a_screen_that_is_too_small_is_no_reason_to_crash() {
        let mut view = View::default();
        view.update(&[daemon("n1", &[("jobs", Some("app1"), 7, 2000)])], "12:00:00");
        for (width, height) in [(1, 1), (10, 3), (40, 9)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &view, false)).unwrap();
        }
    }
}
