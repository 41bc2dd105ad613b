use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::*;

#[derive(Default)]
struct FakeKeyring {
    entries: Mutex<BTreeMap<String, String>>,
    unreachable: AtomicBool,
}

impl FakeKeyring {
    fn check(&self) -> Result<(), KeyringError> {
        if self.unreachable.load(Ordering::Relaxed) { Err(KeyringError::Failed("no bus".into())) } else { Ok(()) }
    }
}

impl Keyring for FakeKeyring {
    fn get(&self, name: &str) -> Result<Option<String>, KeyringError> {
        self.check()?;
        Ok(self.entries.lock().get(name).cloned())
    }

    fn set(&self, name: &str, secret: &str) -> Result<(), KeyringError> {
        self.check()?;
        self.entries.lock().insert(name.into(), secret.into());
        Ok(())
    }

    fn delete(&self, name: &str) -> Result<bool, KeyringError> {
        self.check()?;
        Ok(self.entries.lock().remove(name).is_some())
    }
}

fn tokens(number: u32) -> Tokens {
    serde_json::from_value(json!({
        "server_name": "x", "server_url": "http://x/", "client_id": "c", "access_token": format!("token-{number}"),
    }))
    .unwrap()
}

struct Fixture {
    home: tempfile::TempDir,
    keyring: Arc<FakeKeyring>,
}

fn fixture() -> Fixture {
    Fixture { home: tempfile::tempdir().unwrap(), keyring: Arc::default() }
}

impl Fixture {
    fn store(&self, kind: McpCredentialsStore) -> Store {
        Store::new(self.home.path(), kind, Some(Arc::clone(&self.keyring) as Arc<dyn Keyring>))
    }

    fn file(&self) -> PathBuf {
        self.home.path().join(".credentials.json")
    }
}

#[tokio::test]
async fn auto_stores_in_the_keyring_and_leaves_no_copy_in_the_file() {
    let fixture = fixture();
    fixture.store(McpCredentialsStore::File).save("x|1", tokens(0)).await.unwrap();
    let auto = fixture.store(McpCredentialsStore::Auto);
    assert_eq!(auto.load("x|1").await.unwrap(), Some(tokens(0)), "tokens of the file are found");
    auto.save("x|1", tokens(1)).await.unwrap();
    assert!(!fixture.file().exists());
    assert_eq!(auto.load("x|1").await.unwrap(), Some(tokens(1)));
    assert_eq!(fixture.store(McpCredentialsStore::Keyring).load("x|1").await.unwrap(), Some(tokens(1)));
    assert_eq!(fixture.store(McpCredentialsStore::File).load("x|1").await.unwrap(), None);
    assert!(auto.delete("x|1").await.unwrap());
    assert_eq!(auto.load("x|1").await.unwrap(), None);
}

#[tokio::test]
async fn auto_uses_the_file_while_the_keyring_cannot_be_reached() {
    let fixture = fixture();
    fixture.keyring.unreachable.store(true, Ordering::Relaxed);
    let auto = fixture.store(McpCredentialsStore::Auto);
    auto.save("x|1", tokens(1)).await.unwrap();
    assert!(fixture.file().exists());
    assert_eq!(auto.load("x|1").await.unwrap(), Some(tokens(1)));
    assert!(auto.delete("x|1").await.unwrap());
    let keyring = fixture.store(McpCredentialsStore::Keyring);
    assert_eq!(keyring.save("x|1", tokens(1)).await.unwrap_err().to_string(), "the keyring failed: no bus");
    assert!(!fixture.file().exists(), "`keyring` never uses the file");
}

#[tokio::test]
async fn a_build_without_a_keyring_says_so() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::new(home.path(), McpCredentialsStore::Keyring, None);
    let text = "the keyring is not part of this build; set `mcp_oauth_credentials_store` to \"file\"";
    assert_eq!(store.save("x|1", tokens(1)).await.unwrap_err().to_string(), text);
    assert_eq!(store.load("x|1").await.unwrap_err().to_string(), text);
    assert_eq!(store.delete("x|1").await.unwrap_err().to_string(), text);
    let auto = Store::new(home.path(), McpCredentialsStore::Auto, None);
    auto.save("x|1", tokens(1)).await.unwrap();
    assert_eq!(auto.load("x|1").await.unwrap(), Some(tokens(1)));
}

#[tokio::test]
async fn entries_of_others_are_kept_and_concurrent_writers_lose_nothing() {
    let fixture = fixture();
    std::fs::write(fixture.file(), r#"{"other":{"of":"another program"}}"#).unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..20 {
        let store = fixture.store(McpCredentialsStore::File);
        writers.spawn(async move { store.save(&format!("x|{number}"), tokens(number)).await.unwrap() });
    }
    writers.join_all().await;
    let stored: serde_json::Value = serde_json::from_slice(&std::fs::read(fixture.file()).unwrap()).unwrap();
    assert_eq!(stored.as_object().unwrap().len(), 21);
    assert_eq!(stored["other"], json!({ "of": "another program" }));
    let store = fixture.store(McpCredentialsStore::File);
    assert!(store.load("other").await.is_err(), "an entry that is not understood is an error, not a missing login");
    assert!(store.delete("x|3").await.unwrap());
    assert!(!store.delete("x|3").await.unwrap());
}

#[tokio::test]
async fn a_credentials_file_of_a_terabyte_or_a_fifo_is_refused() {
    let fixture = fixture();
    std::fs::File::create(fixture.file()).unwrap().set_len(1 << 40).unwrap();
    let store = fixture.store(McpCredentialsStore::File);
    assert!(matches!(store.load("x|1").await, Err(StoreError::Read { .. })));
    std::fs::remove_file(fixture.file()).unwrap();
    let made = std::process::Command::new("mkfifo").arg(fixture.file()).status();
    if made.is_ok_and(|status| status.success()) {
        assert!(matches!(store.load("x|1").await, Err(StoreError::Read { .. })));
    }
}
