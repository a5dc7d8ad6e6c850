//! The application's side of the crash regressions.
//!
//! A scene has two halves. `prepare` makes its files and lets an fsync make them tracked; then the
//! program prints `ready` and waits for a line, while the driver may note what is on the disk. `act`
//! does what must survive and ends with an acknowledged sync of every file; then the program prints
//! `done` and waits to be killed. The driver lets the machine "lose power", replays the log and
//! compares with what the files held at `done`.

mod acts;
mod descriptors;
mod files;
mod kernel;
mod raw;

pub use files::Files;

/// One scene.
pub struct Scene {
    /// Its name on the command line.
    pub name: &'static str,
    /// What must survive; runs after [`Files::prepare`].
    pub act: fn(&Files),
}

/// Plays the scene called `name` in `directory`.
pub fn play(name: &str, directory: &str) -> Result<(), String> {
    let scene = acts::all()
        .into_iter()
        .find(|scene| scene.name == name)
        .ok_or_else(|| format!("no scene `{name}`"))?;
    let files = Files::prepare(directory);
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| error.to_string())?;
    (scene.act)(&files);
    println!("done");
    std::thread::sleep(std::time::Duration::from_secs(300));
    Err("nobody killed this scene for five minutes".to_owned())
}
