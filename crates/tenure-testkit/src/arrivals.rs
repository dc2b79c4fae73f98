//! Writes as a resource sees them: late, twice, in any order. A stored fence must judge
//! them as the pure one does.

use tenure::fence::{Admitted, Fence, Rule, Term, Token};

use crate::chance::Chance;

/// One write, and what must come of it: the word that a stored fence answers, or `None` if it is
/// refused.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The token that the writer shows.
    pub token: Token,
    /// The name of the writer.
    pub writer: String,
    /// The word, or nothing if it is refused.
    pub expected: Option<&'static str>,
}

/// The writes of a few leaders, judged by the pure fence. Some writers break the rule of one writer
/// a term.
pub fn judged(rule: Rule, seed: u64) -> Vec<Arrival> {
    let mut random = Chance::new(seed);
    let mut fence = Fence { rule, newest: None };
    let mut arrivals: Vec<Arrival> = Vec::new();
    for _ in 0..60 {
        let (token, writer) = match arrivals.last() {
            Some(last) if random.below(3) == 0 => (last.token, last.writer.clone()),
            _ => {
                let term = 1 + arrivals.len() as u64 / 20 + random.below(3);
                (Token::new(Term(term), random.below(8)), format!("w{}", random.below(2)))
            }
        };
        let expected = fence.admit(token, writer.clone()).ok().map(word);
        arrivals.push(Arrival { token, writer, expected });
    }
    arrivals
}

fn word(admitted: Admitted) -> &'static str {
    match admitted {
        Admitted::Newer => "newer",
        Admitted::SameTerm => "same_term",
        Admitted::Again => "again",
    }
}
