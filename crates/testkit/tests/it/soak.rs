use loomd_testkit::{Home, soak};

use crate::scripted;

#[tokio::test]
async fn descriptors_threads_and_memory_of_another_process_are_measured() {
    let home = Home::empty();
    let plain = scripted(&home, r#"echo '{"method":"ready"}'; exec cat"#);
    let holding = scripted(&home, r#"exec 3</dev/null 4</dev/null 5</dev/null; echo '{"method":"ready"}'; exec cat"#);
    for server in [&plain, &holding] {
        server.notification("ready").await;
        // A line through `cat` proves that the shell has been replaced by it.
        server.send_raw("{\"method\":\"echo\"}\n").await;
        server.notification("echo").await;
    }

    let base = soak::open_descriptors(plain.pid());
    assert_eq!(soak::open_descriptors(holding.pid()), base + 3);
    assert_eq!(soak::threads(plain.pid()), 1);
    let memory = soak::memory(plain.pid());
    assert!(0 < memory.pss && memory.pss <= memory.rss, "{memory:?}");
    soak::settles("descriptors", base, || soak::open_descriptors(plain.pid())).await;
}
