//! Where a client's numbers are: a set, and how many there are in it.

pub fn set_of(client: i32) -> String {
    format!("seawall:{client}")
}

pub fn count_of(client: i32) -> String {
    format!("seawall-count:{client}")
}
