//! Help, version and completions.

use insta::assert_snapshot;

use crate::support::Scene;

#[test]
fn the_command_alone_prints_help() {
    let scene = Scene::new();
    let alone = scene.run(&[]);
    assert_eq!((alone.code, alone.stderr.as_str()), (Some(0), ""));
    assert_eq!(alone.stdout, scene.stdout(&["--help"]));
    assert_snapshot!(alone.stdout, @r#"
    Convoke, an agent runtime: models and tools work on a task, and the end is told honestly

    Usage: convoke [OPTIONS] [COMMAND]

    Commands:
      run          Work on a task
      chat         Talk with an agent
      runs         See, resume, fork and export runs
      demo         See an agent work, without a key
      models       List models, and check that one answers
      agents       List, check, write and run agents
      tools        List, describe and call tools
      mcp          List, test, add and serve MCP servers
      config       Show, explain and check the configuration
      policy       Ask what is allowed, and which rule says so
      sandbox      Try out how programs are confined
      doctor       Check that everything is in order
      completions  Print a completion script for a shell
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Global options:
          --config <FILE>    Use this file in place of the user's own [env: CONVOKE_CONFIG=]
          --set <KEY=VALUE>  Set one setting, as tools.timeout=5000; may be repeated
          --cwd <DIR>        Work in this directory
          --state <DIR>      Keep runs in this directory [env: CONVOKE_STATE=]
          --trust-project    Trust the project's files, in CI [env: CONVOKE_TRUST_PROJECT=1]
          --color <WHEN>     When to use colour [default: auto] [possible values: auto, always, never]
      -q, --quiet            Print only the answer, errors, and what puts the answer in doubt

    Examples:
      convoke                                     talk with an agent
      convoke demo                                see it work, without a key
      convoke run "Which tests are slow?"        work on a task
      convoke models check                        find out which model answers
      convoke tools call grep --arg pattern=TODO  call a tool yourself
      convoke config explain model.default        ask why

    Exit codes:
      0 done, 1 failed, 2 called wrongly, 3 not allowed, 4 a budget or limit was reached, 5 stuck,
      6 the model did not answer, 7 configuration wrong, 8 parked until somebody answers,
      9 state directory, 130 interrupted, 143 terminated
    "#);
}

#[test]
fn help_of_a_call_shows_examples_and_exit_codes() {
    assert_snapshot!(Scene::new().stdout(&["tools", "call", "--help"]), @r#"
    Call a tool

    Usage: convoke tools call [OPTIONS] <NAME> [JSON | -]

    Arguments:
      <NAME>      The tool
      [JSON | -]  The arguments as a JSON object; - reads them from standard input

    Options:
          --arg <KEY=VALUE>     One argument; may be repeated
          --timeout <DURATION>  How long it may take, as 500ms, 30s or 1m30s
          --json                Print the whole result as JSON, also if the call fails; one that cannot
                                be made is told on stderr
          --allow <KIND>        Permit this kind of call, whatever the configuration says; may be
                                repeated [possible values: read, search, edit, delete, move, execute,
                                fetch, think, agent, other]
      -y, --yes                 Answer yes to the question whether a program may run; what a server asks
                                is cancelled where nobody is
      -h, --help                Print help

    Global options:
          --config <FILE>    Use this file in place of the user's own [env: CONVOKE_CONFIG=]
          --set <KEY=VALUE>  Set one setting, as tools.timeout=5000; may be repeated
          --cwd <DIR>        Work in this directory
          --state <DIR>      Keep runs in this directory [env: CONVOKE_STATE=]
          --trust-project    Trust the project's files, in CI [env: CONVOKE_TRUST_PROJECT=1]
          --color <WHEN>     When to use colour [default: auto] [possible values: auto, always, never]
      -q, --quiet            Print only the answer, errors, and what puts the answer in doubt

    Arguments come from a JSON object, from standard input (-), or from --arg, which wins over JSON. A
    value of --arg becomes what the tool's schema asks for: a number, true or false, a list (repeat the
    flag, or give JSON) or an object (JSON). KEY=@FILE takes the text of a file, KEY=@@x is the text @x.

    Whoever types this command consents to what the tool does, with two exceptions: programs run only if
    policy.kinds.execute allows it or asks and is answered, and what the configuration denies stays
    denied. --allow KIND lifts both for this call.

    A tool of an MCP server is named as SERVER.TOOL, or as models know it; only that server is started.
    What the server asks meanwhile is asked here, field by field; --yes does not answer it, and where
    there is no terminal it is cancelled.

    Secrets in the result are shown by name, as in a run: variables that look like credentials, settings
    marked as secret, and tokens that are known by their shape.

    Examples:
      convoke tools call ls
      convoke tools call read_file --arg path=README.md --arg limit=20
      convoke tools call grep '{"pattern": "fn main", "include": "*.rs"}'
      echo '{"text": "hello"}' | convoke tools call base64_encode -
      convoke tools call run_command --arg command='git status' --allow execute
      convoke tools call files.read_text_file --arg path=README.md

    Exit codes:
      0 it worked, 1 it failed, 2 tool or arguments wrong, 3 not allowed,
      4 out of time, 7 configuration wrong, 130 interrupted, 143 terminated
    "#);
}

#[test]
fn every_command_has_help_with_examples() {
    let scene = Scene::new();
    for command in [
        &["tools", "list"][..],
        &["tools", "show"],
        &["tools", "call"],
        &["tools", "stats"],
        &["config", "show"],
        &["config", "explain"],
        &["config", "check"],
        &["config", "schema"],
        &["config", "trust"],
        &["config", "untrust"],
        &["config", "trusted"],
        &["mcp", "list"],
        &["mcp", "test"],
        &["mcp", "tools"],
        &["mcp", "add"],
        &["mcp", "remove"],
        &["mcp", "import"],
        &["mcp", "login"],
        &["mcp", "logout"],
        &["mcp", "serve"],
        &["runs", "list"],
        &["runs", "show"],
        &["runs", "audit"],
        &["runs", "resume"],
        &["runs", "fork"],
        &["runs", "replay"],
        &["runs", "export"],
        &["runs", "rm"],
        &["runs", "gc"],
        &["chat"],
        &["doctor"],
        &["completions"],
    ] {
        let help = scene.stdout(&[command, &["--help"]].concat());
        assert!(help.contains("Examples:\n  convoke "), "{command:?}: {help}");
        let widest = help.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 100, "{command:?} has a line of {widest}");
    }
}

#[test]
fn examples_in_help_work() {
    let scene = Scene::new()
        .file("README.md", "# Hello\nTODO: more\n")
        .file("convoke.yml", "tools:\n  timeout: 1000\n");
    for (command, codes) in [
        ("tools list --category file", 0),
        ("tools call ls", 0),
        ("tools call read_file --arg path=README.md --arg limit=20", 0),
        ("tools call grep --arg pattern=TODO", 0),
        ("tools call run_command --arg command=true --allow execute --timeout 10s", 0),
        ("tools show grep", 0),
        ("tools stats --json", 0),
        ("config show --set tools.timeout=5000 --json", 0),
        ("config explain policy.kinds", 0),
        ("config explain tools.timeout --set tools.timeout=5000 --json", 0),
        ("config check convoke.yml", 0),
        ("config schema --output convoke.schema.json", 0),
        ("config schema --all --dir schemas", 0),
        ("config trusted --json", 0),
        ("policy check -- git push origin main", 3),
        ("policy check read_file {\"path\":\"README.md\"}", 0),
        ("policy check --mode full --json -- make", 0),
        ("policy test --json", 0),
        ("policy check --agent generalist -- git push", 3),
        ("policy show --agent main/generalist", 0),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let ran = scene.run(&words);
        assert_eq!(ran.code, Some(codes), "{command}: {ran:?}");
    }
}

#[test]
fn a_group_without_a_command_is_a_question_for_help() {
    let ran = Scene::new().run(&["tools"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.contains("Usage: convoke tools"), "{ran:?}");
}

#[test]
fn the_version_is_one_line() {
    let expected = format!("convoke {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(Scene::new().stdout(&["--version"]), expected);
    assert_eq!(Scene::new().stdout(&["-V"]), expected);
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = Scene::new().stdout(&["completions", shell]);
        assert!(script.contains("convoke") && script.contains("category"), "{shell}");
    }
}

#[test]
fn what_is_said_wrongly_is_a_usage_error() {
    let scene = Scene::new();
    for words in [
        &["toolz"][..],
        &["tools", "list", "--nonsense"],
        &["tools", "list", "--category", "files"],
        &["tools", "call"],
        &["tools", "call", "ls", "--timeout", "5"],
        &["tools", "call", "ls", "--allow", "everything"],
        &["tools", "call", "ls", "--arg", "novalue"],
        &["--set", "novalue", "tools", "list"],
        &["--cwd", "nowhere", "tools", "list"],
        &["config", "schema", "--all"],
        &["runs", "list", "--status", "fine"],
        &["runs", "list", "--since", "yesterday"],
        &["runs", "audit", "--since", "yesterday"],
        &["runs", "export", "x", "--format", "pdf"],
        &["runs", "gc", "--max-bytes", "lots"],
        &["runs", "rm"],
        &["completions", "tcsh"],
    ] {
        let ran = scene.run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words:?}: {ran:?}");
        assert!(ran.stderr.starts_with("error: "), "{words:?}: {ran:?}");
    }
}

#[test]
fn a_word_that_is_no_command_is_met_with_the_one_that_was_meant() {
    let scene = Scene::new();
    for (words, hint) in [
        (&["rnu", "x"][..], "did you mean `convoke run`?"),
        (&["modles", "list"], "did you mean `convoke models`?"),
        (&["fix the bug"], "convoke run \"fix the bug\""),
        (&["explain the run loop"], "convoke run \"explain the run loop\""),
        (&["fix", "the", "bug", "--quiet"], "convoke run \"fix the bug\""),
        (&["--quiet", "say \"hi\""], "convoke run \"say \\\"hi\\\"\""),
    ] {
        let ran = scene.run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words:?}: {ran:?}");
        assert!(ran.stderr.starts_with("error: `"), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(hint), "{words:?}: {}", ran.stderr);
    }
    let ran = scene.run(&["tools", "lst"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("'list'"), "{ran:?}");
}
