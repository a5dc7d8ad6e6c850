//! An HTTP server for one page, one request at a time: what a scraper needs, and nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::Exporter;

/// A scraper that is slower than this is none.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longer requests are not read.
const REQUEST_MAX: u64 = 8192;

/// Answers for ever.
pub fn serve(listener: &TcpListener, exporter: &mut Exporter) {
    for stream in listener.incoming().flatten() {
        // One client's broken connection is no reason to end.
        let _ = answer(stream, exporter);
    }
}

fn answer(mut stream: TcpStream, exporter: &mut Exporter) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new((&stream).take(REQUEST_MAX)).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    // The headers are read so that closing the connection does not reset it.
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = request.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let (status, body) = match path {
        Some("/metrics") => ("200 OK", exporter.scrape()),
        Some(_) => ("404 Not Found", "Seawall's metrics are at /metrics\n".into()),
        None => ("405 Method Not Allowed", "GET /metrics\n".into()),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}
