//! The page about the loads has the parameters as they are.

use std::fmt::Write;

use seawall_load::slob::Conf;
use seawall_load::slob::conf::SETTINGS;

#[test]
fn the_page_has_every_parameter() {
    let mut table = "<!-- generated: slob_conf -->\n\n| parameter | default | |\n|---|---|---|\n".to_owned();
    let defaults = Conf::default();
    for key in SETTINGS {
        let default = (key.show)(&defaults);
        writeln!(table, "| `{}` | `{default}` | {} |", key.name, key.meaning).expect("written");
    }
    table.push_str("\n<!-- end -->\n");
    let page = include_str!("../../../docs/measure/LOADS.md");
    assert!(page.contains(&table), "put this into docs/measure/LOADS.md:\n{table}");
}
