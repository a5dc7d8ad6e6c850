//! What is kept of a data directory between runs.

use std::path::{Path, PathBuf};

use crate::user;

/// The file for one kind of it. Its name is the directory's, so that people find it.
pub fn file(data: &Path, kind: &str) -> PathBuf {
    let name = data.to_string_lossy().trim_matches('/').replace('%', "%25").replace('/', "%2f");
    user::state_directory().join("recoveries").join(format!("{name}.{kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directory_has_a_file_of_its_own() {
        let file = |data: &str| file(Path::new(data), "json");
        assert_ne!(file("/a/b"), file("/a%2fb"));
        assert!(file("/srv/pg").ends_with("recoveries/srv%2fpg.json"));
    }
}
