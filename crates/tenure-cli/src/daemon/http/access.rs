//! Tokens and sessions that a daemon accepts now, and the paths by which they change.
//!
//! The list of tokens is a file (`crate::tokens`). A request that shows a token looks at most once
//! a second whether the file has changed, so that a revoked token is refused without a restart. HUP
//! reads it at once.
//!
//! | the file | then |
//! |---|---|
//! | was changed | what it says now counts |
//! | is gone | no token counts: who removes the list revokes all of them |
//! | cannot be read or understood | what was read before counts, and an error is logged |

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use crate::api::Code;
use crate::api::access::{
    AddTokenOrder, Link, LinkOrder, OpenOrder, RevokeTokenOrder, Revoked, SessionOpened, Token, Tokens,
};
use crate::clock::{boottime, date, realtime, unix};
use crate::failure::{Failure, messages};
use crate::founding::write_file;
use crate::settings::Settings;
use crate::tokens::{self, List, Listed, Role};
use crate::trust::{Author, read_secret};

use super::answer::{Order, Refused};
use super::audit::Act;
use super::calendar::Calendar;
use super::desk::Desk;
use super::sessions::{CODE_FOR, SESSION_FOR, Sessions};

/// How often it is looked whether the file has changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The most tokens of one daemon.
const MOST_TOKENS: usize = 1_000;

/// The credentials that a daemon accepts. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Access(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    tokens: TokenFile,
    sessions: Sessions,
    /// The port of HTTP, in the name of the cookie: browsers keep one jar for all ports of a host.
    port: u16,
    /// Whether cookies are for HTTPS only.
    secure: bool,
}

/// The tokens of a file, as they were last read.
#[derive(Clone, Debug)]
pub(super) struct TokenFile {
    path: Option<PathBuf>,
    /// Whose word the configuration is that names it.
    author: Author,
    list: List,
    stamp: Option<Stamp>,
    looked: Duration,
    calendar: Calendar,
}

/// By which a change of a file is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let about = fs::metadata(path).ok()?;
        let changed = (about.mtime(), about.mtime_nsec());
        Some(Self { inode: about.ino(), length: about.len(), changed })
    }
}

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unwelcome {
    /// No token of this list: never one of it, or revoked.
    Unknown,
    /// Its time is over.
    Expired { id: String, since: u64 },
}

impl TokenFile {
    /// As the settings name it. A list that cannot be read is an error; one that is not named is
    /// empty.
    pub(super) fn open(settings: &Settings) -> Result<Self, Failure> {
        let path = settings.daemon.tokens_file.as_ref().map(|path| settings.resolve(path));
        let stamp = path.as_deref().and_then(Stamp::of);
        let author = settings.author();
        let read = path.as_deref().map(|path| read(path, author));
        let list = read.transpose()?.unwrap_or_default();
        let floor = stamp.map_or(0, |stamp| u64::try_from(stamp.changed.0).unwrap_or(0));
        let calendar = Calendar::new(realtime(), boottime(), floor);
        Ok(Self { path, author, list, stamp, looked: boottime(), calendar })
    }

    /// The holder of this token, and what the token allows.
    pub(super) fn check(&mut self, shown: &str) -> Result<(String, Role), Unwelcome> {
        self.look();
        let token = tokens::Token::parse(shown).ok_or(Unwelcome::Unknown)?;
        let listed = self.list.find(token.id()).filter(|listed| listed.hash == token.hash());
        let Listed { id, role, not_after, .. } = listed.ok_or(Unwelcome::Unknown)?.clone();
        match not_after {
            Some(end) if self.now() > end => Err(Unwelcome::Expired { id, since: end }),
            _ => Ok((id, role)),
        }
    }

    fn now(&mut self) -> u64 {
        let now = self.calendar.read(realtime(), boottime());
        if let Some(by_s) = now.jumped_by {
            tracing::error!(name: "tenure.calendar_ignored", by_s, "the calendar jumped: tokens expire by the time since the start, until HUP confirms it");
        }
        now.seconds
    }

    /// Reads the list again if it has changed.
    fn look(&mut self) {
        let now = boottime();
        if now.saturating_sub(self.looked) < LOOK_EVERY {
            return;
        }
        self.looked = now;
        let Some(path) = self.path.clone() else { return };
        let stamp = Stamp::of(&path);
        if stamp == self.stamp {
            return;
        }
        self.stamp = stamp;
        match stamp.map(|_| read(&path, self.author)) {
            Some(Ok(list)) => {
                tracing::info!(name: "tenure.tokens", tokens = list.0.len(), "the list of tokens has changed");
                self.list = list;
            }
            None => {
                tracing::warn!(name: "tenure.tokens", tokens = 0, "the list of tokens is gone: no token counts");
                self.list = List::default();
            }
            Some(Err(reason)) => {
                tracing::error!(name: "tenure.tokens_unread", %reason, "the list of tokens cannot be read: what was read before counts");
            }
        }
    }

    /// Writes another list in its place, durably, before it counts.
    fn replace(&mut self, list: List) -> Result<(), Refused> {
        let Some(path) = &self.path else {
            return Err(Refused::new(
                Code::Declined,
                "this daemon keeps no tokens: set daemon.tokens_file, then HUP it",
            ));
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let draft = path.with_file_name(format!(".{name}.draft"));
        let _ = fs::remove_file(&draft); // Of a daemon that was killed just then.
        let written = write_file(&draft, &list.file(), 0o600).map_err(|failure| failure.to_string());
        let written = written.and_then(|()| fs::rename(&draft, path).map_err(|error| error.to_string()));
        let folder = path.parent().unwrap_or(Path::new("."));
        let written = written.and_then(|()| {
            fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| error.to_string())
        });
        written.map_err(|error| Refused::new(Code::Internal, format!("tokens_file: {error}")))?;
        (self.list, self.stamp) = (list, Stamp::of(path));
        Ok(())
    }
}

/// The list. One that others could write would let them in, and is refused.
fn read(path: &Path, author: Author) -> Result<List, Failure> {
    let text = read_secret("daemon.tokens_file", path, author)?;
    List::parse(&text).map_err(|flaw| messages::token_list_refused(path.display(), flaw))
}

impl Access {
    /// By the settings, for HTTP on a port.
    pub(super) fn new(tokens: TokenFile, port: u16, secure: bool) -> Self {
        Self(Arc::new(Mutex::new(Inner { tokens, sessions: Sessions::default(), port, secure })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over a list that was read again, and the calendar with it.
    pub(super) fn renew(&self, tokens: TokenFile) {
        self.inner().tokens = tokens;
    }

    /// The port is known when the socket is open.
    pub(super) fn set_port(&self, port: u16) {
        self.inner().port = port;
    }

    /// The holder of this token.
    pub(super) fn token(&self, shown: &str) -> Result<(String, Role), Unwelcome> {
        self.inner().tokens.check(shown)
    }

    /// The session of a request, if its cookies have one: for the log, and whether the page has
    /// proved itself.
    pub(super) fn session(&self, cookies: &str, proof: Option<&str>) -> Option<(String, bool)> {
        let inner = self.inner();
        let name = cookie_name(inner.port);
        let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        let (_, cookie) = pairs.find(|(key, _)| *key == name)?;
        let found = inner.sessions.find(cookie, proof, boottime())?;
        Some((found.who, found.is_proved))
    }
}

fn cookie_name(port: u16) -> String {
    format!("tenure-session-{port}")
}

/// `GET /v1/tokens`
pub(super) async fn list(State(desk): State<Desk>) -> Json<Tokens> {
    let mut inner = desk.access.inner();
    inner.tokens.look();
    Json(Tokens { tokens: inner.tokens.list.0.iter().map(shown).collect() })
}

fn shown(listed: &Listed) -> Token {
    Token {
        id: listed.id.clone(),
        role: listed.role,
        not_after: listed.not_after.map(date),
        note: listed.note.clone(),
    }
}

/// `POST /v1/tokens/add`
pub(super) async fn add(
    State(desk): State<Desk>,
    Extension(act): Extension<Act>,
    Order(order): Order<AddTokenOrder>,
) -> Result<Json<Token>, Refused> {
    act.about(format_args!("{} {}", order.id, order.role));
    let until = order.not_after.as_deref().map(|text| {
        unix(text).ok_or_else(|| Refused::bad("not_after: write a time as 2027-01-31T00:00:00Z"))
    });
    let listed = Listed {
        id: tokens::id(&order.id).map_err(Refused::bad)?,
        role: order.role,
        hash: order.sha256.parse().map_err(|error: String| Refused::bad(format!("sha256: {error}")))?,
        not_after: until.transpose()?,
        note: order.note.unwrap_or_default(),
    };
    let mut inner = desk.access.inner();
    inner.tokens.look();
    let mut list = inner.tokens.list.clone();
    match list.find(&listed.id) {
        // The same token told twice is no error: so a command may be repeated.
        Some(known) if known.hash == listed.hash && known.role == listed.role => {
            return Ok(Json(shown(known)));
        }
        Some(_) => {
            return Err(Refused::new(
                Code::Declined,
                format!("there is another token {} here: revoke it first, or draw a new one", listed.id),
            ));
        }
        None if list.0.len() >= MOST_TOKENS => {
            return Err(Refused::new(
                Code::Declined,
                format!("there are {MOST_TOKENS} tokens here already: revoke some first"),
            ));
        }
        None => {}
    }
    // An entry that a file cannot express must not come into it.
    let listed: Listed = listed.to_string().parse().map_err(Refused::bad)?;
    let answer = shown(&listed);
    list.0.push(listed);
    inner.tokens.replace(list)?;
    Ok(Json(answer))
}

/// `POST /v1/tokens/revoke`
pub(super) async fn revoke(
    State(desk): State<Desk>,
    Extension(act): Extension<Act>,
    Order(order): Order<RevokeTokenOrder>,
) -> Result<Json<Revoked>, Refused> {
    act.about(&order.id);
    let id = tokens::id(&order.id).map_err(Refused::bad)?;
    let mut inner = desk.access.inner();
    inner.tokens.look();
    let mut list = inner.tokens.list.clone();
    list.0.retain(|listed| listed.id != id);
    let was_there = list != inner.tokens.list;
    if was_there {
        inner.tokens.replace(list)?;
    }
    Ok(Json(Revoked { id, was_there }))
}

/// `POST /v1/session/link`
pub(super) async fn link(
    State(desk): State<Desk>,
    Extension(act): Extension<Act>,
    Order(LinkOrder {}): Order<LinkOrder>,
) -> Json<Link> {
    let mut inner = desk.access.inner();
    let code = inner.sessions.offer(&act.who(), boottime());
    let scheme = if inner.secure { "https" } else { "http" };
    let port = inner.port;
    let url = desk.page.map(|mut address| {
        address.set_port(port);
        format!("{scheme}://{address}/#code={code}")
    });
    Json(Link { code, url, good_for_s: CODE_FOR.as_secs() })
}

/// `POST /v1/session`
pub(super) async fn open(
    State(desk): State<Desk>,
    Extension(act): Extension<Act>,
    Order(order): Order<OpenOrder>,
) -> Result<Response, Refused> {
    let mut inner = desk.access.inner();
    let opened = inner.sessions.open(&order.code, boottime()).ok_or_else(|| {
        Refused::new(
            Code::BadToken,
            "the code of this link was used or is too old: get another with `tenure token link`",
        )
    })?;
    act.about(&opened.who);
    let secure = if inner.secure { "; Secure" } else { "" };
    let (name, seconds) = (cookie_name(inner.port), SESSION_FOR.as_secs());
    let cookie =
        format!("{name}={}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}", opened.cookie);
    let body = SessionOpened { proof: opened.proof, role: Role::Operate, good_for_s: seconds };
    Ok(([(SET_COOKIE, cookie)], Json(body)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Token;

    struct Scene {
        folder: tempfile::TempDir,
        settings: Settings,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let text = "[daemon]\ntokens_file = \"tokens\"\n".to_owned();
            let settings = Settings::read(&folder.path().join("tenure.toml"), text).unwrap();
            Self { folder, settings }
        }

        fn write(&self, listed: &[Listed]) {
            let path = self.folder.path().join("tokens");
            let _ = fs::remove_file(&path);
            write_file(&path, &List(listed.to_vec()).file(), 0o600).unwrap();
        }

        /// The file, and always a look at it.
        fn file(&self) -> TokenFile {
            TokenFile::open(&self.settings).unwrap()
        }
    }

    /// Checks as if the last look were long ago.
    fn check(file: &mut TokenFile, token: &Token) -> Result<(String, Role), Unwelcome> {
        file.looked = Duration::ZERO;
        file.check(token.reveal())
    }

    #[test]
    fn a_revoked_token_is_refused_without_a_restart_and_the_others_stay() {
        let (scene, one, other) = (Scene::new(), Token::draw(), Token::draw());
        let listed = [one.listed(Role::Admin, None, ""), other.listed(Role::Read, None, "")];
        scene.write(&listed);
        let mut file = scene.file();
        assert_eq!(check(&mut file, &one), Ok((one.id().to_owned(), Role::Admin)));
        scene.write(&listed[1..]);
        assert_eq!(check(&mut file, &one), Err(Unwelcome::Unknown));
        assert_eq!(check(&mut file, &other), Ok((other.id().to_owned(), Role::Read)));
    }

    #[test]
    fn a_list_that_is_gone_revokes_all_and_one_that_is_broken_changes_nothing() {
        let (scene, token) = (Scene::new(), Token::draw());
        scene.write(&[token.listed(Role::Admin, None, "")]);
        let mut file = scene.file();
        fs::write(scene.folder.path().join("tokens"), "what?").unwrap();
        assert!(check(&mut file, &token).is_ok(), "what was read before counts");
        assert!(TokenFile::open(&scene.settings).is_err(), "at a start and on HUP it is an error");
        fs::remove_file(scene.folder.path().join("tokens")).unwrap();
        assert_eq!(check(&mut file, &token), Err(Unwelcome::Unknown));
    }

    #[test]
    fn a_token_with_the_id_of_another_is_refused() {
        let (scene, token) = (Scene::new(), Token::draw());
        scene.write(&[token.listed(Role::Admin, None, "")]);
        let forged = format!("{}{}", &token.reveal()[..24], "0".repeat(64));
        assert_eq!(Token::parse(&forged).unwrap().id(), token.id());
        assert_eq!(scene.file().check(&forged), Err(Unwelcome::Unknown));
    }

    #[test]
    fn a_token_expires_and_a_calendar_that_jumps_does_not_end_it() {
        let (scene, token) = (Scene::new(), Token::draw());
        let now = realtime();
        scene.write(&[token.listed(Role::Operate, Some(now - 10), "")]);
        let mut file = scene.file();
        assert_eq!(
            check(&mut file, &token),
            Err(Unwelcome::Expired { id: token.id().to_owned(), since: now - 10 })
        );
        scene.write(&[token.listed(Role::Operate, Some(now + 86_400), "")]);
        let mut file = scene.file();
        // As if the daemon had started ten years ago by its calendar and just now by its boot
        // clock.
        file.calendar = Calendar::new(now - 10 * 365 * 86_400, boottime(), 0);
        assert!(check(&mut file, &token).is_ok());
    }
}
