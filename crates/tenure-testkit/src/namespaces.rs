//! Network namespaces on one bridge: each process of a test on a host of its own, and cables
//! that can be cut.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Which way a host is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It neither speaks nor hears.
    Both,
    /// It speaks and hears nothing.
    In,
    /// It hears and is not heard.
    Out,
}

/// All hosts of a test, gone with it.
pub struct Net {
    prefix: String,
    hosts: u8,
}

impl Net {
    /// This many hosts, numbered from 1; an error where namespaces cannot be made.
    pub fn make(hosts: u8) -> io::Result<Self> {
        let net = Self { prefix: format!("tt{}", std::process::id()), hosts };
        let hub = net.name(0);
        ip(&["netns", "add", &hub])?;
        ip(&["-n", &hub, "link", "add", "br0", "type", "bridge"])?;
        ip(&["-n", &hub, "link", "set", "br0", "up"])?;
        for host in 1..=hosts {
            let (name, port) = (net.name(host), format!("p{host}"));
            ip(&["netns", "add", &name])?;
            ip(&["-n", &hub, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &name])?;
            ip(&["-n", &hub, "link", "set", &port, "master", "br0", "up"])?;
            ip(&["-n", &name, "addr", "add", &format!("{}/24", address(host)), "dev", "eth0"])?;
            ip(&["-n", &name, "link", "set", "eth0", "up"])?;
            ip(&["-n", &name, "link", "set", "lo", "up"])?;
        }
        net.cut(1, Cut::Both)?; // So that a missing nft is noticed now.
        net.heal(1);
        Ok(net)
    }

    fn name(&self, host: u8) -> String {
        format!("{}-{host}", self.prefix)
    }

    /// A program on a host. It has the number of the process that is started.
    pub fn command(&self, host: u8, program: impl Into<PathBuf>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.name(host))).arg("--").arg(program.into());
        command
    }

    /// Moves the calling thread, and the processes that it starts, to a host for good.
    pub fn enter(&self, host: u8) -> io::Result<()> {
        let place = fs::File::open(format!("/run/netns/{}", self.name(host)))?;
        move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    }

    /// Cuts a host off.
    pub fn cut(&self, host: u8, cut: Cut) -> io::Result<()> {
        let drop = |hook: &str, name: &str| {
            format!("chain {hook} {{ type filter hook {hook} priority 0; {name} != \"lo\" drop; }};")
        };
        let (hears, speaks) = (drop("input", "iifname"), drop("output", "oifname"));
        let chains = match cut {
            Cut::Both => hears + &speaks,
            Cut::In => hears,
            Cut::Out => speaks,
        };
        succeed(self.command(host, "nft").arg(format!("table inet cut {{ {chains} }}")))
    }

    /// A host does not hear some others any more.
    pub fn part(&self, host: u8, others: impl Iterator<Item = u8>) -> io::Result<()> {
        let others: Vec<String> = others.map(address).collect();
        let chain = format!(
            "chain input {{ type filter hook input priority 0; ip saddr {{ {} }} drop; }};",
            others.join(", ")
        );
        succeed(self.command(host, "nft").arg(format!("table inet cut {{ {chain} }}")))
    }

    /// Undoes every cut of a host.
    pub fn heal(&self, host: u8) {
        let _ = succeed(self.command(host, "nft").args(["delete", "table", "inet", "cut"])); // If it was cut.
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for host in 0..=self.hosts {
            if fs::exists(format!("/run/netns/{}", self.name(host))).unwrap_or(false) {
                let _ = ip(&["netns", "del", &self.name(host)]);
            }
        }
    }
}

/// The address of a host.
pub fn address(host: u8) -> String {
    format!("10.77.0.{host}")
}

fn ip(words: &[&str]) -> io::Result<()> {
    succeed(Command::new("ip").args(words))
}

fn succeed(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(io::Error::other(format!("{command:?}: {said}"))) }
}
