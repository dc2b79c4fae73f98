//! `tenure token`: who may do what over HTTP.
//!
//! Every daemon has a list of its own, so that a command tells each of them, and says which have
//! it. Daemons are told the SHA-256 of a token and never the token.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use futures_util::future::join_all;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::asked::endpoints;
use crate::api::access::{AddTokenOrder, Link, LinkOrder, RevokeTokenOrder, Revoked, Token as Shown, Tokens};
use crate::arguments::Common;
use crate::client::{self, Asking, Client};
use crate::clock::{date, realtime};
use crate::failure::{Failure, messages};
use crate::founding::write_file;
use crate::output::{Answer, Table, Verdict};
use crate::settings::Settings;
use crate::tokens::{Role, Token as Secret, id};
use crate::trust::{Author, read_secret};

/// Make, list and revoke tokens for HTTP.
#[derive(Args, Debug)]
#[command(
    after_help = "A token lets its owner ask daemons over TCP: read (status, leader), operate (resign, transfer,
proclaim) or admin (members, tokens). Commands of the daemon's own user and of root need none:
they use its unix socket. Every daemon keeps a list of its own; a command tells all that it
knows, and says which have it.

Examples:
  tenure token create --role operate --expires 30d --note 'nightly job' --out job.token
  tenure token list
  tenure token revoke 7f3a9c21
  tenure token link                a page for the browser, with a one-time code

Exit codes: 0 all daemons have it, 2 error, 69 not all daemons answer, 77 not allowed, 78 the
configuration must be changed first"
)]
pub(crate) struct Token {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Draw a token and tell the daemons of it
    Create(Create),
    /// Show the tokens that each daemon accepts
    List(List),
    /// Have no daemon accept a token any more
    Revoke(Revoke),
    /// Print a link to the page, with a one-time code
    Link(OneTime),
}

/// Draw a token and tell the daemons of it.
#[derive(Args, Debug)]
#[command(
    after_help = "The token is shown once, here: daemons keep its SHA-256 only. Daemons that did not answer are
told later with --from FILE, which draws none.

Examples:
  tenure token create --role read
  tenure token create --role operate --expires 30d --out job.token
  tenure token create --role operate --from job.token

Exit codes: 0 all daemons have it, 2 error, 69 not all daemons answer, 77 not allowed, 78 the
configuration must be changed first"
)]
struct Create {
    /// Its use
    #[arg(long, value_name = "ROLE", value_enum)]
    role: Role,
    /// For how long it is good: a number and s, m, h or d [default: until it is revoked]
    #[arg(long, value_name = "D", value_parser = life)]
    expires: Option<Duration>,
    /// For whom it is, for people
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Where to write it, readable by its owner only [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A token that was drawn before, for daemons that do not have it yet
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    from: Option<PathBuf>,
    #[command(flatten)]
    asking: Asking,
}

/// Show the tokens that each daemon accepts.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tenure token list
  tenure token list -o json

Exit codes: 0 all daemons answered, 2 error, 69 not all daemons answer, 77 not allowed, 78 the
configuration must be changed first")]
struct List {
    #[command(flatten)]
    asking: Asking,
}

/// Have no daemon accept a token any more.
#[derive(Args, Debug)]
#[command(
    after_help = "Holds at once at each daemon that answers. A daemon that does not answer accepts the token until
it is told: ask again, or remove the line from its list.

Examples:
  tenure token revoke 7f3a9c21

Exit codes: 0 no daemon accepts it, 2 error, 69 not all daemons answer, 77 not allowed, 78 the
configuration must be changed first"
)]
struct Revoke {
    /// The id of the token, as `tenure token list` shows it
    #[arg(value_parser = id)]
    id: String,
    #[command(flatten)]
    asking: Asking,
}

/// Print a link to the page, with a one-time code.
#[derive(Args, Debug)]
#[command(
    after_help = "The first browser that opens the link gets a session of an hour, of the role operate.

Examples:
  tenure token link
  tenure token link --endpoint http://127.0.0.1:7403

Exit codes: 0 done, 2 error, 69 no daemon answers, 77 not allowed, 78 the configuration must be
changed first"
)]
struct OneTime {
    #[command(flatten)]
    asking: Asking,
}

impl Token {
    /// Does it.
    pub(crate) fn run(self, common: &Common) -> Result<Answer, Failure> {
        match self.command {
            Command::Create(create) => create.run(common),
            Command::List(list) => list.run(common),
            Command::Revoke(revoke) => revoke.run(common),
            Command::Link(link) => link.run(common),
        }
    }
}

impl Create {
    fn run(self, common: &Common) -> Result<Answer, Failure> {
        let daemons = Daemons::new(common, &self.asking)?;
        let secret = match &self.from {
            None => Secret::draw(),
            Some(path) => Secret::parse(read_secret("--from", path, Author::Trusted)?.trim())
                .ok_or_else(|| messages::token_from_empty(path.display()))?,
        };
        let not_after = self.expires.map(|life| date(realtime() + life.as_secs()));
        let order = AddTokenOrder {
            id: secret.id().to_owned(),
            role: self.role,
            sha256: secret.hash().to_string(),
            not_after: not_after.clone(),
            note: Some(self.note),
        };
        // Before anybody is told: a token that cannot be written down must not hold.
        if let Some(path) = &self.out {
            write_file(path, &format!("{}\n", secret.reveal()), 0o600)?;
        }
        let told = client::block_on(daemons.all::<Shown>("/v1/tokens/add", Some(&order)))?;
        if told.iter().all(|told| told.answer.is_err()) {
            self.out.iter().for_each(|path| drop(std::fs::remove_file(path)));
            return Err(first_failure(told));
        }
        let shown = self.out.is_none() && self.from.is_none();
        let token = shown.then(|| secret.reveal().to_owned());
        let json = || {
            json!({
                "id": secret.id(), "role": self.role, "not_after": not_after, "token": token,
                "daemons": reached(&told, |_| json!({})),
            })
        };
        let text = || token.as_ref().map_or_else(String::new, |token| format!("{token}\n"));
        let mut answer = Answer::new(common.output, json, text);
        let until = not_after.as_ref().map_or_else(String::new, |end| format!(" until {end}"));
        answer.notes.push(format!("token {} ({}) holds{until}", secret.id(), self.role));
        Ok(finish(answer, &told, |_| "has it".to_owned()))
    }
}

impl List {
    fn run(self, common: &Common) -> Result<Answer, Failure> {
        let daemons = Daemons::new(common, &self.asking)?;
        let told = client::block_on(daemons.all::<Tokens>("/v1/tokens", None::<&()>))?;
        if told.iter().all(|told| told.answer.is_err()) {
            return Err(first_failure(told));
        }
        let json = || json!({ "daemons": reached(&told, |tokens| json!({ "tokens": tokens.tokens })) });
        let text = || {
            let mut table = Table::new(["daemon", "id", "role", "not after", "note"]);
            for Told { endpoint, answer } in &told {
                for token in answer.iter().flat_map(|tokens| &tokens.tokens) {
                    let until = token.not_after.clone().unwrap_or_else(|| "-".to_owned());
                    let role = token.role.name().to_owned();
                    table.row([endpoint.clone(), token.id.clone(), role, until, token.note.clone()]);
                }
            }
            table.render()
        };
        Ok(finish(Answer::new(common.output, json, text), &told, |_| String::new()))
    }
}

impl Revoke {
    fn run(self, common: &Common) -> Result<Answer, Failure> {
        let daemons = Daemons::new(common, &self.asking)?;
        let order = RevokeTokenOrder { id: self.id.clone() };
        let told = client::block_on(daemons.all::<Revoked>("/v1/tokens/revoke", Some(&order)))?;
        if told.iter().all(|told| told.answer.is_err()) {
            return Err(first_failure(told));
        }
        let daemons = || reached(&told, |revoked| json!({ "was_there": revoked.was_there }));
        let json = || json!({ "id": self.id, "daemons": daemons() });
        let answer = Answer::new(common.output, json, String::new);
        let said = |revoked: &Revoked| match revoked.was_there {
            true => format!("token {} is revoked", revoked.id),
            false => format!("there was no token {}", revoked.id),
        };
        Ok(finish(answer, &told, said))
    }
}

impl OneTime {
    fn run(self, common: &Common) -> Result<Answer, Failure> {
        let client = self.asking.client(common)?;
        let link: Link = client::block_on(client.post("/v1/session/link", &LinkOrder {}))??;
        let url = link.url.clone().ok_or_else(messages::no_page)?;
        Ok(Answer::new(common.output, || json!(link), || format!("{url}\n")))
    }
}

/// Every daemon that is known, each asked by itself.
struct Daemons {
    settings: Settings,
    endpoints: Vec<String>,
    patience: Duration,
}

/// The answer of one daemon.
struct Told<T> {
    endpoint: String,
    answer: Result<T, Failure>,
}

impl Daemons {
    fn new(common: &Common, asking: &Asking) -> Result<Self, Failure> {
        let patience = asking.client(common)?.timeout(); // And refuses if none is known.
        let settings = Settings::find_or_none(common.config.as_deref())?;
        let endpoints = endpoints(&settings, &asking.endpoint);
        Ok(Self { settings, endpoints, patience })
    }

    /// Asks all at once; without an order it is a question.
    async fn all<T: DeserializeOwned>(&self, path: &str, order: Option<&impl Serialize>) -> Vec<Told<T>> {
        let one = async |endpoint: &String| {
            let answer = match Client::new(&self.settings, std::slice::from_ref(endpoint), self.patience) {
                Err(failure) => Err(failure),
                Ok(client) => match order {
                    Some(order) => client.post(path, order).await.map_err(Failure::from),
                    None => client.get(path).await.map_err(Failure::from),
                },
            };
            Told { endpoint: endpoint.clone(), answer }
        };
        join_all(self.endpoints.iter().map(one)).await
    }
}

/// None of them did it: why not, by the first.
fn first_failure<T>(told: Vec<Told<T>>) -> Failure {
    let failures = told.into_iter().filter_map(|told| told.answer.err());
    failures
        .reduce(|first, next| if next.code() == 77 { next } else { first })
        .unwrap_or_else(messages::no_endpoint)
}

/// The answer of each, for programs.
fn reached<T>(told: &[Told<T>], said: impl Fn(&T) -> Value) -> Vec<Value> {
    let one = |told: &Told<T>| {
        let (mut value, problem) = match &told.answer {
            Ok(answer) => (said(answer), None),
            Err(failure) => (json!({}), Some(failure.to_string())),
        };
        value["endpoint"] = json!(told.endpoint);
        value["error"] = json!(problem);
        value
    };
    told.iter().map(one).collect()
}

/// Says of each what it did. Not all of them is a failure of the whole: its exit code is that of
/// the first that did not.
fn finish<T>(mut answer: Answer, told: &[Told<T>], said: impl Fn(&T) -> String) -> Answer {
    for Told { endpoint, answer: one } in told {
        match one {
            Ok(one) => {
                let said = said(one);
                if !said.is_empty() {
                    answer.notes.push(format!("{endpoint}: {said}"));
                }
            }
            Err(failure) => {
                answer.notes.push(format!("{endpoint}: NOT done: {failure}"));
                answer.verdict = Verdict::Code(failure.code());
            }
        }
    }
    answer
}

/// How long a token is good.
fn life(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no length of time: write a number and s, m, h or d, as in 30d");
    let at = text.len().saturating_sub(1);
    let (number, unit) = text.split_at_checked(at).ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let seconds = number.checked_mul(unit).filter(|seconds| (1..=100 * 365 * 86_400).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_of_tokens_have_units() {
        assert_eq!(life("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(life("1h"), Ok(Duration::from_secs(3_600)));
        for wrong in ["", "d", "30", "0s", "-1d", "1w", "99999999999d", "1ä"] {
            assert!(life(wrong).is_err(), "{wrong}");
        }
    }
}
