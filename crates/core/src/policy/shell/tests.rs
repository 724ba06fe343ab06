use super::*;

const PLACE: Place<'static> = Place { home: Some("/home/u"), directory: "/work" };

/// Returns the programs a line runs with their arguments, and `?` at the end if it is opaque.
fn runs(text: &str) -> Vec<String> {
    let line = read(text, PLACE);
    let acts = line.commands.iter().filter(|command| command.role == Role::Acts);
    let shown =
        |command: &Simple| command.words.iter().map(Word::shown).collect::<Vec<_>>().join(" ");
    acts.map(shown).chain(line.opaque.map(|_| "?".to_owned())).collect()
}

#[test]
fn every_command_of_a_compound_line_is_found() {
    for (line, expected) in [
        ("git status", &["git status"][..]),
        ("a; b && c || d | e & f", &["a", "b", "c", "d", "e", "f"]),
        ("(a; { b; })", &["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]),
        ("while a; do b; done", &["a", "b"]),
        ("until a; do b; done", &["a", "b"]),
        ("for x in 1 2; do a; done", &["a"]),
        ("case x in y) a;; *) b;; esac", &["a", "b"]),
        ("f() { a; }; f", &["a", "f"]),
        ("! a", &["a"]),
        ("time a", &["a"]),
        ("echo $(a)", &["a", "echo $(a)"]),
        ("echo \"x $(a) y\"", &["a", "echo \"x $(a) y\""]),
        ("echo `a`", &["a", "echo `a`"]),
        ("cat <(a) > >(b)", &["a", "b", "cat /dev/fd/0"]),
        ("x=$(a)", &["a"]),
        ("a\nb", &["a", "b"]),
        ("a <<E\ntext\nE\nb", &["a", "b"]),
        ("cat <<< $(a)", &["a", "cat"]),
        ("[[ -n $(a) ]] && b", &["a", "b"]),
        ("for x in $(a); do b; done", &["a", "b"]),
        ("a > $(b)", &["b", "a"]),
    ] {
        assert_eq!(runs(line), expected, "{line}");
    }
}

#[test]
fn wrappers_are_looked_through() {
    for (line, expected) in [
        ("env LANG=C rm x", &["rm x"][..]),
        ("env -i -u X rm x", &["rm x"]),
        ("sudo -u root rm x", &["sudo -u root rm x", "rm x"]),
        ("nice -n 5 rm x", &["rm x"]),
        ("timeout -k 1 5 rm x", &["rm x"]),
        ("find . | xargs -0 -n1 rm", &["find .", "rm …"]),
        ("xargs -I{} rm {}", &["rm {}"]),
        ("bash -c 'rm x'", &["rm x"]),
        ("bash -lc 'rm x'", &["rm x"]),
        ("sh -c \"sh -c 'rm x'\"", &["rm x"]),
        ("find . -name y -exec rm {} \\;", &["find . -name y -exec rm {} ;", "rm {}"]),
        ("find . -delete", &["find . -delete", "rm {}"]),
        ("command rm x", &["rm x"]),
        ("command -v rm", &["command -v rm"]),
        ("exec rm x", &["rm x"]),
        ("nohup rm x", &["rm x"]),
        ("stdbuf -oL rm x", &["rm x"]),
        ("eval 'rm x'", &["rm x"]),
        ("eval rm x", &["rm x"]),
        ("busybox rm x", &["rm x"]),
        ("nice env nohup timeout 5 rm x", &["rm x"]),
        ("trap 'rm x' EXIT", &["trap rm x EXIT", "rm x"]),
        ("ssh host rm x", &["ssh host rm x"]),
        ("r''m \"x\"", &["rm x"]),
        ("\\rm x", &["rm x"]),
        ("git -C sub push", &["git -C sub push"]),
    ] {
        assert_eq!(runs(line), expected, "{line}");
    }
}

#[test]
fn what_cannot_be_known_is_opaque() {
    for line in [
        "$X",
        "$(echo rm) x",
        "`echo rm` x",
        "${X:-rm} x",
        "r${X}m x",
        "{rm,x}",
        "/bin/r? x",
        "$'\\x72m' x",
        "echo 'rm x' | sh",
        "bash <<E\nrm\nE",
        "bash <(echo rm)",
        "sh -s",
        "bash -c \"$X\"",
        "eval \"$X\"",
        "env -S 'rm x'",
        "xargs -I{} sh -c {}",
        "timeout --odd 5 rm",
        "PATH=. ls",
        "GIT_SSH_COMMAND=rm git fetch",
        "export PATH=/tmp",
        "LD_PRELOAD=x ls",
        "cat <<E\n$(rm x)\nE",
        "echo ${X:-$(rm x)}",
        "echo $((a[0]))",
        "echo ${!x}",
        "((x=1))",
        "echo 'unfinished",
        "if",
        "a | ",
        "((",
        "echo > /dev/tcp/h/1",
        "watch rm",
        "source x",
        ". x",
        "parallel rm",
        "echo \"${x@P}\"",
        "ls\u{a0}x",
        "alias ls=rm",
    ] {
        assert!(read(line, PLACE).opaque.is_some(), "{line}: {:?}", runs(line));
    }
}

#[test]
fn redirections_are_files_that_are_touched() {
    let shown = |words: &[Word]| words.iter().map(Word::shown).collect::<Vec<_>>();
    for (line, reads, writes) in [
        ("a > x", &[][..], &["x"][..]),
        ("a >> x 2> y", &[], &["x", "y"]),
        ("a &> x", &[], &["x"]),
        ("a >| x", &[], &["x"]),
        ("a < x", &["x"], &[]),
        ("a > /dev/null 2>&1", &[], &[]),
        ("a >& x", &[], &["x"]),
        ("{ a; } > x", &[], &["x"]),
        ("(a) > ~/x", &[], &["/home/u/x"]),
        ("> x", &[], &["x"]),
        ("while a; do b; done > x", &[], &["x"]),
    ] {
        let found = read(line, PLACE);
        assert_eq!(shown(&found.reads), reads, "{line}");
        assert_eq!(shown(&found.writes), writes, "{line}");
    }
}

#[test]
fn the_home_directory_is_known_unless_the_line_changes_it() {
    let words = |text: &str| read(text, PLACE).commands[0].words[1].clone();
    assert_eq!(words("cat ~/x").text(), Some("/home/u/x"));
    assert_eq!(words("cat $HOME/x").text(), Some("/home/u/x"));
    assert_eq!(words("cat \"${HOME}/x\"").text(), Some("/home/u/x"));
    assert_eq!(words("cat $HOME/x; HOME=/y").text(), None);
    assert_eq!(words("cat '~/x'").text(), Some("~/x"));
    assert_eq!(words("cat ~other/x").text(), None);
    assert_eq!(words("cat src/*.rs").start(), Some("src/"));
    assert_eq!(words("cat src/*/../x").start(), None);
    assert_eq!(words("cat {/etc/x,y}").start(), None);
}
