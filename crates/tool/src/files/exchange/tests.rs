#![expect(clippy::disallowed_methods, reason = "tests make the files they look at")]

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use super::super::lock::DirectoryLock;
use super::super::state::FileHash;
use super::super::sweep::sweep;
use super::*;

struct Place {
    directory: tempfile::TempDir,
    handle: Dir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("p")).unwrap();
        let path = directory.path().join("p");
        let handle = Dir::open_ambient_dir(path, ambient_authority()).unwrap();
        Self { directory, handle }
    }

    fn keep(&self) -> std::path::PathBuf {
        self.directory.path().join("kept")
    }

    fn target<'a>(&'a self, name: &'a str, keep: Option<&'a Path>) -> Target<'a> {
        Target { directory: &self.handle, name: OsStr::new(name), keep }
    }

    fn new_file(&self, content: &str) -> NewFile {
        NewFile::write(&self.handle, content.as_bytes(), None).unwrap()
    }

    fn write(&self, name: &str, content: &str) {
        self.handle.write(name, content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        self.handle.read_to_string(name).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = self.handle.entries().unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }
}

fn file(content: &str) -> FileState {
    FileState::File(FileHash::of(content.as_bytes()))
}

fn kept_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

#[test]
fn replace_keeps_the_old_content_and_refuses_another() {
    let place = Place::new();
    let keep = place.keep();
    place.write("f", "old");
    let target = place.target("f", Some(&keep));
    let changed =
        target.replace(&mut place.new_file("new"), &|state| *state == file("old")).unwrap();
    let Changed::Done(Some(name)) = changed else { panic!("{changed:?}") };
    assert_eq!(fs::read_to_string(keep.join(name)).unwrap(), "old");
    let refused =
        target.replace(&mut place.new_file("newer"), &|state| *state == file("old")).unwrap();
    assert_eq!(refused, Changed::Refused(file("new")));
    assert_eq!((place.read("f"), place.names()), ("new".to_owned(), vec!["f".to_owned()]));
    let absent = place.target("g", None).replace(&mut place.new_file("x"), &|_| true).unwrap();
    assert_eq!(absent, Changed::Refused(FileState::Absent));
    assert_eq!(place.names(), ["f"]);
}

#[test]
fn create_never_replaces() {
    let place = Place::new();
    let target = place.target("f", None);
    assert_eq!(target.create(&mut place.new_file("a")).unwrap(), Changed::Done(None));
    assert_eq!(target.create(&mut place.new_file("b")).unwrap(), Changed::Refused(file("a")));
    assert_eq!((place.read("f"), place.names()), ("a".to_owned(), vec!["f".to_owned()]));
}

#[test]
fn remove_and_move_give_back_an_unexpected_content() {
    let place = Place::new();
    let keep = place.keep();
    place.write("f", "f");
    place.write("g", "g");
    let (f, g) = (place.target("f", Some(&keep)), place.target("g", Some(&keep)));
    let h = place.target("h", None);
    assert_eq!(f.remove(&|_| false).unwrap(), Changed::Refused(file("f")));
    assert_eq!(f.move_to(&h, &|_| false).unwrap(), Changed::Refused(file("f")));
    let refused = f.move_over(&g, &|_| false, &|_| true).unwrap();
    assert_eq!(refused, (Changed::Refused(file("f")), Refused::Source));
    let refused = f.move_over(&g, &|_| true, &|_| false).unwrap();
    assert_eq!(refused, (Changed::Refused(file("g")), Refused::Target));
    assert_eq!((place.read("f"), place.read("g")), ("f".to_owned(), "g".to_owned()));
    assert_eq!(place.names(), ["f", "g"]);
    f.move_over(&g, &|_| true, &|_| true).unwrap();
    assert_eq!((place.read("g"), place.names()), ("f".to_owned(), vec!["g".to_owned()]));
    assert_eq!(kept_in(&keep), ["g"]);
    g.remove(&|_| true).unwrap();
    assert!(place.names().is_empty());
}

/// An outside process saves the file again and again, by a rename or in place, while ours replaces it. After each save
/// its content is in the file, or it is kept and one of ours that accepted it is in the file.
fn race(in_place: bool) {
    const ROUNDS: usize = 1_000;
    let place = Place::new();
    let keep = place.keep();
    place.write("f", "outside 0");
    let over = AtomicBool::new(false);
    let (mut replaced, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        let outside = scope.spawn(|| {
            let path = place.directory.path().join("p");
            for number in 1..=ROUNDS {
                let text = format!("outside {number}");
                if in_place {
                    fs::write(path.join("f"), &text).unwrap();
                } else {
                    fs::write(path.join("saved"), &text).unwrap();
                    fs::rename(path.join("saved"), path.join("f")).unwrap();
                }
                assert!(arrives(&path.join("f"), &text, &keep), "{text} is lost");
            }
            over.store(true, Ordering::Relaxed);
        });
        let mut number = 0;
        while !over.load(Ordering::Relaxed) && !outside.is_finished() {
            // As a tool does: it looks, and somewhat later it writes.
            let Ok(seen) = fs::read(place.directory.path().join("p/f")) else { continue };
            let seen = FileState::File(FileHash::of(&seen));
            let mut new = place.new_file(&format!("ours {number}"));
            number += 1;
            let target = place.target("f", Some(&keep));
            match target.replace(&mut new, &|state| *state == seen).unwrap() {
                Changed::Done(_) => replaced += 1,
                Changed::Refused(_) => refused += 1,
            }
        }
        outside.join().unwrap();
    });
    assert!(replaced > 0 && refused > 0, "{replaced} replaced, {refused} refused: they never met");
    assert_eq!(place.names(), ["f"], "nothing is left behind");
}

/// Waits until a content is in the file, or kept while one of ours is there.
fn arrives(path: &Path, text: &str, keep: &Path) -> bool {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while std::time::Instant::now() < deadline {
        let found = fs::read_to_string(path).unwrap_or_default();
        let by_hash = keep.join(format!("{}-0", FileHash::of(text.as_bytes())));
        let is_kept = || by_hash.exists() || kept_in(keep).iter().any(|kept| kept == text);
        if found == text || (found.starts_with("ours") && is_kept()) {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

#[test]
fn outside_saves_by_rename_are_never_lost() {
    race(false);
}

#[test]
fn outside_writes_in_place_are_never_lost() {
    race(true);
}

#[test]
fn sweep_removes_new_contents_and_keeps_files_of_the_user() {
    let place = Place::new();
    let keep = place.keep();
    let mut new = place.new_file("new");
    new.beside().unwrap();
    std::mem::forget(new);
    place.write(".convoke-0-1.tmp", "the user's");
    place.write("f", "f");
    assert_eq!(place.names().len(), 3);
    let lock = DirectoryLock::hold(&[&place.handle], &CancellationToken::new()).unwrap();
    sweep(&place.handle, &lock, None).unwrap();
    assert_eq!(place.names(), [".convoke-0-1.tmp", "f"]);
    sweep(&place.handle, &lock, Some(&keep)).unwrap();
    assert_eq!((place.names(), kept_in(&keep)), (vec!["f".into()], vec!["the user's".into()]));
}

#[test]
fn lock_of_a_directory_has_one_holder() {
    let place = Place::new();
    let token = CancellationToken::new();
    let held = DirectoryLock::hold(&[&place.handle, &place.handle], &token).unwrap();
    token.cancel();
    let error = DirectoryLock::hold(&[&place.handle], &token).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    drop(held);
    DirectoryLock::hold(&[&place.handle], &token).unwrap();
}
