#![expect(clippy::disallowed_methods, reason = "tests make the files they look at")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;

use convoke_core::ErrorKind;
use tempfile::TempDir;

use super::*;

struct Fixture {
    _outside: TempDir,
    inside: TempDir,
    secret: PathBuf,
}

fn fixture() -> Fixture {
    let (inside, outside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    fs::create_dir(inside.path().join("sub")).unwrap();
    fs::write(inside.path().join("sub/a.txt"), "a").unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "s").unwrap();
    Fixture { inside, secret, _outside: outside }
}

impl Fixture {
    fn roots(&self) -> Roots {
        Roots::open([self.inside.path()]).unwrap()
    }

    fn read(&self, path: &str) -> Result<String, ToolError> {
        let (mut file, _) = self.roots().locate(self.inside.path(), path)?.open_file()?;
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        Ok(text)
    }
}

#[test]
fn paths_inside_are_read_however_they_are_spelled() {
    let fixture = fixture();
    let absolute = fixture.inside.path().join("sub/a.txt");
    for path in ["sub/a.txt", "./sub/../sub/a.txt", absolute.to_str().unwrap()] {
        assert_eq!(fixture.read(path).unwrap(), "a", "{path}");
    }
}

#[test]
fn paths_outside_are_denied_however_they_are_spelled() {
    let fixture = fixture();
    let inside = fixture.inside.path();
    symlink(&fixture.secret, inside.join("link")).unwrap();
    symlink(fixture.secret.parent().unwrap(), inside.join("dir")).unwrap();
    symlink("../../../../../../../etc", inside.join("sub/up")).unwrap();
    let secret = fixture.secret.to_str().unwrap();
    let sibling = format!("{}-other/x", inside.display());
    for path in
        [secret, "../secret", "/etc/passwd", "link", "dir/secret", "sub/up/passwd", &sibling]
    {
        let error = fixture.read(path).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Permission, "{path}: {error}");
        assert!(error.message.starts_with("Permission denied: Access denied"), "{path}: {error}");
    }
}

#[test]
fn links_that_stay_inside_are_followed() {
    let fixture = fixture();
    let inside = fixture.inside.path();
    symlink("sub/a.txt", inside.join("relative")).unwrap();
    symlink(inside.join("sub/a.txt"), inside.join("absolute")).unwrap();
    assert_eq!(fixture.read("relative").unwrap(), "a");
    assert_eq!(fixture.read("absolute").unwrap(), "a");
}

#[test]
fn a_link_into_another_root_is_followed() {
    let fixture = fixture();
    let inside = fixture.inside.path();
    symlink(&fixture.secret, inside.join("link")).unwrap();
    let roots = Roots::open([inside, fixture.secret.parent().unwrap()]).unwrap();
    assert!(roots.locate(inside, "link").unwrap().open_file().is_ok());
}

#[test]
fn strange_paths_have_clear_errors() {
    let fixture = fixture();
    let loops = fixture.inside.path().join("loop");
    symlink("loop", &loops).unwrap();
    let long = "x".repeat(300);
    for (path, kind, says) in [
        ("", ErrorKind::Validation, "empty"),
        ("a\0b", ErrorKind::Validation, "NUL"),
        ("nope", ErrorKind::NotFound, "not found"),
        ("sub", ErrorKind::Failed, "a directory"),
        ("sub/a.txt/b", ErrorKind::NotFound, "not a directory"),
        ("loop", ErrorKind::Failed, "too many links"),
        (&long, ErrorKind::Failed, "too long"),
        (&"x/".repeat(3_000), ErrorKind::Validation, "no path is longer"),
    ] {
        let error = fixture.read(path).unwrap_err();
        assert_eq!(error.kind, kind, "{path}: {error}");
        assert!(error.message.contains(says), "{path}: {error}");
    }
}

#[test]
fn two_spellings_resolve_to_one_path() {
    let fixture = fixture();
    let inside = fixture.inside.path();
    symlink("sub", inside.join("alias")).unwrap();
    let roots = fixture.roots();
    let resolved = |path| roots.locate(inside, path).unwrap().resolved();
    assert_eq!(resolved("alias/a.txt"), resolved("sub/./a.txt"));
    assert_eq!(resolved("alias/new/b.txt"), resolved("sub/new/b.txt"));
}

#[test]
fn narrowing_never_widens() {
    let fixture = fixture();
    let inside = fixture.inside.path();
    let (all, sub) = (fixture.roots(), Roots::open([inside.join("sub")]).unwrap());
    let other = Roots::open([fixture.secret.parent().unwrap()]).unwrap();
    let paths = |roots: &Roots| roots.paths().map(Path::to_path_buf).collect::<Vec<_>>();
    assert_eq!(paths(&all.narrowed_by(&sub)), paths(&sub));
    assert_eq!(paths(&sub.narrowed_by(&all)), paths(&sub));
    assert_eq!(paths(&all.narrowed_by(&other)), Vec::<PathBuf>::new());
    assert_eq!(paths(&all.narrowed_by(&Roots::none())), Vec::<PathBuf>::new());
}

#[test]
fn writing_through_a_link_reaches_its_target_and_never_leaves() {
    let fixture = fixture();
    let inside = fixture.inside.path();
    symlink("sub/a.txt", inside.join("good")).unwrap();
    symlink(&fixture.secret, inside.join("bad")).unwrap();
    let open = |path: &str, link| {
        let place = fixture.roots().locate(inside, path).unwrap();
        place.open_parent(MissingParents::Refuse, link).map(|(_, name)| name)
    };
    assert_eq!(open("good", FinalLink::Follow).unwrap(), "a.txt");
    assert_eq!(open("good", FinalLink::Keep).unwrap(), "good");
    assert_eq!(open("bad", FinalLink::Follow).unwrap_err().kind, ErrorKind::Permission);
    assert_eq!(open(".", FinalLink::Keep).unwrap_err().kind, ErrorKind::Failed);
}

#[test]
fn what_is_missing_behind_an_absolute_link_is_not_found_and_can_be_made() {
    let fixture = fixture();
    let inside = fixture.inside.path();
    symlink(inside.join("sub"), inside.join("absolute")).unwrap();
    assert_eq!(fixture.read("absolute/missing").unwrap_err().kind, ErrorKind::NotFound);
    let place = fixture.roots().locate(inside, "absolute/new/deep/file").unwrap();
    place.open_parent(MissingParents::Create, FinalLink::Follow).unwrap();
    assert!(inside.join("sub/new/deep").is_dir());
}

#[test]
fn a_link_counts_from_where_it_really_is() {
    let fixture = fixture();
    let inside = fixture.inside.path();
    for directory in ["packages", "vendor/app", "vendor/shared"] {
        fs::create_dir_all(inside.join(directory)).unwrap();
    }
    fs::write(inside.join("vendor/shared/config"), "real").unwrap();
    symlink("../vendor/app", inside.join("packages/app")).unwrap();
    symlink("../shared/config", inside.join("vendor/app/config")).unwrap();
    assert_eq!(fixture.read("packages/app/config").unwrap(), "real");
    let place = fixture.roots().locate(inside, "packages/app/config").unwrap();
    let (directory, name) = place.open_parent(MissingParents::Refuse, FinalLink::Follow).unwrap();
    assert_eq!(directory.read_to_string(name).unwrap(), "real");
}

/// A home directory that is worked in, with a key, and with settings that are not there yet.
fn home() -> (TempDir, Roots) {
    let home = TempDir::new().unwrap();
    for directory in [".ssh", ".config", "work"] {
        fs::create_dir(home.path().join(directory)).unwrap();
    }
    fs::write(home.path().join(".ssh/key"), "k").unwrap();
    fs::write(home.path().join("work/a.txt"), "a").unwrap();
    symlink(".ssh/key", home.path().join("work-key")).unwrap();
    symlink(".ssh", home.path().join("keys")).unwrap();
    symlink(home.path().join(".ssh"), home.path().join("work/absolute")).unwrap();
    symlink(".config", home.path().join("settings")).unwrap();
    let hidden = [".ssh", ".config/convoke"].map(|name| home.path().join(name));
    let roots = Roots::open([home.path()]).unwrap().hiding(hidden);
    (home, roots)
}

#[track_caller]
fn assert_hidden<T: fmt::Debug>(path: &str, got: Result<T, ToolError>) {
    let error = got.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Permission, "{path}: {error}");
    assert!(error.message.contains("is hidden from tools"), "{path}: {error}");
}

#[test]
fn what_is_hidden_is_refused_however_it_is_spelled() {
    let (home, roots) = home();
    let absolute = home.path().join(".ssh/key");
    let locate = |path: &str| roots.locate(home.path(), path);
    for path in [".ssh", ".ssh/key", "work/../.ssh/key", ".ssh/new", absolute.to_str().unwrap()] {
        assert_hidden(path, locate(path));
    }
    for path in ["work-key", "keys/key", "work/absolute/key"] {
        let place = locate(path).unwrap();
        assert_hidden(path, place.open_file());
        assert_hidden(path, place.metadata());
        assert_hidden(path, place.open_parent(MissingParents::Create, FinalLink::Follow));
    }
    for path in ["keys", "work/absolute"] {
        assert_hidden(path, locate(path).unwrap().open_directory());
    }
    assert!(locate("work/a.txt").unwrap().open_file().is_ok());
    assert!(locate(".sshd").is_ok(), "a name that begins alike is another");
    let place = locate("work").unwrap();
    assert_eq!(place.metadata().unwrap().is_dir(), place.open_directory().is_ok());
}

#[test]
fn what_is_hidden_and_not_there_yet_is_not_made() {
    let (home, roots) = home();
    for path in ["settings/convoke/rules.yml", "settings/convoke"] {
        let place = roots.locate(home.path(), path).unwrap();
        assert_hidden(path, place.open_parent(MissingParents::Create, FinalLink::Follow));
    }
    assert!(!home.path().join(".config/convoke").exists());
    let beside = roots.locate(home.path(), "settings/other/deep/file").unwrap();
    assert!(beside.open_parent(MissingParents::Create, FinalLink::Follow).is_ok());
}

#[test]
fn what_holds_something_hidden_is_not_moved_away() {
    let (home, roots) = home();
    for path in [".config", "./.config"] {
        let place = roots.locate(home.path(), path).unwrap();
        assert_hidden(path, place.open_parent(MissingParents::Refuse, FinalLink::Keep));
    }
}

#[test]
fn narrowing_keeps_what_both_hide() {
    let (home, roots) = home();
    let other = Roots::open([home.path()]).unwrap().hiding([home.path().join("work")]);
    for narrowed in [roots.narrowed_by(&other), other.narrowed_by(&roots)] {
        for path in [".ssh/key", "work/a.txt"] {
            assert_hidden(path, narrowed.locate(home.path(), path));
        }
    }
}

#[test]
fn a_hidden_link_hides_where_it_leads() {
    let home = TempDir::new().unwrap();
    fs::create_dir_all(home.path().join("dotfiles/ssh")).unwrap();
    fs::write(home.path().join("dotfiles/ssh/key"), "k").unwrap();
    symlink("dotfiles/ssh", home.path().join(".ssh")).unwrap();
    let roots = Roots::open([home.path()]).unwrap().hiding([home.path().join(".ssh")]);
    for path in [".ssh/key", "dotfiles/ssh/key"] {
        assert_hidden(path, roots.locate(home.path(), path));
    }
}

mod any {
    use proptest::prelude::*;

    use super::*;

    const STEPS: [&str; 10] =
        [".", "..", ".ssh", "key", "keys", "work", "absolute", "settings", "convoke", ".config"];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Whatever way is taken, what is hidden is not opened, and nothing is made in it.
        #[test]
        fn no_way_leads_to_what_is_hidden(steps in prop::collection::vec(0..STEPS.len(), 1..8)) {
            let (home, roots) = home();
            let path = steps.iter().map(|step| STEPS[*step]).collect::<Vec<_>>().join("/");
            let Ok(place) = roots.locate(home.path(), &path) else { return Ok(()) };
            if let Ok((mut file, _)) = place.open_file() {
                let mut text = String::new();
                file.read_to_string(&mut text).unwrap();
                prop_assert_ne!(text, "k", "{}", path);
            }
            if let Ok((directory, name)) =
                place.open_parent(MissingParents::Create, FinalLink::Follow)
            {
                // What is there already may be a directory, which is not written.
                drop(directory.write(name, "x"));
            }
            prop_assert!(!home.path().join(".config/convoke").exists(), "{}", path);
            let key = fs::read_to_string(home.path().join(".ssh/key")).unwrap();
            prop_assert_eq!(key, "k", "{}", path);
            prop_assert_eq!(fs::read_dir(home.path().join(".ssh")).unwrap().count(), 1, "{}", path);
        }
    }
}
