//! A struct as the pages show it: the names, offsets and sizes of its fields.

/// An on-media struct: its fields with their offsets, and its size.
pub struct Struct {
    fields: &'static [(&'static str, usize)],
    size: usize,
}

/// A field: name, offset, bytes up to the next one.
pub struct Field {
    pub name: &'static str,
    pub at: usize,
    pub bytes: usize,
}

impl Struct {
    pub const fn of((fields, size): (&'static [(&'static str, usize)], usize)) -> Self {
        Self { fields, size }
    }

    /// Its fields in order.
    pub fn fields(&self) -> impl Iterator<Item = Field> {
        let ends = self.fields.iter().skip(1).map(|(_, at)| *at).chain([self.size]);
        self.fields.iter().zip(ends).map(|((name, at), end)| Field { name, at: *at, bytes: end - at })
    }
}
