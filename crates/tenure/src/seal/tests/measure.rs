use super::*;
use std::time::Instant;
#[allow(clippy::disallowed_methods, reason = "measuring")]
fn time(what: &str, n: u64, mut f: impl FnMut(u64)) {
    for i in 0..n / 10 {
        f(i)
    }
    let mut best = f64::MAX;
    for round in 0..5 {
        let t = Instant::now();
        for i in 0..n {
            f(n / 10 + round * n + i)
        }
        best = best.min(t.elapsed().as_nanos() as f64 / n as f64);
    }
    println!("{what}: {best:.0} ns");
}
fn rss() -> u64 {
    let s = std::fs::read_to_string("/proc/self/statm").unwrap();
    s.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
#[test]
fn measure() {
    let (mut a, mut b) = pair();
    shake(&mut a, &mut b, at(0));
    let long = vec![7u8; MAX_PACKET - OVERHEAD];
    let id = b.name.id();
    time("seal 1200", 100_000, |_| {
        std::hint::black_box(a.sessions.seal(id, &long, Expect::Nothing, at(1)));
    });
    let mut packets: Vec<_> =
        (0..600_000).map(|_| a.sessions.seal(id, &long, Expect::Nothing, at(1)).unwrap().0).collect();
    let from = a.address;
    time("open 1200", 100_000, |i| {
        let p = &mut packets[i as usize];
        assert!(matches!(b.sessions.receive(p, from, at(1)), Received::Data { .. }));
    });
    time("replayed 1200 (window)", 100_000, |i| {
        let p = &mut packets[i as usize];
        assert!(matches!(b.sessions.receive(p, from, at(1)), Received::Dropped(_)));
    });
    drop(packets);
    let short = vec![7u8; 100];
    time("seal 134", 100_000, |_| {
        std::hint::black_box(a.sessions.seal(id, &short, Expect::Nothing, at(1)));
    });
    let mut bad = a.sessions.seal(id, &long, Expect::Nothing, at(1)).unwrap().0;
    let good = bad.clone();
    time("forged data 1200", 100_000, |_| {
        bad.copy_from_slice(&good);
        bad[50] ^= 1;
        assert!(matches!(b.sessions.receive(&mut bad, from, at(1)), Received::Dropped(Refusal::Forged)));
    });
    let mut garbage = vec![0x55u8; 1200];
    time("foreign garbage", 1_000_000, |_| {
        assert!(matches!(b.sessions.receive(&mut garbage, from, at(1)), Received::Dropped(Refusal::Foreign)));
    });
    let mut c = Node::member("c", 3);
    let mut hello = c.hello(&b, at(0));
    println!("hello {}", hello.len());
    hello[100] ^= 1;
    time("hello without a key", 100_000, |_| {
        assert!(matches!(b.sessions.receive(&mut hello, from, at(1)), Received::Dropped(Refusal::Forged)));
    });
    hello[100] ^= 1;
    let orig = hello.clone();
    time("hello answered", 10_000, |i| {
        hello.copy_from_slice(&orig);
        assert!(matches!(b.sessions.receive(&mut hello, from, at(1_000 * i)), Received::Reply(_)));
    });
    time("hello limited", 100_000, |_| {
        hello.copy_from_slice(&orig);
        b.sessions.receive(&mut hello, from, at(0));
    });
    let mut big = Node::new(Node::member("big", 9).identity, 9, Limits { peers: 20_000, ..limits() });
    let mut apps: Vec<_> = (0..10_000).map(|n| Node::candidate(&format!("app{n}"), "app1/*", 4)).collect();
    let mut firsts = Vec::new();
    for (n, app) in apps.iter_mut().enumerate() {
        let now = at(n as u64);
        let h = app.hello(&big, now);
        let w = big.get(&h, app.address, now).reply();
        let f = app.get(&w, big.address, now).reply();
        firsts.push((f, app.address, now));
    }
    let before = rss();
    let t = Instant::now();
    for (f, a, now) in &mut firsts {
        assert!(matches!(big.sessions.receive(f, *a, *now), Received::Ready { .. }));
    }
    println!("first accepted: {:.0} ns", t.elapsed().as_nanos() as f64 / 10_000.0);
    println!("per peer: {} bytes", (rss() - before) / 10_000);
    println!("link {}", std::mem::size_of::<super::super::link::Link>());
}
