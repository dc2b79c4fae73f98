//! Repeats a script: the same actions in the same world.

use super::Script;
use crate::random::Scripted;
use crate::stage::{Cast, Command, Outcome, Stage, Watch};
use crate::subject::Subject;
use crate::world::Interrupt;

/// The outcome of a replay.
#[derive(Clone, Debug)]
pub struct Replayed<C> {
    /// Its outcome.
    pub outcome: Outcome<C>,
    /// The lines that could not be carried out, by position: a message that was never sent, a
    /// process that was down.
    pub skipped: Vec<usize>,
    /// How many lines there were up to the violation, or in all.
    pub used: usize,
}

/// Repeats the lines of a script until a property is broken or they end. An error says what is
/// wrong with its head.
pub fn replay<S: Subject>(
    subject: &S,
    script: &Script<Command<S>>,
    watch: Watch<'_>,
) -> Result<Replayed<Command<S>>, String> {
    let (constants, clocks) = (script.constants.clone(), script.clocks.clone());
    let cast = Cast::new::<S>(&script.quorums, script.members, constants, clocks)?;
    let mut stage = Stage::new(subject, &cast, watch, true, &mut Scripted::new(&[]))?;
    let mut skipped = Vec::new();
    let mut used = script.lines.len();
    let mut heals = script.heals;
    for (i, line) in script.lines.iter().enumerate() {
        if let Some(heals) = heals.take_if(|heals| *heals <= line.at) {
            stage.healed(heals);
        }
        let action = line.action.rename(|name| stage.world.find(*name));
        stage.world.interrupt = line.kill.map(Interrupt::Now);
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
