use super::*;
use crate::testing::Bench;

fn writes(path: &str, text: &str) -> Step {
    let (path, text) = (path.into(), String::from(text));
    let step = Step::new("a file", Act::Write { path, text: text.clone() });
    let Act::Write { path, .. } = step.act.clone() else { unreachable!() };
    step.undo(Act::Remove { path: path.clone() }).undo_needs(Check::Unchanged { path, text })
}

fn several() -> Plan {
    let mut plan = Plan::new(Of::Provision, "x");
    plan.needs.push(Check::program("mkfs", "e2fsprogs"));
    plan.steps = vec![
        Step::new("made", Act::run(["make", "it"])).undo(Act::run(["unmake", "it"])),
        writes("/etc/systemd/x.unit", "[Unit]\n"),
        Step::new("a line", Act::AddLine { path: "/etc/fstab".into(), line: "UUID=1 /x".into() })
            .undo(Act::RemoveLine { path: "/etc/fstab".into(), line: "UUID=1 /x".into() }),
        Step::new("mounted", Act::run(["mount", "/x"])).undo(Act::run(["umount", "/x"])),
    ];
    plan
}

#[test]
fn what_was_done_is_undone_the_last_step_first() {
    let bench = Bench::new(&[("/etc/fstab", "UUID=0 / ext4")]);
    let before = bench.files();
    let mut plan = several();
    carry_out(&mut plan, &bench, |_, _| ()).expect("carried out");
    assert_eq!(bench.text("/etc/fstab").as_deref(), Some("UUID=0 / ext4\nUUID=1 /x\n"));
    let mut plan = record::load(&bench, "x").expect("a record");
    assert!(plan.steps.iter().all(|step| step.state == State::Done));
    undo(&mut plan, &bench, |_, _| ()).expect("undone");
    assert_eq!(*bench.ran.borrow(), ["make it", "mount /x", "umount /x", "unmake it"]);
    let mut after = bench.files();
    // The line that was there has its end now.
    after.insert("etc/fstab".into(), after["etc/fstab"].trim_end().into());
    assert_eq!(after, before);
}

#[test]
fn whatever_step_fails_undo_takes_back_what_was_begun() {
    for fails_at in 0..2 {
        let bench = Bench::new(&[("/etc/fstab", "UUID=0 / ext4\n")]);
        let before = bench.files();
        bench.fails_at.set(Some(fails_at));
        let mut plan = several();
        carry_out(&mut plan, &bench, |_, _| ()).expect_err("a step fails");
        let mut plan = record::load(&bench, "x").expect("a record");
        undo(&mut plan, &bench, |_, _| ()).expect("undone");
        assert_eq!(bench.files(), before, "{fails_at}");
    }
}

#[test]
fn nothing_is_done_where_a_need_is_not_met() {
    let bench = Bench::new(&[]);
    let before = bench.files();
    bench.missing.borrow_mut().push("mkfs");
    let refused = carry_out(&mut several(), &bench, |_, _| ()).expect_err("no mkfs");
    assert!(refused.to_string().contains("apt-get install e2fsprogs"), "{refused}");
    assert_eq!(bench.files(), before);
    assert!(bench.ran.borrow().is_empty());
}

#[test]
fn what_somebody_changed_since_is_not_taken_away() {
    let bench = Bench::new(&[]);
    let mut plan = several();
    carry_out(&mut plan, &bench, |_, _| ()).expect("carried out");
    bench.write("/etc/systemd/x.unit", "[Unit]\n# mine\n");
    let commands = bench.ran.borrow().len();
    let refused = undo(&mut plan, &bench, |_, _| ()).expect_err("changed");
    assert!(refused.to_string().contains("was changed since"), "{refused}");
    assert_eq!(bench.ran.borrow().len(), commands, "nothing was taken back");
    bench.remove("/etc/systemd/x.unit");
    undo(&mut plan, &bench, |_, _| ()).expect("it is gone: as it should be");
}

#[test]
fn an_undo_that_fails_can_be_tried_again() {
    let bench = Bench::new(&[]);
    let mut plan = several();
    carry_out(&mut plan, &bench, |_, _| ()).expect("carried out");
    bench.fails_at.set(Some(2));
    undo(&mut plan, &bench, |_, _| ()).expect_err("busy");
    let mut plan = record::load(&bench, "x").expect("still there");
    undo(&mut plan, &bench, |_, _| ()).expect("undone");
    record::load(&bench, "x").expect_err("forgotten");
}

#[test]
fn a_name_is_taken_once() {
    let bench = Bench::new(&[]);
    carry_out(&mut several(), &bench, |_, _| ()).expect("carried out");
    let refused = carry_out(&mut several(), &bench, |_, _| ()).expect_err("twice");
    assert!(refused.to_string().contains("already set up"), "{refused}");
    for wrong in ["", "-x", "a/b", "Upper", "thirteen-char"] {
        record::check_name(wrong).expect_err(wrong);
    }
}

#[test]
fn a_pool_that_is_in_use_is_not_removed() {
    let bench = Bench::new(&[("/mnt/p.pool", "x")]);
    let check = Check::PoolIsEmpty { path: "/mnt/p.pool".into() };
    bench.says("seawall inspect", Ok(r#"{"live": 3, "files": [{}]}"#.into()));
    assert!(check.look(&bench).expect_err("live").to_string().contains("still has files"));
    bench.says("seawall inspect", Err("in use".into()));
    check.look(&bench).expect_err("nobody knows");
    bench.says("seawall inspect", Ok(r#"{"live": 0, "files": []}"#.into()));
    check.look(&bench).expect("empty");
}
