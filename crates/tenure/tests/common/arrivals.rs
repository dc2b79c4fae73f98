//! Writes as a resource sees them: late, twice, in any order. What the pure fence says of them, a stored one must say.

use tenure::fence::{Admitted, Fence, Rule, Term, Token};

/// A generator (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// One write, and what must come of it: the word that a stored fence answers, or `None` if it is refused.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) token: Token,
    pub(crate) writer: String,
    pub(crate) expected: Option<&'static str>,
}

/// The writes of a few leaders, judged by the pure fence. Some writers break the rule of one writer a term.
pub(crate) fn judged(rule: Rule, seed: u64) -> Vec<Arrival> {
    let mut random = Random(seed);
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
