use tenure_lab::{simulate::*, subject::strong::Strong, sweep::*};
fn env(k: &str, d: &str) -> String { std::env::var(k).unwrap_or(d.into()) }
#[test]
fn t() {
    let setup = Setup { nodes: env("NODES","5").parse().unwrap(), quorums: env("Q","majority"), faults: Faults::parse(&env("F","all")).unwrap(), sets: vec![], horizon: None };
    let range = Range { first: env("FIRST","0").parse().unwrap(), seeds: env("N","2000").parse().unwrap(), stop_at_first: false, threads: 2, watch: tenure_lab::stage::Watch{properties:true,..Default::default()} };
    let start = std::time::Instant::now();
    let swept = sweep(&Strong::sound(), &setup, range, &|_| ()).unwrap();
    println!("{:?} {} events", start.elapsed(), swept.events);
    println!("elections {}", swept.counts.get("elections"));
    for (p, c) in &swept.properties { if c[4]>0||c[2]>0 {println!("{:24} {:?}", p.name, c);} }
    for (s, v) in swept.violations.iter().take(8) { println!("{s} {v:?}"); }
    println!("violations {}", swept.violations.len());
}
