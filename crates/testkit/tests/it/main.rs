//! The kit, tested against small fakes: in-memory streams, a raw TCP client, a shell as the server.

mod home;
mod link;
mod model;
mod peer;
#[cfg(target_os = "linux")]
mod soak;
mod stdio;
mod ws;

use loomd_testkit::{Home, Launch, Server};

/// A server that is a shell script.
fn scripted(home: &Home, script: &str) -> Server {
    Launch::new("/bin/sh").args(["-c", script]).stdio(home)
}

/// The message of the panic that ends a task.
async fn panic_of(work: impl Future<Output: Send> + Send + 'static) -> String {
    let work = async move {
        work.await;
    };
    let error = tokio::spawn(work).await.expect_err("expected a panic");
    let words = error.into_panic();
    words.downcast_ref::<String>().cloned().unwrap_or_else(|| words.downcast_ref::<&str>().unwrap_or(&"").to_string())
}
