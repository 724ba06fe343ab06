//! Reading some lines of a file, and reading up to the limit: nothing is lost or counted twice.

use convoke_builtin::Settings;
use serde_json::{Value, json};

use crate::support::Workspace;

/// A workspace with one file in it, of which few bytes are read at once.
fn limited(max_read_bytes: usize, content: impl AsRef<[u8]>) -> Workspace {
    let workspace = Workspace::with(&Settings { max_read_bytes, ..Settings::default() });
    workspace.write("a", content);
    workspace
}

async fn from(workspace: &Workspace, offset: u64) -> (Value, String) {
    let result = workspace.call("read_file", json!({ "path": "a", "offset": offset })).await;
    (result.value().unwrap().clone(), result.text())
}

#[tokio::test]
async fn a_long_line_is_cut_between_characters() {
    for limit in 1..12 {
        let workspace = limited(limit, "aé€😀\nb\n");
        let (value, text) = from(&workspace, 1).await;
        let content = value["content"].as_str().unwrap();
        assert!("aé€😀\n".starts_with(content), "{limit}: {content:?}");
        assert_eq!(value["truncated"], true);
        if limit < 11 {
            let says =
                format!("[line 1 is cut at {} bytes; the next line is offset 2]", content.len());
            assert!(text.ends_with(&says), "{limit}: {text}");
        }
    }
}

#[tokio::test]
async fn a_line_that_does_not_fit_is_read_next_time() {
    let workspace = limited(8, "one\ntwo\nthree\nfour");
    let mut all = String::new();
    let mut offset = 1;
    loop {
        let (value, text) = from(&workspace, offset).await;
        all.push_str(value["content"].as_str().unwrap());
        offset = value["endLine"].as_u64().unwrap() + 1;
        if value["truncated"] == false {
            break;
        }
        let says = format!("more follow: read on with offset {offset}]");
        assert!(text.ends_with(&says), "{text}");
    }
    assert_eq!(all, "one\ntwo\nthree\nfour");
    let workspace = limited(7, "one\ntwo\nthree");
    let (value, _) = from(&workspace, 1).await;
    assert_eq!((&value["content"], &value["endLine"]), (&json!("one\n"), &json!(1)));
}

#[tokio::test]
async fn what_fits_exactly_is_not_cut() {
    let workspace = limited(8, "one\ntwo\n");
    let (value, text) = from(&workspace, 1).await;
    assert_eq!(
        value,
        json!({ "content": "one\ntwo\n", "size": 8, "startLine": 1, "endLine": 2, "truncated": false })
    );
    assert_eq!(text, "one\ntwo\n");
    let whole = workspace.value("read_file", json!({ "path": "a" })).await;
    assert_eq!(whole, json!({ "content": "one\ntwo\n", "size": 8 }));
    let value = workspace.value("read_file", json!({ "path": "a", "limit": 2 })).await;
    assert_eq!(value["truncated"], false);
}

#[tokio::test]
async fn a_line_after_the_last_is_refused() {
    for (content, offset, says) in [
        ("a\nb", 3, "has 2 lines, so there is no line 3"),
        ("a\nb\n", 3, "has 2 lines, so there is no line 3"),
        ("a\nb\n", 9, "has 2 lines, so there is no line 9"),
        ("a", 2, "has 1 line, so there is no line 2"),
        ("", 2, "has 0 lines, so there is no line 2"),
    ] {
        let workspace = limited(1024, content);
        let (_, message) =
            workspace.error("read_file", json!({ "path": "a", "offset": offset })).await;
        assert!(message.contains(says), "{content:?}: {message}");
    }
    let (value, text) = from(&limited(1024, ""), 1).await;
    assert_eq!((&value["content"], &value["truncated"]), (&json!(""), &json!(false)));
    assert_eq!(text, "");
}

#[tokio::test]
async fn a_whole_read_is_cut_between_characters_of_every_encoding() {
    let text = "a😀é😀😀";
    for encoding in ["utf-8", "utf-16le", "utf-16be"] {
        let writer = Workspace::new();
        let arguments = json!({ "path": "a", "content": text, "encoding": encoding });
        writer.value("write_file", arguments).await;
        let bytes = std::fs::read(writer.path("a")).unwrap();
        for limit in 1..bytes.len() {
            let workspace = limited(limit, &bytes);
            let arguments = json!({ "path": "a", "encoding": encoding });
            let value = workspace.value("read_file", arguments).await;
            let content = value["content"].as_str().unwrap();
            assert!(text.starts_with(content), "{encoding} {limit}: {content:?}");
        }
    }
}
