//! Comments and string literals of a Rust file: as much of the language as it takes to find them.

use std::iter::Peekable;
use std::str::CharIndices;

/// The kind of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `///`
    Doc,
    /// `//!`
    Header,
    /// `//` and `/* … */`
    Comment,
    Literal,
}

/// A comment without its mark, or a string literal without its quotes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// The line on which it begins, from 1.
    pub(super) line: usize,
    pub(super) text: String,
    /// Whether the token before it is of the same kind and ends on the line above.
    pub(super) goes_on: bool,
}

/// All comments and literals, in order.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let letters = text.char_indices().peekable();
    let mut reader = Reader { text, letters, tokens: Vec::new(), counted: (0, 1) };
    while let Some((at, letter)) = reader.letters.next() {
        reader.read(at, letter);
    }
    reader.tokens
}

struct Reader<'a> {
    text: &'a str,
    letters: Peekable<CharIndices<'a>>,
    tokens: Vec<Token>,
    /// A position up to which lines were counted, and the number of its line.
    counted: (usize, usize),
}

impl Reader<'_> {
    fn read(&mut self, at: usize, letter: char) {
        let rest = &self.text[at..];
        match letter {
            '/' if rest.starts_with("//") => self.line_comment(at),
            '/' if rest.starts_with("/*") => self.block_comment(at),
            '"' => self.literal(at + 1),
            'r' if !self.is_inside_a_word(at) => self.raw_literal(at),
            '\'' => self.letter_or_lifetime(),
            _ => {}
        }
    }

    fn is_inside_a_word(&self, at: usize) -> bool {
        // `br"…"` is a literal of bytes.
        let before = self.text[..at].strip_suffix('b').unwrap_or(&self.text[..at]);
        before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
    }

    fn line_comment(&mut self, at: usize) {
        let rest = &self.text[at..];
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        let (kind, mark) = match line.as_bytes() {
            [_, _, b'!', ..] => (Kind::Header, 3),
            [_, _, b'/', b'/', ..] => (Kind::Comment, 4),
            [_, _, b'/', ..] => (Kind::Doc, 3),
            _ => (Kind::Comment, 2),
        };
        self.push(kind, at, &line[mark..]);
        self.skip_to(at + line.len());
    }

    fn block_comment(&mut self, at: usize) {
        let mut depth = 0;
        let mut end = at;
        while let Some(rest) = self.text.get(end..).filter(|rest| !rest.is_empty()) {
            if rest.starts_with("/*") {
                depth += 1;
                end += 2;
            } else if rest.starts_with("*/") {
                depth -= 1;
                end += 2;
                if depth == 0 {
                    break;
                }
            } else {
                end += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
        self.push(Kind::Comment, at, self.text[at..end].trim_matches(['/', '*']));
        self.skip_to(end);
    }

    /// `from` is behind the opening quote.
    fn literal(&mut self, from: usize) {
        let mut escaped = false;
        let is_end = |(_, letter): &(usize, char)| {
            let end = *letter == '"' && !escaped;
            escaped = *letter == '\\' && !escaped;
            end
        };
        let length = self.text[from..].char_indices().find(is_end).map(|(length, _)| length);
        let end = length.map_or(self.text.len(), |length| from + length);
        self.push(Kind::Literal, from, &self.text[from..end]);
        self.skip_to(end + 1);
    }

    /// `r"…"` and `r#"…"#`; or a word that begins with r.
    fn raw_literal(&mut self, at: usize) {
        let rest = &self.text[at + 1..];
        let body = rest.trim_start_matches('#');
        let hashes = rest.len() - body.len();
        if !body.starts_with('"') {
            return;
        }
        let from = at + 1 + hashes + 1;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = self.text[from..].find(&close).map_or(self.text.len(), |length| from + length);
        self.push(Kind::Literal, from, &self.text[from..end]);
        self.skip_to(end + close.len());
    }

    /// `'a'`, `'\''`, or the lifetime `'a`, which has no end.
    fn letter_or_lifetime(&mut self) {
        if self.letters.next_if(|(_, letter)| *letter == '\\').is_some() {
            self.letters.next();
            while self.letters.next_if(|(_, letter)| *letter != '\'').is_some() {}
            self.letters.next();
        } else if let Some((at, letter)) = self.letters.peek().copied()
            && self.text[at + letter.len_utf8()..].starts_with('\'')
        {
            self.letters.next();
            self.letters.next();
        }
    }

    fn push(&mut self, kind: Kind, at: usize, text: &str) {
        let (before, number) = self.counted;
        let line = number + self.text[before..at].matches('\n').count();
        self.counted = (at, line);
        let goes_on = self
            .tokens
            .last()
            .is_some_and(|last| last.kind == kind && last.line + last.text.matches('\n').count() + 1 == line);
        self.tokens.push(Token { kind, line, text: text.to_string(), goes_on });
    }

    fn skip_to(&mut self, end: usize) {
        while self.letters.next_if(|(at, _)| *at < end).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(Kind, usize, String)> {
        tokens(text).into_iter().map(|token| (token.kind, token.line, token.text)).collect()
    }

    fn one(kind: Kind, line: usize, text: &str) -> Vec<(Kind, usize, String)> {
        vec![(kind, line, text.to_string())]
    }

    #[test]
    fn kinds_of_comments_are_told_apart() {
        assert_eq!(found("//! a"), one(Kind::Header, 1, " a"));
        assert_eq!(found("x\n/// a\ny"), one(Kind::Doc, 2, " a"));
        assert_eq!(found("x // a"), one(Kind::Comment, 1, " a"));
        assert_eq!(found("//// a"), one(Kind::Comment, 1, " a"));
        assert_eq!(found("x /* a /* b */ c */ y"), one(Kind::Comment, 1, " a /* b */ c "));
    }

    #[test]
    fn literals_end_at_their_own_quote() {
        assert_eq!(found(r#"f("a \" // b")"#), one(Kind::Literal, 1, r#"a \" // b"#));
        assert_eq!(found(r##"f(r#"a " b"#)"##), one(Kind::Literal, 1, r#"a " b"#));
        assert_eq!(found(r#"f(br"a\")"#), one(Kind::Literal, 1, r"a\"));
        assert_eq!(found("f(\"a\nb\") // c").len(), 2);
        assert_eq!(found("f(\"a\nb\") // c")[1].1, 2);
    }

    #[test]
    fn letters_and_lifetimes_hide_nothing() {
        for code in ["'\"'", "'\\''", "'\\u{22}'", "&'a str", "for<'a> F<'a>", "b'\"'", "str\"", "for r in x"]
        {
            let comments = found(&format!("{code}{} // a", if code == "str\"" { "\"" } else { "" }));
            assert_eq!(comments.last(), one(Kind::Comment, 1, " a").first(), "{code}");
        }
    }

    #[test]
    fn an_address_in_a_literal_is_no_comment() {
        assert_eq!(found("\"http://a\""), one(Kind::Literal, 1, "http://a"));
    }
}
