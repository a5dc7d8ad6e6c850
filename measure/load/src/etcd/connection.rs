//! As much of etcd's JSON gateway (HTTP/1.1) as a load needs: one connection that is never made anew.
//!
//! Ours, because HTTP libraries keep pools that connect again by themselves (or connect for every request), and a load
//! has to see a connection end; and two system calls a put are what they would add to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

/// A server that says nothing for so long has stopped serving.
const PATIENCE: Duration = Duration::from_secs(30);
/// No reply of ours is longer: one that says so is not etcd's.
const LONGEST: usize = 1 << 30;

/// A connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Connection {
    /// Connects.
    pub fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream), host: address.to_owned() })
    }

    /// Puts a value.
    pub fn put(&mut self, key: &str, value: &str) -> Result<()> {
        let body = json!({"key": BASE64_STANDARD.encode(key), "value": BASE64_STANDARD.encode(value)});
        self.call("/v3/kv/put", &body).map(drop)
    }

    /// How many keys begin so.
    pub fn count(&mut self, prefix: &str) -> Result<i64> {
        let (key, end) = range_of(prefix);
        let said = self.call("/v3/kv/range", &json!({"key": key, "range_end": end, "count_only": true}))?;
        // Numbers of 64 bits are text, and nought is left out.
        said["count"].as_str().map_or(Ok(0), |count| count.parse().context("a count is not a number"))
    }

    /// Keys that begin so, from `from` on, with their values: not more than `most`.
    pub fn range(&mut self, prefix: &str, from: &str, most: usize) -> Result<Vec<(String, String)>> {
        let (_, end) = range_of(prefix);
        let asked = json!({"key": BASE64_STANDARD.encode(from), "range_end": end, "limit": most.to_string()});
        let said = self.call("/v3/kv/range", &asked)?;
        let text = |field: &Value| {
            let bytes = field
                .as_str()
                .and_then(|text| BASE64_STANDARD.decode(text).ok())
                .context("a key or a value is not base64")?;
            String::from_utf8(bytes).context("a key or a value is not UTF-8")
        };
        let pairs = said["kvs"].as_array().into_iter().flatten();
        pairs.map(|pair| Ok((text(&pair["key"])?, text(&pair["value"])?))).collect()
    }

    fn call(&mut self, path: &str, body: &Value) -> Result<Value> {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).context("cannot send to etcd")?;
        let (good, reply) = self.reply()?;
        ensure!(good, "etcd replied: {}", String::from_utf8_lossy(&reply));
        serde_json::from_slice(&reply).context("etcd's reply is not JSON")
    }

    /// Whether it says 200, and its body.
    fn reply(&mut self) -> Result<(bool, Vec<u8>)> {
        let good = self.line()?.starts_with("HTTP/1.1 200 ");
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(": ") {
                Some(("content-length", value)) => {
                    length = value.parse().context("a length is not a number")?
                }
                Some(("transfer-encoding", value)) => chunked = value == "chunked",
                None if line.is_empty() => break,
                _ => {}
            }
        }
        let body = if chunked { self.chunks()? } else { self.bytes(length)? };
        Ok((good, body))
    }

    fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let length =
                usize::from_str_radix(&self.line()?, 16).context("a chunk's length is not a number")?;
            all.extend(self.bytes(length)?);
            ensure!(self.line()?.is_empty() && all.len() < LONGEST, "this is not a reply of etcd");
            if length == 0 {
                return Ok(all);
            }
        }
    }

    fn bytes(&mut self, length: usize) -> Result<Vec<u8>> {
        ensure!(length < LONGEST, "a reply of {length} bytes is too long");
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).context("cannot read from etcd")?;
        Ok(bytes)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let n = self.stream.read_line(&mut line).context("cannot read from etcd")?;
        match line.strip_suffix("\r\n") {
            Some(text) if n > 0 => Ok(text.to_owned()),
            _ => bail!("etcd closed the connection"),
        }
    }
}

/// All keys with this prefix, as etcd wants them named: the first, and the first behind the last.
fn range_of(prefix: &str) -> (String, String) {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        // Prefixes end with a slash.
        *last += 1;
    }
    (BASE64_STANDARD.encode(prefix), BASE64_STANDARD.encode(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn replies_are_read_whole_or_in_chunks() -> Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut etcd = Connection::open(&listener.local_addr()?.to_string())?;
        let (mut server, _) = listener.accept()?;
        let kvs = r#"{"kvs":[{"key":"YS8x","value":"eA=="}],"count":"1"}"#;
        write!(server, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{kvs}", kvs.len())?;
        assert_eq!(etcd.range("a/", "a/", 9)?, [("a/1".to_owned(), "x".to_owned())]);
        write!(
            server,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{{\"cou\r\nb\r\nnt\": \"312\"}}\r\n0\r\n\r\n"
        )?;
        assert_eq!(etcd.count("a/")?, 312);
        write!(server, "HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\ngone")?;
        assert!(etcd.put("a/1", "x").unwrap_err().to_string().contains("gone"));
        drop(server);
        assert!(etcd.put("a/1", "x").is_err());
        Ok(())
    }
}
