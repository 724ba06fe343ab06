//! Where the two backends differ: in what they can hide, and in who is asked first.

use convoke_sandbox::{Backend, ConfinedSpawner};

use crate::support::{Place, SECRET, run, write};

#[test]
fn landlock_cannot_hide_what_lies_in_a_directory_that_may_be_written() {
    let Some(mut place) = Place::new(Backend::Landlock) else { return };
    place.confinement.write.push(place.path("home"));
    let refused = ConfinedSpawner::with_backend(place.confinement, Backend::Landlock).unwrap_err();
    assert!(refused.to_string().contains(".ssh` stays hidden"), "{refused}");
}

#[tokio::test]
async fn with_landlock_a_secret_below_a_shared_directory_closes_that_directory() {
    let Some(mut place) = Place::new(Backend::Landlock) else { return };
    place.confinement.scratch.push(place.path("home"));
    let ran =
        place.shell("echo changed > $PLACE/home/.ssh/id_rsa || echo x > $PLACE/home/new").await;
    assert!(!ran.succeeded(), "{ran:?}");
    assert_eq!(place.text("home/.ssh/id_rsa"), SECRET);
}

#[test]
fn a_shared_directory_that_stays_closed_is_known_with_what_is_hidden_in_it() {
    let Some(mut place) = Place::new(Backend::Landlock) else { return };
    assert_eq!(place.spawner().confinement().closed(Backend::Landlock), []);
    place.confinement.scratch.push(place.path("home"));
    let spawner = place.spawner();
    let closed = spawner.confinement().closed(Backend::Landlock);
    assert_eq!(closed.len(), 1, "{closed:?}");
    assert_eq!(closed[0].0, place.path("home"));
    assert!(closed[0].1.starts_with(place.path("home")), "{closed:?}");
    assert_eq!(spawner.confinement().closed(Backend::Bubblewrap), []);
}

/// With Landlock the shared directory is closed where something hidden lies in it, and programs that
/// need temporary files failed.
async fn temporary_files_work_where_something_hidden_lies_beside_them(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    std::fs::create_dir(place.path("temporary/state")).unwrap();
    write(&place.path("temporary/state/key"), SECRET);
    place.confinement = place.confinement.clone().hide(place.path("temporary/state"));
    let line = "t=$(mktemp) && echo kept > $t && cat $t; cat $PLACE/temporary/state/key; true";
    let ran = place.shell(line).await;
    assert_eq!(ran.stdout, "kept\n", "{ran:?}");
}

async fn programs_of_one_spawner_share_a_directory_of_their_own_that_goes_with_it(
    backend: Backend,
) {
    let Some(place) = Place::new(backend) else { return };
    let spawner = place.spawner();
    let line = |line: &str| place.program(&["sh", "-c", line]);
    let made = || std::fs::read_dir(place.path("temporary")).unwrap().count();
    assert_eq!(made(), 0, "nothing is made before the first program");
    let first = run(&spawner, line("echo here > $TMPDIR/note; stat -c %a $TMPDIR")).await;
    assert_eq!(first.stdout, "700\n", "{first:?}");
    let second = run(&spawner, line("cat $TMPDIR/note")).await;
    assert_eq!(second.stdout, "here\n", "{second:?}");
    let other = run(&place.spawner(), line("cat $TMPDIR/note")).await;
    assert!(!other.succeeded(), "{other:?}");
    drop(spawner);
    assert_eq!(made(), 0, "it is removed with the spawner");
}

/// Lines that would show the secret, or uncover it for whoever comes next.
const LINES: &[&str] = &[
    "cat home/.ssh/id_rsa",
    "echo changed > home/.ssh/id_rsa",
    "mv home/.ssh home/moved && cat home/moved/id_rsa",
    "mv home moved && cat moved/.ssh/id_rsa",
    "rm -rf home/.ssh home",
    "rmdir home/.ssh; umount home/.ssh; cat home/.ssh/id_rsa",
    "ln home/.ssh/id_rsa copy && cat copy",
    "cp -r home copied && cat copied/.ssh/id_rsa",
    "unshare -Urm sh -c 'umount home/.ssh; cat home/.ssh/id_rsa'",
    "cat /proc/1/root$PLACE/home/.ssh/id_rsa",
];

#[tokio::test]
async fn bubblewrap_hides_what_lies_in_a_directory_that_may_be_written() {
    for line in LINES {
        let Some(mut place) = Place::new(Backend::Bubblewrap) else { return };
        place.confinement.write.push(place.path(""));
        let spawner = place.spawner();
        let line = format!("cd $PLACE; {line}");
        for line in [&line, "cd $PLACE; cat home/.ssh/id_rsa moved/.ssh/id_rsa home/moved/id_rsa"] {
            let ran = run(&spawner, place.program(&["sh", "-c", line])).await;
            assert!(!ran.stdout.contains(SECRET), "`{line}` showed the secret");
            assert_eq!(place.text("home/.ssh/id_rsa"), SECRET, "`{line}` changed the secret");
        }
    }
}

/// Mounting the directory of both again, for the second, must not uncover the first.
#[tokio::test]
async fn two_secrets_in_one_directory_are_both_hidden() {
    let Some(mut place) = Place::new(Backend::Bubblewrap) else { return };
    for name in ["work/a/one", "work/a/two"] {
        std::fs::create_dir_all(place.path(name)).unwrap();
        std::fs::write(place.path(name).join("key"), SECRET).unwrap();
        place.confinement.hidden.push(place.path(name));
    }
    place.confinement.write.push(place.path("work"));
    let ran = place.shell("cd $PLACE; cat work/a/one/key work/a/two/key; ls work/a/*").await;
    assert!(!ran.stdout.contains(SECRET) && !ran.stdout.contains("key"), "{ran:?}");
}

#[tokio::test]
async fn beside_what_is_hidden_bubblewrap_lets_write() {
    let Some(mut place) = Place::new(Backend::Bubblewrap) else { return };
    place.confinement.write.push(place.path("home"));
    let ran = place.shell("echo more >> $PLACE/home/notes && cat $PLACE/home/notes").await;
    assert_eq!(ran.stdout, "nothing specialmore\n", "{ran:?}");
}

#[test]
fn what_landlock_can_do_it_does_and_otherwise_bubblewrap_is_asked() {
    let Some(mut place) = Place::new(Backend::Landlock) else { return };
    let spawner = ConfinedSpawner::new(place.confinement.clone()).unwrap();
    assert_eq!(spawner.backend(), Backend::Landlock);
    place.confinement.write.push(place.path("home"));
    match (ConfinedSpawner::new(place.confinement), Place::new(Backend::Bubblewrap)) {
        (made, Some(_)) => assert_eq!(made.unwrap().backend(), Backend::Bubblewrap),
        (refused, None) => {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(".ssh` stays hidden"), "{refused}");
            assert!(refused.contains("nor does bubblewrap help"), "{refused}");
        }
    }
}

/// A variable could make `bwrap` itself load a library, before anything is confined.
#[tokio::test]
async fn variables_reach_the_program_and_not_bubblewrap() {
    let Some(place) = Place::new(Backend::Bubblewrap) else { return };
    let mut program =
        place.program(&["sh", "-c", "printenv WORD; tr '\\0' '\\n' < /proc/1/cmdline"]);
    program.environment.insert("WORD".to_owned(), "hush-4711".to_owned());
    program.environment.insert("LD_DEBUG".to_owned(), "libs".to_owned());
    let ran = run(&place.spawner(), program).await;
    assert!(ran.stdout.starts_with("hush-4711\n"), "{ran:?}");
    assert_eq!(ran.stdout.matches("hush-4711").count(), 1, "it is on the command line: {ran:?}");
    assert!(!ran.stderr.contains("bwrap"), "{ran:?}");
}

async fn only_what_may_be_read_is_there(backend: Backend) {
    let Some(mut place) = Place::new(backend) else { return };
    place.confinement = place.confinement.clone().reading_only([place.path("outside")]);
    let ran = place.shell("cat $PLACE/outside/file && cat file && ls /usr/bin > /dev/null").await;
    assert_eq!(ran.stdout, "untouchedhello", "{ran:?}");
    let ran = place.shell("cat $PLACE/home/notes || echo x > /new || mkdir $PLACE/new").await;
    assert!(!ran.succeeded() && ran.stdout.is_empty(), "{ran:?}");
}

on_each_backend!(
    only_what_may_be_read_is_there,
    temporary_files_work_where_something_hidden_lies_beside_them,
    programs_of_one_spawner_share_a_directory_of_their_own_that_goes_with_it,
);

/// Lines that would make something run later, outside of the walls.
const LATER: &[&str] = &[
    "echo evil > work/.git/hooks/pre-commit",
    "echo evil > work/.git/hooks/new",
    "echo evil >> work/.git/config",
    "rm work/.git/config",
    "mv work/.git work/moved && mkdir -p work/.git/hooks && echo evil > work/.git/hooks/pre-commit",
    "mv work/.git/hooks work/.git/old && mkdir work/.git/hooks && echo evil > work/.git/hooks/new",
];

#[tokio::test]
async fn what_is_protected_bubblewrap_lets_nobody_write() {
    for line in LATER {
        let Some(mut place) = Place::new(Backend::Bubblewrap) else { return };
        for (name, text) in [("work/.git/hooks/pre-commit", "fine"), ("work/.git/config", "fine")] {
            let path = place.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        place.confinement.write.push(place.path("work"));
        let protected = ["work/.git/hooks", "work/.git/config"].map(|name| place.path(name));
        place.confinement.protected.extend(protected);
        let ran = place.shell(&format!("cd $PLACE; {line}")).await;
        assert!(!ran.succeeded(), "`{line}`: {ran:?}");
        assert_eq!(place.text("work/.git/hooks/pre-commit"), "fine", "`{line}`");
        assert_eq!(place.text("work/.git/config"), "fine", "`{line}`");
        let beside =
            place.shell("cd $PLACE; echo x > work/.git/HEAD && cat work/.git/config").await;
        assert!(beside.succeeded() && beside.stdout.contains("fine"), "{beside:?}");
    }
}
