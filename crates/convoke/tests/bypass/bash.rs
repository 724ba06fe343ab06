//! The reader of command lines beside the shell it reads for: what bash runs must not have been missed.
//!
//! Lines are made from templates and then damaged. Each that the policy allows is given to bash, with a
//! program of our own on its path that leaves a mark; the policy forbids that program, so there must be
//! no mark. Damaged lines can do anything (`>/bin/echo`), so bash runs behind a fence: it can write nothing
//! but the directory it is given. `PROPTEST_CASES` (256 where it is not set) multiplies the number of lines.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use convoke::core::policy::{Facts, Layer, Policy, Rule, RuleSpec, Scope, World};
use convoke::core::{Category, Effects, Kind, Mode, Permission, ToolSpec};
use convoke::sandbox::{ConfinedSpawner, Confinement, Limits};
use convoke::tools::process::run_to_end;
use convoke::tools::{Program, ToolContext};
use convoke_testkit::skip;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;

/// How many lines there are where nobody wants more.
const LINES: u32 = 1_000;

/// Lines with a place for another line.
const TEMPLATES: &[&str] = &[
    "@",
    "(@)",
    "{ @; }",
    "echo $(@)",
    "echo \"$(@)\"",
    "echo `@`",
    "if @; then :; fi",
    "if :; then @; fi",
    "for i in a; do @; done",
    "case a in a) @;; esac",
    "case $(@) in *) :;; esac",
    "eval '@'",
    "eval @",
    "bash -c '@'",
    "bash -c \"@\"",
    "cat <<E\n$(@)\nE",
    "cat <<E\n@\nE",
    "cat <<'E'\n@\nE",
    "cat <<\\E\n@\nE",
    "cat <<-E\n\t@\n\tE",
    "cat <<E\n:\nE\n@",
    "echo ${x:-$(@)}",
    "echo ${x:=@}",
    "echo ${x/a/`@`}",
    "x=$(@)",
    "x='@'; eval $x",
    "x='@'; $x",
    "[[ -n $(@) ]]",
    "[[ a == @ ]]",
    "! @",
    "time @",
    "coproc @",
    "echo '@'",
    "echo \"@\"",
    ": # @\n:",
    ": '\n' @",
    "@ | cat",
    ": || @",
    ": && @",
    ": & @",
    "f() { @; }; f",
    "function f { @; }; f",
    "trap '@' EXIT",
    "trap -- '@' EXIT",
    "echo $(( @ ))",
    "x='a[$(@)]'; echo $((x))",
    "x='a[$(@)]'; echo ${PATH:x}",
    "x='a[$(@)]'; [[ x -eq 1 ]]",
    "x='a[$(@)]'; printf -v 'b[x]' c",
    "x='$(@)'; echo \"${x@P}\"",
    "cat < <(@)",
    ": > >(@)",
    "env @",
    "env - PATH=\"$PATH\" @",
    "command @",
    "builtin @",
    "nice @",
    "exec @",
    "timeout 5 @",
    "xargs @ </dev/null",
    "echo a | xargs -I{} @ {}",
    "find . -maxdepth 0 -exec @ \\;",
    "@ 2>/dev/null",
    ">/dev/null @",
    "x=1 @",
    "\\\n@",
    "echo \\\n@",
    "echo \\\\\n@",
    "echo $'a\\'' @",
    "echo $'@'",
    "echo {a,@}",
    "echo a;@;echo b",
    "echo @ @",
];

/// What is put into lines to damage them.
const DAMAGE: &[&str] = &[
    " ", "\n", "\t", ";", "&", "|", "(", ")", "{", "}", "$", "$(", "`", "\"", "'", "\\", "\\\n",
    "${", "$((", "))", "<<E\n", "\nE\n", "<<<", "<(", ">", "#", " #", "!", "[[", "]]", "=", "~",
    "*", "?", "[", "]", "@(", "$'", "$\"", "-", "--", "-c", ",", "<<'E'\n", "E", ":", "x=", "mark",
    ";;", "&&", "||", "a", "\u{e9}",
];

fn line() -> impl Strategy<Value = String> {
    let templates = proptest::collection::vec(select(TEMPLATES), 1..4);
    let damage = proptest::collection::vec((any::<Index>(), select(DAMAGE), any::<bool>()), 0..4);
    let innermost = select(vec!["mark", "mark", "mark x", "m''ark", "\\mark", "/bin/echo x", ":"]);
    (templates, damage, innermost).prop_map(|(templates, damage, innermost)| {
        let mut line = innermost.to_owned();
        for template in templates {
            line = template.replace('@', &line);
        }
        for (at, text, replaces) in damage {
            let mut characters: Vec<char> = line.chars().collect();
            let at = at.index(characters.len() + 1);
            let end = (at + usize::from(replaces)).min(characters.len());
            characters.splice(at..end, text.chars());
            line = characters.into_iter().collect();
        }
        line
    })
}

fn allowed(line: &str) -> bool {
    let world =
        World { directory: "/work".into(), home: Some("/home/u".into()), roots: Vec::new() };
    let mut spec = ToolSpec::new("run_command", "Runs.", Kind::Execute);
    spec.category = Category::Code;
    let arguments = json!({ "command": line });
    let rule = Rule::new(RuleSpec::command(Permission::Deny, "mark *"), None, None).unwrap();
    let policy = Policy::new(Mode::Full).layer(Layer::new(Scope::User, vec![rule]));
    let facts = Facts::new(&spec, &arguments, &Effects::NONE, "main", &world);
    policy.decide(&facts).permission == Permission::Allow
}

/// Where bash runs: it writes here and nowhere else.
pub(crate) struct Fenced {
    directory: tempfile::TempDir,
    context: ToolContext,
}

impl Fenced {
    pub(crate) fn new() -> Option<Self> {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir(directory.path().join("bin")).unwrap();
        fs::create_dir(directory.path().join("work")).unwrap();
        let program = directory.path().join("bin/mark");
        let mark = format!("#!/bin/sh\n: > '{}/left'\n", directory.path().display());
        fs::write(&program, mark).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let confinement = Confinement {
            read: vec!["/".into()],
            write: vec![directory.path().to_owned()],
            limits: Limits { processes: Some(64), ..Limits::default() },
            ..Confinement::default()
        };
        match ConfinedSpawner::new(confinement) {
            Ok(spawner) => {
                let context = ToolContext::builder("bash").spawner(std::sync::Arc::new(spawner));
                Some(Self { directory, context: context.build() })
            }
            Err(reason) => {
                skip("the sandbox", &reason.to_string());
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs a line, and tells whether it left a mark.
    pub(crate) async fn leaves_a_mark(&self, line: &str) -> bool {
        let mark = self.path().join("left");
        drop(fs::remove_file(&mark));
        let command = ["timeout", "5", "bash", "--norc", "--noprofile", "-c", line];
        let path = format!("{}:/usr/bin:/bin", self.path().join("bin").display());
        let program = Program::new(command.map(str::to_owned).into(), self.path().join("work"))
            .environment([("PATH".to_owned(), path)].into());
        // A line with a zero byte in it is not even started.
        drop(run_to_end(&self.context, program, Vec::new(), 1024).await);
        mark.exists()
    }
}

#[tokio::test]
async fn the_program_leaves_a_mark() {
    let Some(fenced) = Fenced::new() else { return };
    assert!(fenced.leaves_a_mark("mark").await);
    assert!(!fenced.leaves_a_mark("true").await);
    assert!(!allowed("mark") && allowed("true"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_bash_runs_is_missed() {
    if Fenced::new().is_none() {
        return;
    }
    let factor = (ProptestConfig::default().cases / 256).max(1);
    let workers = (0..2).map(|_| {
        tokio::spawn(async move {
            let (fenced, mut runner) = (Fenced::new().unwrap(), TestRunner::default());
            let mut ran = 0;
            for _ in 0..LINES * factor / 2 {
                let line = line().new_tree(&mut runner).unwrap().current();
                if allowed(&line) {
                    ran += 1;
                    assert!(!fenced.leaves_a_mark(&line).await, "bash ran it in {line:?}");
                }
            }
            ran
        })
    });
    let mut ran = 0;
    for worker in workers.collect::<Vec<_>>() {
        ran += worker.await.unwrap();
    }
    assert!(ran > LINES / 20, "only {ran} lines were allowed");
}
