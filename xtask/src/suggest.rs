//! "Did you mean": the known name nearest to a misspelt one.

/// ` Did you mean …?` for the nearest known name, or nothing when none is near.
pub(crate) fn did_you_mean(given: &str, known: &[&str]) -> String {
    let nearest = known.iter().map(|name| (distance(given, name), *name)).min();
    match nearest {
        Some((far, name)) if far <= 1 + given.chars().count() / 3 => format!(" Did you mean `{name}`?"),
        _ => String::new(),
    }
}

/// How many single letters must be put in, taken out or exchanged to turn one word into the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let exchanged = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_letter_edits() {
        assert_eq!(distance("", ""), 0);
        assert_eq!(distance("lab", "lab"), 0);
        assert_eq!(distance("labb", "lab"), 1);
        assert_eq!(distance("", "lab"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn the_nearest_name_wins_and_a_far_one_is_not_offered() {
        assert_eq!(did_you_mean("tiddy", &["test", "tidy"]), " Did you mean `tidy`?");
        assert_eq!(did_you_mean("release", &["test", "tidy"]), "");
        assert_eq!(did_you_mean("lab", &[]), "");
    }
}
