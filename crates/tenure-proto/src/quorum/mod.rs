//! Quorum systems: which sets of grantors suffice to lead.
//!
//! Everything that keeps two leaders apart (split brain) rests on one fact: any two quorums share a
//! grantor (7), and a grantor supports one process at a time. So the fact is established when the
//! system is made, never assumed afterwards: a [`Quorums`] value exists only if its quorums meet.
//!
//! | system | a set is a quorum if | any two meet because |
//! |---|---|---|
//! | majority | it holds more than half of the members | two halves that both exceed a half overlap |
//! | weighted | its weight is more than half of all weight | the same, counted in weight |
//! | grid | it holds a full row and a full column | one's row crosses the other's column |
//! | list | it contains a listed set | every pair of listed sets is checked |

mod neighbour;

use std::fmt;

use crate::NodeId;

/// The largest number of grantors in one system.
pub const MAX_MEMBERS: usize = 64;

/// The largest number of sets in a list. A charter goes over the wire and into the store, which
/// read no longer ones.
pub const MAX_LISTED: usize = 4096;

/// A set of members, by their position in the member list.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeSet(u64);

impl NodeSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// Adds the member at `position`.
    pub fn insert(&mut self, position: usize) {
        debug_assert!(position < MAX_MEMBERS, "a position is below the member count");
        self.0 |= 1 << position;
    }

    /// Whether the member at `position` is in.
    pub fn contains(self, position: usize) -> bool {
        self.0 >> position & 1 == 1
    }

    /// The members in either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The members in both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The members in this set but not in `other`.
    #[must_use]
    pub fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The number of members in the set.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether every member of `other` is in this set.
    pub fn is_superset(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// One bit for each position.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The positions whose bits are set.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The positions, rising.
    pub fn positions(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let position = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(position)
        })
    }

    /// The first `count` members.
    fn first(count: usize) -> Self {
        Self(if count >= MAX_MEMBERS { u64::MAX } else { (1 << count) - 1 })
    }
}

impl FromIterator<usize> for NodeSet {
    fn from_iter<I: IntoIterator<Item = usize>>(positions: I) -> Self {
        let mut set = Self::EMPTY;
        positions.into_iter().for_each(|position| set.insert(position));
        set
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.positions()).finish()
    }
}

/// The rule by which sets are quorums. To be used it must be checked against the members:
/// [`Quorums::new`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// More than half of the members.
    Majority,
    /// More than half of the weight, which is given for each member.
    Weighted(Vec<u64>),
    /// A full row and a full column of the members laid out row by row.
    Grid {
        /// The number of rows.
        rows: usize,
        /// The number of columns.
        columns: usize,
    },
    /// Any superset of one of these.
    List(Vec<NodeSet>),
}

/// Members and a rule under which any two quorums meet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quorums {
    members: Vec<NodeId>,
    rule: Rule,
}

impl Quorums {
    /// A system in which more than half of the members are a quorum.
    pub fn majority(members: Vec<NodeId>) -> Result<Self, QuorumError> {
        Self::new(members, Rule::Majority)
    }

    /// A system in which more than half of the weight is a quorum; a member of weight zero may
    /// grant but never decides.
    pub fn weighted(members: Vec<NodeId>, weights: Vec<u64>) -> Result<Self, QuorumError> {
        Self::new(members, Rule::Weighted(weights))
    }

    /// A system in which a full row and a full column are a quorum, of the members laid out row by
    /// row.
    pub fn grid(members: Vec<NodeId>, rows: usize, columns: usize) -> Result<Self, QuorumError> {
        Self::new(members, Rule::Grid { rows, columns })
    }

    /// A system in which any superset of a listed set is a quorum.
    pub fn list(members: Vec<NodeId>, sets: Vec<Vec<NodeId>>) -> Result<Self, QuorumError> {
        let position = |node: NodeId| {
            members.iter().position(|member| *member == node).ok_or(QuorumError::NotAMember { node })
        };
        let sets = sets
            .into_iter()
            .map(|set| set.into_iter().map(position).collect::<Result<NodeSet, _>>())
            .collect::<Result<Vec<_>, _>>()?;
        Self::new(members, Rule::List(sets))
    }

    /// Reads `majority`, `weights:3,1,1`, `grid:2x3` or `list:01,12,02` (each digit a member's
    /// position).
    pub fn parse(text: &str, members: Vec<NodeId>) -> Result<Self, QuorumError> {
        let malformed = || QuorumError::Malformed { text: text.to_owned() };
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        match name {
            "majority" if value.is_empty() => Self::majority(members),
            "weights" => {
                let weights = value.split(',').map(|weight| weight.trim().parse().map_err(|_| malformed()));
                Self::weighted(members, weights.collect::<Result<_, _>>()?)
            }
            "grid" => {
                let (rows, columns) = value.split_once('x').ok_or_else(malformed)?;
                let number = |digits: &str| digits.trim().parse().map_err(|_| malformed());
                Self::grid(members, number(rows)?, number(columns)?)
            }
            "list" => {
                let beyond = QuorumError::NoSuchPosition { members: members.len() };
                let digit = |c: char| {
                    let position = c.to_digit(36).ok_or_else(malformed)?;
                    members.get(position as usize).copied().ok_or_else(|| beyond.clone())
                };
                let sets = value.split(',').map(|set| set.trim().chars().map(digit).collect());
                let sets = sets.collect::<Result<_, _>>()?;
                Self::list(members, sets)
            }
            _ => Err(malformed()),
        }
    }

    /// Checks that the rule fits the members and that any two of its quorums meet.
    pub fn new(members: Vec<NodeId>, rule: Rule) -> Result<Self, QuorumError> {
        if members.is_empty() || members.len() > MAX_MEMBERS {
            return Err(QuorumError::MemberCount { members: members.len() });
        }
        if let Some(twice) = members.iter().enumerate().find(|(i, member)| members[..*i].contains(member)) {
            return Err(QuorumError::Twice { node: *twice.1 });
        }
        match &rule {
            Rule::Weighted(weights) if weights.len() != members.len() => {
                return Err(QuorumError::Weights { members: members.len(), weights: weights.len() });
            }
            Rule::Grid { rows, columns } if rows.checked_mul(*columns) != Some(members.len()) => {
                return Err(QuorumError::Grid { members: members.len(), rows: *rows, columns: *columns });
            }
            Rule::List(sets) if sets.len() > MAX_LISTED => {
                return Err(QuorumError::TooLong { sets: sets.len() });
            }
            Rule::List(sets) if sets.iter().any(|set| !NodeSet::first(members.len()).is_superset(*set)) => {
                return Err(QuorumError::NoSuchPosition { members: members.len() });
            }
            _ => {}
        }
        let quorums = Self { members, rule };
        if !quorums.is_quorum(quorums.everyone()) {
            return Err(QuorumError::Impossible);
        }
        match quorums.disjoint_pair() {
            Some((one, other)) => {
                Err(QuorumError::Disjoint { one: quorums.names(one), other: quorums.names(other) })
            }
            None => Ok(quorums),
        }
    }

    /// Two quorums that do not meet. The other rules exclude it by arithmetic (see the table
    /// above).
    fn disjoint_pair(&self) -> Option<(NodeSet, NodeSet)> {
        let Rule::List(sets) = &self.rule else { return None };
        let pairs = sets.iter().flat_map(|one| sets.iter().map(move |other| (*one, *other)));
        pairs.into_iter().find(|(one, other)| one.intersection(*other).is_empty())
    }

    /// The rule by which sets of members are quorums.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The members, in the order of their positions.
    pub fn members(&self) -> &[NodeId] {
        &self.members
    }

    /// All members.
    pub fn everyone(&self) -> NodeSet {
        NodeSet::first(self.members.len())
    }

    /// The position of a member.
    pub fn position(&self, node: NodeId) -> Option<usize> {
        // Usually members are numbered by position: one comparison instead of a search.
        let guess = usize::try_from(node.0).ok();
        if let Some(guess) = guess.filter(|guess| self.members.get(*guess) == Some(&node)) {
            return Some(guess);
        }
        self.members.iter().position(|member| *member == node)
    }

    /// The members of a set.
    pub fn names(&self, set: NodeSet) -> Vec<NodeId> {
        set.positions().filter_map(|position| self.members.get(position).copied()).collect()
    }

    /// Whether these members suffice to lead.
    pub fn is_quorum(&self, set: NodeSet) -> bool {
        match &self.rule {
            Rule::Majority => 2 * set.len() > self.members.len(),
            Rule::Weighted(weights) => {
                let all: u128 = weights.iter().copied().map(u128::from).sum();
                let held: u128 =
                    set.positions().filter_map(|p| weights.get(p).copied()).map(u128::from).sum();
                2 * held > all
            }
            Rule::Grid { rows, columns } => {
                let row = |r: usize| (0..*columns).all(|c| set.contains(r * columns + c));
                let column = |c: usize| (0..*rows).all(|r| set.contains(r * columns + c));
                (0..*rows).any(row) && (0..*columns).any(column)
            }
            Rule::List(sets) => sets.iter().any(|listed| set.is_superset(*listed)),
        }
    }

    /// Whether no quorum is left when these members refuse.
    pub fn is_blocking(&self, set: NodeSet) -> bool {
        !self.is_quorum(self.everyone().difference(set))
    }
}

/// As [`Quorums::parse`] reads it. A list whose sets have members beyond the thirty-sixth has no
/// such form: they are shown as `?`.
impl fmt::Display for Quorums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |items: Vec<String>| items.join(",");
        match &self.rule {
            Rule::Majority => f.write_str("majority"),
            Rule::Weighted(weights) => {
                write!(f, "weights:{}", listed(weights.iter().map(ToString::to_string).collect()))
            }
            Rule::Grid { rows, columns } => write!(f, "grid:{rows}x{columns}"),
            Rule::List(sets) => {
                let digit = |p: usize| u32::try_from(p).ok().and_then(|p| char::from_digit(p, 36));
                let text = |set: &NodeSet| set.positions().map(|p| digit(p).unwrap_or('?')).collect();
                write!(f, "list:{}", listed(sets.iter().map(text).collect()))
            }
        }
    }
}

/// Why a quorum system was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuorumError {
    /// Two quorums share no member: each could elect its own leader.
    Disjoint {
        /// A quorum.
        one: Vec<NodeId>,
        /// Another that shares nobody with it.
        other: Vec<NodeId>,
    },
    /// Not even all members together are a quorum.
    Impossible,
    /// No members, or too many.
    MemberCount {
        /// The number that was given.
        members: usize,
    },
    /// A member is named twice.
    Twice {
        /// The member.
        node: NodeId,
    },
    /// A listed set names a process that is no member.
    NotAMember {
        /// The process.
        node: NodeId,
    },
    /// A listed set has a position beyond the last member's.
    NoSuchPosition {
        /// The number of members.
        members: usize,
    },
    /// A list has more sets than can be told and kept.
    TooLong {
        /// The number that was given.
        sets: usize,
    },
    /// As many weights as members are needed.
    Weights {
        /// The number of members given.
        members: usize,
        /// The number of weights given.
        weights: usize,
    },
    /// A grid holds exactly rows times columns members.
    Grid {
        /// The number of members given.
        members: usize,
        /// The number of rows asked for.
        rows: usize,
        /// Columns asked for.
        columns: usize,
    },
    /// A grid or a list has no place for one member more or less.
    WholeSystem,
    /// The text is none of the known forms.
    Malformed {
        /// The text.
        text: String,
    },
}

impl fmt::Display for QuorumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disjoint { one, other } => write!(
                f,
                "the quorums {one:?} and {other:?} share no member, so each could elect a leader of its own: \
                 add a common member to one of them"
            ),
            Self::NoSuchPosition { members } => {
                write!(f, "a listed set names a position beyond the last of {members} members")
            }
            Self::TooLong { sets } => {
                write!(f, "a list of {sets} quorums: list at most {MAX_LISTED}, or give weights")
            }
            Self::Impossible => {
                f.write_str("no set of members is a quorum: give at least one member a weight, or list a set")
            }
            Self::MemberCount { members } => {
                write!(f, "a quorum system needs 1 to {MAX_MEMBERS} members, not {members}")
            }
            Self::Twice { node } => write!(f, "member {node} is named twice"),
            Self::NotAMember { node } => write!(f, "{node} is in a listed quorum but is no member"),
            Self::Weights { members, weights } => {
                write!(f, "{weights} weights for {members} members: give one weight a member")
            }
            Self::Grid { members, rows, columns } => {
                write!(f, "a grid of {rows}x{columns} does not hold {members} members")
            }
            Self::WholeSystem => f.write_str(
                "one member more or less fits into no grid or list: give the whole new system of quorums",
            ),
            Self::Malformed { text } => write!(
                f,
                "cannot read quorums '{text}': write majority, weights:3,1,1, grid:2x3 or list:01,12,02"
            ),
        }
    }
}

impl std::error::Error for QuorumError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(count: u64) -> Vec<NodeId> {
        (0..count).map(NodeId).collect()
    }

    fn parse(text: &str, count: u64) -> Result<Quorums, QuorumError> {
        Quorums::parse(text, nodes(count))
    }

    #[test]
    fn a_list_that_is_too_long_to_be_kept_is_refused() {
        let listed = |sets| Quorums::new(nodes(3), Rule::List(vec![NodeSet::first(3); sets]));
        assert!(listed(MAX_LISTED).is_ok());
        assert_eq!(listed(MAX_LISTED + 1), Err(QuorumError::TooLong { sets: MAX_LISTED + 1 }));
    }

    /// Every subset of `count` members.
    fn subsets(count: u64) -> impl Iterator<Item = NodeSet> {
        (0..1u64 << count).map(NodeSet)
    }

    #[test]
    fn no_quorum_of_any_system_has_a_quorum_in_its_complement() {
        let systems = [
            ("majority", 1),
            ("majority", 2),
            ("majority", 7),
            ("weights:3,1,1,1,1", 5),
            ("weights:0,2,2,5,1,0", 6),
            ("grid:2x2", 4),
            ("grid:3x4", 12),
            ("grid:1x5", 5),
            ("list:01,12,02", 3),
            ("list:012,234,14,034", 5),
        ];
        for (text, count) in systems {
            let Ok(quorums) = parse(text, count) else {
                assert_eq!(text, "list:012,234,14,034", "the only system here that must be refused");
                continue;
            };
            for set in subsets(count) {
                let rest = quorums.everyone().difference(set);
                assert!(!(quorums.is_quorum(set) && quorums.is_quorum(rest)), "{text}: {set:?} | {rest:?}");
            }
        }
    }

    #[test]
    fn every_system_is_monotone_and_nobody_is_no_quorum() {
        for (text, count) in
            [("majority", 5), ("weights:3,1,1,1,1", 5), ("grid:2x3", 6), ("list:01,12,02", 3)]
        {
            let quorums = parse(text, count).unwrap();
            assert!(!quorums.is_quorum(NodeSet::EMPTY));
            for set in subsets(count).filter(|set| quorums.is_quorum(*set)) {
                for more in 0..NodeId(count).index() {
                    let mut larger = set;
                    larger.insert(more);
                    assert!(quorums.is_quorum(larger), "{text}: {set:?} is a quorum, {larger:?} is not");
                }
            }
        }
    }

    #[test]
    fn a_system_is_shown_as_it_is_read() {
        let systems = [
            ("majority", 3),
            ("weights:3,1,1", 3),
            ("grid:2x3", 6),
            ("list:01,12,02", 3),
            ("list:0z,0a", 36),
        ];
        for (text, count) in systems {
            let quorums = parse(text, count).unwrap();
            assert_eq!(parse(&quorums.to_string(), count), Ok(quorums), "{text}");
        }
        assert_eq!(parse("weights: 3, 1, 1", 3).unwrap().to_string(), "weights:3,1,1");
    }

    #[test]
    fn the_error_names_two_disjoint_quorums() {
        let error = parse("list:01,12,23", 4).unwrap_err();
        assert_eq!(
            error,
            QuorumError::Disjoint { one: vec![NodeId(0), NodeId(1)], other: vec![NodeId(2), NodeId(3)] }
        );
        assert!(error.to_string().contains("[n0, n1] and [n2, n3] share no member"));
    }

    #[test]
    fn a_blocking_set_leaves_no_quorum() {
        let quorums = parse("weights:3,1,1,1,1", 5).unwrap();
        assert!(!quorums.is_blocking([1, 2, 3].into_iter().collect()), "the heavy one and one more remain");
        assert!(quorums.is_blocking([1, 2, 3, 4].into_iter().collect()));
        assert!(quorums.is_blocking([0, 1].into_iter().collect()));
        assert!(
            !quorums.is_blocking([0].into_iter().collect()),
            "the four light ones outweigh the heavy one"
        );
    }

    #[test]
    fn bad_systems_are_refused_with_a_reason() {
        let refused = [
            ("majority", 0, "1 to 64 members"),
            ("majority", 65, "1 to 64 members"),
            ("weights:1,1", 3, "2 weights for 3 members"),
            ("weights:0,0,0", 3, "no set of members is a quorum"),
            ("grid:2x2", 5, "does not hold 5 members"),
            ("list:05", 3, "beyond the last of 3 members"),
            ("list:", 3, "share no member"),
            ("weights:a", 1, "cannot read quorums"),
            ("everyone", 3, "cannot read quorums"),
        ];
        for (text, count, reason) in refused {
            let error = parse(text, count).unwrap_err().to_string();
            assert!(error.contains(reason), "{text} of {count}: {error}");
        }
        assert_eq!(Quorums::majority(vec![NodeId(1); 2]), Err(QuorumError::Twice { node: NodeId(1) }));
    }
}
