//! Worktrees: the user's files as they are, on a branch of their own.
//!
//! A base commit holds what the user sees: what is committed, what is changed, and what is new and not
//! ignored. The user's index, branch and files stay as they are. What a run changed is the difference between
//! that commit and its files. It is taken with the repository's own directory and an index that the run
//! cannot write, so neither the `.git` file of the worktree nor the run's commits have a say in it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use convoke_core::{Change, FileChange, RunId, WorkspaceKind};

use super::changes::Fit;
use super::git::{Git, Rights};
use super::{Apply, Changes, Known, Repository, WorkspaceError, Workspaces, part, save};

/// How much that git does not know yet may be carried over, or be the result of a run.
const MOST_FILES: usize = 20_000;
const MOST_BYTES: u64 = 512 * 1024 * 1024;
/// How many names are told.
const MOST_NAMES: usize = 5;
/// Spaces at the ends of lines are nobody's business here.
const QUIETLY: &str = "--whitespace=nowarn";

/// Where a directory lies in a repository.
struct Found {
    top: PathBuf,
    git_directory: PathBuf,
    common: PathBuf,
    within: PathBuf,
}

pub(super) async fn prepare(
    workspaces: &Workspaces,
    run: &RunId,
    start: &Path,
    store: &Dir,
) -> Result<Known, WorkspaceError> {
    let found = find(workspaces, start).await?;
    let Found { top, git_directory, common, within } = found;
    let tree = workspaces.directory.join(part(run, ""));
    let branch = format!("convoke/{run}");
    let mut repository = Repository {
        admin: common.join("worktrees").join(run.as_str()),
        git_directory,
        common,
        branch,
        base: String::new(),
        links: Vec::new(),
    };
    let mut known = Known {
        kind: WorkspaceKind::Worktree,
        source: top,
        tree,
        within,
        repository: Some(repository.clone()),
        notes: Vec::new(),
        complete: false,
        applied: None,
    };
    // Whoever finds this after we were killed knows what to clear away.
    save(workspaces, store, run, &known)?;
    make_directories(&repository)?;
    let mut rights = writable(&repository);
    rights.push(repository.common.join("worktrees"));
    rights.push(workspaces.directory.clone());
    let git = workspaces.git(Rights(rights), &known.source)?;
    let git = git.repository(&repository.git_directory).without_filters().await?;

    let index = workspaces.directory.join(part(run, ".index"));
    copy_index(&repository.git_directory, store, run, workspaces)?;
    let carried = git.clone().files(&known.source).index(&index);
    let kept_back = workspaces.kept_back_below(&known.source);
    known.notes = take_in(&carried, &known.source, &kept_back).await?;
    let content = carried.line(&["write-tree"]).await?;
    repository.base = base(&git, &content).await?;
    known.notes.extend(submodules(&carried).await?);

    let path = text(&known.tree)?;
    let add = ["worktree", "add", "--quiet", "-B", &repository.branch, path, &repository.base];
    git.run(&add).await?;
    repository.admin = admin(&known.tree, &repository.common)?;
    repository.links = links(&known.tree, &repository.admin)?;
    copy_index(&repository.admin, store, run, workspaces)?;
    known.repository = Some(repository);
    Ok(known)
}

/// Returns what programs may write beside the files of the worktree, so that they can commit.
pub(super) fn writable(repository: &Repository) -> Vec<PathBuf> {
    let common = &repository.common;
    vec![
        common.join("objects"),
        common.join("refs/heads/convoke"),
        common.join("logs/refs/heads/convoke"),
        repository.admin.clone(),
    ]
    .into_iter()
    .filter(|path| is_really_below(path, common))
    .collect()
}

/// A repository could have a link in the place of one of its directories: what lies there is not for the
/// programs of a run.
fn is_really_below(path: &Path, common: &Path) -> bool {
    let (Ok(real), Ok(common)) = (path.canonicalize(), common.canonicalize()) else { return false };
    real.is_dir() && real.starts_with(common)
}

/// Finds out what was changed.
pub(super) async fn changes(
    workspaces: &Workspaces,
    run: &RunId,
    known: &Known,
    repository: &Repository,
    store: &Dir,
) -> Result<Changes, WorkspaceError> {
    let mut notes = mend(repository)?;
    let (kept, index) = (part(run, ".index"), part(run, ".work-index"));
    let index_path = workspaces.directory.join(&index);
    copy_with_time(store, &kept, store, &index)
        .map_err(WorkspaceError::files(&index_path, "written"))?;
    let rights = Rights(vec![repository.common.join("objects"), workspaces.directory.clone()]);
    let git = workspaces.git(rights, &known.tree)?.repository(&repository.common);
    let git = git.files(&known.tree).index(&index_path).without_filters().await?;
    notes.extend(take_in(&git, &known.tree, &[]).await?);
    let content = git.line(&["write-tree"]).await?;
    store.remove_file(&index).ok();
    let compare = |how: &[&'static str]| {
        let all: Vec<String> = ["diff-tree", "-r", "-M", "--no-ext-diff", "--no-textconv"]
            .iter()
            .chain(how)
            .map(ToString::to_string)
            .chain([repository.base.clone(), content.clone()])
            .collect();
        all
    };
    let read = async |how: &[&'static str]| {
        let arguments = compare(how);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        git.run(&arguments).await
    };
    let mut files = names(&read(&["-z", "--name-status"]).await?);
    count(&read(&["-z", "--numstat"]).await?, &mut files);
    let diff = read(&["-p", "--binary", "--full-index", "--no-color"]).await?;
    Ok(Changes { files, diff, notes, already: false })
}

/// Applies the diff that was written last to the user's files. What is so there already is no conflict: it was
/// taken over before the run went on.
pub(super) async fn apply(
    workspaces: &Workspaces,
    run: &RunId,
    known: &Known,
    repository: &Repository,
    files: &[FileChange],
    how: Apply,
) -> Result<Fit, WorkspaceError> {
    let path = workspaces.directory.join(part(run, ".diff"));
    let path = text(&path)?;
    let rights = match how {
        Apply::Check => Rights::default(),
        Apply::Really => Rights(vec![known.source.clone()]),
    };
    let git = workspaces.git(rights, &known.source)?.repository(&repository.git_directory);
    let git = git.files(&known.source).without_filters().await?;
    let mut passed_over: Vec<String> = Vec::new();
    let mut complaint = git.complaint(&["apply", "--check", QUIETLY, path]).await?;
    if complaint.is_some() {
        let undo = ["apply", "--check", "--reverse", QUIETLY, path];
        if git.complaint(&undo).await?.is_none() {
            return Ok(Fit::Already);
        }
    }
    // Of what git says only the beginning is read, so it is asked again.
    while let Some(said) = &complaint {
        let more = there_already(&git, path, files, said, &passed_over).await?;
        if more.is_empty() {
            break;
        }
        passed_over.extend(more);
        let rest = [&["apply", "--check", QUIETLY], &texts(&passed_over)[..], &[path]].concat();
        complaint = git.complaint(&rest).await?;
    }
    if let Some(said) = complaint {
        let (path, files) = (known.source.clone(), named(&said));
        return Err(if files.is_empty() {
            WorkspaceError::Git { command: "apply".to_owned(), said }
        } else {
            WorkspaceError::Conflict { path, files }
        });
    }
    if how == Apply::Really {
        git.run(&[&["apply", QUIETLY], &texts(&passed_over)[..], &[path]].concat()).await?;
    }
    Ok(Fit::Now)
}

/// Returns the options that pass over files that git complains about and that are already as they are to become,
/// but for those that are known.
async fn there_already(
    git: &Git,
    patch: &str,
    files: &[FileChange],
    said: &str,
    known: &[String],
) -> Result<Vec<String>, WorkspaceError> {
    let complained =
        |name: &str| said.lines().any(|line| line.starts_with(&format!("error: {name}: ")));
    let mut options = Vec::new();
    for file in files {
        if !complained(&file.path) && !file.from.as_deref().is_some_and(complained) {
            continue;
        }
        let name = literally(&file.path);
        let (only, without) = (format!("--include={name}"), format!("--exclude={name}"));
        let undo = ["apply", "--check", "--reverse", QUIETLY, &only, patch];
        if !known.contains(&without) && git.complaint(&undo).await?.is_none() {
            options.push(without);
        }
    }
    Ok(options)
}

/// Returns a pattern that only this name fits.
fn literally(name: &str) -> String {
    let mut pattern = String::new();
    for letter in name.chars() {
        if matches!(letter, '*' | '?' | '[' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

fn texts(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

/// Tells whether there is more on the branch than what it began with.
pub(super) async fn has_commits(
    workspaces: &Workspaces,
    repository: &Repository,
) -> Result<bool, WorkspaceError> {
    let git = workspaces.git(Rights::default(), &repository.common)?.repository(&repository.common);
    let branch = format!("refs/heads/{}", repository.branch);
    let at = git.try_run(&["rev-parse", "--verify", "--quiet", &branch]).await?;
    Ok(at.is_some_and(|at| String::from_utf8_lossy(&at).trim() != repository.base))
}

/// Takes a worktree and its branch out of its repository. The files are somebody else's business.
pub(super) async fn forget(
    workspaces: &Workspaces,
    repository: &Repository,
) -> Result<(), WorkspaceError> {
    let Repository { common, admin, branch, .. } = repository;
    if !common.is_dir() {
        return Ok(());
    }
    if admin.parent() == Some(common.join("worktrees").as_path()) && admin.is_dir() {
        std::fs::remove_dir_all(admin).map_err(WorkspaceError::files(admin, "removed"))?;
    }
    let git = workspaces.git(Rights(vec![common.clone()]), common)?.repository(common);
    let name = format!("refs/heads/{branch}");
    if git.try_run(&["rev-parse", "--verify", "--quiet", &name]).await?.is_some() {
        git.run(&["update-ref", "-d", &name]).await?;
    }
    Ok(())
}

/// Says why no worktree can be made of a directory, if none can.
pub(super) async fn check(workspaces: &Workspaces, start: &Path) -> Result<(), WorkspaceError> {
    find(workspaces, start).await.map(drop)
}

/// Finds the repository of a directory. One whose configuration says that its files are elsewhere is
/// refused: that is not what the user sees.
async fn find(workspaces: &Workspaces, start: &Path) -> Result<Found, WorkspaceError> {
    let git = workspaces.git(Rights::default(), start)?;
    let none = |why: &str| WorkspaceError::NoRepository { path: start.into(), why: why.into() };
    let asked = ["rev-parse", "--path-format=absolute", "--absolute-git-dir", "--git-common-dir"];
    if let Some(said) = git.complaint(&asked).await? {
        let said = said.lines().next().unwrap_or_default().trim_start_matches("fatal: ");
        return Err(none(said));
    }
    let printed = git.line(&asked).await?;
    let mut lines = printed.lines().map(PathBuf::from);
    let (Some(git_directory), Some(common)) = (lines.next(), lines.next()) else {
        return Err(none("git does not say where its repository is"));
    };
    let Some(top) = git.try_run(&["rev-parse", "--show-toplevel"]).await? else {
        return Err(none("it is a repository without files (bare), or inside of one"));
    };
    let top = PathBuf::from(String::from_utf8_lossy(&top).trim_end_matches('\n').to_owned());
    let linked = top.join(".git");
    let (Ok(top), true) = (top.canonicalize(), linked.symlink_metadata().is_ok()) else {
        return Err(none("its configuration says that its files are elsewhere (core.worktree)"));
    };
    let Ok(within) = start.strip_prefix(&top).map(Path::to_owned) else {
        return Err(none("its configuration says that its files are elsewhere (core.worktree)"));
    };
    if !belongs(&git, &top, &git_directory, &common).await? {
        return Err(none("its `.git` leads to a repository that does not know it"));
    }
    Ok(Found { top, git_directory, common, within })
}

/// Tells whether a repository is that of these files: it lies in them, or knows them as a worktree or as a
/// submodule. A folder could else lead to any repository of the user.
async fn belongs(
    git: &Git,
    top: &Path,
    git_directory: &Path,
    common: &Path,
) -> Result<bool, WorkspaceError> {
    let (Ok(real), Ok(common)) = (git_directory.canonicalize(), common.canonicalize()) else {
        return Ok(false);
    };
    if real == top.join(".git") && common == real {
        return Ok(true);
    }
    // A link of a worktree back to it is relative to where it stands, or absolute.
    if real.starts_with(&common)
        && let Ok(back) = read(&real.join("gitdir"))
    {
        let back = real.join(back.trim()).canonicalize();
        return Ok(back.is_ok_and(|back| back == top.join(".git")));
    }
    let of_repository = git.clone().repository(&real);
    let place = of_repository.try_run(&["config", "--local", "core.worktree"]).await?;
    let place = place.map(|place| String::from_utf8_lossy(&place).trim().to_owned());
    let place = place.and_then(|place| real.join(place).canonicalize().ok());
    Ok(common == real && place.is_some_and(|place| place == top))
}

/// Notes in the index what is changed and what is new, but for what is kept back below the root; returns what
/// is left out.
async fn take_in(
    git: &Git,
    root: &Path,
    kept_back: &[PathBuf],
) -> Result<Vec<String>, WorkspaceError> {
    let changed = git.run(&["diff-files", "-z", "--name-only", "--ignore-submodules=all"]).await?;
    let new = git.run(&["ls-files", "-z", "--others", "--exclude-standard"]).await?;
    let paths = |list: &[u8]| -> Vec<Vec<u8>> {
        let all = list.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let is_taken = |path: &&[u8]| {
            let path = Path::new(OsStr::from_bytes(path));
            !kept_back.iter().any(|kept| path.starts_with(kept))
        };
        all.filter(is_taken).map(<[u8]>::to_vec).collect()
    };
    // What ends with a slash is a repository of its own.
    let (nested, new): (Vec<_>, Vec<_>) =
        paths(&new).into_iter().partition(|path| path.ends_with(b"/"));
    measure(root, &new)?;
    let mut input = Vec::new();
    for path in paths(&changed).into_iter().chain(new) {
        input.extend_from_slice(&path);
        input.push(0);
    }
    if !input.is_empty() {
        git.feed(&["update-index", "-z", "--add", "--remove", "--stdin"], input).await?;
    }
    Ok(told("repositories inside of it are left out", &nested).into_iter().collect())
}

/// Files that git does not know are put into its store, so there is a limit.
fn measure(root: &Path, new: &[Vec<u8>]) -> Result<(), WorkspaceError> {
    let too_much = |what: String, limit: String| {
        Err(WorkspaceError::TooMuch { path: root.to_owned(), what, limit })
    };
    if new.len() > MOST_FILES {
        let what = format!("{} new files that are not ignored", new.len());
        return too_much(what, format!("{MOST_FILES} files"));
    }
    let size = |path: &Vec<u8>| {
        let path = root.join(String::from_utf8_lossy(path).as_ref());
        path.symlink_metadata().map_or(0, |metadata| metadata.len())
    };
    let bytes: u64 = new.iter().map(size).sum();
    if bytes > MOST_BYTES {
        let mib = |bytes: u64| format!("{} MiB", bytes / (1024 * 1024));
        return too_much(
            format!("{} in new files that are not ignored", mib(bytes)),
            mib(MOST_BYTES),
        );
    }
    Ok(())
}

/// Returns the commit a worktree begins with: the user's own where nothing has to be carried over.
async fn base(git: &Git, content: &str) -> Result<String, WorkspaceError> {
    let head = git.try_run(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await?;
    let message = "The files as they were when the run began";
    let Some(head) = head.map(|head| String::from_utf8_lossy(&head).trim().to_owned()) else {
        return git.line(&["commit-tree", content, "-m", message]).await;
    };
    if git.line(&["rev-parse", "HEAD^{tree}"]).await? == content {
        return Ok(head);
    }
    git.line(&["commit-tree", content, "-p", &head, "-m", message]).await
}

async fn submodules(git: &Git) -> Result<Option<String>, WorkspaceError> {
    let staged = git.run(&["ls-files", "-z", "--stage"]).await?;
    let is_submodule = |entry: &&[u8]| entry.starts_with(b"160000 ");
    let name = |entry: &[u8]| entry.splitn(2, |byte| *byte == b'\t').nth(1).map(<[u8]>::to_vec);
    let entries = staged.split(|byte| *byte == 0).filter(is_submodule);
    let names: Vec<Vec<u8>> = entries.filter_map(name).collect();
    Ok(told("submodules are empty directories in it", &names))
}

fn told(what: &str, names: &[Vec<u8>]) -> Option<String> {
    let shown: Vec<_> =
        names.iter().take(MOST_NAMES).map(|name| String::from_utf8_lossy(name)).collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    (!names.is_empty()).then(|| format!("{what}: {}{more}", shown.join(", ")))
}

fn make_directories(repository: &Repository) -> Result<(), WorkspaceError> {
    let common = &repository.common;
    // Below a handle, links lead nowhere else.
    let directory = Dir::open_ambient_dir(common, ambient_authority());
    let directory = directory.map_err(WorkspaceError::files(common, "opened"))?;
    for name in ["objects", "worktrees", "refs/heads/convoke", "logs/refs/heads/convoke"] {
        let path = common.join(name);
        directory.create_dir_all(name).map_err(WorkspaceError::files(&path, "made"))?;
        if !is_really_below(&path, common) {
            let error = std::io::Error::other("it is a link that leads out of the repository");
            return Err(WorkspaceError::files(path, "used")(error));
        }
    }
    Ok(())
}

/// Takes an index over, with what it knows about files: what did not change is not read again. One that is
/// not there is empty.
fn copy_index(
    from: &Path,
    store: &Dir,
    run: &RunId,
    workspaces: &Workspaces,
) -> Result<(), WorkspaceError> {
    let name = part(run, ".index");
    let opened = Dir::open_ambient_dir(from, ambient_authority());
    let directory = opened.map_err(WorkspaceError::files(from, "opened"))?;
    // Nobody waits for whoever is at the other end of a pipe.
    let is_other = |there: cap_std::fs::Metadata| !there.is_file();
    if directory.symlink_metadata("index").is_ok_and(is_other) {
        let error = std::io::Error::other("it is not a file");
        return Err(WorkspaceError::files(from.join("index"), "read")(error));
    }
    match copy_with_time(&directory, "index", store, &name) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(WorkspaceError::files(workspaces.directory.join(name), "written")(error)),
    }
}

/// A file that was changed in the very second in which an index was written looks unchanged. Git tells by the
/// time of the index which files it has to read, so a copy keeps it.
fn copy_with_time(from: &Dir, name: &str, to: &Dir, new: &str) -> std::io::Result<()> {
    let mut source = from.open(name)?.into_std();
    let mut target = to.create(new)?.into_std();
    std::io::copy(&mut source, &mut target)?;
    target.set_modified(source.metadata()?.modified()?)
}

/// Finds what the repository knows about a worktree: what its `.git` file, which git has just written, says.
fn admin(tree: &Path, common: &Path) -> Result<PathBuf, WorkspaceError> {
    let path = tree.join(".git");
    let text = read(&path)?;
    let said = text.trim().strip_prefix("gitdir: ").map(PathBuf::from).unwrap_or_default();
    let worktrees = common.join("worktrees").canonicalize().unwrap_or_default();
    match said.canonicalize() {
        Ok(admin) if admin.parent() == Some(worktrees.as_path()) => {
            Ok(common.join("worktrees").join(admin.file_name().unwrap_or_default()))
        }
        _ => {
            let error = std::io::Error::other("it does not lead to its repository");
            Err(WorkspaceError::files(path, "used")(error))
        }
    }
}

/// Returns the files that lead to the repository and back, with what they say.
fn links(tree: &Path, admin: &Path) -> Result<Vec<(PathBuf, String)>, WorkspaceError> {
    let paths = [tree.join(".git"), admin.join("commondir"), admin.join("gitdir")];
    paths.into_iter().map(|path| read(&path).map(|text| (path, text))).collect()
}

/// Puts back what a run must not change: whoever uses git in the worktree later would be led to a
/// repository of the run's making, with settings that start programs.
fn mend(repository: &Repository) -> Result<Vec<String>, WorkspaceError> {
    let mut notes = Vec::new();
    for (path, text) in &repository.links {
        let is_link = path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file());
        if !is_link && read(path).is_ok_and(|now| now == *text) {
            continue;
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
        if !parent.is_dir() {
            continue;
        }
        let cannot = || WorkspaceError::files(path, "put back");
        let parent = Dir::open_ambient_dir(parent, ambient_authority()).map_err(cannot())?;
        if is_link {
            let removed = parent.remove_dir_all(name).or_else(|_| parent.remove_file(name));
            removed.map_err(cannot())?;
        }
        parent.write(name, text).map_err(cannot())?;
        notes.push(format!("`{}` was changed, and was put back", path.display()));
    }
    let own = repository.admin.join("config.worktree");
    if own.symlink_metadata().is_ok() {
        let parent = Dir::open_ambient_dir(&repository.admin, ambient_authority());
        let removed = parent.and_then(|parent| parent.remove_file("config.worktree"));
        removed.map_err(WorkspaceError::files(&own, "removed"))?;
        notes.push("settings of git for the worktree were made, and were removed".to_owned());
    }
    Ok(notes)
}

/// These are small, and git's own.
fn read(path: &Path) -> Result<String, WorkspaceError> {
    let cannot = || WorkspaceError::files(path, "read");
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(cannot()(std::io::ErrorKind::InvalidInput.into()));
    };
    let parent = Dir::open_ambient_dir(parent, ambient_authority()).map_err(cannot())?;
    parent.read_to_string(name).map_err(cannot())
}

fn text(path: &Path) -> Result<&str, WorkspaceError> {
    let no_text = || std::io::Error::other("its name is not UTF-8 text");
    path.to_str().ok_or_else(|| WorkspaceError::files(path, "used")(no_text()))
}

/// Reads what `--name-status -z` prints.
fn names(printed: &[u8]) -> Vec<FileChange> {
    let mut fields = printed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut files = Vec::new();
    while let Some(status) = fields.next().filter(|status| !status.is_empty()) {
        let change = match status.chars().next() {
            Some('A') => Change::Added,
            Some('D') => Change::Deleted,
            Some('R') => Change::Renamed,
            Some('T') => Change::Retyped,
            _ => Change::Modified,
        };
        let mut path = fields.next().unwrap_or_default().into_owned();
        let mut from = None;
        if change == Change::Renamed {
            from = Some(std::mem::replace(&mut path, fields.next().unwrap_or_default().into()));
        }
        files.push(FileChange { path, from, change, added: None, removed: None });
    }
    files
}

/// Reads what `--numstat -z` prints: in the same order.
fn count(printed: &[u8], files: &mut [FileChange]) {
    let mut fields = printed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    for file in files {
        let Some(field) = fields.next() else { return };
        let mut numbers = field.splitn(3, '\t');
        file.added = numbers.next().and_then(|number| number.parse().ok());
        file.removed = numbers.next().and_then(|number| number.parse().ok());
        // The names of a file that moved follow.
        if numbers.next() == Some("") {
            fields.next();
            fields.next();
        }
    }
}

/// Finds the files that git names when a patch does not fit.
fn named(said: &str) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for line in said.lines().filter_map(|line| line.strip_prefix("error: ")) {
        if line.starts_with("patch failed: ") {
            continue;
        }
        if let Some((file, why)) = line.rsplit_once(": ") {
            let named = format!("{file} ({why})");
            if !files.contains(&named) {
                files.push(named);
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_of_git_are_read() {
        let mut files = names(b"M\0a b\0R090\0old\0new\nline\0A\0bin\0D\0gone\0");
        count(b"1\t2\ta b\x003\t0\t\0old\0new\nline\0-\t-\tbin\x000\t7\tgone\0", &mut files);
        let shown: Vec<_> = files
            .iter()
            .map(|file| (file.change.as_str(), file.path.as_str(), file.added, file.removed))
            .collect();
        assert_eq!(
            shown,
            [
                ("modified", "a b", Some(1), Some(2)),
                ("renamed", "new\nline", Some(3), Some(0)),
                ("added", "bin", None, None),
                ("deleted", "gone", Some(0), Some(7)),
            ]
        );
        assert_eq!(files[1].from.as_deref(), Some("old"));
    }

    #[test]
    fn a_name_is_no_pattern() {
        assert_eq!(literally("a b.txt"), "a b.txt");
        assert_eq!(literally("[x]*?\\.txt"), "\\[x]\\*\\?\\\\.txt");
    }

    #[test]
    fn files_that_do_not_fit_are_named_once() {
        let said = "error: patch failed: a:1\nerror: a: patch does not apply\nerror: a: patch does not \
                    apply\nerror: b: already exists in working directory\nwarning: x";
        assert_eq!(
            named(said),
            ["a (patch does not apply)", "b (already exists in working directory)"]
        );
    }
}
