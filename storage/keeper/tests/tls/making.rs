//! Keys and certificates: how they are made, what is not made, and how they are renewed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use seawall_keeper::tls::making::{self, For, MakeError, Validity};

use crate::ends::{Authority, run, tls};

#[test]
fn keys_are_their_owners_and_nothing_is_replaced_unasked() {
    let ca = Authority::new();
    let path = ca.0.path();
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let owner = ca.owner("db1");
    for (path, bits) in [(path.join("ca.key"), 0o600), (owner.join("tls.key"), 0o600), (owner.clone(), 0o700)]
    {
        assert_eq!(mode(&path), bits, "{}", path.display());
    }
    let (key, root) =
        (fs::read(owner.join("tls.key")).expect("read"), fs::read(path.join("ca.crt")).expect("read"));
    let whose = For::Owner("db1".into());
    let days = Validity::days(10);
    let again = making::certificate(path, &whose, days, false);
    assert!(matches!(again, Err(MakeError::Exists(_))), "{again:?}");
    assert!(matches!(making::ca(path, days, false), Err(MakeError::Exists(_))));
    let nobody = making::certificate(path, &For::Owner("db9".into()), days, true);
    assert!(matches!(nobody, Err(MakeError::Nothing(_))), "{nobody:?}");
    let late = making::certificate(path, &For::Owner("db8".into()), Validity::days(200), false);
    assert!(matches!(late, Err(MakeError::Outlives { .. })), "{late:?}");
    let empty = tempfile::tempdir().expect("a directory");
    let orphan = making::certificate(empty.path(), &whose, days, false);
    assert!(matches!(orphan, Err(MakeError::NoCa(_))), "{orphan:?}");
    assert_eq!(fs::read(owner.join("tls.key")).expect("read"), key, "nothing was changed");
    assert_eq!(fs::read(path.join("ca.crt")).expect("read"), root, "nothing was changed");
}

#[test]
fn a_name_that_none_can_have_gets_no_certificate() {
    let ca = Authority::new();
    let (path, days) = (ca.0.path(), Validity::days(10));
    let files = || fs::read_dir(path).expect("listed").count();
    let before = files();
    for name in ["", "a/b", ".hidden", "a b", "ä", &"x".repeat(65)] {
        let bad = making::certificate(path, &For::Owner(name.into()), days, false);
        assert!(matches!(bad, Err(MakeError::Owner(_))), "{name}: {bad:?}");
    }
    for name in ["", "k1:7700", "../k", "k 1", "k1.", "*."] {
        let bad = making::certificate(path, &For::Keeper(vec![name.into()]), days, false);
        assert!(matches!(bad, Err(MakeError::Host(_))), "{name}: {bad:?}");
    }
    assert_eq!(files(), before, "nothing was made");
}

#[test]
fn what_a_ca_signed_stays_good_when_it_is_renewed_and_a_renewed_certificate_keeps_its_key() {
    let ca = Authority::new();
    let (path, owner) = (ca.0.path(), ca.owner("db1"));
    let root = fs::read(path.join("ca.crt")).expect("read");
    // The CA is renewed: what it signed stays good, and it signs on.
    making::ca(path, Validity::days(300), true).expect("renewed");
    assert_ne!(fs::read(path.join("ca.crt")).expect("read"), root);
    let keeper = run(Some(&ca.sign(&For::Keeper(vec!["127.0.0.1".into()]), Validity::days(200), false)));
    keeper.ask(&tls(&owner)).expect("by the former certificate of the CA");
    // A renewed one keeps the names, and its key.
    let files = path.join("keeper-127.0.0.1");
    let (former, key) =
        (fs::read(files.join("tls.crt")).expect("read"), fs::read(files.join("tls.key")).expect("read"));
    ca.sign(&For::Keeper(vec!["127.0.0.1".into()]), Validity::days(250), true);
    assert_ne!(fs::read(files.join("tls.crt")).expect("read"), former);
    assert_eq!(fs::read(files.join("tls.key")).expect("read"), key);
    keeper.ask(&tls(&owner)).expect("by the new one");
    keeper.end();
}

#[test]
fn a_key_that_is_no_secret_or_no_key_is_not_used() {
    let ca = Authority::new();
    let (keeper, owner) = (run(Some(&ca.keeper())), ca.owner("db1"));
    fs::set_permissions(owner.join("tls.key"), fs::Permissions::from_mode(0o644)).expect("set");
    keeper.refuses(&tls(&owner), &["tls.key", "chmod 600"]);
    fs::remove_file(owner.join("tls.key")).expect("removed");
    keeper.refuses(&tls(&owner), &["tls.key", "seawall keeper cert"]);
    fs::write(owner.join("tls.key"), "rubbish").expect("written");
    fs::set_permissions(owner.join("tls.key"), fs::Permissions::from_mode(0o600)).expect("set");
    keeper.refuses(&tls(&owner), &["tls.key"]);
    keeper.end();
}
