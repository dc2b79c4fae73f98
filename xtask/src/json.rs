//! A reader of JSON, for what cargo says of packages and of test programs.

use std::iter::Peekable;
use std::str::Chars;

/// One value. Numbers stay as they are written: nothing here computes with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a whole text; `None` if it is not one JSON value.
    pub(crate) fn parse(text: &str) -> Option<Json> {
        let mut letters = text.chars().peekable();
        let value = value(&mut letters)?;
        skip_space(&mut letters);
        letters.next().is_none().then_some(value)
    }

    /// The value of a key; `None` for a missing key and for values that are no objects.
    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The value behind several keys.
    pub(crate) fn at(&self, keys: &[&str]) -> Option<&Json> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a key.
    pub(crate) fn text_at(&self, key: &str) -> Option<&str> {
        self.get(key)?.text()
    }

    /// The members of a list; nothing for every other value.
    pub(crate) fn items(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            _ => &[],
        }
    }
}

type Letters<'a> = Peekable<Chars<'a>>;

fn value(letters: &mut Letters<'_>) -> Option<Json> {
    skip_space(letters);
    match letters.peek()? {
        '{' => object(letters),
        '[' => list(letters),
        '"' => string(letters).map(Json::Text),
        _ => word(letters),
    }
}

fn skip_space(letters: &mut Letters<'_>) {
    while letters.next_if(|letter| letter.is_ascii_whitespace()).is_some() {}
}

fn object(letters: &mut Letters<'_>) -> Option<Json> {
    let mut fields = Vec::new();
    letters.next_if_eq(&'{')?;
    loop {
        skip_space(letters);
        if fields.is_empty() && letters.next_if_eq(&'}').is_some() {
            return Some(Json::Object(fields));
        }
        let key = string(letters)?;
        skip_space(letters);
        letters.next_if_eq(&':')?;
        fields.push((key, value(letters)?));
        skip_space(letters);
        match letters.next()? {
            ',' => {}
            '}' => return Some(Json::Object(fields)),
            _ => return None,
        }
    }
}

fn list(letters: &mut Letters<'_>) -> Option<Json> {
    let mut items = Vec::new();
    letters.next_if_eq(&'[')?;
    loop {
        skip_space(letters);
        if items.is_empty() && letters.next_if_eq(&']').is_some() {
            return Some(Json::List(items));
        }
        items.push(value(letters)?);
        skip_space(letters);
        match letters.next()? {
            ',' => {}
            ']' => return Some(Json::List(items)),
            _ => return None,
        }
    }
}

fn string(letters: &mut Letters<'_>) -> Option<String> {
    letters.next_if_eq(&'"')?;
    let mut text = String::new();
    loop {
        match letters.next()? {
            '"' => return Some(text),
            '\\' => text.push(escaped(letters)?),
            letter => text.push(letter),
        }
    }
}

fn escaped(letters: &mut Letters<'_>) -> Option<char> {
    Some(match letters.next()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => unicode(letters)?,
        letter @ ('"' | '\\' | '/') => letter,
        _ => return None,
    })
}

/// Four digits; or eight in two escapes, for letters beyond the first 65,536.
fn unicode(letters: &mut Letters<'_>) -> Option<char> {
    let first = four_digits(letters)?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    letters.next_if_eq(&'\\')?;
    letters.next_if_eq(&'u')?;
    let second = four_digits(letters)?.checked_sub(0xdc00)?;
    char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + second)
}

fn four_digits(letters: &mut Letters<'_>) -> Option<u32> {
    (0..4).try_fold(0, |number, _| Some(number * 16 + letters.next()?.to_digit(16)?))
}

fn word(letters: &mut Letters<'_>) -> Option<Json> {
    let mut word = String::new();
    let belongs = |letter: &char| letter.is_ascii_alphanumeric() || "+-.".contains(*letter);
    while let Some(letter) = letters.next_if(belongs) {
        word.push(letter);
    }
    match word.as_str() {
        "null" => Some(Json::Null),
        "true" => Some(Json::Bool(true)),
        "false" => Some(Json::Bool(false)),
        _ => word.parse::<f64>().is_ok().then_some(Json::Number(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_is_read() {
        let text = r#" {"a": [1, -2.5e3, true, false, null], "b": {"c": "x"}, "d": [], "e": {}} "#;
        let json = Json::parse(text).unwrap();
        let number = |text: &str| Json::Number(text.to_string());
        let list = [number("1"), number("-2.5e3"), Json::Bool(true), Json::Bool(false), Json::Null];
        assert_eq!(json.get("a").unwrap().items(), list);
        assert_eq!(json.at(&["b", "c"]).and_then(Json::text), Some("x"));
        assert_eq!(json.get("b").unwrap().text_at("c"), Some("x"));
        assert_eq!(json.get("d"), Some(&Json::List(Vec::new())));
        assert_eq!(json.get("e"), Some(&Json::Object(Vec::new())));
        assert_eq!(json.get("f"), None);
    }

    #[test]
    fn escapes_in_strings_are_read() {
        let text = r#""a\"b\\c\/d\n\tA\u00e9\ud83d\ude00""#;
        assert_eq!(Json::parse(text), Some(Json::Text("a\"b\\c/d\n\tAé😀".to_string())));
    }

    #[test]
    fn a_text_that_is_not_json_gives_nothing() {
        for text in ["", "{", "[1,", "[1 2]", "{\"a\" 1}", "{a: 1}", "\"x", "\"\\q\"", "tru", "1 2", "[,]"] {
            assert_eq!(Json::parse(text), None, "{text}");
        }
    }
}
