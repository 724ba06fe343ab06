//! Every file of the corpus, and what comes of it: the agent as it is understood, or what is wrong.
#![expect(clippy::disallowed_methods, reason = "tests read their own data")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use convoke_agent::files::{
    AgentFormat, AgentOrigin, AgentSource, FileNote, FileReading, LoadReport, read,
};
use convoke_agent::outline::describe;
use convoke_agent::registry::AgentRegistry;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/agents")
}

/// Returns the files of a format, sorted, below its directory.
fn files(format: AgentFormat) -> Vec<PathBuf> {
    let root = corpus().join(format.as_str());
    let mut files = Vec::new();
    let mut directories = vec![root.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                files.push(path.strip_prefix(&root).unwrap().to_owned());
            }
        }
    }
    files.sort();
    files
}

fn read_one(format: AgentFormat, file: &Path) -> FileReading {
    let text = fs::read_to_string(corpus().join(format.as_str()).join(file)).unwrap();
    let mut source = AgentSource::new(file, format, AgentOrigin::User);
    source.place = file.with_extension("").display().to_string();
    read(&text, &source)
}

fn lines(word: &str, notes: &[FileNote]) -> String {
    let line = |text: String, note: &FileNote| text + &format!("{word} {note}\n");
    notes.iter().fold(String::new(), line)
}

fn shown(reading: &FileReading) -> String {
    match reading {
        FileReading::Agent(loaded) => {
            format!("{}{}", describe(&loaded.definition), lines("warning:", &loaded.warnings))
        }
        FileReading::Left(note) => format!("left out: {note}\n"),
        FileReading::Wrong { problems, warnings, .. } => {
            format!("{}{}", lines("problem:", problems), lines("warning:", warnings))
        }
        FileReading::NoAgent => "not an agent\n".to_owned(),
    }
}

fn report(format: AgentFormat) -> String {
    let section = |file: &PathBuf| {
        format!("======== {}\n{}\n", file.display(), shown(&read_one(format, file)))
    };
    files(format).iter().map(section).collect()
}

#[test]
fn our_own_files() {
    insta::assert_snapshot!("convoke", report(AgentFormat::Convoke));
}

#[test]
fn files_of_gemini() {
    insta::assert_snapshot!("gemini", report(AgentFormat::Gemini));
}

#[test]
fn files_of_claude() {
    insta::assert_snapshot!("claude", report(AgentFormat::Claude));
}

#[test]
fn files_of_opencode() {
    insta::assert_snapshot!("opencode", report(AgentFormat::OpenCode));
}

#[test]
fn files_that_are_called_bad_are_and_others_are_not() {
    let mut count = 0;
    for format in AgentFormat::ALL {
        for file in files(*format) {
            let bad = file.file_name().unwrap().to_string_lossy().starts_with("bad-");
            let wrong = matches!(read_one(*format, &file), FileReading::Wrong { .. });
            assert_eq!(wrong, bad, "{} {}", format.as_str(), file.display());
            count += 1;
        }
    }
    assert!(count >= 48, "{count}");
}

#[test]
fn every_problem_and_warning_has_a_line_of_its_file() {
    for format in AgentFormat::ALL {
        for file in files(*format) {
            let text = fs::read_to_string(corpus().join(format.as_str()).join(&file)).unwrap();
            let notes = match read_one(*format, &file) {
                FileReading::Agent(loaded) => loaded.warnings,
                FileReading::Left(note) => vec![note],
                FileReading::Wrong { problems, warnings, .. } => [problems, warnings].concat(),
                FileReading::NoAgent => Vec::new(),
            };
            let most = u64::try_from(text.lines().count()).unwrap();
            for note in notes {
                assert!(note.line.is_some_and(|line| (1..=most).contains(&line)), "{note}");
            }
        }
    }
}

#[test]
fn every_agent_of_the_corpus_can_be_registered() {
    for format in AgentFormat::ALL {
        let mut report = LoadReport::default();
        for file in files(*format) {
            if let FileReading::Agent(loaded) = read_one(*format, &file) {
                report.loaded.push(*loaded);
            }
        }
        let expected = report.loaded.len();
        let registry = AgentRegistry::new();
        let (change, errors) = registry.replace_all(&mut report, &BTreeMap::default());
        assert_eq!(errors, []);
        assert_eq!((change.added.len(), registry.list().len()), (expected, expected));
    }
}

/// One mistake does not hide another, and what could be read of a file is there: its name, and where its keys are.
#[test]
fn a_file_that_is_wrong_is_read_to_its_end() {
    let text = "---\nname: draft\nname: again\ndescription: Is a draft.\nmax_turns: many\n\
                tools: [grep, 5]\ncommands: ['a; b', 'c; d']\n---\n${what}\n";
    let source = AgentSource::new("file.md", AgentFormat::Convoke, AgentOrigin::User);
    let FileReading::Wrong { problems, draft, .. } = read(text, &source) else {
        panic!("it is wrong")
    };
    let lines: Vec<Option<u64>> = problems.iter().map(|note| note.line).collect();
    assert_eq!(lines, [3, 5, 6, 7, 7, 9].map(Some), "{problems:#?}");
    assert_eq!(draft.definition.unwrap().name, "draft");
    assert_eq!(draft.lines.first(&["steps", "max_turns"]), Some(("max_turns", 5)));
}

mod any_text {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn is_read_without_harm(
            keys in proptest::collection::vec(
                ("(name|description|tools|permission|inputs|budget|mode|rules|kind|model|x y|-)",
                 "[ \\[\\]{}:,*|>\"'#&!a-z0-9$()-]{0,24}"),
                0..6,
            ),
            body in "\\PC{0,40}",
            fence in prop::sample::select(vec!["---", "--- ", "----", ""]),
        ) {
            let line = |text: String, (key, value): &(String, String)| text + &format!("{key}: {value}\n");
            let keys = keys.iter().fold(String::new(), line);
            let text = format!("---\n{keys}{fence}\n{body}");
            for format in AgentFormat::ALL {
                for file in ["a.md", "a.yml"] {
                    let source = AgentSource::new(file, *format, AgentOrigin::Extra);
                    if let FileReading::Agent(loaded) = read(&text, &source) {
                        prop_assert!(convoke_agent::check::check(&loaded.definition).is_ok());
                    }
                }
            }
        }
    }
}
