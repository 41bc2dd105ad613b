//! The console's command line, and where it is served. What the page does is tested in a browser (`console/tests`).

use std::process::Stdio;

use loomd_testkit::Home;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::common::{in_time, loomd, run};

#[tokio::test]
async fn the_console_is_refused_without_a_websocket_and_on_a_public_address() {
    let home = Home::empty();
    for (args, words) in [
        (&["app-server", "--console"][..], "`--console` needs a websocket: add `--listen ws://IP:PORT`"),
        (
            &["app-server", "--listen", "ws://0.0.0.0:0", "--allow-unauthenticated", "--console"],
            "because other machines can reach it; name the origin",
        ),
        (&["console", "link", "--role", "own"], "unknown role `own`: expected `view`, `approve` or `drive`"),
        (&["console", "link", "--origin", "nowhere"], "invalid origin `nowhere`"),
        (&["console", "revoke", "none"], "no link or session of the console has the id `none`"),
    ] {
        let ended = run(&home, args).await;
        assert_ne!(ended.code, Some(0), "{args:?}");
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn a_link_is_listed_until_it_is_revoked() {
    let home = Home::empty();
    let link = run(&home, &["console", "link", "--role", "view"]).await;
    assert!(link.stdout.lines().last().is_some_and(|line| line.starts_with("http://127.0.0.1:4737/#")), "{link:?}");
    assert!(link.stdout.starts_with('█'), "a QR code comes first: {}", link.stdout);
    let listed = run(&home, &["console", "links"]).await.stdout;
    let id = listed.split_whitespace().next().expect("one link is listed");
    assert!(listed.contains("view") && listed.contains("link of"), "{listed}");
    run(&home, &["console", "revoke", id]).await;
    assert_eq!(run(&home, &["console", "links"]).await.stdout, "");
}

async fn status(port: u16, head: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn the_console_prints_one_link_and_serves_its_page_for_its_own_host_only() {
    let home = Home::empty();
    let mut server = loomd(&home)
        .args(["console", "--no-open", "--port", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("loomd starts");
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let link = in_time("the link", lines.next_line()).await.unwrap().expect("a link is printed");
    let (host, code) = link.strip_prefix("http://").and_then(|rest| rest.split_once("/#")).expect("a link");
    let port: u16 = host.strip_prefix("127.0.0.1:").unwrap().parse().unwrap();
    assert_eq!(status(port, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n")).await, "HTTP/1.1 200 OK");
    assert_eq!(status(port, "GET / HTTP/1.1\r\nHost: evil.example\r\n").await, "HTTP/1.1 403 Forbidden");
    let body = format!(r#"{{"code":"{code}"}}"#);
    let post = |origin: &str| {
        format!(
            "POST /console/session HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nContent-Length: {}\r\nConnection: \
             close\r\n\r\n{body}",
            body.len()
        )
    };
    assert_eq!(status(port, &post("http://evil.example")).await, "HTTP/1.1 403 Forbidden");
    assert_eq!(status(port, &post(&format!("http://{host}"))).await, "HTTP/1.1 200 OK");
    assert_eq!(status(port, &post(&format!("http://{host}"))).await, "HTTP/1.1 401 Unauthorized", "a second time");
    server.kill().await.unwrap();
}
