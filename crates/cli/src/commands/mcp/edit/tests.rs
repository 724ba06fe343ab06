use std::path::PathBuf;

use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

struct Scene {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

fn scene(text: &str) -> Scene {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("convoke.yml");
    files::write(&path, text).unwrap();
    Scene { _directory: directory, path }
}

impl Scene {
    fn edit(&self) -> Edit<'_> {
        Edit::open(&self.path, BTreeMap::new()).unwrap()
    }
}

fn program(name: &str) -> ServerConfig {
    ServerConfig::program(name, "npx", ["-y", "a: b # c"]).env("TOKEN", "${TOKEN}")
}

fn added(text: &str) -> String {
    let scene = scene(text);
    let mut edit = scene.edit();
    edit.add(&program("new")).unwrap();
    edit.text().to_owned()
}

#[test]
fn a_first_server_makes_the_list() {
    assert_snapshot!(added(""), @r#"
    tools:
      mcpServers:
        - name: new
          command: npx
          args: ["-y", "a: b # c"]
          env:
            TOKEN: "${TOKEN}"
    "#);
    assert_snapshot!(added("# mine\nmodel:\n  default: a/b"), @r#"
    # mine
    model:
      default: a/b

    tools:
      mcpServers:
        - name: new
          command: npx
          args: ["-y", "a: b # c"]
          env:
            TOKEN: "${TOKEN}"
    "#);
}

#[test]
fn a_list_is_added_to_tools_that_have_none() {
    assert_snapshot!(added("tools: # what it may use\n    timeout: 5s # short\n\n    # later\npolicy: {}\n"), @r#"
    tools: # what it may use
        timeout: 5s # short
        mcpServers:
          - name: new
            command: npx
            args: ["-y", "a: b # c"]
            env:
              TOKEN: "${TOKEN}"

        # later
    policy: {}
    "#);
    assert!(added("tools:\n").contains("tools:\n  mcpServers:\n    - name: new\n"));
}

const TWO: &str = "\
# mine
tools:
  timeout: 5s
  mcpServers:   # all of them
  # the first
  - name: one
    command: a
    # inside
    args: [x]

  # the second
  - command: b   # odd order
    name: two
  # the end
  maxConcurrent: 2
";

#[test]
fn comments_and_layout_stay() {
    assert_snapshot!(added(TWO), @r#"
    # mine
    tools:
      timeout: 5s
      mcpServers:   # all of them
      # the first
      - name: one
        command: a
        # inside
        args: [x]

      # the second
      - command: b   # odd order
        name: two
      - name: new
        command: npx
        args: ["-y", "a: b # c"]
        env:
          TOKEN: "${TOKEN}"
      # the end
      maxConcurrent: 2
    "#);
    let scene = scene(TWO);
    let mut edit = scene.edit();
    edit.remove("one").unwrap();
    assert_snapshot!(edit.text(), @"
    # mine
    tools:
      timeout: 5s
      mcpServers:   # all of them
      # the second
      - command: b   # odd order
        name: two
      # the end
      maxConcurrent: 2
    ");
    edit.remove("two").unwrap();
    assert!(edit.text().contains("  mcpServers: []   # all of them\n"), "{}", edit.text());
    edit.add(&program("new")).unwrap();
    assert!(
        edit.text().contains("  mcpServers: # all of them\n    - name: new\n"),
        "{}",
        edit.text()
    );
    assert!(edit.has("new").unwrap() && !edit.has("one").unwrap());
    edit.write().unwrap();
    let written = files::read(&scene.path).unwrap();
    assert!(
        written.starts_with("# mine\n") && written.ends_with("  maxConcurrent: 2\n"),
        "{written}"
    );
}

#[test]
fn what_is_written_in_another_way_is_left_as_it_is_and_told() {
    for text in [
        "tools: {mcpServers: [{name: a, command: b}]}\n",
        "tools:\n  mcpServers: [{name: a, command: b}]\n",
        "\"tools\":\n  timeout: 5s\n",
        "{tools: {timeout: 5s}}\n",
    ] {
        let scene = scene(text);
        let failure = scene.edit().add(&program("new")).unwrap_err();
        assert!(failure.hints().any(|hint| hint.contains("- name: new")), "{text}: {failure}");
        assert_eq!(files::read(&scene.path).unwrap(), text);
    }
    let broken = scene("tools: [\n");
    assert!(Edit::open(&broken.path, BTreeMap::new()).is_err());
}

#[test]
fn variables_are_found_by_name() {
    assert_eq!(variables("a ${A} ${B:-x} $${C} ${D}${A} ${"), ["A", "D"]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]
    /// Whatever a server is called with, the file says it, and can be changed back.
    #[test]
    fn what_is_added_is_read_again(
        args in prop::collection::vec("[^$\\p{C}]{0,12}", 0..3),
        value in "[^$\\p{C}]{1,12}",
        base in prop::sample::select(vec!["", "tools:\n  timeout: 5s\n", TWO]),
    ) {
        let scene = scene(base);
        let mut edit = scene.edit();
        let server = ServerConfig::program("new", "on", args).env("KEY", value).exclude(["*x"]);
        edit.add(&server).unwrap();
        edit.remove("new").unwrap();
        prop_assert!(!edit.has("new").unwrap());
    }
}

#[test]
fn a_variable_of_ours_is_a_variable_like_any_other() {
    let text =
        "tools:\n  mcpServers:\n    - name: a\n      url: https://x.example/${CONVOKE_TENANT}\n";
    let scene = scene(text);
    for environment in [&[][..], &[("CONVOKE_TENANT", "t"), ("CONVOKE__TOOLS__TIMEOUT", "never")]] {
        let named = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment = environment.iter().map(named).collect();
        let mut edit = Edit::open(&scene.path, environment).unwrap();
        edit.add(&program("new")).unwrap();
        assert!(edit.text().starts_with(text), "{}", edit.text());
    }
}

#[test]
fn one_is_replaced_or_stays() {
    let scene = scene("tools:\n  mcpServers:\n    - name: new\n      command: old\n");
    let mut edit = scene.edit();
    let (before, login) = (edit.text().to_owned(), ImportedLogin::default());
    assert!(edit.replace(&ServerConfig::http("new", "ftp://x"), &login).is_err());
    assert_eq!(edit.text(), before);
    edit.replace(&program("new"), &login).unwrap();
    assert!(edit.text().contains("npx") && !edit.text().contains("old"), "{}", edit.text());
}

/// Nobody has seen the file in which it was tried out.
#[test]
fn what_cannot_be_used_is_told_by_its_key() {
    let scene = scene("");
    let failure = scene.edit().add(&ServerConfig::http("new", "ftp://x")).unwrap_err().to_string();
    assert!(failure.starts_with("the server `new` cannot be used: `url`: expected"), "{failure}");
    assert!(!failure.contains("convoke.yml"), "{failure}");
}

#[test]
fn a_file_with_mistakes_elsewhere_can_be_changed() {
    let text = "agent:\n  maxTurnz: 3\ntools:\n  mcpServers:\n    - name: a\n      command: ${NOT_SET}\n      \
                args: ['${input:x}']\n    - name: b\n      colour: red\n";
    let scene = scene(text);
    let mut edit = scene.edit();
    assert!(edit.has("a").unwrap() && edit.has("b").unwrap());
    edit.remove("a").unwrap();
    edit.add(&program("new")).unwrap();
    edit.remove("b").unwrap();
    assert!(edit.text().starts_with("agent:\n  maxTurnz: 3\n"), "{}", edit.text());
    let bad = ServerConfig::program("bad", "x", ["${input:x}"]);
    assert!(edit.add(&bad).is_err(), "what could never be used is not added");
}

#[test]
fn what_somebody_else_wrote_meanwhile_is_not_lost() {
    let scene = scene(TWO);
    let mut edit = scene.edit();
    edit.add(&program("new")).unwrap();
    files::write(&scene.path, "# quite another\n").unwrap();
    let failure = edit.write().unwrap_err();
    assert!(failure.to_string().contains("was changed meanwhile"), "{failure}");
    assert_eq!(files::read(&scene.path).unwrap(), "# quite another\n");
}

#[test]
fn a_server_is_switched_off_and_on() {
    let scene = scene(TWO);
    let mut edit = scene.edit();
    edit.switch("one", Switch::Off).unwrap();
    edit.switch("two", Switch::Off).unwrap();
    assert_snapshot!(edit.text(), @"
    # mine
    tools:
      timeout: 5s
      mcpServers:   # all of them
      # the first
      - name: one
        command: a
        # inside
        args: [x]
        enabled: false

      # the second
      - command: b   # odd order
        name: two
        enabled: false
      # the end
      maxConcurrent: 2
    ");
    edit.switch("two", Switch::Off).unwrap();
    for name in ["one", "two", "two"] {
        edit.switch(name, Switch::On).unwrap();
    }
    assert_eq!(edit.text(), TWO);
}
