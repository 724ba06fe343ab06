//! How a walk ends before its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

use super::*;

fn start(directory: &TempDir) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    rustix::fs::open(directory.path(), flags, Mode::empty()).unwrap()
}

#[test]
fn a_visitor_that_panics_does_not_leave_the_others_waiting() {
    let directory = TempDir::new().unwrap();
    std::fs::create_dir(directory.path().join("below")).unwrap();
    let walk = Walk::new(start(&directory), Ignore::Nothing);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let visitor = || |_: &Found<'_>| -> Next { panic!("as it was told to") };
        let ended = catch_unwind(AssertUnwindSafe(|| walk.run(4, &|| false, visitor)));
        sender.send(ended.is_err()).unwrap();
    });
    assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok(true));
}

#[test]
fn a_long_listing_can_be_stopped() {
    let directory = TempDir::new().unwrap();
    for number in 0..3 * ASK_AFTER {
        rustix::fs::mknodat(
            start(&directory),
            number.to_string(),
            FileType::RegularFile,
            Mode::RUSR,
            0,
        )
        .unwrap();
    }
    let visited = AtomicUsize::new(0);
    let visitor = || {
        |_: &Found<'_>| {
            visited.fetch_add(1, Ordering::Relaxed);
            Next::GoOn
        }
    };
    let asked = AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= 1;
    Walk::new(start(&directory), Ignore::Nothing).run(1, &stop, visitor);
    assert_eq!((asked.into_inner(), visited.into_inner()), (2, 0));
}

#[test]
fn what_changed_under_the_walk_does_not_count_as_unreadable() {
    let queue = Queue::new(Waiting {
        parent: None,
        name: None,
        path: PathBuf::new(),
        depth: 0,
        rules: None,
    });
    for error in [Errno::NOENT, Errno::NOTDIR, Errno::LOOP] {
        assert!(queue.pass_over(error).is_continue());
    }
    assert_eq!(queue.missed().unreadable, 0);
    for error in [Errno::ACCESS, Errno::MFILE, Errno::IO] {
        assert!(queue.pass_over(error).is_continue());
    }
    assert_eq!(queue.missed().unreadable, 3);
}
