//! The `slob.conf` of the reference study, as its appendix prints it, is read as it is.

use seawall_load::slob::{Conf, RedoStress, Size};

const PRINTED: &str = include_str!("fixtures/reference_study_slob.conf");

#[test]
fn the_printed_configuration_is_read_unchanged() {
    let read = Conf::parse(PRINTED).expect("read");
    let printed = Conf {
        update_pct: 100,
        scan_pct: 0,
        run_time: 1800,
        work_loop: 0,
        scale: Size::Bytes(1 << 40),
        scan_table_sz: Size::Bytes(1 << 20),
        work_unit: 64,
        // Printed as RED0_STRESS, with a zero: a name that sets nothing, whatever the study's text says.
        redo_stress: RedoStress::Lite,
        load_parallel_degree: 20,
        threads_per_schema: 1000,
        do_hotspot: false,
        hotspot_mb: 8,
        hotspot_offset_mb: 16,
        hotspot_frequency: 3,
        hot_schema_frequency: 0,
        external_script: String::new(),
        ..Conf::default()
    };
    assert_eq!(read.conf, printed);
}

#[test]
fn what_it_says_to_no_effect_is_told() {
    let warnings = Conf::parse(PRINTED).expect("read").warnings;
    let told = |word: &str| warnings.iter().filter(|warning| warning.contains(word)).count();
    assert_eq!(told("did you mean REDO_STRESS"), 1);
    assert_eq!(told("about Oracle"), 3, "statistics type, privileged user and password");
    assert_eq!(told("quote of EXTERNAL_SCRIPT"), 1);
    assert_eq!(told("neither a setting nor a comment"), 1, "the printed prose");
    assert_eq!(warnings.len(), 6, "{warnings:#?}");
}
