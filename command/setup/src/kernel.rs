//! Which kernel it is.

/// The first two numbers of a release; none if it says none.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-', '+']).map_while(|word| word.parse::<u32>().ok());
    Some((numbers.next()?, numbers.next()?))
}
