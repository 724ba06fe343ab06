//! Directories, links, and what must not be read.
#![expect(clippy::disallowed_methods, reason = "tests write the files that are read")]

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;
use crate::files::{AgentFormat, usual_directories};

struct Fixture {
    temporary: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self { temporary: tempfile::tempdir().unwrap() };
        for name in ["project", "home", "config"] {
            fs::create_dir_all(fixture.path(name)).unwrap();
        }
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn agent(&self, path: &str, name: &str) {
        self.write(path, format!("---\nname: {name}\ndescription: From {path}.\n---\nDo it.\n"));
    }

    fn link(&self, at: &str, target: &Path) {
        let at = self.path(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(target, at).unwrap();
    }

    fn directories(&self) -> Vec<AgentDirectory> {
        usual_directories(
            Some(&self.path("project")),
            Some(&self.path("home")),
            Some(&self.path("config")),
        )
    }

    fn load(&self, trust: ProjectTrust) -> LoadReport {
        load(&self.directories(), trust)
    }

    fn shown(&self, text: &impl ToString) -> String {
        text.to_string().replace(&format!("{}/", self.temporary.path().display()), "")
    }
}

fn names(report: &LoadReport) -> Vec<&str> {
    report.loaded.iter().map(|loaded| loaded.definition.name.as_str()).collect()
}

#[test]
fn the_first_agent_of_a_name_counts_and_the_others_are_named() {
    let fixture = Fixture::new();
    fixture.agent("project/.claude/agents/b.md", "reviewer");
    fixture.agent("project/.convoke/agents/a.md", "reviewer");
    fixture.agent("home/.gemini/agents/x.md", "reviewer");
    fixture.agent("config/agents/mine.md", "mine");
    fixture.agent("more/z.md", "mine");
    let mut directories = vec![AgentDirectory::extra(fixture.path("more"))];
    directories.extend(fixture.directories());
    let report = load(&directories, ProjectTrust::Trusted);
    assert_eq!(names(&report), ["reviewer", "mine"]);
    assert_eq!(report.loaded[0].source.format, AgentFormat::Convoke);
    let shadowed: Vec<String> = report.shadowed.iter().map(|one| fixture.shown(one)).collect();
    assert_eq!(
        shadowed,
        [
            "project/.claude/agents/b.md: the agent `reviewer` is not used: \
             project/.convoke/agents/a.md has one of that name and comes first; rename one of them",
            "home/.gemini/agents/x.md: the agent `reviewer` is not used: \
             project/.convoke/agents/a.md has one of that name and comes first; rename one of them",
            "more/z.md: the agent `mine` is not used: config/agents/mine.md has one of that name and \
             comes first; rename one of them",
        ]
    );
}

/// Agents of a project once worked on a desk and not in CI, without a word about why.
/// gemini-cli 4.22.
#[test]
fn pitfall_4_22_of_a_project_that_is_not_trusted_it_is_known_what_was_left_out() {
    let fixture = Fixture::new();
    fixture.agent("project/.convoke/agents/a.md", "a");
    fixture.agent("project/.claude/agents/team/b.md", "b");
    fixture.agent("config/agents/mine.md", "mine");
    fixture.write("project/.convoke/agents/README.md", "# Our agents\n");
    let report = fixture.load(ProjectTrust::Untrusted);
    assert_eq!(names(&report), ["mine"]);
    let untrusted = report.untrusted.unwrap();
    assert_eq!((untrusted.root, untrusted.files), (fixture.path("project"), 2));
    assert_eq!(names(&fixture.load(ProjectTrust::Trusted)), ["a", "b", "mine"]);
    let empty = Fixture::new().load(ProjectTrust::Untrusted);
    assert_eq!(empty.untrusted, None, "nothing was left out");
}

#[test]
fn one_bad_file_does_not_stop_the_others() {
    let fixture = Fixture::new();
    fixture.agent("config/agents/good.md", "good");
    fixture.write("config/agents/bad.md", "---\nname: bad\n");
    fixture.write("config/agents/binary.md", b"---\nname: x\n\xff\xfe\n---\n");
    fixture.write("config/agents/large.md", "x".repeat(300 * 1024));
    fixture.write("config/agents/README.md", "# Our agents\n");
    fixture.write("config/agents/.hidden.md", "not looked at");
    fixture.write("config/agents/notes.txt", "not looked at");
    fixture.agent("config/agents/deeper/below.md", "below");
    let report = fixture.load(ProjectTrust::Trusted);
    assert_eq!(names(&report), ["good"]);
    let problems: Vec<String> = report.problems.iter().map(|note| fixture.shown(note)).collect();
    assert_eq!(
        problems,
        [
            "config/agents/bad.md:1: the keys that begin here do not end; write a second `---` below \
             them",
            "config/agents/binary.md:3: it is not UTF-8 text; save it as UTF-8",
            "config/agents/large.md: it is larger than 256 KiB; make it shorter",
        ]
    );
    assert_eq!(report.warnings, []);
}

#[test]
fn links_are_followed_within_the_root_and_nowhere_else() {
    let fixture = Fixture::new();
    fixture.agent("project/shared/inside.md", "inside");
    fixture.agent("outside/secret.md", "secret");
    fixture.link("project/.convoke/agents/a.md", &fixture.path("project/shared/inside.md"));
    fixture.link("project/.convoke/agents/b.md", Path::new("../../shared/inside.md"));
    fixture.link("project/.convoke/agents/c.md", &fixture.path("outside/secret.md"));
    fixture.link("project/.convoke/agents/d.md", Path::new("nowhere.md"));
    fixture.link("project/.claude/agents", &fixture.path("outside"));
    fixture.link("home/.claude/agents", &fixture.path("home/dotfiles/agents"));
    fixture.agent("home/dotfiles/agents/mine.md", "mine");
    let report = fixture.load(ProjectTrust::Trusted);
    assert_eq!(names(&report), ["inside", "mine"]);
    let problems: Vec<String> = report.problems.iter().map(|note| fixture.shown(note)).collect();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(
        problems[0].starts_with("project/.convoke/agents/c.md: it is a link that leads out of")
    );
    assert!(problems[1].starts_with("project/.convoke/agents/d.md: it cannot be read: "));
    assert!(problems[2].starts_with("project/.claude/agents: it is a link that leads out of"));
    assert_eq!(report.shadowed.len(), 1, "the same file by another name");
}

#[test]
fn what_is_not_a_file_is_not_waited_for() {
    let fixture = Fixture::new();
    fixture.write("config/agents/a.txt", "");
    fs::create_dir_all(fixture.path("config/agents/directory.md")).unwrap();
    fixture.link("config/agents/linked.md", Path::new("directory.md"));
    let _socket = std::os::unix::net::UnixListener::bind(fixture.path("config/agents/socket.md"));
    let report = fixture.load(ProjectTrust::Trusted);
    assert_eq!(names(&report), [""; 0]);
    assert_eq!(
        fixture.shown(&report.problems[0]),
        "config/agents/socket.md: it is a socket, not a file"
    );
    assert_eq!(report.problems.len(), 1);
}

#[test]
fn links_to_directories_are_followed_once_and_within_the_root() {
    let fixture = Fixture::new();
    fixture.agent("home/dotfiles/team/a.md", "a");
    fixture.agent("outside/b.md", "b");
    fixture.agent("home/.claude/agents/c.md", "c");
    fixture.link("home/.claude/agents/team", &fixture.path("home/dotfiles/team"));
    fixture.link("home/.claude/agents/same", &fixture.path("home/dotfiles/team"));
    fixture.link("home/.claude/agents/round", Path::new("."));
    fixture.link("home/.claude/agents/out", &fixture.path("outside"));
    let report = fixture.load(ProjectTrust::Trusted);
    assert_eq!(names(&report).len(), 2, "{:?}", names(&report));
    assert!(report.shadowed.is_empty(), "{:?}", report.shadowed);
    assert_eq!(report.problems.len(), 1);
    let problem = fixture.shown(&report.problems[0]);
    assert!(
        problem.starts_with("home/.claude/agents/out: it is a link that leads out"),
        "{problem}"
    );
}

#[test]
fn a_directory_has_a_limit() {
    let fixture = Fixture::new();
    for number in 0..MAX_FILES + 20 {
        fixture.agent(&format!("config/agents/{number:04}.md"), &format!("agent{number}"));
    }
    let report = fixture.load(ProjectTrust::Trusted);
    assert_eq!(report.loaded.len(), MAX_FILES);
    assert_eq!(report.loaded.last().unwrap().definition.name, "agent499", "the first by name");
    let problem = fixture.shown(&report.problems[0]);
    assert!(problem.contains("it has more than 500 files"), "{problem}");
}

#[test]
fn claude_and_opencode_look_below_and_opencode_names_by_place() {
    let fixture = Fixture::new();
    fixture.agent("home/.claude/agents/team/deep/x.md", "deep-one");
    fixture.write(
        "home/.config/opencode/agents/team/Code Reviewer.md",
        "---\ndescription: Reviews.\nmode: subagent\n---\nReview.\n",
    );
    let report = fixture.load(ProjectTrust::Trusted);
    assert_eq!(report.problems, []);
    assert_eq!(names(&report), ["deep-one", "team-Code-Reviewer"]);
}
