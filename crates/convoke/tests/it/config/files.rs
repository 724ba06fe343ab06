//! Which files are read, and what happens to those that cannot be.

use std::fs;

use convoke::config::{FileState, Layer, Loaded};
use insta::assert_snapshot;

use super::Scene;

fn files(scene: &Scene, loaded: &Loaded) -> Vec<String> {
    let line = |file: &convoke::config::ConfigFile| {
        scene.readable(&format!("{} {:?} {}", file.layer, file.state, file.path.display()))
    };
    loaded.files().iter().map(line).collect()
}

#[test]
fn the_nearest_project_file_is_read_and_the_search_ends_at_home() {
    let scene = Scene::new();
    fs::write(scene.root().join("convoke.yml"), "tools: {timeout: 1}").unwrap();
    let loaded = scene.load();
    assert_eq!(
        files(&scene, &loaded),
        [
            "user Missing [root]/home/user.yml",
            "project Missing [root]/home/project/convoke.yml",
            "project Missing [root]/home/project/convoke.yaml",
            "project Missing [root]/home/convoke.yml",
            "project Missing [root]/home/convoke.yaml",
        ]
    );
    assert_eq!(scene.sources.project_file(), None);

    fs::write(scene.home().join("convoke.yaml"), "tools: {timeout: 2}").unwrap();
    let loaded = scene.load();
    assert_eq!(loaded.config.tools.timeout.as_millis(), 2);
    assert_eq!(loaded.project_root(), Some(scene.home()));
    assert_eq!(scene.sources.project_file(), Some(scene.home().join("convoke.yaml")));
}

#[test]
fn the_search_ends_where_a_repository_begins() {
    let scene = Scene::new();
    fs::write(scene.home().join("convoke.yml"), "tools: {timeout: 2}").unwrap();
    fs::create_dir(scene.project_directory().join(".git")).unwrap();
    assert_eq!(scene.load().config.tools.timeout.as_millis(), 30_000);
    let scene = scene.project("tools: {timeout: 3}");
    assert_eq!(scene.load().config.tools.timeout.as_millis(), 3);
}

#[test]
fn a_second_file_beside_the_first_is_said_to_be_ignored() {
    let scene = Scene::new().project("");
    fs::write(scene.project_directory().join("convoke.yaml"), "nonsense: 1").unwrap();
    let loaded = scene.load();
    assert_snapshot!(scene.told(loaded.warnings()), @"[root]/home/project/convoke.yaml: ignored, because `[root]/home/project/convoke.yml` is there too");
    assert!(loaded.files().iter().any(|file| file.state == FileState::Ignored));
}

#[test]
fn the_users_file_is_not_a_projects_file() {
    let mut scene = Scene::new().project("policy: {kinds: {execute: allow}}").untrusted();
    scene.sources.user_file = scene.sources.project_file();
    let loaded = scene.load();
    assert_eq!(loaded.warnings(), []);
    let origin = loaded.explain("policy.kinds.execute").unwrap().origin.unwrap();
    assert_eq!(origin.layer, Layer::User);
}

#[test]
fn without_a_directory_there_is_no_project() {
    let mut scene = Scene::new().project("tools: {timeout: 3}");
    scene.sources.project_directory = None;
    assert_eq!(scene.load().config.tools.timeout.as_millis(), 30_000);
}

#[test]
fn files_that_cannot_be_used_are_reported() {
    let scene = Scene::new();
    let user = scene.home().join("user.yml");
    fs::create_dir(scene.project_directory().join("convoke.yml")).unwrap();
    fs::write(&user, b"a: 1\nb: \xff\n").unwrap();
    assert_snapshot!(scene.readable(&scene.fail()), @"
    the configuration has 2 mistakes
    [root]/home/project/convoke.yml: it is a directory, not a file
    [root]/home/user.yml:2:4: it is not UTF-8 text
    ");

    fs::write(&user, "#".repeat(1024 * 1024 + 1)).unwrap();
    assert_snapshot!(scene.readable(&scene.fail()), @"
    the configuration has 2 mistakes
    [root]/home/project/convoke.yml: it is a directory, not a file
    [root]/home/user.yml: it is larger than 1048576 bytes
    ");
}

#[test]
fn a_file_of_the_largest_size_is_read() {
    let comment = "#".repeat(1024 * 1024 - 20);
    let scene = Scene::new().user(&format!("tools: {{timeout: 7}}\n{comment}")[..1024 * 1024]);
    assert_eq!(scene.load().config.tools.timeout.as_millis(), 7);
}
