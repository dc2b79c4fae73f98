//! Repeats a script: the same actions in the same world.

use tenure_proto::NodeId;
use tenure_proto::quorum::Quorums;

use super::Script;
use crate::random::Scripted;
use crate::stage::{Cast, Command, Outcome, Stage, Watch};
use crate::subject::Subject;
use crate::world::node_id;

/// What came of a replay.
#[derive(Clone, Debug)]
pub struct Replayed<C> {
    /// What came of it.
    pub outcome: Outcome<C>,
    /// The lines that could not be carried out, by position: a message that was never sent, a process that was down.
    pub skipped: Vec<usize>,
    /// How many lines there were up to the violation, or in all.
    pub used: usize,
}

/// Repeats the lines of a script until a property is broken or they end. An error says what is wrong with its head.
pub fn replay<S: Subject>(
    subject: &S,
    script: &Script<Command<S>>,
    watch: Watch<'_>,
) -> Result<Replayed<Command<S>>, String> {
    let members: Vec<NodeId> = (0..script.clocks.len()).map(node_id).collect();
    let cast = Cast {
        quorums: Quorums::parse(&script.quorums, members).map_err(|error| error.to_string())?,
        constants: script.constants.clone(),
        clocks: script.clocks.clone(),
    };
    let mut stage = Stage::new(subject, &cast, watch, true, &mut Scripted::new(&[]))?;
    let mut skipped = Vec::new();
    let mut used = script.lines.len();
    let mut heals = script.heals;
    for (i, line) in script.lines.iter().enumerate() {
        if heals.take_if(|heals| *heals <= line.at).is_some() {
            stage.healed();
        }
        let action = line.action.rename(|name| stage.world.find(*name));
        let done = action.is_some_and(|action| stage.act(line.at, &action, &mut Scripted::new(&line.draws)));
        if !done {
            skipped.push(i);
        }
        if stage.is_over() {
            used = i + 1;
            break;
        }
    }
    let end = if stage.is_over() { stage.world.now } else { script.ends };
    Ok(Replayed { outcome: stage.end(end), skipped, used })
}
