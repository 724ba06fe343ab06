//! Lines of a grammar, decided by an everyday policy: every line that is allowed is really run by bash, in
//! the sandbox, with a program on the path that no rule allows. If it leaves a mark, the line was missed.
//!
//! The lines are the same each time. `PROPTEST_CASES` (256 where it is not set) multiplies their number.

use convoke::core::policy::{Facts, Layer, Policy, Rule, RuleSpec, Scope, World};
use convoke::core::{Category, Effects, Kind, Mode, Permission, ToolSpec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use crate::bash::Fenced;

/// The lines of one seed.
const LINES: u32 = 1_500;
const SEEDS: [u8; 2] = [1, 2];

/// What the policy allows, each with any further words.
const ALLOWED: &[&str] = &[
    ":",
    "echo",
    "cat",
    "ls",
    "head",
    "wc",
    "grep",
    "sed",
    "awk",
    "find",
    "sort",
    "tar",
    "tr",
    "true",
    "test",
    "printf",
    "git log",
    "git status",
    "git diff",
    "git show",
    "git grep",
    "git rebase",
    "git ls-remote",
    "git clone",
    "git fetch",
    "git config",
    "git stash",
    "git branch",
    "diff",
    "date",
    "uniq",
    "make",
    "env",
];

/// Programs with words of theirs.
const PROGRAMS: &[&str] = &[
    "echo",
    "cat",
    "ls",
    "sed",
    "awk",
    "find .",
    "sort",
    "tar",
    "git log",
    "git status",
    "git diff",
    "git show",
    "git grep",
    "git rebase",
    "git ls-remote",
    "git clone",
    "git fetch",
    "git",
    "env",
    "xargs",
    "make",
    "date",
    "diff",
    "git config",
    "git stash",
];
const WORDS: &[&str] = &[
    "f",
    ".",
    "HEAD",
    "--",
    "-n",
    "-p",
    "-q",
    "-l",
    "x",
    "-x mark",
    "-xmark",
    "--exec=mark",
    "--ex mark",
    "--exec mark",
    "-ix mark",
    "--upload-pack=mark",
    "--u=mark",
    "--upl mark",
    "-u mark",
    "-c",
    "core.pager=mark",
    "-qc core.fsmonitor=mark",
    "-Omark",
    "-lOmark",
    "--open=mark",
    "--output=f2",
    "--ext-diff",
    "--textconv",
    "-e",
    "-f",
    "-i",
    "'e mark'",
    "'1e mark'",
    "'s/a/mark/e'",
    "':a e mark'",
    "'p;e mark'",
    "'{p;e mark}'",
    "1p",
    "s/a/b/",
    "'BEGIN{system(\"mark\")}'",
    "'{print | \"mark\"}'",
    "'{print $1}'",
    "-We",
    "-exec mark {} +",
    "-exec mark \\;",
    "-exec ls {} +",
    "-exec sed p f + -e 'e mark' \\;",
    "-execdir mark \\;",
    "-name f",
    "--compress-program=mark",
    "-S1",
    "--compress=mark",
    "-cf a.tar f",
    "cf a.tar f",
    "-Imark",
    "--to-command=mark",
    "xf a.tar",
    "--checkpoint=1 --checkpoint-action=exec=mark",
    "--use-compress=mark",
    "$x",
    "\"$x\"",
    "$(echo f)",
    "*",
    "mark",
    "PATH=.",
    "FOO=1",
    "-S mark",
    "SHELL=mark",
    "--eval='$(shell mark)'",
    "--oneline",
    "-1",
    "alias.log=!mark",
    "ext::mark",
    "--template=.",
    "-5",
    "< f",
    "2>/dev/null",
    "| cat",
    "-",
    "-f-",
    "#",
];
/// Lines with a place for another.
const AROUND: &[&str] = &[
    "@",
    "@",
    "@; echo a",
    "echo $(@)",
    "echo \"$(@)\"",
    "(@)",
    "{ @; }",
    "@ | cat",
    "@ && echo a",
    "echo a # @",
    "x='mark'; @",
    "x=-xmark; @",
    "cat < <(@)",
    "if @; then :; fi",
    "env FOO=1 @",
    "timeout 5 @",
    "f() { @; }; f",
    "echo a | xargs @",
    "echo '@'",
    "for x in -xmark mark; do @; done",
    "echo `@`",
    "bash -c '@'",
];
/// Lines of here-documents.
const LINES_OF_DOCUMENTS: &[&str] = &[
    "a", "E", "mark", "E", "\tE", "$(mark)", "`mark`", ")", "E)", "E ", "echo)", "", "# a", "'",
    "E\\",
];

fn document() -> impl Strategy<Value = String> {
    let start = select(vec![
        "cat <<E",
        "cat <<'E'",
        "cat <<\"E\"",
        "cat <<\\E",
        "cat <<-E",
        "cat <<-'E'",
        "cat <<''",
        "cat <<E #",
        "cat << E",
        "cat <<E <<E",
        "cat <<E; echo a",
        "cat <<'E' | cat",
        ": <<E",
    ]);
    let around = select(vec![
        "@",
        "echo $(@)",
        "echo \"$(@)\"",
        "echo `@`",
        "cat <(@)",
        "(@)",
        "{ @\n}",
        "echo $(@\n)",
        "git log \"$(@\n)\"",
        "echo \"$(@\n)\" # a",
        "echo $(@",
        "x=$(@\n)",
        "echo ${x:-@}",
        "if @\nthen :; fi",
    ]);
    let lines = proptest::collection::vec(select(LINES_OF_DOCUMENTS), 1..6);
    (start, around, lines).prop_map(|(start, around, lines)| {
        around.replace('@', &format!("{start}\n{}", lines.join("\n")))
    })
}

fn command() -> impl Strategy<Value = String> {
    let words = proptest::collection::vec(select(WORDS), 0..4);
    (select(PROGRAMS), words).prop_map(|(program, words)| format!("{program} {}", words.join(" ")))
}

fn line() -> impl Strategy<Value = String> {
    let commands = (command(), proptest::collection::vec(select(AROUND), 1..3)).prop_map(
        |(command, around)| around.iter().fold(command, |line, around| around.replace('@', &line)),
    );
    prop_oneof![2 => commands, 1 => document()]
}

fn policy() -> Policy {
    let rule = |program: &&str| {
        let spec = RuleSpec::command(Permission::Allow, format!("{program} *"));
        Rule::new(spec, None, None).unwrap()
    };
    let rules = Layer::new(Scope::User, ALLOWED.iter().map(rule).collect());
    Policy::new(Mode::Default).layer(rules)
}

fn allows(policy: &Policy, line: &str) -> bool {
    let world =
        World { directory: "/work".into(), home: Some("/home/u".into()), roots: Vec::new() };
    let mut spec = ToolSpec::new("run_command", "Runs.", Kind::Execute);
    spec.category = Category::Code;
    let arguments = json!({ "command": line });
    let facts = Facts::new(&spec, &arguments, &Effects::NONE, "main", &world);
    policy.decide(&facts).permission == Permission::Allow
}

/// A repository with a file, a commit and an archive, for commands to work on.
const PREPARE: &str = "git init -q . && echo a > f && git add f && \
    git -c user.name=a -c user.email=a@example.com commit -qm a && tar cf a.tar f";

async fn run(seed: u8) -> (u32, u32) {
    let config = ProptestConfig::default();
    let lines = LINES * (config.cases / 256).max(1);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let (fenced, policy) = (Fenced::new().unwrap(), policy());
    assert!(!fenced.leaves_a_mark(PREPARE).await);
    let mut ran = 0;
    for _ in 0..lines {
        let line = line().new_tree(&mut runner).unwrap().current();
        if allows(&policy, &line) {
            ran += 1;
            assert!(!fenced.leaves_a_mark(&line).await, "bash ran it in {line:?}");
        }
    }
    (lines, ran)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_line_of_the_grammar_that_is_allowed_runs_what_is_not() {
    if Fenced::new().is_none() {
        return;
    }
    let workers = SEEDS.map(|seed| tokio::spawn(run(seed)));
    let (mut lines, mut ran) = (0, 0);
    for worker in workers {
        let (more, allowed) = worker.await.unwrap();
        (lines, ran) = (lines + more, ran + allowed);
    }
    eprintln!("{ran} of {lines} lines were allowed and run");
    assert!(ran > lines / 20, "only {ran} of {lines} lines were allowed");
}
