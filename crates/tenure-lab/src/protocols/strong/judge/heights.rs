//! How high terms rise: one grant to an outsider adds no more than a bucket holds, one to a member
//! nothing implausible.

use tenure_proto::NodeId;
use tenure_proto::strong::height::{BURST, PLAUSIBLE};
use tenure_proto::strong::{GrantRequest, Term};

use super::{CLIMBS, HEIGHTS, Sight, StrongJudge};

/// Terms that members may know without having said them: the ends of blocks that were lost in
/// crashes.
const UNSAID: u64 = 4096;

impl StrongJudge {
    /// Terms are as high as this, for good reason.
    pub(super) fn note_height(&mut self, term: Term) {
        self.highest = self.highest.max(term);
    }

    /// A grant lies no further above all that was granted or decided anywhere than its holder may
    /// raise it. Of real processes it is not known where their terms began.
    pub(super) fn judge_height<S: Sight>(&mut self, sight: &S, grantor: NodeId, request: &GrantRequest) {
        let GrantRequest { term, id, epoch, .. } = *request;
        let (holder, highest) = (id.holder.node, self.highest);
        let outside = self.epochs.quorums(epoch).position(holder).is_none();
        let most = if outside { BURST } else { PLAUSIBLE };
        if outside && term > highest {
            self.see(CLIMBS);
        }
        if sight.sees_all() && term.0.saturating_sub(highest.0) > most + UNSAID {
            self.break_at(HEIGHTS, sight.now(), || {
                format!("{grantor} grants {holder} term {term}, where {highest} was the highest")
            });
        }
        self.note_height(term);
    }
}
