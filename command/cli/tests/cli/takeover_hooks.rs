//! What cluster managers call, called as they do it: none of them is installed here.

use std::fs;
use std::path::Path;

use crate::common::hosts::Host;
use crate::common::pair::{Scene, gets_an_error};
use crate::common::{SEAWALL, Said, Writer, wait_for};

fn packaged(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    fs::canonicalize(path).expect("packaged").display().to_string()
}

/// An action of the resource agent, with the parameters in its environment.
fn action(host: &Host, action: &str, parameters: &[(&str, &str)]) -> Said {
    let agent = packaged("pacemaker/seawall-log");
    let program = format!("OCF_RESKEY_seawall={SEAWALL}");
    let mut words =
        vec!["env".to_owned(), program, "HA_RSCTMP=/run/ra".into(), "OCF_RESOURCE_INSTANCE=pg-log".into()];
    words.extend(parameters.iter().map(|(name, value)| format!("OCF_RESKEY_{name}={value}")));
    words.extend([agent, action.to_owned()]);
    host.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

// Holds: admin/KEEPERS#what-is-tested
#[test]
fn pacemakers_agent_has_the_log_where_it_was_started() {
    let Some(s) = Scene::new(2) else { return };
    let keepers = s.keepers.iter().map(|keeper| keeper.address.as_str()).collect::<Vec<_>>().join(" ");
    let (pools, data) = ([s.pool("a"), s.pool("b")], s.data());
    let parameters = |pool: usize| [("pool", pools[pool].as_str()), ("keepers", &keepers), ("data", &data)];
    let on = |host: &Host, pool: usize, what: &str| action(host, what, &parameters(pool)).code;

    let described = action(&s.a, "meta-data", &[]);
    assert!(described.succeeds().out.contains("<action name=\"monitor\""), "{}", described.out);
    for name in ["pool", "keepers", "log", "data", "tls", "seawall"] {
        assert!(described.out.contains(&format!("<parameter name=\"{name}\"")), "{name}");
    }
    assert_eq!(action(&s.a, "validate-all", &[]).code, Some(6));
    assert_eq!(action(&s.a, "validate-all", &[("pool", "relative")]).code, Some(6));
    assert_eq!(action(&s.a, "validate-all", &[("pool", "/x"), ("seawall", "/no/such")]).code, Some(5));
    assert_eq!((on(&s.a, 0, "validate-all"), on(&s.a, 0, "promote")), (Some(0), Some(3)));

    assert_eq!((on(&s.a, 0, "monitor"), on(&s.a, 0, "start")), (Some(7), Some(0)));
    let mut writer = s.writer(&s.a, "a");
    writer.write(10);
    assert_eq!((on(&s.a, 0, "monitor"), on(&s.a, 0, "start")), (Some(0), Some(0)));
    let copy = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let copy = copy.path().display().to_string();
    let elsewhere = [("pool", pools[1].as_str()), ("keepers", keepers.as_str()), ("data", copy.as_str())];
    assert_eq!(action(&s.b, "start", &elsewhere).code, Some(5));

    s.a.unplug();
    assert_eq!((on(&s.b, 1, "start"), on(&s.b, 1, "monitor")), (Some(0), Some(0)));
    assert_eq!(Writer::found(&s.place), 10);
    s.a.plug();
    wait_for("the former node to fail its monitor", || on(&s.a, 0, "monitor") == Some(1));
    gets_an_error(writer);
    assert_eq!((on(&s.a, 0, "stop"), on(&s.a, 0, "monitor")), (Some(0), Some(7)));
    assert_eq!(
        (on(&s.b, 1, "stop"), on(&s.b, 1, "stop"), on(&s.b, 1, "monitor")),
        (Some(0), Some(0), Some(7))
    );
    assert_eq!((on(&s.a, 0, "start"), on(&s.a, 0, "stop")), (Some(0), Some(0)));
}

// Holds: admin/KEEPERS#what-is-tested
#[test]
fn patronis_hook_fences_the_former_primary() {
    let Some(mut s) = Scene::new(2) else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(5);
    let log = s.keepers[0].log_on(&s.on[0])["log"].as_str().expect("a UUID").to_owned();
    let (hook, program) = (packaged("patroni/seawall-pre-promote"), format!("SEAWALL={SEAWALL}"));
    let addresses: Vec<String> = s.keepers.iter().map(|keeper| keeper.address.clone()).collect();
    let call = |host: &Host| {
        let words = ["env", &program, &hook, &log, &addresses[0], &addresses[1], "--", "--json"];
        host.run(&words)
    };
    s.b.run(&["env", &program, &hook]).fails(2, &["usage"]);
    call(&s.a).fails(6, &["runs on this host, and is connected"]);
    writer.write(1);
    assert_eq!(call(&s.b).json()["done"], true);
    gets_an_error(writer).says(&["Input/output error"]);
    s.keepers[0].kill();
    s.keepers[2].kill();
    call(&s.b).fails(3, &["1 of 3 keepers answered"]);
}
