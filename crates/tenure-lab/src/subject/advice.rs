//! What a strong machine may do at its discretion, from the constants of a run: when it tries, for how long it asks.

use tenure_proto::detect::phi::{self, Phi};
use tenure_proto::detect::weak::{Choice, Watch};
use tenure_proto::time::LocalSpan;

use super::Constants;

/// The weak election that `weak` names.
pub(super) fn weak(constants: &Constants) -> Result<Choice, String> {
    match constants.get("weak") {
        0 => Ok(Choice::Random),
        1 => Ok(Choice::Ring(Watch::Heartbeat)),
        2 => Ok(Choice::Ring(Watch::Phi(phi(constants)?))),
        other => Err(format!("weak must be 0 (chance), 1 (ring, heartbeats) or 2 (ring, phi), not {other}")),
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
