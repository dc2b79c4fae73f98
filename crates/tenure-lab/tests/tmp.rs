use tenure_lab::{simulate::*, subject::strong::Strong, sweep::*};
#[test]
fn t() {
    let setup = Setup { nodes: 5, quorums: "majority".into(), faults: Faults::all(), sets: vec![], horizon: None };
    let range = Range { first: 0, seeds: std::env::var("N").unwrap().parse().unwrap(), stop_at_first: false, threads: 2, watch: tenure_lab::stage::Watch{properties:true,..Default::default()} };
    let start = std::time::Instant::now();
    let swept = sweep(&Strong::sound(), &setup, range, &|_| ()).unwrap();
    println!("{:?} {} events", start.elapsed(), swept.events);
    println!("{:?}", swept.counts.sorted());
    println!("{:?}", swept.messages.sorted());
    for (p, c) in &swept.properties { println!("{:24} {:?}", p.name, c); }
    for (s, v) in swept.violations.iter().take(20) { println!("{s} {v:?}"); }
    println!("{}", swept.violations.len());
}
