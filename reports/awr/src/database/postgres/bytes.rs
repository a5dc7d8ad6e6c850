//! Texts as bytes: a statement, or the name of a database, may be of another encoding than ours, or of none.
//!
//! In: a view. Out: its rows, what is no text in UTF-8 with U+FFFD in its place. One text that cannot be converted is an
//! error of the server's for all rows, so they are asked for again without a conversion, and then without texts.
//! They travel as hexadecimal digits, which are the same in every encoding.

use anyhow::Result;
use postgres::error::SqlState;

use super::views::View;
use super::{Postgres, Rows, plain};

/// The rows of a view.
pub fn rows(server: &mut Postgres, view: &View) -> Result<Rows> {
    let found = match ask(server, view.sql) {
        Err(e) if is_of_encoding(&e) => {
            server.query("SET client_encoding = 'SQL_ASCII'")?;
            let raw = match (ask(server, view.sql), view.bare) {
                (Err(e), Some(bare)) if is_of_encoding(&e) => ask(server, bare),
                (raw, _) => raw,
            };
            if !server.is_gone() {
                server.query("SET client_encoding = 'UTF8'")?;
            }
            raw
        }
        found => found,
    };
    found.map_err(|e| plain(&e))
}

fn is_of_encoding(error: &postgres::Error) -> bool {
    let codes = [&SqlState::CHARACTER_NOT_IN_REPERTOIRE, &SqlState::UNTRANSLATABLE_CHARACTER];
    error.code().is_some_and(|code| codes.contains(&code))
}

fn ask(server: &mut Postgres, sql: &str) -> Result<Rows, postgres::Error> {
    let in_hex = |column: &str| format!("encode(textsend({column}::text), 'hex')");
    let rows = server.ask(&format!("SELECT {}, {} FROM ({sql}) AS v (a, b)", in_hex("a"), in_hex("b")))?;
    Ok(rows
        .into_iter()
        .map(|row| row.into_iter().map(|word| word.map(|word| text(&word))).collect())
        .collect())
}

fn text(hex: &str) -> String {
    let digits = hex.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    String::from_utf8_lossy(&digits.filter_map(byte).collect::<Vec<_>>()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_replaced_and_the_rest_is_kept() {
        assert_eq!(text("636166c3a9"), "café");
        assert_eq!(text("636166e920ff21"), "caf\u{fffd} \u{fffd}!");
        assert_eq!(text(""), "");
    }
}
