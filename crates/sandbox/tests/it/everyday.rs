//! What people do all day still works.

use std::time::Instant;

use convoke_sandbox::Backend;
use convoke_testkit::skip;
use convoke_tool::{Spawner, UnconfinedSpawner};

use crate::support::{Place, run};

/// Lines that must succeed.
const LINES: &[&str] = &[
    "true",
    "ls -la / > /dev/null",
    "ls -la $PLACE/home",
    "cat file",
    "cat $PLACE/home/notes",
    "cat /etc/passwd | grep root | wc -l",
    "echo changed > file && test \"$(cat file)\" = changed",
    "mkdir -p a/b/c && touch a/b/c/d && mv a/b/c/d a/e && rm -r a",
    "ln file hard && ln -s file soft && cat hard soft",
    "t=$(mktemp) && echo x > $t && cat $t && rm $t",
    "mkfifo pipe && (echo through > pipe &) && cat pipe",
    "head -c 16 /dev/urandom | od > /dev/null",
    "cat < /dev/null > /dev/null",
    "echo out; echo err >&2",
    "find . -type f | sort | xargs cat",
    "sleep 0.01 & wait",
    "kill -TERM $$ || true",
    "cat /proc/self/status /proc/cpuinfo /proc/meminfo > /dev/null",
    "chmod 600 file && chmod 644 file",
    "tar czf a.tgz file && tar xzf a.tgz",
    "echo text | tee copy | sed s/t/d/ > changed",
    "env > variables && date && id && uname -a",
];

/// Programs that may not be installed, and lines that try them.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "git",
        "git init -q . && git add file && git -c user.name=a -c user.email=a@b commit -qm first && git log",
    ),
    ("git", "git init -q . && git status --short"),
    ("python3", "python3 -c 'import json, tempfile; tempfile.TemporaryFile().write(b\"x\")'"),
    ("python3", "python3 -c 'import subprocess; subprocess.run([\"ls\"], check=True)'"),
    ("python3", "python3 -c 'import multiprocessing as m; m.Lock(); m.Pipe()'"),
    ("cargo", "cargo --version && rustc --version"),
    ("make", "printf 'all:\\n\\techo made\\n' > Makefile && make"),
    ("cc", "echo 'int main(void){return 0;}' > a.c && cc a.c -o a && ./a"),
    ("node", "node -e 'require(\"fs\").writeFileSync(\"x\", \"y\")'"),
    ("perl", "perl -e 'print 1'"),
];

async fn plain_lines_work(backend: Backend) {
    for line in LINES {
        let Some(place) = Place::new(backend) else { return };
        let ran = place.shell(line).await;
        assert!(ran.succeeded() || line.starts_with("kill"), "`{line}`: {ran:?}");
    }
}

async fn tools_of_the_trade_work(backend: Backend) {
    for (program, line) in PROGRAMS {
        let Some(place) = Place::new(backend) else { return };
        let there = format!("command -v {program}");
        if !run(&UnconfinedSpawner, place.program(&["sh", "-c", &there])).await.succeeded() {
            skip(program, "it is not in the search path");
            continue;
        }
        let ran = place.shell(line).await;
        assert!(ran.succeeded(), "`{line}`: {ran:?}");
    }
}

async fn exit_codes_and_signals_arrive(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    assert_eq!(place.shell("exit 7").await.status.code(), Some(7));
    assert_eq!(place.shell("kill -SEGV $$").await.ended_by(), Some(11));
    let ran = place.shell("echo out; echo err >&2").await;
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("out\n", "err\n"));
}

async fn a_program_that_is_not_there_is_named(backend: Backend) {
    let Some(place) = Place::new(backend) else { return };
    let error = place.spawner().spawn(place.program(&["no-such-program"])).await.unwrap_err();
    assert!(error.to_string().contains("`no-such-program` not found"), "{error}");
}

/// Starting bubblewrap takes a while by itself, so this is about Landlock.
#[tokio::test]
#[expect(clippy::print_stderr, reason = "the number is what it is for")]
async fn confining_takes_little_time() {
    let Some(place) = Place::new(Backend::Landlock) else { return };
    let confined = place.spawner();
    let mut fastest = [f64::MAX; 2];
    for _ in 0..40 {
        let spawners: [&dyn Spawner; 2] = [&UnconfinedSpawner, &confined];
        for (best, spawner) in fastest.iter_mut().zip(spawners) {
            let start = Instant::now();
            assert!(run(spawner, place.program(&["true"])).await.succeeded());
            *best = best.min(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    let [plain, confined] = fastest;
    eprintln!("`true` takes {plain:.2} ms plain, {confined:.2} ms confined");
    // The aim is 3 ms; a loaded machine and a build without optimisation get some more.
    assert!(confined - plain < 15.0, "confining takes {:.2} ms", confined - plain);
}

on_each_backend!(
    plain_lines_work,
    tools_of_the_trade_work,
    exit_codes_and_signals_arrive,
    a_program_that_is_not_there_is_named,
);
