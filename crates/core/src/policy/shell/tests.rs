use super::*;

const PLACE: Place<'static> = Place { home: Some("/home/u"), directory: "/srv" };

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
        ("cat <<E\nx $(a) `b`\nE", &["a", "b", "cat"]),
        ("cat <<'E'\n$(a)\nE", &["cat"]),
        ("cat <<\"E\"\n$(a)\nE", &["cat"]),
        ("cat <<\\E\n$(a)\nE", &["cat"]),
        ("cat <<-E\n\t$(a)\n\tE\nb", &["a", "cat", "b"]),
        ("cat <<A <<B\n$(a)\nA\n$(b)\nB", &["a", "b", "cat"]),
        ("set -euo pipefail; a", &["set -euo pipefail", "a"]),
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
        ("env - rm x", &["rm x"]),
        ("env --chdir=/ rm x", &["rm x"]),
        ("bash +x -c 'rm x'", &["rm x"]),
        ("bash -co errexit 'rm x'", &["rm x"]),
        ("bash -oc errexit 'rm x'", &["rm x"]),
        ("bash -c -- 'rm x'", &["rm x"]),
        ("eval -- 'rm x'", &["rm x"]),
        ("trap -- 'rm x' EXIT", &["trap -- rm x EXIT", "rm x"]),
        ("xargs -rI{} rm {}", &["rm {}"]),
        ("fd x -Hx rm", &["fd x -Hx rm", "rm {}"]),
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
        "cat <<E\n\"$(rm x)\nE",
        "cat <<E\n${x:-$(rm x)}\nE",
        "xargs -rI{} sh -c {}",
        "xargs -0I% % x",
        "zsh -c '=rm x'",
        "tcsh -c 'rm x'",
        "fish -C 'rm x'",
        "/proc/self/exe -c 'rm x'",
        "x='a[$(rm y)]'; echo ${PATH:x}",
        "x='a[$(rm y)]'; echo ${PATH:0:x}",
        "x='a[$(rm y)]'; printf -v 'b[x]' z",
        "printf -v $x y",
        "printf -vPATH y",
        "read PATH <<< /tmp",
        "read -r x PATH <<< /tmp",
        "read -a PATH <<< /tmp",
        "getopts x PATH",
        "test -v 'a[x]'",
        "test -v $x",
        "unset 'a[x]'",
        ": ${PATH:=/tmp}",
        "tar xIf 'rm x' a",
        "git clone -u 'rm x' a b",
        "git remote-ext a 'rm x'",
        "sort --files0-from=-",
        "set -x",
        "shopt -s expand_aliases",
        "coreutils --coreutils-prog=rm x",
        "/lib/ld-musl-x86_64.so.1 /bin/rm x",
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
        let found = read(line, PLACE);
        let hides = found
            .commands
            .iter()
            .any(|command| command.unlisted.as_ref().is_some_and(|unlisted| unlisted.hides));
        assert!(hides || found.opaque.or(found.unread).is_some(), "{line}: {:?}", runs(line));
    }
}

#[test]
fn what_cannot_be_read_is_told_from_what_cannot_be_known() {
    for line in [
        "echo 'unfinished",
        "echo \"unfinished",
        "if",
        "a | ",
        "((",
        "ls $(",
        "ls `a",
        "ls ${",
        "ls )",
        "a\0b",
        "ls\u{a0}x",
        "bash -c 'echo \"'",
        "cat <<E",
        "cat <<E\nE\\\n\nrm x\nE",
        &"(".repeat(9),
        &"x".repeat(20_000),
        &"nice ".repeat(12),
        &"a;".repeat(300),
    ] {
        assert!(read(line, PLACE).unread.is_some(), "{line:.40}: {:?}", runs(line));
    }
    for line in ["$X", "eval \"$X\"", "echo 'rm x' | sh", "PATH=. ls", "cat $X"] {
        assert_eq!(read(line, PLACE).unread, None, "{line}");
    }
}

#[test]
fn directories_that_options_name_count() {
    let shown =
        |text: &str| read(text, PLACE).directories.iter().map(Word::shown).collect::<Vec<_>>();
    assert_eq!(shown("git -C /a -C b log"), ["/a", "b"]);
    assert_eq!(shown("env --chdir=/a cat b"), ["/a"]);
    assert_eq!(shown("env -C /a cat b"), ["/a"]);
    assert_eq!(shown("tar -C /a -cf - b"), ["/a"]);
    assert_eq!(shown("tar xC /a"), ["/a"]);
    assert_eq!(shown("make --directory /a"), ["/a"]);
    assert_eq!(shown("sudo -D /a cat b"), ["/a"]);
    assert_eq!(shown("grep -C 3 x f"), [""; 0]);
    assert_eq!(shown("for i in 1 2; do cd ..; done"), ["cd"]);
    assert_eq!(shown("f() { cd ..; }; f; f"), ["cd"]);
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

/// A document within a substitution swallowed what a shell runs after its end.
#[test]
fn here_documents_whose_end_is_not_sure_are_not_read() {
    for line in [
        "echo $(cat <<\"E\"\nx\nE\nrm -f victim\nE\necho)",
        "echo $(cat <<'E'\nx\nE\nrm -f victim\nE\n)",
        "echo \"$(cat <<\\E\nx\nE\nrm victim\nE\n)\" # c",
        "echo $(cat <<''\nx\n\nrm victim\n)",
        "cat <<''\nx\n\nrm victim",
        "echo `cat <<'E'\nx\nE\nrm victim\nE`",
        "cat <(cat <<'E'\nx\nE\nrm victim\nE\n)",
        "echo $(cat <<-'E'\n\tx\n\tE\nrm victim\nE\n)",
        "echo $(cat <<'E'\nx\nE\nrm x) # <<'E'\nE\n)",
        "echo a # $(cat <<'E'\nx\nE\n)",
        "bash -c 'echo $(cat <<E\nx\nE\nrm victim\nE\n)'",
    ] {
        assert!(read(line, PLACE).unread.is_some(), "{line}: {:?}", runs(line));
    }
    for line in [
        "git commit -m \"$(cat <<'EOF'\nfix: don't (lose) it\n\n- a\n- `b` $(c)\nEOF\n)\"",
        "git add -A && git commit -m \"$(cat <<'EOF'\nA title\nEOF\n)\" && git status",
        "cat <<'EOF' > notes.md\n# a $(b)\nEOF",
        "cat <<EOF # no\nEOF\n",
        "grep -rn '<<<<<<<' src",
        "echo $((1<<4))",
        "# what << it does\nls",
    ] {
        let found = read(line, PLACE);
        let odd = line.contains("# no") || line.contains("# what");
        assert_eq!(found.unread.is_some(), odd, "{line}");
    }
}
