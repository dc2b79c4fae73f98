//! The output for users: data on stdout, the rest on stderr; tables for people, JSON for programs.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde_json::Value;

use crate::failure::{Failure, messages};

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text in columns
    Table,
    /// One JSON object
    Json,
}

/// The meaning of the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Yes.
    Holds,
    /// No: nobody leads, a property is broken, a mutant survives.
    Broken,
    /// A code that is not ours to choose: that of the command which `tenure run` ran.
    Code(u8),
}

impl Verdict {
    /// Broken if there is something that breaks it.
    pub(crate) fn broken_if(broken: bool) -> Self {
        if broken { Self::Broken } else { Self::Holds }
    }

    /// Its name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Broken | Self::Code(_) => "broken",
        }
    }
}

/// The answer of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// For stdout.
    pub(crate) text: String,
    /// For stderr, a line each.
    pub(crate) notes: Vec<String>,
    /// For the exit code.
    pub(crate) verdict: Verdict,
}

impl Answer {
    /// Text alone.
    pub(crate) fn text(text: String) -> Self {
        Self { text, notes: Vec::new(), verdict: Verdict::Holds }
    }

    /// In the format that was asked for; only that one is made.
    pub(crate) fn new(format: Format, json: impl FnOnce() -> Value, table: impl FnOnce() -> String) -> Self {
        Self::text(match format {
            Format::Table => table(),
            Format::Json => format!("{:#}\n", json()),
        })
    }

    /// Says it. A reader that goes away before the end (`| head`) is no error, and changes no
    /// verdict.
    pub(crate) fn print(self) -> Result<Verdict, Failure> {
        self.notes.iter().for_each(|text| note(text));
        say(&self.text)?;
        Ok(self.verdict)
    }
}

/// Writes to stdout at once; false if nobody reads any more. Everything that a command prints goes
/// through here.
pub(crate) fn say(text: &str) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(harmless(text).as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(messages::stdout_not_written(error)),
    }
}

/// Writes a line to stderr. Where that is closed, nothing can be said.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", harmless(text));
}

/// Text in which nothing commands a terminal: control characters (but line feeds and tabs) and
/// those that turn the direction of writing are shown as `\u001b`. In JSON that is the same text,
/// for there they occur in strings only.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    escaped(text, |c| commands(c) && !matches!(c, '\n' | '\t'))
}

/// The same for text that others wrote and that belongs on one line: it cannot begin another.
pub(crate) fn in_line(text: &str) -> Cow<'_, str> {
    escaped(text, commands)
}

fn escaped(text: &str, harmful: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&harmful) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if harmful(c) {
            safe += &format!("\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    safe.into()
}

/// Whether a terminal would do something else with it than show it.
fn commands(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// How wide text may get. The same on every terminal, so that the same run prints the same bytes.
const WIDTH: usize = 110;

/// Text in columns. Columns of numbers are set to the right; the last column is broken into lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a head.
    pub(crate) fn new<const N: usize>(head: [&str; N]) -> Self {
        let mut table = Self::default();
        table.row(head.map(str::to_owned));
        table
    }

    /// A table whose columns are known only now. Every row has as many cells as the head.
    pub(crate) fn of(head: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> Self {
        Self { rows: [head].into_iter().chain(rows).collect() }
    }

    /// One more row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// The table, indented by two blanks.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let cells = |column: usize| self.rows.iter().map(move |row| row[column].as_str());
        let widths: Vec<usize> =
            (0..columns).map(|column| cells(column).map(width).max().unwrap_or(0)).collect();
        let right: Vec<bool> = (0..columns).map(|column| cells(column).skip(1).all(is_number)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let gap = " ".repeat(widths[column] - width(cell));
                let before = width(&line) + 2;
                match (right[column], column + 1 == columns) {
                    (true, _) => line += &format!("  {gap}{cell}"),
                    (false, true) => line += &format!("  {}", wrapped(cell, before)),
                    (false, false) => line += &format!("  {cell}{gap}"),
                }
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// Labels with their values, a line each.
pub(crate) fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let pairs: Vec<(&str, String)> = pairs.into_iter().collect();
    let widest = pairs.iter().map(|(label, _)| width(label)).max().unwrap_or(0);
    let line = |(label, value): &(&str, String)| {
        let gap = " ".repeat(widest - width(label));
        format!("  {label}{gap}  {}\n", wrapped(value, widest + 4))
    };
    pairs.iter().map(line).collect()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// A number, or nothing, which disturbs no column of numbers.
fn is_number(text: &str) -> bool {
    let digits = text.strip_suffix('x').unwrap_or(text);
    digits.chars().all(|c| c.is_ascii_digit() || c == ',' || c == '.')
}

/// Text broken into lines; all but the first begin at column `from`.
fn wrapped(text: &str, from: usize) -> String {
    let room = WIDTH.saturating_sub(from).max(30);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if width(line) + 1 + width(word) <= room => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join(&format!("\n{}", " ".repeat(from)))
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// One thing or many of them.
pub(crate) fn many(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// A length of time as people read it, and as flags and files take it: `2s`, `2.821s`, `37.5ms`,
/// `400us`, `12min`. All that is printed for people is written by this.
pub(crate) fn readable(length: Duration) -> String {
    let seconds = length.as_secs_f64();
    let (number, places, unit) = match seconds {
        0.0 => (0.0, 0, "s"),
        _ if seconds < 0.999_5e-6 => (seconds * 1e9, 0, "ns"),
        _ if seconds < 0.999_5e-3 => (seconds * 1e6, 0, "us"),
        _ if seconds < 0.999_95 => (seconds * 1e3, 1, "ms"),
        _ if seconds < 120.0 => (seconds, 3, "s"),
        _ => (seconds / 60.0, 1, "min"),
    };
    let text = format!("{number:.places$}");
    let text = if places > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

/// By how much the rate of a clock may be off, as people read it: `1,000 ppm (0.1 %)`.
pub(crate) fn drift(ppm: impl Into<u64>) -> String {
    let ppm = ppm.into();
    let percent = format!("{}.{:04}", ppm / 10_000, ppm % 10_000);
    let percent = percent.trim_end_matches('0').trim_end_matches('.');
    format!("{} ppm ({percent} %)", grouped(ppm))
}

/// A word as a shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// How far a long command is: shown on a terminal only.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar for `total` schedules.
    pub(crate) fn new(total: u64, what: &str) -> Self {
        Self::of(total, what, "schedules")
    }

    /// A bar for `total` things of a name.
    pub(crate) fn of(total: u64, what: &str, things: &str) -> Self {
        if !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
        // A large ring is as much a matter of memory as of time.
        let memory = if things == "messages" { "{memory}" } else { "" };
        let template = format!(
            "{{msg}} [{{bar:30}}] {{human_pos}}/{{human_len}} {things}, {{rate}}, {memory}ready in {{eta}}"
        );
        if let Ok(style) = ProgressStyle::with_template(&template) {
            let rate = |state: &ProgressState, text: &mut dyn fmt::Write| {
                let _ = write!(text, "{:.0}/s", state.per_sec());
            };
            let memory = |_: &ProgressState, text: &mut dyn fmt::Write| {
                if let Some(gibibytes) = resident() {
                    let _ = write!(text, "{gibibytes:.2} GiB, ");
                }
            };
            bar.set_style(style.with_key("rate", rate).with_key("memory", memory).progress_chars("=> "));
        }
        bar.set_message(what.to_owned());
        Self(bar)
    }

    /// So many more are done.
    pub(crate) fn add(&self, done: u64) {
        self.0.inc(done);
    }

    /// Takes the bar away.
    pub(crate) fn end(self) {
        self.0.finish_and_clear();
    }
}

/// How much memory this process has, where the system tells.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_numbers_are_set_to_the_right_and_others_to_the_left() {
        let mut table = Table::new(["name", "runs", "what"]);
        table.row(["a".to_owned(), "7".to_owned(), "x".to_owned()]);
        table.row(["long name".to_owned(), "1,024".to_owned(), "y".to_owned()]);
        assert_eq!(
            table.render(),
            "  name        runs  what\n  a              7  x\n  long name  1,024  y\n"
        );
    }

    #[test]
    fn a_long_last_column_goes_on_below_itself() {
        let text = pairs([("model", "word ".repeat(40).trim_end().to_owned())]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 2 && lines[1].starts_with("         word"), "{text}");
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
    }

    #[test]
    fn what_would_command_a_terminal_is_shown_and_the_rest_is_left_alone() {
        for c in (0..0x2_0000).filter_map(char::from_u32).filter(|c| commands(*c) && !"\n\t".contains(*c)) {
            let shown = harmless(&format!("a{c}b")).into_owned();
            assert_eq!(shown, format!("a\\u{:04x}b", u32::from(c)));
            assert!(shown.is_ascii() && shown.len() == 8);
        }
        assert_eq!(harmless("\u{1b}]0;x\u{7}\u{9b}2J"), "\\u001b]0;x\\u0007\\u009b2J");
        assert_eq!(harmless("ä, 漢\tand\na line"), "ä, 漢\tand\na line");
        assert_eq!(in_line("one\nleader n2, term 9"), "one\\u000aleader n2, term 9");
    }

    #[test]
    fn json_stays_the_same_text() {
        let value = serde_json::json!({ "text": "\u{1b}[2J \u{9b}2J \u{7f} \u{202e} \n ä" });
        let shown = harmless(&value.to_string()).into_owned();
        assert!(!shown.chars().any(commands), "{shown:?}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
    }

    #[test]
    fn thousands_are_kept_apart() {
        let numbers = [0, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn lengths_and_drifts_are_written_in_one_way_and_lengths_are_read_back() {
        let lengths = [0, 400, 999_600, 37_500_000, 250_000_000, 999_960_000, 2_000_000_000, 2_821_000_000]
            .map(Duration::from_nanos);
        let written = lengths.map(readable);
        assert_eq!(written, ["0s", "400ns", "1ms", "37.5ms", "250ms", "1s", "2s", "2.821s"]);
        assert_eq!(readable(Duration::from_secs(750)), "12.5min");
        for length in [37_500, 250_000, 2_000_000, 2_821_000, 750_000_000].map(Duration::from_micros) {
            assert_eq!(crate::settings::length(&readable(length)), Ok(length));
        }
        let drifts = [100_000_u64, 1_000, 83_834, 1, 0].map(drift);
        let expected =
            ["100,000 ppm (10 %)", "1,000 ppm (0.1 %)", "83,834 ppm (8.3834 %)", "1 ppm (0.0001 %)"];
        assert_eq!(drifts[..4], expected);
        assert_eq!(drifts[4], "0 ppm (0 %)");
    }

    #[test]
    fn a_word_is_quoted_only_where_a_shell_would_change_it() {
        assert_eq!(quoted("list:01,12,02"), "list:01,12,02");
        assert_eq!(quoted("my run.svg"), "'my run.svg'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
