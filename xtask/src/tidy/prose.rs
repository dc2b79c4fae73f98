//! The sentences of a file: paragraphs of comments, string literals and Markdown, with their lines.
//!
//! Code inside comments and documents, between lines of three backticks, is no prose.

use super::rust::{self, Kind, Token};

/// Lines of text that belong together. A sentence may go on from one line to the next.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Paragraph {
    pub(super) origin: Origin,
    /// Each line with its number.
    pub(super) lines: Vec<(usize, String)>,
}

/// Where a paragraph stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Markdown,
    /// `//`, and `#` in TOML.
    Comment,
    /// `//!`, the header of a module.
    Header,
    /// `///`.
    Doc,
    /// A string literal.
    Literal,
}

/// The paragraphs of a file, by the ending of its name.
pub(super) fn paragraphs(path: &str, text: &str) -> Vec<Paragraph> {
    let mut builder = Builder::default();
    if path.ends_with(".rs") {
        rust::tokens(text).iter().for_each(|token| builder.add_token(token));
    } else if path.ends_with(".md") {
        for (index, line) in text.lines().enumerate() {
            builder.add(Origin::Markdown, index + 1, line);
        }
    } else {
        for (index, line) in text.lines().enumerate() {
            match line.trim_start().strip_prefix('#') {
                Some(comment) => builder.add(Origin::Comment, index + 1, comment),
                None => builder.end(),
            }
        }
    }
    builder.end();
    builder.done
}

/// Puts lines together until something ends the paragraph.
#[derive(Default)]
struct Builder {
    done: Vec<Paragraph>,
    open: Option<Paragraph>,
    /// Between two lines of three backticks.
    fenced: bool,
}

impl Builder {
    fn add_token(&mut self, token: &Token) {
        let origin = match token.kind {
            Kind::Doc => Origin::Doc,
            Kind::Header => Origin::Header,
            Kind::Comment => Origin::Comment,
            Kind::Literal => Origin::Literal,
        };
        // Each literal is a text of its own; comments on successive lines are one.
        let goes_on = self
            .open
            .as_ref()
            .and_then(|open| open.lines.last())
            .is_some_and(|(line, _)| token.line == line + 1 && origin != Origin::Literal);
        if !goes_on {
            self.end();
            self.fenced &= token.kind != Kind::Literal && token.goes_on;
        }
        for (index, line) in token.text.lines().enumerate() {
            self.add(origin, token.line + index, line);
        }
        if origin == Origin::Literal {
            self.end();
        }
    }

    fn add(&mut self, origin: Origin, number: usize, line: &str) {
        let line = line.trim();
        if line.starts_with("```") && origin != Origin::Literal {
            self.end();
            self.fenced = !self.fenced;
        } else if self.fenced && origin != Origin::Literal || line.is_empty() {
            self.end();
        } else {
            let (marked, text) = unmarked(line);
            if marked || self.open.as_ref().is_some_and(|open| open.origin != origin) {
                self.end();
            }
            let open = self.open.get_or_insert_with(|| Paragraph { origin, lines: Vec::new() });
            open.lines.push((number, text.to_string()));
            if line.starts_with('#') {
                self.end(); // A heading is one line.
            }
        }
    }

    fn end(&mut self) {
        self.done.extend(self.open.take());
    }
}

/// A line without the mark of a list, a heading, a quotation or a row; and whether it had one.
fn unmarked(line: &str) -> (bool, &str) {
    let text = line.trim_start_matches(['#', '>', '|', '*', '-', ':', ' ']);
    let digits = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    match digits.strip_prefix(". ") {
        Some(after) if digits.len() < text.len() => (true, after),
        _ => (text.len() < line.len(), text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str, text: &str) -> Vec<(usize, String)> {
        let join = |paragraph: Paragraph| {
            let lines: Vec<&str> = paragraph.lines.iter().map(|(_, line)| line.as_str()).collect();
            (paragraph.lines[0].0, lines.join(" "))
        };
        paragraphs(path, text).into_iter().map(join).collect()
    }

    fn owned(expected: &[(usize, &str)]) -> Vec<(usize, String)> {
        expected.iter().map(|(line, text)| (*line, text.to_string())).collect()
    }

    #[test]
    fn successive_lines_of_comments_are_one_paragraph() {
        let text = "//! One\n//! two.\n//!\n//! Three.\n\n/// Four.\nfn a() {} // Five.\n";
        let expected = [(1, "One two."), (4, "Three."), (6, "Four."), (7, "Five.")];
        assert_eq!(texts("a.rs", text), owned(&expected));
    }

    #[test]
    fn code_in_comments_is_no_prose_and_its_end_is_found() {
        let text = "/// One.\n/// ```\n/// let who = 1;\n/// ```\n/// Two.\n";
        assert_eq!(texts("a.rs", text), owned(&[(1, "One."), (5, "Two.")]));
        let text = "# One\n```\nWho\n```\nTwo\n";
        assert_eq!(texts("a.md", text), owned(&[(1, "One"), (5, "Two")]));
    }

    #[test]
    fn lists_headings_and_rows_are_paragraphs_of_their_own() {
        let text = "# Title\nText\n* one\n  more\n2. two\n| a | b |\n";
        let expected = [(1, "Title"), (2, "Text"), (3, "one more"), (5, "two"), (6, "a | b |")];
        assert_eq!(texts("a.md", text), owned(&expected));
    }

    #[test]
    fn each_literal_is_a_text_of_its_own() {
        let text = "f(\"One\n  two.\", \"Three.\");\n";
        assert_eq!(texts("a.rs", text), owned(&[(1, "One two."), (2, "Three.")]));
    }

    #[test]
    fn comments_of_toml_are_prose_and_keys_are_not() {
        assert_eq!(texts("a.toml", "# One\n# two.\nkey = 1\n"), owned(&[(1, "One two.")]));
    }
}
