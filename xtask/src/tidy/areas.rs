//! Which readers a text is for: the ratchet counts what users read apart from the rest.

use std::collections::BTreeSet;

use super::files::Source;
use super::prose::Origin;

/// Areas that users read. In these no count may rise, even if others fall.
pub(super) const FOR_USERS: &[&str] = &["README", "docs", "help", "rustdoc"];

/// Crates whose public items are documentation for users.
const LIBRARIES: &[&str] = &["tenure", "tenure-proto", "tenure-lab"];

/// The crate whose arguments are shown by `--help`.
const COMMAND: &str = "tenure-cli";

/// Derivations that turn documentation into a text of `--help`.
const DERIVED: &[&str] = &["Args", "Parser", "Subcommand", "ValueEnum"];

/// For whom an item's documentation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Private,
    Public,
    Help,
}

/// Says to which area each text of one file belongs.
pub(super) struct Areas {
    /// The area of all that is nothing special.
    rest: String,
    /// Whether the file is the face of a public module.
    public_module: bool,
    /// Whether literals are texts of `--help`.
    helps: bool,
    /// Lines of documentation for users, and the area.
    docs: Vec<(usize, &'static str)>,
}

impl Areas {
    /// `public` are the files of public modules.
    pub(super) fn of(source: &Source, public: &BTreeSet<String>) -> Areas {
        let rest = area_of_path(&source.path);
        let levels = if source.path.ends_with(".rs") { levels(&source.text) } else { Vec::new() };
        let helps = rest == COMMAND && levels.iter().any(|(_, level)| *level == Level::Help);
        let library = LIBRARIES.contains(&rest.as_str());
        let area = |level: Level| match level {
            Level::Public if library => Some("rustdoc"),
            Level::Help if helps => Some("help"),
            _ => None,
        };
        let docs = levels.iter().filter_map(|(line, level)| Some((*line, area(*level)?))).collect();
        Areas { rest, public_module: public.contains(&source.path), helps, docs }
    }

    /// The area of a text at a line.
    pub(super) fn area(&self, origin: Origin, line: usize) -> &str {
        let documented = || self.docs.iter().find(|(number, _)| *number == line).map(|(_, area)| *area);
        match origin {
            Origin::Header if self.public_module => "rustdoc",
            Origin::Doc => documented().unwrap_or(&self.rest),
            Origin::Literal if self.helps => "help",
            _ => &self.rest,
        }
    }
}

fn area_of_path(path: &str) -> String {
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["README.md"] => "README".to_string(),
        ["crates", name, ..] => name.to_string(),
        ["xtask", ..] => "xtask".to_string(),
        ["docs", ..] => "docs".to_string(),
        [.., file] if file.ends_with(".md") => "documents".to_string(),
        _ => "other".to_string(),
    }
}

/// The files of modules that users can name: the root of each library, and what it declares by
/// `pub mod`.
pub(super) fn public_modules(sources: &[Source]) -> BTreeSet<String> {
    let roots = LIBRARIES.iter().map(|library| format!("crates/{library}/src/lib.rs"));
    let mut open: Vec<String> = roots.collect();
    let mut public = BTreeSet::new();
    while let Some(path) = open.pop() {
        let Some(source) = sources.iter().find(|source| source.path == path) else { continue };
        let stem = path.trim_end_matches(".rs").trim_end_matches("/lib").trim_end_matches("/mod");
        let names = source.text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
        for name in names {
            open.extend([format!("{stem}/{name}.rs"), format!("{stem}/{name}/mod.rs")]);
        }
        public.insert(path);
    }
    public
}

/// Every line of documentation with its level. Relies on the layout that rustfmt keeps.
fn levels(text: &str) -> Vec<(usize, Level)> {
    let mut reader = Levels::default();
    for (index, line) in text.lines().enumerate() {
        reader.read(index + 1, line);
    }
    reader.found
}

#[derive(Default)]
struct Levels {
    found: Vec<(usize, Level)>,
    /// Lines of documentation whose item is still to come.
    pending: Vec<usize>,
    /// Whether an attribute goes on.
    attribute: bool,
    /// Whether the item to come derives arguments.
    derives: bool,
    /// Types that are open: their indentation, and the level of what is inside.
    types: Vec<(usize, Level)>,
}

impl Levels {
    fn read(&mut self, number: usize, line: &str) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if text.starts_with("///") {
            self.pending.push(number);
        } else if self.attribute || text.starts_with("#[") {
            self.derives |= DERIVED.iter().any(|name| text.contains(name)) && !text.starts_with("#[arg");
            self.attribute = !text.ends_with(']');
        } else if !text.is_empty() && !text.starts_with("//") {
            self.item(indent, text);
        }
    }

    fn item(&mut self, indent: usize, text: &str) {
        if text.starts_with('}') {
            self.types.retain(|(outer, _)| *outer < indent);
            return;
        }
        let inside = self.types.last().filter(|(outer, _)| *outer < indent).map(|(_, level)| *level);
        let level = match inside {
            _ if self.derives => Level::Help,
            Some(level) if level != Level::Private => level,
            _ if text.starts_with("pub ") => Level::Public,
            _ => Level::Private,
        };
        self.found.extend(self.pending.drain(..).map(|line| (line, level)));
        let word = text.split(' ').find(|word| !word.starts_with("pub")).unwrap_or_default();
        if text.ends_with('{') && matches!(word, "struct" | "enum" | "trait") {
            // Fields of a struct say themselves whether they are public.
            let inner = if word == "struct" && level == Level::Public { Level::Private } else { level };
            self.types.push((indent, inner));
        }
        self.derives = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_string(), text: text.to_string() }
    }

    #[test]
    fn documents_and_crates_have_areas_of_their_own() {
        for (path, area) in [
            ("README.md", "README"),
            ("docs/run.md", "docs"),
            ("CHANGELOG.md", "documents"),
            ("crates/tenure/src/a.rs", "tenure"),
            ("xtask/src/main.rs", "xtask"),
            ("fuzz/src/a.rs", "other"),
        ] {
            assert_eq!(area_of_path(path), area, "{path}");
        }
    }

    #[test]
    fn documentation_of_public_items_variants_and_fields_is_for_users() {
        let text = "/// A.\npub enum E {\n    /// B.\n    #[x]\n    V,\n}\n/// C.\nenum F {\n    /// D.\n    W,\n}\n\
                    pub struct S {\n    /// E.\n    pub a: u8,\n    /// F.\n    b: u8,\n}\n/// G.\npub(crate) fn g() {}\n\
                    pub trait T {\n    /// H.\n    fn h();\n}\n";
        let areas = Areas::of(&source("crates/tenure/src/a.rs", text), &BTreeSet::new());
        let public: Vec<usize> = areas.docs.iter().map(|(line, _)| *line).collect();
        assert_eq!(public, [1, 3, 13, 21]);
        assert_eq!(areas.area(Origin::Doc, 1), "rustdoc");
        assert_eq!(areas.area(Origin::Doc, 7), "tenure");
        assert_eq!(areas.area(Origin::Comment, 1), "tenure");
        let command = Areas::of(&source("crates/tenure-cli/src/a.rs", text), &BTreeSet::new());
        assert_eq!(command.docs, [], "a command has no users of its code");
    }

    #[test]
    fn documentation_of_arguments_is_help() {
        let text = "/// A.\n#[derive(Args)]\n#[command(\n    after_help = \"x\"\n)]\npub(crate) struct S {\n    \
                    /// B.\n    #[arg(long)]\n    a: u8,\n}\n/// C.\nfn c() {}\n";
        let areas = Areas::of(&source("crates/tenure-cli/src/a.rs", text), &BTreeSet::new());
        assert_eq!(areas.docs, [(1, "help"), (7, "help")]);
        assert_eq!(areas.area(Origin::Literal, 4), "help");
        let other = Areas::of(&source("crates/tenure-cli/src/b.rs", "fn c() {}\n"), &BTreeSet::new());
        assert_eq!(other.area(Origin::Literal, 1), "tenure-cli");
    }

    #[test]
    fn the_header_of_a_module_is_for_users_where_they_can_name_it() {
        let sources = [
            source("crates/tenure/src/lib.rs", "pub mod fence;\nmod driver;\n"),
            source("crates/tenure/src/fence/mod.rs", "pub mod file;\n"),
            source("crates/tenure/src/fence/file.rs", ""),
            source("crates/tenure/src/driver/mod.rs", "pub mod inner;\n"),
            source("crates/tenure/src/driver/inner.rs", ""),
        ];
        let public = public_modules(&sources);
        let area = |at: usize| Areas::of(&sources[at], &public).area(Origin::Header, 1).to_string();
        assert_eq!([0, 1, 2, 3, 4].map(area), ["rustdoc", "rustdoc", "rustdoc", "tenure", "tenure"]);
    }
}
