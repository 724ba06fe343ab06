//! Programs behind the sandbox, as a user tries them.

use crate::support::{Scene, skip};

/// Returns a scene; none, said, where this kernel cannot confine programs.
fn scene() -> Option<Scene> {
    let scene = Scene::new();
    let confines = scene.run(&["sandbox", "run", "--", "true"]).code == Some(0);
    if !confines {
        skip("sandbox", "programs cannot be confined here");
    }
    confines.then_some(scene)
}

#[test]
fn a_program_writes_here_and_nowhere_else() {
    let Some(scene) = scene() else { return };
    let ran = scene.run(&["sandbox", "run", "--", "sh", "-c", "echo hello > here && cat here"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{ran:?}");
    let ran = scene.run(&["sandbox", "run", "--", "sh", "-c", "echo hello > ../there"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("the program ended with exit status"), "{ran:?}");
}

#[test]
fn a_program_reads_no_secrets() {
    let Some(scene) = scene() else { return };
    let make = "mkdir -p ../.ssh && echo canary > ../.ssh/id_rsa";
    let call = ["tools", "call", "run_command", "--allow", "execute", "--arg"];
    let ran = scene
        .run(&[&["--set", "sandbox.mode=off"], &call[..], &[&format!("command={make}")]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let read = "cat ../.ssh/id_rsa";
    let ran = scene.run(&[&call[..], &[&format!("command={read}")]].concat());
    assert!(!ran.stdout.contains("canary"), "{ran:?}");
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let ran = scene.run(&["sandbox", "run", "--", "sh", "-c", read]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
}

#[test]
fn what_cannot_be_enforced_is_refused() {
    let Some(scene) = scene() else { return };
    let run = ["sandbox", "run", "--backend", "landlock", "--write", "..", "--", "true"];
    let ran = scene.run(&run);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("stays hidden"), "{ran:?}");
}

#[test]
fn the_doctor_tells_what_is_enforced() {
    let Some(scene) = scene() else { return };
    let ran = scene.run(&["doctor"]);
    assert!(
        ran.stdout.contains("programs are confined, without network: files (Landlock"),
        "{ran:?}"
    );
    let ran = scene.run(&["--set", "sandbox.mode=off", "doctor"]);
    assert!(ran.stdout.contains("programs run without the sandbox"), "{ran:?}");
}

/// Programs would see the journal of their own run, so they are not started without a question.
#[test]
fn a_state_directory_in_the_project_is_told_and_nothing_runs_unasked() {
    let Some(scene) = scene() else { return };
    let call = ["tools", "call", "run_command", "--allow", "execute", "--arg", "command=echo ran"];
    let here = ["--state", "state", "--set", "sandbox.backend=landlock"];
    let ran = scene.run(&[&here, &call[..]].concat());
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(!ran.stdout.contains("ran"), "{ran:?}");
    let ran = scene.run(&[&here[..], &["doctor"]].concat());
    assert!(ran.stdout.contains("stays hidden here"), "{ran:?}");
}

#[test]
fn a_program_talks_to_allowed_hosts_only() {
    let Some(scene) = scene() else { return };
    let ask = "import urllib.request, sys\nurllib.request.urlopen(sys.argv[1])";
    let run = ["sandbox", "run", "--allow-host", "example.com", "--", "python3", "-c", ask];
    let ran = scene.run(&[&run[..], &["http://127.0.0.1/"]].concat());
    if ran.code == Some(3) {
        skip("network of its own", &ran.stderr);
        return;
    }
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("403"), "{ran:?}");
    let ran = scene.run(&["sandbox", "run", "--allow-host", "http://x", "--", "true"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("is not a host: write `example.com`"), "{ran:?}");
}

#[test]
fn a_path_of_ones_own_is_hidden() {
    let Some(scene) = scene() else { return };
    let scene = scene.file("../notes", "canary");
    let ran = scene.run(&["sandbox", "run", "--", "cat", "../notes"]);
    assert_eq!(ran.stdout, "canary", "{ran:?}");
    let read = ["sandbox", "run", "--hide", "../notes", "--", "cat", "../notes"];
    let ran = scene.run(&read);
    assert!(!ran.stdout.contains("canary"), "{ran:?}");
}
