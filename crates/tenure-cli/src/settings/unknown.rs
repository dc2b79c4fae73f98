//! Keys of a file that no row of the table has.

use toml::de::{DeTable, DeValue};

use super::table::KEYS;
use crate::nearest::nearest;

/// The first key of a text that does not exist: its line, and the key that was probably meant.
pub(super) fn first(text: &str) -> Option<String> {
    let table = DeTable::parse(text).ok()?;
    let (name, at) = search("", table.get_ref())?;
    let meant = meant(&name).map_or_else(String::new, |key| format!("; did you mean '{key}'?"));
    // A secret may have been pasted in the place of a key: the library's words quote none.
    Some(tenure::explain_toml_at(&format!("there is no key '{name}'{meant}"), text, at))
}

/// The first unknown key in a table whose name is `prefix`, and the byte at which it stands.
fn search(prefix: &str, table: &DeTable<'_>) -> Option<(String, usize)> {
    let mut unknown: Vec<(String, usize)> = table
        .iter()
        .filter_map(|(key, value)| {
            let name = format!("{prefix}{}", key.get_ref());
            let inner = format!("{name}.");
            let has_rows = KEYS.iter().any(|key| key.name.starts_with(&inner));
            match value.get_ref() {
                DeValue::Table(table) if has_rows => search(&inner, table),
                // A value where a table belongs is a mistake that has another message.
                _ if has_rows || KEYS.iter().any(|key| key.name == name) => None,
                _ => Some((name, key.span().start)),
            }
        })
        .collect();
    unknown.sort_by_key(|(_, at)| *at);
    unknown.into_iter().next()
}

/// The key that was probably meant: one of the same table, or one of this name in another table.
fn meant(name: &str) -> Option<&'static str> {
    let (table, last) = name.rsplit_once('.').unwrap_or(("", name));
    let beside = KEYS.iter().filter(|key| key.name.rsplit_once('.').map_or("", |(table, _)| table) == table);
    let tables = KEYS.iter().map(|key| key.section()).filter(|_| table.is_empty());
    let near = nearest(last, beside.map(|key| key.last()).chain(tables).filter(|name| !name.is_empty()));
    let elsewhere = KEYS.iter().find(|key| key.last() == last).map(|key| key.name);
    let here = |near: &str| KEYS.iter().find(|key| key.name == join(table, near)).map(|key| key.name);
    elsewhere.or_else(|| near.and_then(|near| here(near).or_else(|| section(near))))
}

fn join(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

fn section(name: &str) -> Option<&'static str> {
    KEYS.iter().map(|key| key.section()).find(|section| *section == name)
}
