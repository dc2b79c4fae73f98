use super::*;

fn read(text: &str) -> Result<Settings, Failure> {
    Settings::read(Path::new("/etc/tenure/tenure.toml"), text.to_owned())
}

#[test]
fn a_variable_wins_over_the_file_and_a_flag_over_both() {
    let mut settings = read("name = \"a\"\n[daemon]\nlog = \"warn\"\n").unwrap();
    assert_eq!(settings.daemon.log.as_deref(), Some("warn"));
    settings.put_variable("TENURE_LOG", "debug").unwrap();
    assert_eq!(settings.daemon.log.as_deref(), Some("debug"));
    settings.put("daemon.log", Value::String("info".to_owned()), Source::Flag).unwrap();
    assert_eq!(settings.daemon.log.as_deref(), Some("info"));
    assert!(settings.has("name") && settings.has("daemon.log") && !settings.has("lease.length"));
}

#[test]
fn a_misspelt_key_of_the_daemon_is_named_with_its_line() {
    let failure = read("name = \"a\"\n[daemon]\nhtpp = \"127.0.0.1:1\"\n").unwrap_err();
    assert_eq!(failure.code(), 78);
    let text = failure.to_string();
    assert!(text.contains("htpp") && text.contains("line 3"), "{text}");
}

#[test]
fn a_wrong_variable_is_named() {
    let mut settings = read("name = \"a\"\n").unwrap();
    let failure = settings.put_variable("TENURE_SIDECAR_PORT", "many").unwrap_err();
    assert!(failure.to_string().contains("TENURE_SIDECAR_PORT"), "{failure}");
    assert_eq!(failure.code(), 78);
}

#[test]
fn variables_that_are_for_a_child_of_run_are_no_settings() {
    let mut settings = read("name = \"a\"\n").unwrap();
    settings.put_variable("TENURE_TOKEN", "7").unwrap();
    assert!(!settings.has("token"));
}

#[test]
fn a_secret_is_not_shown() {
    let settings = read("name = \"a\"\nkey = \"tenure-key-1:abc\"\n").unwrap();
    let shown = format!("{:?}", settings.shown(false));
    assert!(shown.contains("secret") && !shown.contains("abc"), "{shown}");
}

/// A file of a member that says only what it must.
const LEAST: &str = "name = \"a\"\nlisten = \"127.0.0.1:7\"\nstore = \"s\"\n";

fn with_key(text: &str) -> String {
    format!("key = \"{}\"\n{text}", tenure::ClusterKey::from_bytes([7; 32]).reveal())
}

/// The settings as the library understands them.
fn understood(settings: &Settings) -> String {
    format!("{:?} {:?} {:?}", settings.node().unwrap(), settings.daemon, settings.client)
}

/// A value that a key takes.
fn sample(key: &Key) -> Value {
    let text = match (key.name, key.kind) {
        ("cluster_id" | "lineage", _) => "\"000102030405060708090a0b0c0d0e0f\"",
        ("listen", _) => "[\"127.0.0.1:7\"]",
        ("cluster.quorums", _) => "\"majority\"",
        (_, Kind::Text | Kind::Secret | Kind::Path | Kind::SecretPath) => "\"x\"",
        (_, Kind::Choice(names)) => return Value::from(names[names.len() - 1]),
        (_, Kind::Address) => "\"127.0.0.1:7\"",
        (_, Kind::Length) => "\"777ms\"",
        (_, Kind::Number) => "7",
        (_, Kind::Flag) => "true",
        (_, Kind::SecretPaths | Kind::List) => "[\"x\"]",
        (_, Kind::Peers) => "[{ name = \"a\", address = \"b:1\" }]",
        (_, Kind::Table(form)) => form,
    };
    let mut table: Table = toml::from_str(&format!("value = {text}")).unwrap();
    table.remove("value").unwrap()
}

/// The names that the structs take in one table, as their error lists them.
fn taken(error: &str) -> Vec<String> {
    let list = error.split("expected one of").nth(1).unwrap_or_else(|| panic!("no list in {error}"));
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_row_is_a_field_that_something_reads_and_every_field_has_a_row() {
    // Each struct lists its fields when it meets an unknown one.
    let node = |table: &str| {
        let text = with_key(&format!("{LEAST}{table}\nzzz = 1\n"));
        taken(&Config::from_toml(&text, Path::new("x.toml")).unwrap_err().to_string())
    };
    let own = |error: Option<toml::de::Error>| taken(&error.unwrap().to_string());
    let tables = [
        ("", node("")),
        ("cluster", node("[cluster]")),
        ("lease", node("[lease]")),
        ("election", node("[election]")),
        ("limits", node("[limits]")),
        ("lease.adapt", node("[lease.adapt]")),
        ("daemon", own(toml::from_str::<Daemon>("zzz = 1").err())),
        ("client", own(toml::from_str::<Client>("zzz = 1").err())),
    ];
    for (table, mut fields) in tables {
        let within = |key: &&Key| key.name.rsplit_once('.').map_or("", |(table, _)| table) == table;
        let mut rows: Vec<&str> = KEYS.iter().filter(within).map(Key::last).collect();
        let sections = KEYS.iter().map(Key::section).filter(|_| table.is_empty());
        rows.extend(sections.filter(|section| !section.is_empty()));
        rows.sort_unstable();
        rows.dedup();
        fields.sort();
        assert_eq!(rows, fields, "[{table}]: rows of table.rs, then fields of the struct");
    }
}

#[test]
fn the_defaults_of_the_table_are_those_of_the_structs() {
    let plain = read(&with_key(LEAST)).unwrap();
    let mut written = plain.clone();
    let mut count = 0;
    for key in KEYS.iter().filter(|key| plain.applies(key)) {
        if let Some(value) = key.default_value() {
            written.put(key.name, value, Source::Flag).unwrap();
            count += 1;
        }
    }
    // `daemon.log` has its default where the log begins.
    assert_eq!(written.daemon.log.take().as_deref(), Some(crate::daemon::log::USUAL));
    assert_eq!(understood(&plain), understood(&written));
    assert!(count > 15, "{count}");
    for (with, key, default) in [
        ("[election]\ndetector = \"phi\"\n", "election.phi", "8"),
        ("[lease]\nadapt = { shortest = \"1s\", interval = \"1s\" }\n", "lease.adapt.retries", "2"),
    ] {
        let plain = read(&with_key(&format!("{LEAST}{with}"))).unwrap();
        let row = KEYS.iter().find(|row| row.name == key).unwrap();
        assert!(plain.applies(row) && row.fallback == key::Fallback::Value(default));
        let mut written = plain.clone();
        written.put(key, row.default_value().unwrap(), Source::Flag).unwrap();
        assert_eq!(understood(&plain), understood(&written));
    }
}

#[test]
fn every_key_takes_a_value_of_its_type_and_every_choice_is_one() {
    for key in KEYS.iter().filter(|key| !matches!(key.name, "key" | "key_file" | "old_key_files")) {
        let values = match key.kind {
            Kind::Choice(names) => names.iter().map(|name| Value::from(*name)).collect(),
            _ => vec![sample(key)],
        };
        for value in values {
            let mut settings = read(&with_key(LEAST)).unwrap();
            let needs = |key: &Key| key.with.map(|(other, value)| (other, Value::from(value)));
            let parent = key.name.starts_with("lease.adapt.").then(|| {
                (
                    "lease.adapt",
                    toml::from_str::<Table>("shortest = \"1s\"\ninterval = \"1s\"").unwrap().into(),
                )
            });
            // A key that means something with another only: that one first.
            for (other, value) in parent.into_iter().chain(needs(key)) {
                settings.put(other, value, Source::Flag).unwrap();
            }
            if (key.name, value.as_str()) == ("cluster.clock", Some("skew")) {
                settings.put("cluster.skew", Value::from("1ms"), Source::Flag).unwrap();
            }
            let said = settings.put(key.name, value.clone(), Source::Flag);
            assert!(said.is_ok() && settings.node().is_ok(), "{} = {value}: {said:?}", key.name);
        }
    }
}

#[test]
fn every_variable_is_there_once_and_gives_its_key_a_value() {
    for key in KEYS {
        let Some(variable) = key.variable else { continue };
        assert!(!OTHERS.contains(&variable), "TENURE_{variable} is given to the command of `tenure run`");
        assert_eq!(KEYS.iter().filter(|other| other.variable == key.variable).count(), 1, "{variable}");
        let text = match sample(key) {
            Value::Array(parts) => parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
            Value::String(text) => text,
            other => other.to_string(),
        };
        let mut settings = read(&with_key(LEAST)).unwrap();
        settings.put_variable(&format!("TENURE_{variable}"), &text).unwrap();
        assert!(settings.has(key.name) && settings.source(key) == Source::Variable(variable));
    }
}

#[test]
fn an_unknown_key_is_answered_with_its_line_and_the_key_that_was_meant() {
    for (text, said) in [
        (
            "name = \"a\"\nlissten = \"x\"\n",
            "line 2, column 1: there is no key 'lissten'; did you mean 'listen'?",
        ),
        (
            "[lease]\nlenght = \"1s\"\n",
            "line 2, column 1: there is no key 'lease.lenght'; did you mean 'lease.length'?",
        ),
        ("[leese]\nlength = \"1s\"\n", "line 1, column 2: there is no key 'leese'; did you mean 'lease'?"),
        ("http = \"x\"\n", "line 1, column 1: there is no key 'http'; did you mean 'daemon.http'?"),
        (
            "[lease]\nadapt = { shortest = \"1s\", intervall = \"1s\" }\n",
            "line 2, column 28: there is no key 'lease.adapt.intervall'; did you mean 'lease.adapt.interval'?",
        ),
        ("[client]\nzebra_crossing = 1\n", "line 2, column 1: there is no key 'client.zebra_crossing'"),
    ] {
        let failure = read(text).unwrap_err();
        assert_eq!((failure.code(), failure.why()), (78, said));
        assert!(failure.to_text().contains("/etc/tenure/tenure.toml"), "{failure}");
    }
    assert!(read("[daemon.roles]\n\"CN=alice\" = \"admin\"\n").is_ok(), "roles have names of their own");
}

#[test]
fn a_key_pasted_in_the_place_of_a_name_is_not_told() {
    let key = tenure::ClusterKey::from_bytes([7; 32]).reveal();
    for text in [format!("\"{key}\" = 1\n"), format!("[lease]\n\"{key}\" = 1\n")] {
        let said = read(&text).unwrap_err().to_string();
        assert!(!said.contains(&key[20..36]), "{said}");
    }
}

#[test]
fn a_default_is_shown_only_where_the_key_means_something() {
    let names = |text: &str| -> Vec<&str> {
        read(&with_key(&format!("{LEAST}{text}")))
            .unwrap()
            .shown(true)
            .iter()
            .map(|(key, ..)| key.name)
            .collect()
    };
    let ring = names("");
    assert!(ring.contains(&"election.detector") && !ring.contains(&"election.phi"));
    assert!(ring.contains(&"cluster.drift_ppm") && !ring.contains(&"lease.adapt.retries"));
    assert!(names("[election]\ndetector = \"phi\"\n").contains(&"election.phi"));
    assert!(!names("[election]\nweak = \"omega\"\n").contains(&"election.detector"));
    assert!(!names("[cluster]\nclock = \"skew\"\nskew = \"1ms\"\n").contains(&"cluster.drift_ppm"));
}

#[test]
fn the_document_is_what_the_table_prints() {
    for key in KEYS {
        assert!(
            key.what.ends_with(['.', '|']) && key.choose.ends_with('.'),
            "{}: say it in sentences",
            key.name
        );
        assert!(table::SECTIONS.iter().any(|section| section.name == key.section()), "{}", key.name);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
    let printed = reference::markdown();
    let wide = printed.lines().find(|line| !line.starts_with('|') && line.chars().count() > 100);
    assert_eq!(wide, None);
    assert!(
        std::fs::read_to_string(&path).unwrap() == printed,
        "{} is not what the table says; write it anew, at the root of the repository:\n  \
         cargo run -q -- config reference > docs/reference/configuration.md",
        path.display()
    );
}
