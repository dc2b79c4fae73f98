//! Work that runs while a process leads: the inner half of [`Node::lead`](crate::Node::lead).

use std::pin::pin;

use crate::guard::{Loss, Tenure};
use crate::operator_request::{Asked, OperatorRequest};

/// How a leadership with work ended.
pub(crate) enum Outcome<T> {
    /// The work has.
    Done(T),
    /// It was lost, or handed over.
    Lost(Loss),
    /// It is to be given up, and the work is dropped.
    Resign(Asked),
}

/// Runs the work while `tenure` lasts, and fulfils requests. The work first, if several
/// things happen at once: what it returned counts if it still leads.
pub(crate) async fn lead_once<T, F: Future<Output = T>>(
    tenure: &Tenure,
    work: &mut impl FnMut(Tenure) -> F,
) -> Outcome<T> {
    loop {
        let (asked, to) = {
            let mut done = pin!(work(tenure.clone()));
            loop {
                let asked = tokio::select! {
                    biased;
                    result = &mut done => return ended(tenure, result).await,
                    loss = tenure.lost() => return Outcome::Lost(loss),
                    asked = tenure.asked() => asked,
                };
                match asked.request() {
                    OperatorRequest::Resign => break (asked, None),
                    OperatorRequest::Transfer { to } => {
                        let to = to.clone();
                        break (asked, Some(to));
                    }
                    OperatorRequest::Proclaim { body } => match tenure.proclaim(body) {
                        Ok(edict) => asked.fulfil_as(edict),
                        Err(error) => asked.decline(&error.to_string()),
                    },
                }
            }
        }; // The work is dropped here, before anything is given up.
        let Some(to) = to else { return Outcome::Resign(asked) };
        match tenure.transfer(&to).await {
            Ok(()) => {
                asked.fulfil();
                return Outcome::Lost(Loss::HandedOver);
            }
            Err(error) => asked.decline(&error.to_string()),
        }
        if !tenure.is_leader() {
            return Outcome::Lost(tenure.lost().await);
        }
    }
}

/// Judges the end of the work by the clock, at this moment: a loss that nobody was told of yet is a
/// loss. Work that gave the leadership up itself has ended by itself.
async fn ended<T>(tenure: &Tenure, result: T) -> Outcome<T> {
    if tenure.is_leader() {
        return Outcome::Done(result);
    }
    match tenure.lost().await {
        Loss::Resigned | Loss::HandedOver => Outcome::Done(result),
        loss => Outcome::Lost(loss),
    }
}
