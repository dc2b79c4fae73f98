//! The constants of a run: named numbers with units, drawn from a seed, set by hand, written in
//! files.

use std::fmt;

use crate::world::RealTime;

/// The unit of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, written with `ns`, `us`, `ms` or `s`.
    Time,
    /// Parts per million, written with `ppm`.
    Ppm,
    /// A plain number.
    Count,
    /// One of these words, or its position.
    Word(&'static [&'static str]),
}

/// The name of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// As `--set` takes it.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its effect, in words.
    pub says: &'static str,
    /// The value where a file does not name it: a file from before there was such a constant stays
    /// what it was. `None` if every file must.
    pub otherwise: Option<u64>,
}

/// The longest length that a constant may have: eleven days. Sums reckoned from it stay far from
/// overflowing.
const LONGEST: RealTime = RealTime(1_000_000_000_000_000);

/// A value for each key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constants {
    keys: &'static [Key],
    values: Vec<u64>,
}

impl Constants {
    /// The default values, or else zero.
    pub fn new(keys: &'static [Key]) -> Self {
        Self { keys, values: keys.iter().map(|key| key.otherwise.unwrap_or(0)).collect() }
    }

    /// The value of a key, if there is such a key.
    pub fn find(&self, name: &str) -> Option<u64> {
        let position = self.keys.iter().position(|key| key.name == name)?;
        Some(self.values[position])
    }

    /// The value of a key, which must exist.
    pub fn get(&self, name: &str) -> u64 {
        self.position(name).map_or(0, |position| self.values[position])
    }

    /// With another value of a key, which must exist.
    #[must_use]
    pub fn with(mut self, name: &str, value: u64) -> Self {
        if let Some(position) = self.position(name) {
            self.values[position] = value;
        }
        self
    }

    fn position(&self, name: &str) -> Option<usize> {
        let position = self.keys.iter().position(|key| key.name == name);
        debug_assert!(position.is_some(), "there is no constant {name}");
        position
    }

    /// Sets a constant from text such as `lease` and `200ms`.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let Some(position) = self.keys.iter().position(|key| key.name == name) else {
            let known: Vec<&str> = self.keys.iter().map(|key| key.name).collect();
            return Err(format!("there is no constant '{name}': known are {}", known.join(", ")));
        };
        let unit = self.keys[position].unit;
        let value = parse(unit, text).ok_or_else(|| {
            let example = match unit {
                Unit::Time => "200ms",
                Unit::Ppm => "1000ppm",
                Unit::Count => "4",
                Unit::Word(words) => {
                    return format!("cannot read {name}='{text}': write one of {}", words.join(", "));
                }
            };
            format!("cannot read {name}='{text}': write for example {name}={example}")
        })?;
        if unit == Unit::Time && value > LONGEST.0 {
            return Err(format!("{name}={text} is too long: at most {LONGEST}"));
        }
        self.values[position] = value;
        Ok(())
    }

    /// Every key with its value as text.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Key, String)> + '_ {
        self.keys.iter().zip(&self.values).map(|(key, value)| (key, format_value(key.unit, *value)))
    }
}

impl fmt::Display for Constants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, value)) in self.iter().enumerate() {
            write!(f, "{}{}={value}", if i == 0 { "" } else { " " }, key.name)?;
        }
        Ok(())
    }
}

fn format_value(unit: Unit, value: u64) -> String {
    match unit {
        Unit::Time => RealTime(value).to_string(),
        Unit::Ppm => format!("{value}ppm"),
        Unit::Count => value.to_string(),
        Unit::Word(words) => {
            let word = usize::try_from(value).ok().and_then(|position| words.get(position));
            word.map_or_else(|| value.to_string(), |word| (*word).to_owned())
        }
    }
}

fn parse(unit: Unit, text: &str) -> Option<u64> {
    match unit {
        Unit::Time => parse_time(text).map(|time| time.0),
        Unit::Ppm => text.strip_suffix("ppm").unwrap_or(text).parse().ok(),
        Unit::Count => text.parse().ok(),
        Unit::Word(words) => {
            let position = words.iter().position(|word| *word == text).or_else(|| text.parse().ok());
            position.filter(|position| *position < words.len()).map(|position| position as u64)
        }
    }
}

/// Reads a length such as `12.5ms` exactly; at most as fine as a nanosecond.
pub fn parse_time(text: &str) -> Option<RealTime> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(number_end);
    let digits = match unit {
        "s" => 9,
        "ms" => 6,
        "us" => 3,
        "ns" => 0,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > digits || whole.is_empty() {
        return None;
    }
    let scale = |digits: usize| 10u64.checked_pow(u32::try_from(digits).ok()?);
    let whole = whole.parse::<u64>().ok()?.checked_mul(scale(digits)?)?;
    let fraction = match fraction {
        "" => 0,
        _ => fraction.parse::<u64>().ok()?.checked_mul(scale(digits - fraction.len())?)?,
    };
    whole.checked_add(fraction).map(RealTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_read_exactly_as_it_was_written() {
        for nanos in [0, 1, 999_999, 1_000_000, 12_500_001, 3_000_000_000, 98_765_432_101] {
            let text = RealTime(nanos).to_string();
            assert_eq!(parse_time(&text), Some(RealTime(nanos)), "{text}");
        }
        assert_eq!(parse_time("1.5s"), Some(RealTime(1_500_000_000)));
        assert_eq!(parse_time("7ns"), Some(RealTime(7)));
    }

    #[test]
    fn a_word_is_read_as_it_is_written_and_another_is_answered_with_those_there_are() {
        const KEYS: &[Key] =
            &[Key { name: "repair", unit: Unit::Word(&["one", "two"]), says: "", otherwise: Some(0) }];
        let mut constants = Constants::new(KEYS);
        constants.set("repair", "two").unwrap();
        assert_eq!((constants.get("repair"), constants.to_string()), (1, "repair=two".to_owned()));
        let error = constants.set("repair", "three").unwrap_err();
        assert_eq!(error, "cannot read repair='three': write one of one, two");
    }

    #[test]
    fn nonsense_is_no_length() {
        for text in ["", "5", "ms", "1.ms5", ".5ms", "1.0000001ms", "-1ms", "99999999999999999999s", "1.5ns"]
        {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
