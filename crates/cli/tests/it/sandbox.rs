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
    assert_ne!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_program_reads_no_secrets() {
    let Some(scene) = scene() else { return };
    let keys = scene.project().join("../.ssh");
    std::fs::create_dir_all(&keys).unwrap();
    std::fs::write(keys.join("id_rsa"), "canary").unwrap();
    let call = ["tools", "call", "run_command", "--allow", "execute", "--arg"];
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
    for said in ["programs are confined by ", ", without network\n", ": files, signals\n"] {
        assert!(ran.stdout.contains(said), "{said}: {ran:?}");
    }
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

/// What a program says about where it may write, as one word each.
const PLACES: &str = "for d in . ../elsewhere; do echo x > $d/new && echo $d; done 2>/dev/null";

/// It said that programs are confined as an agent's are, and looked at nothing that was configured.
#[test]
fn what_is_configured_counts_as_for_an_agent() {
    let Some(_) = scene() else { return };
    let scene = Scene::new()
        .user(
            "sandbox: {hidden: [~/notes], write: [~/elsewhere], limits: {fileSize: 4KiB}}\n\
             tools: {environment: [MY_WORD]}\n",
        )
        .file("../notes", "canary")
        .file("../elsewhere/file", "")
        .variable("MY_WORD", "passed on")
        .variable("MY_OTHER", "kept");
    let ran = |words: &[&str]| scene.run(&[&["sandbox", "run", "--"], words].concat());
    assert!(!ran(&["cat", "../notes"]).stdout.contains("canary"), "sandbox.hidden");
    assert_eq!(ran(&["sh", "-c", PLACES]).stdout, ".\n../elsewhere\n", "sandbox.write");
    let line = "head -c 100000 /dev/zero > big; wc -c < big";
    assert_eq!(ran(&["sh", "-c", line]).stdout.trim(), "4096", "sandbox.limits");
    let words = ran(&["sh", "-c", "echo $MY_WORD $MY_OTHER"]);
    assert_eq!(words.stdout, "passed on\n", "tools.environment");
    let backend = |name: &str| {
        let set = format!("sandbox.backend={name}");
        scene.json(&["--set", &set, "sandbox", "run", "--json", "--", "true"])["backend"].clone()
    };
    assert_eq!(backend("landlock"), "landlock");
    if !std::path::Path::new("/usr/bin/bwrap").exists() {
        skip("bwrap", "it is not there");
        return;
    }
    assert_eq!(backend("bubblewrap"), "bubblewrap");
}

#[test]
fn the_network_that_is_configured_counts_and_a_flag_comes_first() {
    let Some(_) = scene() else { return };
    let network = |set: &str, flags: &[&str]| {
        let scene = Scene::new().user(set);
        scene.json(&[&["sandbox", "run", "--json"], flags, &["--", "true"]].concat())["confinement"]
            ["network"]
            .clone()
    };
    assert_eq!(network("", &[]), "none");
    assert_eq!(network("sandbox: {network: all}\n", &[]), "all");
    assert_eq!(network("sandbox: {network: all}\n", &["--network", "none"]), "none");
    let hosts = "sandbox: {network: hosts, hosts: [example.org]}\n";
    let scene = Scene::new().user(hosts);
    let ran = scene.run(&["sandbox", "run", "--json", "--", "true"]);
    if ran.code == Some(3) {
        skip("network of its own", &ran.stderr);
        return;
    }
    assert_eq!(network(hosts, &[]), serde_json::json!({ "hosts": ["example.org"] }));
    let flag = network(hosts, &["--allow-host", "example.com"]);
    assert_eq!(flag, serde_json::json!({ "hosts": ["example.com"] }));
}

#[test]
fn limits_can_be_given_as_flags() {
    let Some(scene) = scene() else { return };
    let line = "head -c 100000 /dev/zero > big; wc -c < big";
    let ran = scene.run(&["sandbox", "run", "--file-size", "8KiB", "--", "sh", "-c", line]);
    assert_eq!(ran.stdout.trim(), "8192", "{ran:?}");
    let flags = ["--processes", "7", "--memory-per-process", "1GiB", "--cpu-per-process", "90s"];
    let told = scene.json(&[&["sandbox", "run", "--json"], &flags[..], &["--", "true"]].concat());
    let limits = &told["confinement"]["limits"];
    assert_eq!(
        limits,
        &serde_json::json!({
            "processes": 7, "memory": null, "memoryPerProcess": 1_u64 << 30, "cpuSeconds": null,
            "cpuPerProcessSeconds": 90, "fileSize": null,
        })
    );
}

/// A program that was ended for a limit looked like any other that was killed.
#[test]
fn a_limit_that_was_reached_is_told() {
    let Some(scene) = scene() else { return };
    let many = "for i in $(seq 60); do sleep 4711 & done; wait";
    let flags = ["sandbox", "run", "--processes", "20"];
    let ran = scene.run(&[&flags[..], &["--", "sh", "-c", many]].concat());
    assert_eq!(ran.code, Some(137), "{ran:?}");
    let said = "it reached its limit of 20 processes at a time (`sandbox.limits.processes`)";
    assert!(ran.stderr.contains(said), "{ran:?}");
    let large = "head -c 100000 /dev/zero > big";
    let flags = ["sandbox", "run", "--json", "--file-size", "8KiB"];
    let ran = scene.run(&[&flags[..], &["--", "sh", "-c", large]].concat());
    let told: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(told["reached"]["key"], "sandbox.limits.fileSize", "{told}");
}

/// What all processes use together is held, or the program does not run.
#[test]
fn limits_on_all_together_are_held_or_refused() {
    let Some(scene) = scene() else { return };
    let line = "while :; do sh -c 'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done' & wait; done";
    let ran = scene.run(&["sandbox", "run", "--cpu", "300ms", "--", "sh", "-c", line]);
    if ran.code == Some(3) {
        assert!(
            ran.stderr.contains("`cpu_per_process` (`sandbox.limits.cpuPerProcess`)"),
            "{ran:?}"
        );
        skip("control groups", &ran.stderr);
        return;
    }
    assert_eq!(ran.code, Some(137), "{ran:?}");
    assert!(ran.stderr.contains("(`sandbox.limits.cpu`)"), "{ran:?}");
}

/// A path with a typing error hid nothing and let write nothing, and nobody said so.
#[test]
fn a_path_that_is_not_there_is_told() {
    let Some(scene) = scene() else { return };
    for flag in ["--hide", "--write", "--read"] {
        let ran = scene.run(&["sandbox", "run", flag, "nonexist", "--", "true"]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let said = format!("there is no `[root]/home/project/nonexist`, which {flag} names");
        assert!(ran.stderr.contains(&said), "{ran:?}");
    }
}

#[test]
fn the_exit_code_is_that_of_the_program() {
    let Some(scene) = scene() else { return };
    let code = |words: &[&str]| scene.run(&[&["sandbox", "run", "--"], words].concat()).code;
    assert_eq!(code(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["sh", "-c", "exit 77"]), Some(77));
    assert_eq!(code(&["sh", "-c", "kill -SEGV $$"]), Some(128 + 11));
    assert_eq!(code(&["no-such-program"]), Some(127));
    assert_eq!(code(&["/etc/passwd"]), Some(126));
    let ran = scene.run(&["sandbox", "run", "--", "no-such-program"]);
    assert!(ran.stderr.contains("program `no-such-program` not found"), "{ran:?}");
}

#[test]
fn the_program_reads_what_the_command_reads_and_writes_what_it_writes() {
    let Some(scene) = scene() else { return };
    let ran = scene.run_with(b"one\ntwo", &["sandbox", "run", "--", "wc", "-c"]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "7"), "{ran:?}");
    // It does not wait for input that nobody reads.
    let mut open = scene.command(&["sandbox", "run", "--", "true"]);
    let mut child = open.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take();
    assert!(child.wait().unwrap().success());
    drop(input);
    let bytes = scene.command(&["sandbox", "run", "--", "printf", "\\377\\000no newline"]).output();
    assert_eq!(bytes.unwrap().stdout, b"\xff\0no newline");
}

/// Tests work below the directory for temporary files, and so does what is hidden in them.
#[test]
fn a_directory_for_temporary_files_that_is_closed_is_told_and_another_one_works() {
    let Some(scene) = scene() else { return };
    let landlock = ["--set", "sandbox.backend=landlock"];
    let line = "t=$(mktemp) && echo kept > $t && cat $t";
    let run = ["sandbox", "run", "--", "sh", "-c", line];
    let ran = scene.run(&[&landlock[..], &run].concat());
    assert_eq!(ran.stdout, "kept\n", "{ran:?}");
    let said = "programs cannot write in `/tmp`";
    assert!(ran.stderr.contains(&format!("warning: {said}")), "{ran:?}");
    let ran = scene.run(&[&landlock[..], &["doctor"]].concat());
    let lines = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(lines.contains(said), "{ran:?}");
}

#[test]
fn what_may_be_written_is_told() {
    let Some(scene) = scene() else { return };
    let ran = scene.run(&["sandbox", "run", "--help"]);
    for place in ["/tmp", "/dev/shm", "TMPDIR"] {
        assert!(ran.stdout.contains(place), "{place}: {ran:?}");
    }
    let ran = scene.run(&["doctor"]);
    assert!(ran.stdout.contains("they write below [root]/home/project"), "{ran:?}");
    assert!(ran.stdout.contains("/dev/shm"), "{ran:?}");
}

/// It went on for ever, since nobody told it that nobody listens.
#[test]
fn a_program_ends_when_nobody_reads_what_it_says() {
    let Some(scene) = scene() else { return };
    let mut child = scene.command(&["sandbox", "run", "--", "yes"]).spawn().unwrap();
    let mut first = [0; 2];
    std::io::Read::read_exact(&mut child.stdout.take().unwrap(), &mut first).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 13));
}
