use super::*;

fn write(at: usize, data: &[u8]) -> Change {
    Change::Write(at, Rc::new(data.to_vec()))
}

#[test]
fn logged_changes_come_whole_and_in_order() {
    let mut model = Model::holding(b"aaaa".to_vec());
    model.begin(0, write(0, b"bb"));
    assert!(model.check(b"bbaa").is_ok() && model.check(b"aaaa").is_ok());
    assert!(model.check(b"baaa").is_err(), "torn");
    let first = model.publish(0, write(0, b"bb"), true);
    model.publish(1, write(2, b"cc"), true);
    assert!(model.check(b"aacc").is_err(), "out of order");
    model.returned(first);
    assert!(model.check(b"aaaa").is_err(), "lost");
    assert!(model.check(b"bbaa").is_ok() && model.check(b"bbcc").is_ok());
}

/// Seed 406 of 22 November 2026: the record of a dead process, whose publish nobody could finish because the disk
/// failed, lies behind the end at which another process appends.
#[test]
fn regression_an_append_begins_at_the_end_that_the_kernel_sees() {
    let mut model = Model::holding(b"aa".to_vec());
    model.begin(1, write(6, b"dd"));
    assert!(model.died(1));
    let append = Change::Append(Rc::new(b"cc".to_vec()));
    model.begin(0, append.clone());
    model.end = 2;
    assert_eq!(model.check(b"aacc\0\0dd"), Ok(()));
    assert!(model.check(b"aa\0\0cc\0\0").is_err(), "nobody saw that end");
    let seq = model.publish(0, append.at(2), true);
    model.returned(seq);
    assert_eq!((model.check(b"aacc\0\0dd"), model.check(b"aacc")), (Ok(()), Ok(())));
}

#[test]
fn unlogged_changes_may_be_torn_but_not_invented() {
    let mut model = Model::holding(b"aaaa".to_vec());
    let seq = model.push(write(1, b"bbbb"), false);
    assert!(model.check(b"aba").is_err(), "a size that was never written");
    assert!(model.check(b"ababb").is_ok());
    assert!(model.check(b"acabb").is_err());
    model.acknowledge(seq);
    assert!(model.check(b"ababb").is_err());
}
