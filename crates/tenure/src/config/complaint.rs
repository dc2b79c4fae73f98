//! The flaw in a TOML file, in words that quote none of its secrets.
//!
//! The parser's own message shows the whole line, which may be that of a key, and some messages
//! repeat the value. Here the place is told by its line and column, strings of the file are left
//! out, and so is everything that looks like a key, wherever it stands: a key that was pasted in
//! the wrong place is secret too. The line itself is shown below, with a caret, unless any word of
//! it could be a part of a secret.

use toml::de::Error;

/// How every key begins, that of a cluster and those made from it.
const KEY: &str = "tenure-";

/// The text shown in place of a secret.
const SECRET: &str = "(secret)";

/// The shortest run of letters and digits that could be a part of a key: keys are in hexadecimal.
const SHORTEST: usize = 16;

/// The shortest run of hexadecimal digits in a line that is not shown, and the shortest run of any
/// letters and digits: a part of a key, of a token or of a certificate.
const DIGITS: usize = 8;
const LETTERS: usize = 24;

/// The longest line that is shown.
const LONGEST: usize = 120;

/// Says where and what, in one line; where the line may be shown, it follows with a caret. `text`
/// is what was read.
pub fn explain_toml(error: &Error, text: &str) -> String {
    let said = without_secrets(error.message());
    error.span().map_or_else(|| said.clone(), |span| at_place(&said, text, span.start))
}

/// The same for a flaw that somebody else has found, at a byte of the text.
pub fn explain_toml_at(said: &str, text: &str, at: usize) -> String {
    at_place(&without_secrets(said), text, at)
}

fn at_place(said: &str, text: &str, at: usize) -> String {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = before.split(|byte| *byte == b'\n').count();
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    let shown = text.lines().nth(line - 1).filter(|shown| may_be_shown(shown));
    let excerpt = shown.map_or_else(String::new, |shown| excerpt(shown, line, column));
    format!("line {line}, column {column}: {said}{excerpt}")
}

/// The line, and a caret under the column.
fn excerpt(shown: &str, line: usize, column: usize) -> String {
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    // Tabs stay, so that the caret stands where the flaw is; other characters count once each.
    let before = shown.get(..column - 1).unwrap_or(shown);
    let gap: String = before.chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
    format!("\n {margin} |\n {number} | {shown}\n {margin} | {gap}^")
}

/// Whether a line has nothing in it that could be a part of a secret.
fn may_be_shown(line: &str) -> bool {
    let longest = |is: fn(&u8) -> bool| line.as_bytes().split(|byte| !is(byte)).map(<[u8]>::len).max();
    line.len() <= LONGEST
        && !line.contains(KEY)
        && longest(u8::is_ascii_hexdigit) < Some(DIGITS)
        && longest(u8::is_ascii_alphanumeric) < Some(LETTERS)
}

fn without_secrets(message: &str) -> String {
    without_strings(message).split_whitespace().map(without_secret).collect::<Vec<_>>().join(" ")
}

/// Without the string that was read where another kind of value was expected.
fn without_strings(message: &str) -> String {
    match (message.find("string \""), message.rfind("\", expected")) {
        (Some(from), Some(to)) if from < to => format!("{}string{}", &message[..from], &message[to + 1..]),
        _ => message.to_owned(),
    }
}

/// A word, unless it has a key in it, or a part of one.
fn without_secret(word: &str) -> &str {
    let hexadecimal =
        |part: &str| part.len() >= SHORTEST && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts = || word.split(|c: char| !c.is_ascii_alphanumeric());
    if word.contains(KEY) && word.len() > SHORTEST || parts().any(hexadecimal) { SECRET } else { word }
}

#[cfg(test)]
mod tests {
    use crate::{ClusterKey, Config};

    fn complaint(text: &str) -> Option<String> {
        Config::from_toml(text, std::path::Path::new("/nowhere/tenure.toml"))
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn a_mistake_is_told_by_its_line_and_name() {
        let said = complaint("name = \"a\"\nkey = \"x\"\n[lease]\nlenght = \"1s\"\n").unwrap();
        assert!(
            said.contains("line 4, column 1") && said.contains("lenght") && said.contains("length"),
            "{said}"
        );
        assert!(said.ends_with("\n   |\n 4 | lenght = \"1s\"\n   | ^"), "{said}");
    }

    #[test]
    fn the_caret_stands_under_the_flaw_behind_tabs_and_letters_of_two_bytes() {
        let said = complaint("name = \"a\"\n\t# \u{e4}\nlease = { length = \"1s\", x = }\n").unwrap();
        assert!(said.contains("\n 3 | lease = { length = \"1s\", x = }\n   | "), "{said}");
        let column = said.lines().last().unwrap().find('^').unwrap() - "   | ".len() + 1;
        assert!(said.contains(&format!("line 3, column {column}:")), "{said}");
    }

    #[test]
    fn a_key_in_any_wrong_place_is_not_told() {
        let key = ClusterKey::from_bytes([7; 32]).reveal();
        for text in [
            format!("key = {key}\n"),
            format!("key = \"{key}\n"),
            format!("{key} = 1\n"),
            format!("\"{key}\" = 1\n"),
            format!("[\"{key}\"]\n"),
            format!("name = \"a\"\nold_key_files = \"{key}\"\n"),
            format!("name = \"a\"\nrole = \"{key}\"\n"),
            format!("name = \"a\"\nlisten = [\"{key}\"]\n"),
            format!("name = \"a\"\nlease = \"{key}\"\n"),
            format!("name = \"a\"\n[lease]\nlength = \"{key}\"\n"),
            format!("name = \"a\"\n[lease]\n\"{key}\" = 1\n"),
            format!("key = \"{key}\" \"{key}\"\n"),
        ] {
            let said = complaint(&text).expect("it is wrong");
            assert!(!said.contains(&key[20..36]), "{text}: {said}");
        }
    }

    #[test]
    fn no_single_typo_makes_a_key_appear() {
        let key =
            ClusterKey::from_bytes(std::array::from_fn(|at| u8::try_from(at * 37 % 251).unwrap())).reveal();
        let good =
            format!("name = \"a\"\nkey = \"{key}\"\nlisten = [\"127.0.0.1:1\"]\n[lease]\nlength = \"1s\"\n");
        let windows: Vec<&str> = (13..key.len() - 12).map(|at| &key[at..at + 12]).collect();
        let mut wrong = 0;
        for at in 0..good.len() {
            for typo in ["", "\"", "=", "\n", "[", "]", "#", "'", "\\", "\"\"\"", ".", ","] {
                let text = format!("{}{typo}{}", &good[..at], &good[at + 1..]);
                let Some(said) = complaint(&text) else { continue };
                wrong += 1;
                let leak = windows.iter().find(|window| said.contains(**window));
                assert_eq!(leak, None, "{typo:?} at {at}: {said}");
            }
        }
        assert!(wrong > good.len(), "most typos are mistakes: {wrong}");
    }
}
