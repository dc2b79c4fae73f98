//! A PostgreSQL server of the test's own: made in a temporary folder, reached by a socket in it,
//! gone with the test.
//!
//! It is the real one, of Debian's package, but not the cluster that the package makes: that one
//! may be stopped, full or somebody's. PostgreSQL refuses to run as root, so there it runs as
//! `postgres` or `nobody`.
//!
//! A shell keeps the server. It waits for the end of its input, which comes when the test ends,
//! however it ends, and then ends the server and removes the folder.

use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
use std::{env, fs};

use postgres::{Client, NoTls};

/// The script of the keeper: `$1` has the programs, `$2` is the folder. A machine that stops takes
/// the test with it, so nothing has to reach the disk. Of the signals, the first ends a server that
/// is only beginning, the second one that runs.
const KEEPER: &str = r#"
"$1/initdb" --auth=trust --username=postgres --encoding=UTF8 --locale=C --no-sync "$2/data" >"$2/log" 2>&1 || exit 1
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off >>"$2/log" 2>&1 &
read -r _
kill -TERM $!
kill -QUIT $!
wait
rm -rf "$2"
"#;

/// A running server. It stops when it is dropped, or when the process ends.
pub struct Server {
    folder: PathBuf,
    keeper: Child,
}

impl Server {
    /// The one server that all tests of a process share, each in a [database](Self::database) of
    /// its own.
    pub fn shared() -> &'static Server {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(Server::start)
    }

    /// Makes a cluster and starts it; returns when it answers.
    pub fn start() -> Server {
        let programs = programs();
        let user = user();
        let folder = make_folder(user);
        let mut keeper = Command::new("/bin/sh");
        keeper.args(["-c", KEEPER, "keeper"]).arg(programs).arg(&folder);
        keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own: an interrupt from the terminal is for the test.
        keeper.current_dir(&folder).process_group(0);
        if let Some((uid, gid)) = user {
            keeper.uid(uid).gid(gid);
        }
        let keeper = keeper.spawn().expect("a shell can be started");
        let mut server = Server { folder, keeper };
        server.wait_until_it_answers();
        server
    }

    /// Makes an empty database. Names are lower-case letters and `_`.
    pub fn database(&self, name: &str) -> Database {
        let mut client = Client::connect(&self.url("postgres"), NoTls).unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        Database { url: self.url(name) }
    }

    /// The folder of its socket: `PGHOST` for programs of PostgreSQL.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn url(&self, database: &str) -> String {
        format!("host={} user=postgres dbname={database}", self.folder.display())
    }

    fn wait_until_it_answers(&mut self) {
        const TRIES: u32 = 6000;
        let url = self.url("postgres");
        for _ in 0..TRIES {
            if Client::connect(&url, NoTls).is_ok() {
                return;
            }
            if self.keeper.try_wait().expect("the keeper is our child").is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(20)); // Starting takes as long as it takes; two minutes are too long.
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        panic!("PostgreSQL does not answer in {}. Its log:\n{log}", self.folder.display());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// One database of a server.
pub struct Database {
    url: String,
}

impl Database {
    /// How any client reaches it, in the form of libpq: for another process.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A new connection.
    pub fn connect(&self) -> Client {
        Client::connect(&self.url, NoTls).unwrap()
    }
}

/// Whether this machine has the programs of a server.
pub fn is_installed() -> bool {
    find_programs().is_some()
}

fn programs() -> PathBuf {
    find_programs().expect(
        "this test needs a PostgreSQL server, and there is none in /usr/lib/postgresql/*/bin or on the PATH. Install \
         Debian's package: `apt-get install postgresql`, or `cargo xtask setup`",
    )
}

/// The folder of initdb and postgres: the newest that Debian has installed, or one on the PATH.
fn find_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort();
    let path = env::var_os("PATH").unwrap_or_default();
    let newest_first = versions.into_iter().rev().map(|(_, folder)| folder);
    newest_first
        .chain(env::split_paths(&path))
        .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}

/// The user and group of the server, if not those of this process.
fn user() -> Option<(u32, u32)> {
    let root = fs::metadata("/proc/self").expect("/proc is there").uid() == 0;
    root.then(|| {
        let passwd = fs::read_to_string("/etc/passwd").expect("/etc/passwd can be read");
        let find = |name: &str| {
            let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
            let mut fields = line.split(':').skip(2).map(|field| field.parse().ok());
            Some((fields.next()??, fields.next()??))
        };
        find("postgres")
            .or_else(|| find("nobody"))
            .expect("a user `postgres` or `nobody`, since this is root")
    })
}

fn make_folder(user: Option<(u32, u32)>) -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let folder = env::temp_dir().join(format!("tenure-postgres-{}-{number}", std::process::id()));
    let socket = folder.join(".s.PGSQL.5432");
    assert!(
        socket.as_os_str().len() < 100,
        "a socket cannot have a path this long: set TMPDIR to a shorter one"
    );
    fs::create_dir(&folder).expect("a folder in the temporary folder can be made");
    if let Some((uid, gid)) = user {
        chown(&folder, Some(uid), Some(gid)).expect("root can give a folder away");
    }
    folder
}
