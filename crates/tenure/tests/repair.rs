//! Reports, plans and repaired stores, as a program uses them.

use tenure::repair::{Applied, Plan, RepairError, Report};
use tenure::{ClusterId, ClusterKey, Config, Key, Node, StoreError, Term, peers};

const ABSURD: Term = Term(1 << 40);
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Three founded members that never ran; their terms begin above `floor`.
fn founded(floor: Term) -> (tempfile::TempDir, Vec<Config>) {
    let dir = tempfile::tempdir().unwrap();
    let (key, cluster) = (ClusterKey::generate(), ClusterId::draw());
    let config = |name: &&str| {
        let mut config = Config::new(name, Key::Cluster(key.clone()));
        config.members = peers([("a", "127.0.0.1:7401"), ("b", "127.0.0.1:7402"), ("c", "127.0.0.1:7403")]);
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        config.store = Some(dir.path().join(name));
        Node::found(&config, cluster, floor).unwrap();
        config
    };
    let configs = NAMES.iter().map(config).collect();
    (dir, configs)
}

fn reports(configs: &[Config]) -> Vec<Report> {
    configs.iter().map(|config| Report::read(config).unwrap()).collect()
}

#[test]
fn absurd_terms_are_repaired_and_a_second_time_is_fine() {
    let (_dir, configs) = founded(ABSURD);
    let reports = reports(&configs);
    assert_eq!((reports[0].ceiling(), reports[0].name().as_str()), (ABSURD, "a"));
    let plan = Plan::new(&reports, None, &["jobs".to_owned()]).unwrap();
    assert!(plan.floor() >= Plan::lowest_floor() || plan.floor().0 + 60 > Plan::lowest_floor().0);
    assert_eq!((plan.barred().len(), plan.members().count()), (1, 3));
    for config in &configs {
        assert_eq!(plan.apply(config).unwrap(), Applied::Now);
        assert_eq!(plan.apply(config).unwrap(), Applied::Before);
        let after = Report::read(config).unwrap();
        assert_eq!((after.ceiling(), after.epoch()), (plan.floor(), Some(plan.epoch())));
    }
}

#[test]
fn texts_come_back_as_they_were_written_and_a_changed_one_is_refused() {
    let (_dir, configs) = founded(ABSURD);
    let reports = reports(&configs);
    let text = reports[1].to_text();
    assert_eq!(Report::parse(&text).unwrap(), reports[1]);
    let plan = Plan::new(&reports, None, &[]).unwrap();
    assert_eq!(Plan::parse(&plan.to_text()).unwrap(), plan);
    assert!(matches!(Plan::parse(&text), Err(RepairError::Text { .. })), "a report is no plan");
    for (text, is_plan) in [(text, false), (plan.to_text(), true)] {
        let changed = [
            String::new(),
            text.replacen("ceiling 1099511627776", "ceiling 5", 1).replacen("floor ", "floor 1", 1),
            text.lines().take(3).collect::<Vec<_>>().join("\n"),
            text.replacen('1', "2", 1),
        ];
        for changed in changed {
            let refused = match is_plan {
                true => Plan::parse(&changed).err(),
                false => Report::parse(&changed).err(),
            };
            assert!(matches!(refused, Some(RepairError::Text { .. })), "{changed}");
        }
    }
}

#[test]
fn what_does_not_allow_a_plan_is_named() {
    let (_dir, configs) = founded(ABSURD);
    let all = reports(&configs);
    let refused = |reports: &[Report], floor: Option<u64>, bar: &[String]| {
        Plan::new(reports, floor.map(Term), bar).unwrap_err().to_string()
    };
    assert!(refused(&all[..2], None, &[]).contains("c is a member, and its report is missing"));
    assert!(refused(&all, Some(5), &[]).contains("the floor must be at least"));
    assert!(refused(&all, Some(1 << 31), &[]).contains("packed tokens"));
    assert!(refused(&all, None, &["no group".to_owned()]).contains("no group"));
    let (_other, others) = founded(Term(1000));
    assert!(refused(&reports(&others), None, &[]).contains("there is nothing to repair"));
    let mixed = [all[0].clone(), reports(&others)[1].clone()];
    assert!(refused(&mixed, None, &[]).contains("b is of another cluster"));
}

#[tokio::test]
async fn a_member_that_runs_or_has_run_since_is_refused() {
    let (_dir, configs) = founded(ABSURD);
    let plan = Plan::new(&reports(&configs), None, &[]).unwrap();
    let node = Node::start(configs[0].clone()).await.unwrap();
    let runs = |error: RepairError| matches!(error, RepairError::Store(StoreError::InUse { .. }));
    assert!(runs(Report::read(&configs[0]).unwrap_err()));
    assert!(runs(plan.apply(&configs[0]).unwrap_err()));
    node.shutdown().await;
    let changed = plan.apply(&configs[0]).unwrap_err();
    assert!(matches!(changed, RepairError::Store(StoreError::Changed { .. })), "{changed}");
    assert_eq!(plan.apply(&configs[1]).unwrap(), Applied::Now);
    let folder = tenure::memory_folder(None).unwrap();
    let cluster = Report::read(&configs[0]).unwrap().to_text();
    let id = cluster.lines().find_map(|line| line.strip_prefix("cluster ")).unwrap();
    let _ = std::fs::remove_file(folder.join(format!("tenure-{id}-a")));
}
