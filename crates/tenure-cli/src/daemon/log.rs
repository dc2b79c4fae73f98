//! The log: one line an event, on stderr.
//!
//! ```text
//! time=2026-11-05T12:00:00.123Z level=info event=elected node=a group=jobs term=7 epoch=0 msg=leads
//! ```
//!
//! Each event of the library and the daemon has a name, `event=…`, that does not change:
//! `docs/reference/events.md` lists them all. Lines of other crates have `target=` in its place.
//! Under systemd each line begins with its priority, as journald likes it.

use std::fmt;
use std::str::FromStr;

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Registry, reload};

use crate::clock::date;
use crate::failure::{Failure, messages};
use crate::output::harmless;
use crate::settings::{LogFormat, Settings};

/// The log level unless the settings say otherwise.
pub(crate) const USUAL: &str = "info";

/// Names of events begin with this; the log leaves it out.
const OURS: &str = "tenure.";

/// The log of this process, whose level can be changed.
#[derive(Debug)]
pub(super) struct Log(reload::Handle<Targets, Registry>);

impl Log {
    /// Begins to log.
    pub(super) fn start(settings: &Settings) -> Result<Self, Failure> {
        let (filter, handle) = reload::Layer::new(filter(settings)?);
        let lines = Lines { format: settings.daemon.log_format, journal: to_journal() };
        let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).event_format(lines);
        let log = tracing_subscriber::registry().with(filter).with(layer);
        tracing::subscriber::set_global_default(log)
            .map_err(|error| messages::system_refuses("a log", error))?;
        Ok(Self(handle))
    }

    /// Takes the level from the settings.
    pub(super) fn reload(&self, settings: &Settings) -> Result<(), Failure> {
        self.0.reload(filter(settings)?).map_err(|error| messages::system_refuses("another log", error))
    }
}

/// The log filter of the settings. A word alone is a level: the filter would take any other for the
/// name of a crate, and log nothing else.
pub(crate) fn filter(settings: &Settings) -> Result<Targets, Failure> {
    let text = settings.daemon.log.as_deref().unwrap_or(USUAL);
    let wrong = |why: &dyn fmt::Display| messages::log_level_unknown(text, why);
    let alone = |part: &&str| !part.contains('=') && LevelFilter::from_str(part).is_err();
    if text.split(',').map(str::trim).any(|part| alone(&part)) {
        return Err(wrong(&""));
    }
    Targets::from_str(text).map_err(|error| wrong(&format_args!(" ({error})")))
}

/// Whether stderr goes to the journal: systemd says which file that would be.
fn to_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let here = rustix::fs::fstat(std::io::stderr()).map(|stat| format!("{}:{}", stat.st_dev, stat.st_ino));
    here.is_ok_and(|here| here == stream)
}

/// How an event becomes a line.
#[derive(Debug)]
struct Lines {
    format: LogFormat,
    journal: bool,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields(Vec::new());
        let about = event.metadata();
        fields.put("time", time().into());
        fields.put("level", about.level().to_string().to_lowercase().into());
        match about.name().strip_prefix(OURS) {
            Some(name) => fields.put("event", name.into()),
            None => fields.put("target", about.target().into()),
        }
        event.record(&mut fields);
        // The message comes last.
        if let Some(at) = fields.0.iter().position(|(key, _)| *key == "message") {
            let (_, message) = fields.0.remove(at);
            fields.put("msg", message);
        }
        if self.journal {
            write!(writer, "<{}>", priority(*about.level()))?;
        }
        let line = match self.format {
            LogFormat::Json => json(&fields.0),
            LogFormat::Logfmt => logfmt(&fields.0),
        };
        writeln!(writer, "{}", harmless(&line))
    }
}

fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

/// The fields of an event, in its order.
struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn put(&mut self, key: &'static str, value: Value) {
        self.0.push((key, value));
    }
}

impl Visit for Fields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), format!("{value:?}").into());
    }
}

/// `key=value`, quoted where a value has blanks or quotes in it.
fn logfmt(fields: &[(&str, Value)]) -> String {
    let pair = |(key, value): &(&str, Value)| match value {
        Value::String(text) if is_plain(text) => format!("{key}={text}"),
        value => format!("{key}={value}"), // As in JSON.
    };
    fields.iter().map(pair).collect::<Vec<_>>().join(" ")
}

/// One object, its keys in the order of the line.
fn json(fields: &[(&str, Value)]) -> String {
    let pairs: Vec<String> =
        fields.iter().map(|(key, value)| format!("{}:{value}", Value::from(*key))).collect();
    format!("{{{}}}", pairs.join(","))
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '=' | '\\'))
}

/// The time now, as RFC 3339 has it.
fn time() -> String {
    let now = clock_gettime(ClockId::Realtime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let millis = now.tv_nsec / 1_000_000;
    format!("{}.{millis:03}Z", date(seconds).trim_end_matches('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_where_a_reader_would_take_them_apart() {
        let mut fields = Fields(Vec::new());
        fields.put("a", "plain/1:2".into());
        fields.put("b", "two words".into());
        fields.put("c", "say \"x\"\n".into());
        fields.put("d", 7.into());
        fields.put("e", "".into());
        assert_eq!(logfmt(&fields.0), r#"a=plain/1:2 b="two words" c="say \"x\"\n" d=7 e="""#);
        assert_eq!(json(&fields.0[2..4]), r#"{"c":"say \"x\"\n","d":7}"#);
    }
}
