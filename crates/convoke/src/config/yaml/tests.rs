use std::fmt::Write as _;

use serde_json::json;

use super::*;
use crate::config::key::Key;

fn read(text: &str) -> Result<Node, String> {
    let path: Arc<Path> = Path::new("convoke.yml").into();
    parse(text, &path, Layer::User).map_err(|problem| problem.to_string())
}

fn place(root: &Node, key: &str) -> String {
    root.get(&Key::parse(key).unwrap()).unwrap().origin.place.to_string()
}

#[test]
fn every_value_knows_its_line_and_column() {
    let text = "tools:\n  timeout: 5\n  exclude: [a, 'b']\n  commands:\n  - name: x\n    \
                description: |\n      long\n";
    let root = read(text).unwrap();
    for (key, expected) in [
        ("tools", "convoke.yml:2:3"),
        ("tools.timeout", "convoke.yml:2:12"),
        ("tools.exclude[1]", "convoke.yml:3:16"),
        ("tools.commands[0].name", "convoke.yml:5:11"),
        ("tools.commands[0].description", "convoke.yml:7:7"),
    ] {
        assert_eq!(place(&root, key), expected, "{key}");
    }
    let Body::Map(fields) = &root.get(&Key::parse("tools").unwrap()).unwrap().body else {
        panic!("tools is a mapping");
    };
    assert_eq!(fields["timeout"].key_place.to_string(), "convoke.yml:2:3");
}

#[test]
fn values_are_what_they_look_like() {
    let text = "a: no\nb: TRUE\nc: 1.5\nd: -3\ne: ~\nf: 'true'\ng: &x {h: 1}\ni: *x\n7: y\n";
    assert_eq!(
        read(text).unwrap().to_json(),
        json!({
            "a": "no", "b": true, "c": 1.5, "d": -3, "e": null, "f": "true",
            "g": { "h": 1 }, "i": { "h": 1 }, "7": "y",
        }),
    );
}

#[test]
fn an_alias_points_to_where_it_is_used() {
    let root = read("a: &x {h: 1}\nb: *x\n").unwrap();
    assert_eq!(place(&root, "b.h"), "convoke.yml:2:4");
}

#[test]
fn a_file_may_be_empty_and_may_begin_with_a_mark() {
    for text in ["", "\n", "# nothing\n", "---\n", "~\n", "{}", "\u{feff}"] {
        assert_eq!(read(text).map(|root| root.to_json()), Ok(json!({})), "{text:?}");
    }
    assert_eq!(read("\u{feff}a: 1").map(|root| root.to_json()), Ok(json!({ "a": 1 })));
}

#[test]
fn mistakes_have_a_line_and_a_reason() {
    for (text, expected) in [
        ("a: 1\na: 2\n", "convoke.yml:2:1: the key `a` appears twice in one mapping"),
        ("a:\n  b: 1\n  'b': 2\n", "convoke.yml:3:3: the key `b` appears twice in one mapping"),
        ("a: [1, 2\n", "convoke.yml:1:4: not valid YAML: unclosed bracket '['"),
        (
            "a: 1\n b: 2\n",
            "convoke.yml:2:3: not valid YAML: mapping values are not allowed in this context",
        ),
        (
            "a:\n\tb: 1\n",
            "convoke.yml:2:2: not valid YAML: tabs disallowed within this context (block \
             indentation)",
        ),
        ("a: *x\n", "convoke.yml:1:4: not valid YAML: reference to unknown value"),
        ("a: &x [*x]\n", "convoke.yml:1:8: an alias refers to the value it is part of"),
        ("a: 1\n---\nb: 2\n", "convoke.yml:3:1: expected one document, found a second `---`"),
        (
            "- a\n",
            "convoke.yml:1:1: expected a mapping of settings, such as `tools:`, at the top of the \
             file",
        ),
        (
            "just text",
            "convoke.yml:1:1: expected a mapping of settings, such as `tools:`, at the top of the \
             file",
        ),
    ] {
        assert_eq!(read(text).map(|root| root.to_json()), Err(expected.to_owned()), "{text:?}");
    }
}

#[test]
fn hostile_files_end_in_an_error() {
    let nested = format!("a: {}{}", "[".repeat(5_000), "]".repeat(5_000));
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    let wide = format!("a: [{}]", "x,".repeat(200_000));
    for text in [nested, bomb, wide] {
        assert!(read(&text).is_err(), "{}", &text[..20]);
    }
}
