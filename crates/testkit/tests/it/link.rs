//! Links that are cut and healed.

use loomd_testkit::Link;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Answers each byte with the next one.
async fn answer(mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin) {
    while let Ok(byte) = stream.read_u8().await {
        if stream.write_u8(byte + 1).await.is_err() {
            return;
        }
    }
}

async fn answering() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("its address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    port
}

#[tokio::test]
async fn a_silent_link_keeps_what_is_sent_until_it_is_healed() {
    let link = Link::tcp().await;
    link.lead_to(answering().await);
    let mut client = TcpStream::connect(("127.0.0.1", link.port())).await.unwrap();
    client.write_u8(1).await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), 2);
    link.silence();
    client.write_u8(3).await.unwrap();
    // A new connection is held up as well.
    let mut second = TcpStream::connect(("127.0.0.1", link.port())).await.unwrap();
    second.write_u8(5).await.unwrap();
    for stream in [&mut client, &mut second] {
        let early = tokio::time::timeout(std::time::Duration::from_millis(50), stream.read_u8()).await;
        assert!(early.is_err(), "an answer through a silent link: {early:?}");
    }
    link.heal();
    assert_eq!((client.read_u8().await.unwrap(), second.read_u8().await.unwrap()), (4, 6));
}

#[tokio::test]
async fn a_link_that_is_cut_closes_its_connections_and_serves_new_ones_when_it_is_healed() {
    let folder = tempfile::tempdir().unwrap();
    let (target, path) = (folder.path().join("target"), folder.path().join("link"));
    let listener = UnixListener::bind(&target).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    let link = Link::unix(&path, &target);
    let mut client = UnixStream::connect(&path).await.unwrap();
    client.write_u8(1).await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), 2);
    link.cut();
    assert!(client.read_u8().await.is_err());
    let mut refused = UnixStream::connect(&path).await.unwrap();
    assert!(refused.read_u8().await.is_err());
    link.heal();
    let mut client = UnixStream::connect(&path).await.unwrap();
    client.write_u8(7).await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), 8);
}
