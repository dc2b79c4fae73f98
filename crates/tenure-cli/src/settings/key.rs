//! The form of a row of the table of keys, and the answers that follow from one row.

use std::env;

use toml::Value;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// Text that is never shown, and that no other process may find in its environment.
    Secret,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// An address with a port.
    Address,
    /// A length of time.
    Length,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Flag,
    /// A path. In the environment it is relative to the current folder.
    Path,
    /// The path of a file that only its owner may read.
    SecretPath,
    /// A list of paths of such files.
    SecretPaths,
    /// A list of texts. In the environment, with commas between.
    List,
    /// A list of `{ name, address }`.
    Peers,
    /// A table, of this form.
    Table(&'static str),
}

/// The value of a key that nobody wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// This value, as TOML.
    Value(&'static str),
    /// No value; the words say what happens then.
    Absent(&'static str),
    /// Somebody has to write it; the words say who, and are empty for everybody.
    Required(&'static str),
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// The tables and the name, with dots between.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) fallback: Fallback,
    /// The variable of the environment, without `TENURE_`.
    pub(crate) variable: Option<&'static str>,
    /// The key means something only while another key has this value.
    pub(crate) with: Option<(&'static str, &'static str)>,
    /// Whether a daemon reads it again on HUP.
    pub(crate) reread: bool,
    /// The effect, in Markdown.
    pub(crate) what: &'static str,
    /// How to choose a value, in Markdown.
    pub(crate) choose: &'static str,
}

/// A table of the file, for the headings of the document.
pub(crate) struct Section {
    /// Its name in the file; empty for the keys before the first table.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
}

impl Key {
    /// The table of the file that the key stands in; empty for none.
    pub(crate) fn section(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(table, _)| table)
    }

    /// The key itself, without the tables before it.
    pub(crate) fn last(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, last)| last)
    }

    /// The default as a value, if there is one.
    pub(crate) fn default_value(&self) -> Option<Value> {
        let Fallback::Value(text) = self.fallback else { return None };
        let mut table: toml::Table = toml::from_str(&format!("value = {text}")).ok()?;
        table.remove("value")
    }

    /// The value that a variable's text means, or what to write instead.
    pub(crate) fn variable_value(&self, text: &str) -> Result<Value, &'static str> {
        match self.kind {
            Kind::Path | Kind::SecretPath => {
                let path = env::current_dir().unwrap_or_default().join(text);
                Ok(Value::String(path.to_string_lossy().into_owned()))
            }
            Kind::Number => text.parse().map(Value::Integer).map_err(|_| "write a whole number"),
            Kind::Flag => text.parse().map(Value::Boolean).map_err(|_| "write true or false"),
            Kind::List => {
                Ok(Value::Array(text.split(',').map(|part| Value::String(part.trim().to_owned())).collect()))
            }
            Kind::SecretPaths | Kind::Peers | Kind::Table(_) => Err("write it in the file"),
            Kind::Text | Kind::Secret | Kind::Choice(_) | Kind::Address | Kind::Length => {
                Ok(Value::String(text.to_owned()))
            }
        }
    }
}
