//! [`Leader`]: who leads a group, and what it published.

use tenure_proto::strong::Term;

use crate::name::NodeName;
use crate::observe::{Leadership, Scene, Watch};

/// The leader of a group, as a [`Watch`] knows it, and what it published in that term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Leader {
    /// Its name; `None` if nobody has told it yet.
    pub name: Option<NodeName>,
    /// Its term.
    pub term: Term,
    /// The newest bytes that it published or proclaimed in this very term; never those of a leader
    /// before it. `None` if none have come yet.
    pub published: Option<Vec<u8>>,
}

impl Leader {
    fn of(scene: Scene) -> Option<Self> {
        let Leadership::Leader { name, term } = scene.leadership else { return None };
        let own = scene.edict.filter(|edict| edict.token.term() == term);
        Some(Self { name, term, published: own.map(|edict| edict.body) })
    }
}

impl Watch {
    /// Returns the leader as it was last heard of, with what it published; `None` if nobody leads
    /// or nothing is known.
    ///
    /// ```no_run
    /// # async fn example(node: tenure::Node) -> Result<(), Box<dyn std::error::Error>> {
    /// let watch = node.observe("jobs").await?;
    /// if let Some(leader) = watch.leader() {
    ///     println!("{:?} leads in term {}", leader.name, leader.term.0);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn leader(&self) -> Option<Leader> {
        Leader::of(self.now())
    }

    /// Waits for a leader whose publication is known, and returns it; `None` when the node has
    /// stopped.
    ///
    /// A leader publishes with [`Campaign::publish`](crate::Campaign::publish). If one leads
    /// already and its bytes have come, the call returns at once. The answer is about the past, as
    /// all of a watch: a request that is sent to the address may find that another process leads by
    /// now. The future may be dropped and the call repeated.
    ///
    /// ```no_run
    /// # async fn connect(_: &str) -> std::io::Result<()> { Ok(()) }
    /// # async fn example(node: tenure::Node) -> Result<(), Box<dyn std::error::Error>> {
    /// let watch = node.observe("jobs").await?;
    /// if let Some(leader) = watch.published().await {
    ///     connect(&String::from_utf8(leader.published.unwrap_or_default())?).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn published(&self) -> Option<Leader> {
        let mut scene = self.scene.clone();
        loop {
            let leader = Leader::of(scene.borrow_and_update().clone());
            if let Some(leader) = leader.filter(|leader| leader.published.is_some()) {
                return Some(leader);
            }
            scene.changed().await.ok()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_proto::strong::Token;

    use super::*;
    use crate::observe::Proclaimed;

    #[test]
    fn only_what_its_own_term_published_is_shown_beside_a_leader() {
        let name = NodeName::new("a").ok();
        let edict = Some(Proclaimed { token: Token::new(Term(5), 1), body: b"10.0.0.1:80".to_vec() });
        let scene = |term| Scene {
            leadership: Leadership::Leader { name: name.clone(), term: Term(term) },
            edict: edict.clone(),
        };
        assert_eq!(Leader::of(scene(5)).and_then(|leader| leader.published), Some(b"10.0.0.1:80".to_vec()));
        assert_eq!(Leader::of(scene(6)).and_then(|leader| leader.published), None, "of the one before");
        let over = Scene { leadership: Leadership::Nobody { after: Term(5) }, edict };
        assert_eq!(Leader::of(over), None);
    }
}
