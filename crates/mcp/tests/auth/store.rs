//! Files that only their owner can read.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_core::Timestamp;
use convoke_mcp::auth::{
    ClientRecord, ClientSource, FileStore, Record, Secret, StoreError, TokenMethod, TokenStore,
    Tokens,
};
use convoke_testkit::skip;
use tempfile::TempDir;

fn record(server: &str, issuer: &str) -> Record {
    Record {
        server: server.to_owned(),
        url: "https://mcp.example/mcp".to_owned(),
        issuer: issuer.to_owned(),
        resource: "https://mcp.example/mcp".to_owned(),
        token_endpoint: format!("{issuer}/token"),
        client: ClientRecord {
            id: "client-1".to_owned(),
            secret: Some(Secret::new("client-secret")),
            secret_expires: Some(Timestamp::from_millis(5)),
            method: TokenMethod::Post,
            source: ClientSource::Registered,
            redirect_uri: Some("http://127.0.0.1:1/callback".to_owned()),
        },
        scopes: vec!["read".to_owned()],
        tokens: Some(Tokens {
            access: Secret::new("access-token"),
            refresh: Some(Secret::new("refresh-token")),
            expires: Some(Timestamp::from_millis(7)),
        }),
    }
}

fn store() -> (TempDir, PathBuf, FileStore) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state/tokens");
    (directory, path.clone(), FileStore::new(path))
}

async fn load(store: &FileStore, server: &str) -> Result<Option<Record>, StoreError> {
    store.load(server, "https://mcp.example/mcp").await
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn files(path: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test]
async fn what_was_kept_comes_back_whole_from_files_for_the_owner_alone() {
    let (_directory, path, store) = store();
    assert_eq!(load(&store, "files").await.unwrap(), None);
    let kept = record("files", "https://login.example");
    store.save(&kept).await.unwrap();
    assert_eq!(load(&store, "files").await.unwrap(), Some(kept));
    assert_eq!(mode(&path), 0o700);
    let files = files(&path);
    assert_eq!(files.len(), 1, "nothing is left of the writing: {files:?}");
    assert_eq!(mode(&files[0]), 0o600);
    let name = files[0].file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("files."), "{name}");
}

#[tokio::test]
async fn files_that_others_can_read_are_refused_with_what_to_do() {
    let (_directory, path, store) = store();
    store.save(&record("files", "https://login.example")).await.unwrap();
    let file = files(&path).remove(0);
    for bits in [0o640, 0o604, 0o660, 0o622, 0o601] {
        fs::set_permissions(&file, Permissions::from_mode(bits)).unwrap();
        let error = load(&store, "files").await.unwrap_err();
        assert!(matches!(error, StoreError::Exposed { .. }), "{bits:o}: {error}");
        assert!(error.to_string().contains(&format!("chmod 600 {}", file.display())), "{error}");
    }
    fs::set_permissions(&file, Permissions::from_mode(0o400)).unwrap();
    assert!(load(&store, "files").await.unwrap().is_some());

    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    let error = load(&store, "files").await.unwrap_err();
    assert!(error.to_string().contains(&format!("chmod 700 {}", path.display())), "{error}");
    assert!(store.save(&record("files", "https://login.example")).await.is_err());
}

#[tokio::test]
async fn what_belongs_to_somebody_else_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return skip("root", "nobody else can give files away");
    }
    let (_directory, path, store) = store();
    store.save(&record("files", "https://login.example")).await.unwrap();
    let file = files(&path).remove(0);
    std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
    let error = load(&store, "files").await.unwrap_err();
    assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");
}

#[tokio::test]
async fn links_and_other_things_are_not_followed() {
    let (directory, path, store) = store();
    store.save(&record("files", "https://login.example")).await.unwrap();
    let file = files(&path).remove(0);
    let elsewhere = directory.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    let error = load(&store, "files").await.unwrap_err();
    assert!(matches!(error, StoreError::Unreadable { .. }), "{error}");
    // Keeping a new one replaces the link and leaves what it led to.
    let kept = record("files", "https://login.example");
    store.save(&kept).await.unwrap();
    assert_eq!(load(&store, "files").await.unwrap(), Some(kept));
    assert!(!file.is_symlink());
    assert!(elsewhere.exists());
}

#[tokio::test]
async fn what_is_no_login_is_named_and_its_text_is_not_shown() {
    let (_directory, path, store) = store();
    store.save(&record("files", "https://login.example")).await.unwrap();
    let file = files(&path).remove(0);
    for text in ["", "{\"access_token\": \"hush", "{\"version\": 99}"] {
        fs::write(&file, text).unwrap();
        let error = load(&store, "files").await.unwrap_err();
        assert!(matches!(error, StoreError::Unreadable { .. }), "{error}");
        assert!(!format!("{error} {error:?}").contains("hush"));
    }
}

#[tokio::test]
async fn servers_do_not_see_each_other_and_one_can_be_forgotten() {
    let (_directory, _path, store) = store();
    // Names that are alike in the readable part of the file's name.
    for server in ["files", "fi/les", "files2", "../files"] {
        store.save(&record(server, "https://login.example")).await.unwrap();
    }
    for server in ["files", "fi/les", "files2", "../files"] {
        assert_eq!(load(&store, server).await.unwrap().unwrap().server, server);
    }
    assert_eq!(store.forget("files").await.unwrap(), 1);
    assert_eq!(store.forget("files").await.unwrap(), 0);
    assert_eq!(load(&store, "files").await.unwrap(), None);
    assert!(load(&store, "fi/les").await.unwrap().is_some());
    let other = store.load("fi/les", "https://other.example/mcp").await.unwrap();
    assert_eq!(other, None, "another address is another login");
}

#[tokio::test]
async fn a_new_issuer_takes_the_place_of_the_old_one() {
    let (_directory, path, store) = store();
    store.save(&record("files", "https://old.example")).await.unwrap();
    store.save(&record("files", "https://new.example")).await.unwrap();
    assert_eq!(load(&store, "files").await.unwrap().unwrap().issuer, "https://new.example");
    assert_eq!(files(&path).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_the_lock_gets_it_or_is_told_who_has_it() {
    let (_directory, path, store) = store();
    let other = FileStore::new(path);
    let (url, patience) = ("https://mcp.example/mcp", Duration::from_secs(5));
    let held = store.lock("files", url, patience).await.unwrap();
    let error = other.lock("files", url, patience).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    assert!(other.lock("else", url, patience).await.is_ok());
    drop(held);
    assert!(other.lock("files", url, patience).await.is_ok());
}
