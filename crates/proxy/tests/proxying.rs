//! The proxy with HTTP and SOCKS clients, and an origin server. All names resolve to this machine.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::future::pending;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use loomd_proxy::{
    BlockReason, Decider, DecisionFuture, Domains, Host, Mode, Policy, Proxy, Request, ResolveFuture, Resolver,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Resolves all names to this machine.
struct LocalResolver;

impl Resolver for LocalResolver {
    fn resolve<'a>(&'a self, host: &'a Host, port: u16) -> ResolveFuture<'a> {
        let address = host.address().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        Box::pin(async move { Ok(vec![SocketAddr::new(address, port)]) })
    }
}

/// Allows hosts that begin with `yes`, never decides about `hm`, and records all requests.
#[derive(Default)]
struct RecordingDecider {
    asked: Mutex<Vec<String>>,
    blocked: Mutex<Vec<(String, BlockReason)>>,
}

impl Decider for RecordingDecider {
    fn decide<'a>(&'a self, request: &'a Request) -> DecisionFuture<'a> {
        self.asked.lock().unwrap().push(format!("{} {}", request.protocol.name(), request.host));
        Box::pin(async move {
            match request.host.as_str() {
                "hm.test" => pending().await,
                name if name.starts_with("yes") => Ok(()),
                _ => Err(BlockReason::NotAllowed),
            }
        })
    }

    fn blocked(&self, request: &Request, why: BlockReason) {
        self.blocked.lock().unwrap().push((request.host.to_string(), why));
    }
}

struct World {
    http: SocketAddr,
    socks: SocketAddr,
    judge: Arc<RecordingDecider>,
    origin: u16,
    serving: JoinHandle<()>,
}

impl World {
    async fn new(mode: Mode, allow_local: bool) -> Self {
        let domains = Domains::new(["ok.test", "127.0.0.1"], ["bad.test"]).unwrap();
        let judge = Arc::new(RecordingDecider::default());
        let decider: Arc<dyn Decider> = judge.clone();
        let proxy = Proxy::with_resolver(Policy { domains, mode, allow_local }, decider, LocalResolver);
        let (http, socks) = (listen().await, listen().await);
        let (http_address, socks_address) = (http.local_addr().unwrap(), socks.local_addr().unwrap());
        let serving = tokio::spawn(async move { proxy.serve(http, Some(socks)).await });
        Self { http: http_address, socks: socks_address, judge, origin: origin().await, serving }
    }

    /// The first line of the response, its `x-proxy-error`, and its body.
    async fn send(&self, request: &str) -> (String, Option<String>, String) {
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        let request = request.replace("PORT", &self.origin.to_string());
        stream.write_all(format!("{request}Connection: close\r\n\r\nbody").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let error = head.lines().find_map(|line| line.strip_prefix("x-proxy-error: "));
        (head.lines().next().unwrap().to_owned(), error.map(str::to_owned), body.to_owned())
    }

    async fn get(&self, host: &str) -> (String, Option<String>, String) {
        self.send(&format!("GET http://{host}:PORT/path?q HTTP/1.1\r\nHost: elsewhere\r\n")).await
    }

    /// Opens a tunnel. Returns the first line of the response, too.
    async fn connect(&self, host: &str) -> (String, TcpStream) {
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        let request = format!("CONNECT {host}:{0} HTTP/1.1\r\nHost: {host}:{0}\r\n\r\n", self.origin);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        (String::from_utf8(head).unwrap().lines().next().unwrap().to_owned(), stream)
    }

    async fn socks(&self, host: &str, command: u8) -> (u8, TcpStream) {
        let mut stream = TcpStream::connect(self.socks).await.unwrap();
        let mut request = vec![5, 2, 2, 0, 5, command, 0, 3, host.len() as u8];
        request.extend(host.bytes());
        request.extend(self.origin.to_be_bytes());
        stream.write_all(&request).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer[..3], [5, 0, 5]);
        (answer[3], stream)
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.judge.asked.lock().unwrap())
    }
}

async fn listen() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap()
}

/// A server that responds with the request that it received.
async fn origin() -> u16 {
    let listener = listen().await;
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut got = Vec::new();
                while !got.ends_with(b"\r\n\r\n") {
                    got.push(stream.read_u8().await?);
                }
                let head = format!("HTTP/1.1 200 OK\r\nProxy-Connection: x\r\nContent-Length: {}\r\n\r\n", got.len());
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(&got).await
            });
        }
    });
    port
}

#[tokio::test]
async fn an_allowed_host_is_reached_without_a_decision() {
    let world = World::new(Mode::Full, true).await;
    let request = "GET http://u:p@OK.test:PORT/path?q HTTP/1.1\r\nHost: elsewhere\r\nX-Mine: 1\r\nX-Hop: 1\r\n\
                   Proxy-Authorization: secret\r\nConnection: x-hop\r\n";
    let (status, error, body) = world.send(request).await;
    assert_eq!((status.as_str(), error), ("HTTP/1.1 200 OK", None));
    let body = body.replace(&world.origin.to_string(), "PORT").to_lowercase();
    assert_eq!(body, "get /path?q http/1.1\r\nhost: ok.test:port\r\nx-mine: 1\r\n\r\n");
    assert_eq!(world.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_connect_tunnel_relays_bytes_both_ways() {
    let world = World::new(Mode::Full, true).await;
    let (status, mut stream) = world.connect("ok.test").await;
    assert_eq!(status, "HTTP/1.1 200 OK");
    stream.write_all(b"anything\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 15];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 200 OK");
    let (reply, mut stream) = world.socks("ok.test", 1).await;
    assert_eq!(reply, 0);
    stream.write_all(b"anything\r\n\r\n").await.unwrap();
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 200 OK");
}

#[tokio::test]
async fn an_unlisted_host_needs_a_decision() {
    let world = World::new(Mode::Full, true).await;
    let (status, error, body) = world.get("no.test").await;
    assert_eq!((status.as_str(), error.as_deref()), ("HTTP/1.1 403 Forbidden", Some("blocked-by-allowlist")));
    let body = body.replace(&world.origin.to_string(), "0");
    assert_eq!(
        body,
        "{\"status\":\"blocked\",\"host\":\"no.test\",\"reason\":\"not_allowed\",\"decision\":\"deny\",\"source\":\"decider\",\
         \"protocol\":\"http\",\"port\":0,\"message\":\"This request was blocked: the domain is not in the allowlist.\"}"
    );
    assert_eq!(world.get("yes.test").await.0, "HTTP/1.1 200 OK");
    assert_eq!(world.connect("no.test").await.0, "HTTP/1.1 403 Forbidden");
    assert_eq!(world.connect("yes.test").await.0, "HTTP/1.1 200 OK");
    assert_eq!((world.socks("no.test", 1).await.0, world.socks("yes.test", 1).await.0), (2, 0));
    let expected = ["http no", "http yes", "https no", "https yes", "socks5-tcp no", "socks5-tcp yes"];
    assert_eq!(world.asked(), expected.map(|asked| format!("{asked}.test")));
}

#[tokio::test]
async fn a_denied_host_is_refused_without_a_decision() {
    let world = World::new(Mode::Full, true).await;
    let (status, error, _) = world.get("BAD.test.").await;
    assert_eq!((status.as_str(), error.as_deref()), ("HTTP/1.1 403 Forbidden", Some("blocked-by-denylist")));
    assert_eq!(world.connect("bad.test").await.0, "HTTP/1.1 403 Forbidden");
    assert_eq!(world.socks("bad.test", 1).await.0, 2);
    assert_eq!(world.asked(), Vec::<String>::new());
    let blocked = world.judge.blocked.lock().unwrap().clone();
    assert_eq!(blocked, [(); 3].map(|()| ("bad.test".to_owned(), BlockReason::Denied)));
}

#[tokio::test]
async fn a_local_address_is_reached_only_when_listed_by_name() {
    let world = World::new(Mode::Full, false).await;
    assert_eq!(world.get("127.0.0.1").await.0, "HTTP/1.1 200 OK");
    assert_eq!(world.get("[::ffff:127.0.0.1]").await.0, "HTTP/1.1 200 OK");
    for near in ["127.0.0.2", "localhost", "a.localhost", "[::1]", "10.0.0.1", "ok.test"] {
        let (status, error, body) = world.get(near).await;
        assert_eq!((status.as_str(), error.as_deref()), ("HTTP/1.1 403 Forbidden", Some("blocked-by-allowlist")));
        assert!(body.contains("not_allowed_local"), "{near}: {body}");
    }
    assert_eq!(world.asked(), Vec::<String>::new());
    // A decision about a name does not allow it to resolve to a local address.
    assert_eq!(world.get("yes.test").await.0, "HTTP/1.1 403 Forbidden");
    assert_eq!(world.asked(), ["http yes.test"]);
}

#[tokio::test]
async fn limited_mode_passes_only_safe_http_methods() {
    let world = World::new(Mode::Limited, true).await;
    for (method, expected) in [
        ("GET", "HTTP/1.1 200 OK"),
        ("HEAD", "HTTP/1.1 200 OK"),
        ("OPTIONS", "HTTP/1.1 200 OK"),
        ("POST", "HTTP/1.1 403 Forbidden"),
        ("DELETE", "HTTP/1.1 403 Forbidden"),
        ("get", "HTTP/1.1 403 Forbidden"),
    ] {
        let answer = world.send(&format!("{method} http://ok.test:PORT/ HTTP/1.1\r\nHost: ok.test\r\n")).await;
        let blocked = (expected != "HTTP/1.1 200 OK").then(|| "blocked-by-method-policy".to_owned());
        assert_eq!((answer.0.as_str(), answer.1), (expected, blocked), "{method}");
    }
    assert_eq!(world.connect("ok.test").await.0, "HTTP/1.1 403 Forbidden");
    assert_eq!(world.socks("ok.test", 1).await.0, 2);
    assert_eq!(world.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn an_invalid_proxy_request_is_answered_with_an_error() {
    let world = World::new(Mode::Full, true).await;
    for request in [
        "GET /path HTTP/1.1\r\nHost: ok.test\r\n",
        "GET https://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n",
        "GET http://a..b/ HTTP/1.1\r\nHost: x\r\n",
        "CONNECT ok.test HTTP/1.1\r\nHost: ok.test\r\n",
        "nonsense\r\n",
    ] {
        assert_eq!(world.send(request).await.0, "HTTP/1.1 400 Bad Request", "{request}");
    }
    // Neither `BIND` nor `UDP ASSOCIATE`.
    assert_eq!((world.socks("ok.test", 2).await.0, world.socks("ok.test", 3).await.0), (7, 7));
    let (status, ..) = world.send("GET http://ok.test:1/ HTTP/1.1\r\nHost: ok.test\r\n").await;
    assert_eq!(status, "HTTP/1.1 502 Bad Gateway");
}

#[tokio::test]
async fn a_pending_decision_does_not_delay_other_connections() {
    let world = World::new(Mode::Full, true).await;
    let mut waiting = TcpStream::connect(world.http).await.unwrap();
    waiting.write_all(b"GET http://hm.test/ HTTP/1.1\r\nHost: hm.test\r\n\r\n").await.unwrap();
    assert_eq!(world.get("ok.test").await.0, "HTTP/1.1 200 OK");
    assert_eq!(world.socks("ok.test", 1).await.0, 0);
    assert_eq!(world.asked(), ["http hm.test"]);
}

#[tokio::test]
async fn dropping_the_proxy_closes_its_connections() {
    let world = World::new(Mode::Full, true).await;
    let (_, mut tunnel) = world.connect("ok.test").await;
    let (_, mut socks) = world.socks("ok.test", 1).await;
    let mut waiting = TcpStream::connect(world.http).await.unwrap();
    waiting.write_all(b"GET http://hm.test/ HTTP/1.1\r\nHost: hm.test\r\n\r\n").await.unwrap();
    world.serving.abort();
    for stream in [&mut tunnel, &mut socks, &mut waiting] {
        assert!(matches!(stream.read(&mut [0; 16]).await, Ok(0) | Err(_)));
    }
    assert!(TcpStream::connect(world.http).await.is_err());
}
