//! Who is let in, by which certificate, and what each end says of one that is not right.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use seawall_keeper::guests::Limits;
use seawall_keeper::peer::{Peer, PeerError};
use seawall_keeper::tls::making::{For, Validity};
use seawall_keeper::transport::Transport;
use seawall_wire::keeper::Refusal;

use crate::ends::{Authority, IMAGE, PATIENCE, epoch, run, run_in, tls};

const DAY: i64 = 86_400;

/// Seconds since 1970.
fn now() -> i64 {
    std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs() as i64
}

// Holds: R21
#[test]
fn a_log_is_written_and_read_by_its_owner_and_by_nobody_else() {
    let ca = Authority::new();
    let keeper = run(Some(&ca.keeper()));
    let (owner, other) = (tls(&ca.owner("db1")), tls(&ca.owner("db2")));
    let mut peer = keeper.ask(&owner).expect("its owner");
    peer.promise(epoch(1), None).expect("the first");
    peer.begin().expect("begun");
    let bytes = vec![9; 300 << 10];
    peer.piece(4096, &bytes).expect("sent");
    peer.complete(1).expect("complete");
    let mut image = vec![0; IMAGE as usize];
    peer.fetch(|at, bytes| image[at as usize..][..bytes.len()].copy_from_slice(bytes)).expect("the image");
    assert_eq!((image[4095], image[4096], image[4096 + bytes.len()]), (0, 9, 0));
    assert!(image[4096..][..bytes.len()] == bytes);
    // Whoever owns none of it, whether it asks, fences, makes or looks.
    let refused = keeper.ask(&other).err().expect("another's");
    assert!(matches!(refused, PeerError::Refused { refusal: Some(Refusal::Forbidden), .. }), "{refused}");
    assert!(
        refused.to_string().contains("owner db1") && refused.to_string().contains("owner db2"),
        "{refused}"
    );
    let logs = |transport: &Transport| {
        let peer = Peer::connect(&keeper.address, transport, PATIENCE);
        peer.and_then(|mut peer| peer.report()).expect("a report").logs
    };
    assert_eq!((logs(&owner)[0].owner.as_str(), logs(&other).len()), ("db1", 0));
    // The keeper's own certificate looks at everything and owns nothing.
    let keepers = tls(&ca.0.path().join("keeper-127.0.0.1"));
    assert_eq!(logs(&keepers).len(), 1);
    keeper.refuses(&keepers, &["a keeper's, and a keeper owns no log"]);
    // It is remembered, and another certificate of the same name is as good.
    let directory = keeper.end();
    let keeper = run_in(directory, Some(&ca.0.path().join("keeper-127.0.0.1")), Limits::default());
    fs::remove_dir_all(ca.0.path().join("owner-db1")).expect("lost");
    keeper.refuses(&other, &["owner db1"]);
    drop(keeper.ask(&tls(&ca.owner("db1"))).expect("its owner, on another host"));
    // Nor is it anybody's in clear text.
    let keeper = run_in(keeper.end(), None, Limits::default());
    keeper.refuses(&Transport::Near, &["owner db1", "no owner (clear text)"]);
    keeper.end();
}

// Holds: R21
#[test]
fn what_a_certificate_lacks_is_said_at_both_ends() {
    let (ca, foreign) = (Authority::new(), Authority::new());
    let files = ca.keeper();
    let keeper = run(Some(&files));
    let owner = tls(&ca.owner("db1"));
    keeper.refuses(&tls(&foreign.owner("db1")), &["was not signed by the CA", "ca.crt"]);
    // Of this CA's keepers, but not of its owners.
    let stranger = foreign.owner("db2");
    fs::copy(ca.0.path().join("ca.crt"), stranger.join("ca.crt")).expect("copied");
    keeper
        .refuses(&tls(&stranger), &["does not trust the CA that signed this host's certificate", "tls.crt"]);
    // By another name.
    let name = format!("localhost.localdomain:{}", keeper.port());
    if let Err(error) = Peer::connect(&name, &owner, PATIENCE) {
        let error = error.to_string();
        let is_unknown =
            error.contains("not for localhost.localdomain") && error.contains("127.0.0.1 and localhost");
        assert!(is_unknown || error.contains("lookup"), "{error}");
    }
    let named = run(Some(&ca.sign(&For::Keeper(vec!["k1.example".into()]), Validity::days(1), false)));
    named.refuses(&owner, &["is for k1.example, not for 127.0.0.1", "seawall keeper cert keeper"]);
    named.end();
    // A keeper whose certificate is an owner's.
    let owners = run(Some(&ca.owner("db3")));
    owners.refuses(&owner, &["was made for another purpose"]);
    owners.end();
    keeper.ask(&owner).expect("what is right is let in");
    keeper.end();
}

// Holds: R21
#[test]
fn one_that_is_not_valid_now_is_named_with_both_times() {
    let ca = Authority::new();
    let keeper = run(Some(&ca.keeper()));
    let whose = For::Owner("db1".into());
    let past = Validity { from: now() - 9 * DAY, until: now() - 3 * DAY };
    let files = ca.sign(&whose, past, false);
    keeper.refuses(&tls(&files), &["tls.crt: it is valid from", "Z until 20", "--renew", "set the clock"]);
    let future = Validity { from: now() + DAY, until: now() + 3 * DAY };
    ca.sign(&whose, future, true);
    keeper.refuses(&tls(&files), &["tls.crt: it is valid from"]);
    ca.sign(&whose, Validity::days(10), true);
    drop(keeper.ask(&tls(&files)).expect("renewed"));
    let directory = keeper.end();
    // The keeper's own: it was good at its start, and each connection looks anew.
    let keepers = For::Keeper(vec!["127.0.0.1".into()]);
    let keeper = run_in(directory, Some(&ca.0.path().join("keeper-127.0.0.1")), Limits::default());
    ca.sign(&keepers, past, true);
    keeper.refuses(&tls(&files), &["its log says why"]);
    ca.sign(&keepers, Validity::days(10), true);
    drop(keeper.ask(&tls(&files)).expect("renewed"));
    keeper.end();
}

// Holds: R21
#[test]
fn who_speaks_something_else_learns_what_is_spoken() {
    let ca = Authority::new();
    let (clear, encrypted) = (run(None), run(Some(&ca.keeper())));
    let owner = tls(&ca.owner("db1"));
    clear.refuses(&owner, &["does not speak TLS", "started without --tls"]);
    encrypted.refuses(&Transport::Near, &["speaks TLS only", "--tls"]);
    let mut stream = TcpStream::connect(&encrypted.address).expect("connected");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    assert_eq!(stream.read(&mut [0; 8]).unwrap_or(0), 0, "no answer to that");
    clear.ask(&Transport::Near).expect("clear text");
    encrypted.ask(&owner).expect("TLS");
    // A log that was made in clear text is nobody's, and no certificate makes it somebody's.
    let keeper = run_in(clear.end(), Some(&ca.0.path().join("keeper-127.0.0.1")), Limits::default());
    keeper.refuses(&owner, &["no owner (clear text)"]);
    keeper.end();
    encrypted.end();
}
