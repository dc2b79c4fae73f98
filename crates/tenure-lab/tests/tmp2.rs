use tenure_lab::{simulate::*, subject::strong::Strong, stage::Watch};
#[test]
fn t() {
    let seed: u64 = std::env::var("SEED").unwrap().parse().unwrap();
    let setup = Setup { nodes: std::env::var("NODES").unwrap_or("5".into()).parse().unwrap(), quorums: std::env::var("Q").unwrap_or("majority".into()), faults: Faults::all(), sets: vec![], horizon: None };
    let s = simulate(&Strong::sound(), &setup, seed, Watch{properties:true, record:true, ..Watch::default()}).unwrap();
    println!("{}", s.script.unwrap().write::<Strong<tenure_proto::strong::Sound>>());
    println!("{:?}", s.outcome.violation);
}
