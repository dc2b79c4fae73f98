//! The discretion of a strong machine, from the constants of a run: when it tries, for how long it
//! asks.

use tenure_proto::detect::phi::{self, Phi};
use tenure_proto::detect::weak::{Choice, Watch};
use tenure_proto::strong::{Adapt, Command, Event};
use tenure_proto::time::{LocalSpan, Span};
use tenure_proto::{GroupId, NodeId};

use crate::random::Random;
use crate::subject::Constants;

/// Draws what is at a machine's discretion, after all else.
pub(super) fn draw(random: &mut Random, constants: Constants) -> Constants {
    let lease = constants.get("lease");
    constants
        .with("weak", random.pick(&[0, 1, 1, 2]))
        .with("adapt", random.pick(&[0, 0, 1]))
        .with("hold", random.pick(&[0, 0, lease / 4, lease / 2]))
}

/// The weak election that `weak` names.
pub(super) fn weak(constants: &Constants) -> Result<Choice, String> {
    match constants.get("weak") {
        0 => Ok(Choice::Random),
        1 => Ok(Choice::Ring(Watch::Heartbeat)),
        2 => Ok(Choice::Ring(Watch::Phi(phi(constants)?))),
        3 => Ok(Choice::Omega),
        4 => Ok(Choice::Local),
        other => Err(format!(
            "weak must be 0 (chance), 1 (ring, heartbeats), 2 (ring, phi), 3 (omega) or 4 (local), not {other}"
        )),
    }
}

fn phi(constants: &Constants) -> Result<phi::Config, String> {
    let span = |name| LocalSpan::from_nanos(constants.get(name));
    let settings = phi::Settings {
        threshold: Phi::from_thousandths(8_000),
        window: 20,
        first_estimate: span("retry"),
        least_deviation: span("retry").fraction(1, 2),
        acceptable_pause: span("lease"),
    };
    settings.validate().map_err(|error| error.to_string())
}

/// With `adapt`, leases about a quarter apart of what they would be without, and room for three
/// retries.
pub(super) fn adapt(constants: &Constants) -> Result<Option<Adapt>, String> {
    let (lease, tick) = (constants.get("lease"), constants.get("tick"));
    match constants.get("adapt") {
        0 => Ok(None),
        1 => Ok(Some(Adapt {
            shortest: Span::from_nanos((lease / 4).max(4 * tick).clamp(1, lease)),
            interval: Span::from_nanos((lease / 4).max(1)),
            retries: 3,
        })),
        other => {
            Err(format!("adapt must be 0 (leases of one length) or 1 (as the network needs), not {other}"))
        }
    }
}

/// How long a preferred process must be steady.
pub(super) fn hold(constants: &Constants) -> Option<Span> {
    Some(Span::from_nanos(constants.get("hold"))).filter(|hold| hold.as_nanos() > 0)
}

/// Now and then, where it matters, a user gives its process another priority.
pub(super) fn whim(random: &mut Random, constants: &Constants, group: GroupId) -> Option<Command> {
    let matters = constants.get("hold") > 0 && random.percent(20);
    matters.then(|| Command::Rank { group, priority: random.pick(&[0, 1, 2]) })
}

/// Events of discretion in words.
pub(super) fn event_text(node: NodeId, event: &Event) -> String {
    match event {
        Event::WeakLeader { group, leader: Some(leader) } => {
            format!("{node} hears of too few to elect a leader of {group}; {leader} speaks for them")
        }
        Event::WeakLeader { group, leader: None } => format!("{node} hears of enough again in {group}"),
        Event::Paced { group, lease } => format!("{node} will ask for {group} for {lease} from now on"),
        Event::Strained { group, needed, longest } => {
            format!("{node} finds {longest} too short for {group}: the network needs {needed}")
        }
        Event::Yields { group, to } => format!("{node} hands {group} over to {to}, which is preferred"),
        _ => String::new(),
    }
}
