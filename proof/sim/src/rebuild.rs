//! The daemon rebuilds a lost copy of a mirrored log, which is well again, while clients commit.

use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering::SeqCst;

use seawall_core::journal::rebuild::Rebuild;

use crate::daemon::Daemon;

/// What a daemon that takes a log over does first.
pub fn inherit(daemon: &Daemon) {
    let image = daemon.engine.pool();
    if let Some(journal) = image.journal() {
        let inherited = journal.inherit_rebuild(image);
        daemon.world.tell(|| format!("what is left of a rebuild: {inherited:?}"));
    }
}

/// Rebuilds a copy that was lost, now and then.
pub fn rebuild_if_lost(daemon: &Daemon) {
    let (world, image) = (&daemon.world, daemon.engine.pool());
    let (Some(block), Some(journal)) = (&world.block, image.journal()) else { return };
    let lost = match world.peek(|| journal.desk(image).copies().load(SeqCst)) {
        1 => 1,
        2 => 0,
        _ => return,
    };
    if !world.rng.one_in(4) {
        return;
    }
    let Some((devices, source)) = block.mend(lost) else { return };
    let begun = Rebuild::begin(journal, image, devices, &source);
    world.tell(|| format!("copy {lost} is rebuilt: {:?}", begun.as_ref().err()));
    // A process that is killed tidies nothing up.
    let Ok(mut rebuild) = begun.map(ManuallyDrop::new) else { return };
    let done = loop {
        let (done, all) = rebuild.progress();
        if done == all {
            break rebuild.finish();
        }
        if let Err(error) = rebuild.piece() {
            break Err(error);
        }
        world.give_way();
    };
    world.tell(|| format!("copy {lost} was rebuilt: {done:?}"));
    if done.is_ok() {
        block.mended();
        world.count(|c| c.rebuilt += 1);
    }
    drop(ManuallyDrop::into_inner(rebuild));
}
