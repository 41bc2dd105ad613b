//! A minimal HTTP/1.1, because tests have to see and break single bytes.
//!
//! Reads heads and bodies of requests and responses, for the scripted model and for requests to a listener.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// Largest head: a request line and headers.
const MAX_HEAD: u64 = 64 << 10;
/// Largest body: a model call with images has some megabytes.
const MAX_BODY: usize = 64 << 20;

/// Headers in the order and spelling of the sender.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// The first header with this name, ignoring case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// The response to a plain HTTP request.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpReply {
    pub status: u16,
    pub headers: Headers,
    pub body: Vec<u8>,
}

impl HttpReply {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The part before the body.
#[derive(Debug, PartialEq)]
pub(crate) struct Head {
    /// The request line or the status line.
    pub(crate) line: String,
    pub(crate) headers: Headers,
}

/// Sends a request without a body, on a connection of its own.
pub(crate) async fn get(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> io::Result<HttpReply> {
    let mut stream = BufReader::new(stream);
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    let close = [("Connection", "close")];
    let unless_said = close.iter().filter(|(name, _)| headers.iter().all(|(key, _)| !key.eq_ignore_ascii_case(name)));
    for (name, value) in unless_said.chain(headers) {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await?;
    read_reply(&mut stream).await
}

pub(crate) async fn read_reply(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<HttpReply> {
    let Head { line, headers } =
        read_head(reader).await?.ok_or_else(|| bad("no response, the connection was closed"))?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| bad(&format!("not a status line: {line}")))?;
    let mut body = Vec::new();
    if status >= 200 {
        match read_body(reader, &headers).await? {
            Some(sized) => body = sized,
            None => {
                reader.take(MAX_BODY as u64).read_to_end(&mut body).await?;
            }
        }
    }
    Ok(HttpReply { status, headers, body })
}

/// `None` if the connection ends before the first byte.
pub(crate) async fn read_head(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Head>> {
    let mut reader = reader.take(MAX_HEAD);
    let Some(line) = read_line(&mut reader).await? else { return Ok(None) };
    let mut headers = Headers::default();
    loop {
        let header = read_line(&mut reader).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if header.is_empty() {
            return Ok(Some(Head { line, headers }));
        }
        let (name, value) = header.split_once(':').ok_or_else(|| bad(&format!("not a header: {header}")))?;
        headers.0.push((name.to_owned(), value.trim().to_owned()));
    }
}

/// `None` if the headers have no size of the body.
pub(crate) async fn read_body(
    reader: &mut (impl AsyncBufRead + Unpin),
    headers: &Headers,
) -> io::Result<Option<Vec<u8>>> {
    if headers.get("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        return read_chunks(reader).await.map(Some);
    }
    let Some(length) = headers.get("content-length") else { return Ok(None) };
    let mut body = Vec::new();
    append(reader, &mut body, length.parse().map_err(|_| bad("content-length is not a number"))?).await?;
    Ok(Some(body))
}

async fn read_chunks(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(&mut reader.take(MAX_HEAD)).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| bad(&format!("not a chunk size: {line}")))?;
        append(reader, &mut body, size).await?;
        // After the last chunk come trailers, which are not used here, and an empty line.
        let end = read_line(&mut reader.take(MAX_HEAD)).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if !end.is_empty() {
            return Err(bad("a chunk is longer than its size"));
        }
        if size == 0 {
            return Ok(body);
        }
    }
}

async fn append(reader: &mut (impl AsyncBufRead + Unpin), body: &mut Vec<u8>, more: usize) -> io::Result<()> {
    if more > MAX_BODY - body.len() {
        return Err(bad("the body is too large for a test"));
    }
    let start = body.len();
    body.resize(start + more, 0);
    reader.read_exact(&mut body[start..]).await?;
    Ok(())
}

/// A line without its ending; `None` at the end of the input.
async fn read_line(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if reader.read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line).map(Some).map_err(|_| bad("a head is not UTF-8"))
}

fn bad(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
