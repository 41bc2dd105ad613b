//! Calls through TLS or a proxy.

use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use loomd_config::config_toml::ModelProvider;
use loomd_model::Http;
use loomd_testkit::{ScriptedModel, Tls};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use super::socket::Socket;
use super::{NO_ENV, call, config, request, session_on, texts};

/// A proxy that opens every tunnel to the same address and records the requests.
struct Proxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    accepting: AbortHandle,
}

impl Proxy {
    async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let accepting = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let mut near = BufReader::new(near);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && near.read_line(&mut head).await.unwrap() > 0 {}
                seen.lock().unwrap().push(head);
                near.write_all(b"HTTP/1.1 200 Fine\r\n\r\n").await.unwrap();
                let mut far = TcpStream::connect(target).await.unwrap();
                tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
            }
        });
        Self { address, asked, accepting: accepting.abort_handle() }
    }

    /// The lines of the only request.
    fn request_lines(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let [head] = &**asked else { panic!("not one request: {asked:?}") };
        head.trim_end().lines().map(str::to_lowercase).collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Returns connections for an environment of these variables only.
fn http(variables: &[(&str, String)]) -> Arc<Http> {
    let variables = variables.to_vec();
    Http::new(&move |name| variables.iter().find(|(found, _)| *found == name).map(|(_, value)| value.clone()))
}

#[tokio::test]
async fn only_certificates_of_the_bundle_are_trusted() {
    let model = ScriptedModel::start().await;
    let tls = Tls::start(model.address()).await;
    let config = ModelProvider { base_url: Some(format!("https://localhost:{}/v1", tls.port())), ..config(&model) };
    let home = tempfile::tempdir().unwrap();
    let bundle = home.path().join("ca.pem");
    fs::write(&bundle, Tls::CERTIFICATE).unwrap();
    let trusting = http(&[("CODEX_CA_CERTIFICATE", bundle.to_string_lossy().into_owned())]);
    assert_eq!(texts(&mut session_on(trusting, "s", &config, NO_ENV, None), &request(&["hi"])).await.len(), 1);

    let (_, error) = call(&mut session_on(http(&[]), "s", &config, NO_ENV, None), &request(&["hi"])).await;
    let details = error.unwrap().message();
    assert!(details.contains("certificate"), "{details}");

    let missing = http(&[("SSL_CERT_FILE", "/nowhere/ca.pem".into())]);
    let (_, error) = call(&mut session_on(missing, "s", &config, NO_ENV, None), &request(&["hi"])).await;
    let details = error.unwrap().message();
    let words = "cannot read the certificates of /nowhere/ca.pem: No such file or directory (os error 2)";
    assert!(details.ends_with(words), "{details}");
    assert_eq!(model.calls().len(), 1);
}

#[tokio::test]
async fn a_proxy_gets_the_absolute_uri() {
    let model = ScriptedModel::start().await;
    let config = ModelProvider { base_url: Some("http://provider.test/v1".into()), ..config(&model) };
    let proxy =
        http(&[("http_proxy", format!("http://user:pass@{}", model.address())), ("NO_PROXY", "other.test".into())]);
    texts(&mut session_on(proxy, "s", &config, NO_ENV, None), &request(&["hi"])).await;
    let sent = model.call(0).await;
    assert_eq!(sent.path, "http://provider.test/v1/responses");
    assert_eq!(sent.header("host"), Some("provider.test"));
    assert_eq!(sent.header("proxy-authorization"), Some("Basic dXNlcjpwYXNz"));
}

#[tokio::test]
async fn https_goes_through_a_connect_tunnel() {
    let model = ScriptedModel::start().await;
    let tls = Tls::start(model.address()).await;
    let proxy = Proxy::start(([127, 0, 0, 1], tls.port()).into()).await;
    let config = ModelProvider { base_url: Some("https://localhost/v1".into()), ..config(&model) };
    let home = tempfile::tempdir().unwrap();
    let bundle = home.path().join("ca.pem");
    fs::write(&bundle, Tls::CERTIFICATE).unwrap();
    let http = http(&[
        ("HTTPS_PROXY", format!("http://user:pass@{}", proxy.address)),
        ("CODEX_CA_CERTIFICATE", bundle.to_string_lossy().into_owned()),
    ]);
    assert_eq!(texts(&mut session_on(http, "s", &config, NO_ENV, None), &request(&["hi"])).await.len(), 1);
    let expected = ["connect localhost:443 http/1.1", "host: localhost:443", "proxy-authorization: basic dxnlcjpwyxnz"];
    assert_eq!(proxy.request_lines(), expected);
    assert_eq!(model.call(0).await.path, "/v1/responses");
}

#[tokio::test]
async fn websockets_go_through_a_connect_tunnel() {
    let socket = Socket::start().await;
    let target = socket.config().base_url.unwrap().replace("http://", "").replace("/v1", "").parse().unwrap();
    let proxy = Proxy::start(target).await;
    let config = ModelProvider { base_url: Some("http://provider.test:81/v1".into()), ..socket.config() };
    let http = http(&[("ALL_PROXY", format!("http://{}", proxy.address))]);
    texts(&mut session_on(http, "s", &config, NO_ENV, None), &request(&["hi"])).await;
    assert_eq!(proxy.request_lines(), ["connect provider.test:81 http/1.1", "host: provider.test:81"]);
    assert_eq!(socket.connections(), 1);
}

#[tokio::test]
async fn a_proxy_with_another_scheme_is_an_error() {
    let model = ScriptedModel::start().await;
    let http = http(&[("ALL_PROXY", "socks5://127.0.0.1:1".into())]);
    let (_, error) = call(&mut session_on(http, "s", &config(&model), NO_ENV, None), &request(&["hi"])).await;
    assert!(error.unwrap().message().ends_with(": unsupported proxy scheme `socks5`: expected `http`"));
}
