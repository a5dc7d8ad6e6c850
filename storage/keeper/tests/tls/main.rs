//! Encrypted connections between real ends: who is let in, what each end says of what is wrong, and what it costs nobody
//! else.

mod certificates;
mod ends;
mod floods;
mod making;
mod streams;
