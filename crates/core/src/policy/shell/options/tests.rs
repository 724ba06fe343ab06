use super::*;

fn words(line: &str) -> Vec<Word> {
    let word = |text: &str| match text.strip_prefix('?') {
        Some(rest) if !rest.is_empty() => Word::operand(rest),
        Some(_) => Word::unknown("$X"),
        None => Word::literal(text),
    };
    line.split(' ').map(word).collect()
}

fn unlisted(line: &str) -> Vec<String> {
    check(&words(line)).unlisted.map(|unlisted| unlisted.words).unwrap_or_default()
}

#[test]
fn options_that_are_not_listed_are_named() {
    for (line, expected) in [
        ("git rebase -x./canary HEAD~1", &["-x./canary"][..]),
        ("git rebase --ex ./canary", &["--ex"]),
        ("git rebase -ix ./canary", &["-ix"]),
        ("git ls-remote --u=./canary .", &["--u=./canary"]),
        ("git fetch --upl ./canary .", &["--upl"]),
        ("git clone -qc core.hooksPath=x . y", &["-qc"]),
        ("git clone --te DIR . x", &["--te"]),
        ("git grep -lO./canary hello", &["-lO./canary"]),
        ("git merge-index ./canary -a", &["merge-index", "./canary", "-a"]),
        ("git mailinfo .git/config /dev/null", &["mailinfo", ".git/config", "/dev/null"]),
        ("git log --output=x", &["--output=x"]),
        ("git log --oneline=x", &["--oneline=x"]),
        ("git clone ext::sh x", &["ext::sh"]),
        ("git log ?", &["\0$X"]),
        ("git log -- ?", &[]),
        ("git log ?src/x", &[]),
        ("git commit -m", &["-m"]),
        ("git commit -m --exec", &["-m"]),
        ("cargo test ?", &["\0$X"]),
        ("sort --compress-prog=x f", &["--compress-prog=x"]),
        ("awk -We file", &["-We"]),
        ("sed -n 1,5p f", &[]),
        ("sed ':a e ./canary' f", &["':a"]),
        ("tar xIf a b", &["xIf"]),
        ("tar -cf host:x a", &["host:x"]),
        ("cat ?", &[]),
        ("cat --weird", &["--weird"]),
        ("ssh host ls", &["host", "ls"]),
        ("make CC=x", &["CC=x"]),
        ("make V=1 -j4 test", &[]),
        ("find . -name x -fprintf f y", &["-fprintf"]),
        ("find . -mtime -7 -exec rm -rf {} +", &[]),
        ("python3 -c x", &["-c"]),
        ("python3 -m http.server", &["http.server"]),
        ("unknown --anything ?", &[]),
    ] {
        let found = unlisted(line);
        let start: Vec<&str> = found.iter().map(String::as_str).take(expected.len()).collect();
        assert_eq!(start, expected, "{line}: {found:?}");
        assert_eq!(found.is_empty(), expected.is_empty(), "{line}");
    }
    let asked = check(&words("git rebase -x make main")).unlisted.unwrap();
    assert_eq!(asked.reason, "`git rebase -x` is not known to be harmless");
}

#[test]
fn operands_that_are_written_are_found() {
    for (line, expected) in [
        ("sort -o out in", &["out"][..]),
        ("sort -oout in", &["out"]),
        ("sort --output=out in", &["out"]),
        ("cp -r a b c", &["c"]),
        ("cp -t d a", &["d", "a"]),
        ("tee -a x y", &["x", "y"]),
        ("uniq in out", &["out"]),
        ("sed -i s/a/b/ f", &["f"]),
        ("sed s/a/b/ f", &[]),
        ("tar czf out.tgz src", &["out.tgz"]),
        ("tar -C d -xf a", &["d", "a"]),
        ("git -C sub status", &["sub"]),
        ("curl -sSL -o x https://h", &["x"]),
        ("curl -o - https://h", &[]),
        ("cat a b", &[]),
    ] {
        let found: Vec<String> = check(&words(line)).writes.iter().map(Word::shown).collect();
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn options_before_a_subcommand_are_left_out_of_the_plain_command() {
    let plain = |line: &str| {
        let found = check(&words(line)).plain.unwrap_or_default();
        found.iter().map(Word::shown).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(plain("git --no-pager log -1"), "git log -1");
    assert_eq!(plain("git -C sub status"), "git status");
    assert_eq!(plain("cargo +nightly test"), "cargo test");
    assert_eq!(plain("git status"), "");
}
