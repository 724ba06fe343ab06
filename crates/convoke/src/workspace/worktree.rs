//! Worktrees: the user's files as they are, on a branch of their own.
//!
//! A base commit holds what the user sees: what is committed, what is changed, and what is new and not
//! ignored. The user's index, branch and files stay as they are. What a run changed is the difference between
//! that commit and its files. It is taken with the repository's own directory and an index that the run
//! cannot write, so neither the `.git` file of the worktree nor the run's commits have a say in it.
//!
//! | module | owns |
//! | --- | --- |
//! | `repository` | finding the repository of a directory |
//! | `index` | indexes: copied, and with what git does not know yet |
//! | `links` | the files that lead to the repository and back |
//! | `compare` | telling what a run changed |
//! | `origin` | what each of the user's files is changed from when that is applied |
//! | `apply` | applying it |

mod apply;
mod compare;
mod index;
mod links;
mod origin;
mod repository;

use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use convoke_core::{RunId, WorkspaceKind};

pub(super) use self::apply::apply;
pub(super) use self::compare::changes;
use self::index::{copy_index, submodules, take_in};
use self::links::{admin, links};
pub(super) use self::repository::check;
use self::repository::{Found, find};
use super::git::{Git, Rights};
use super::{Known, Repository, WorkspaceError, Workspaces, part, save};

/// How often a worktree is tried to be made beside others.
const MOST_TRIES: usize = 10;

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
    let of = Some(repository.clone());
    let mut known = Known::begun(WorkspaceKind::Worktree, top, tree, within, of);
    // Whoever finds this after we were killed knows what to clear away.
    save(workspaces, store, run, &known)?;
    make_directories(&repository)?;
    let mut rights = writable(&repository);
    rights.push(repository.common.join("worktrees"));
    rights.push(workspaces.directory.clone());
    let rights = Rights(rights);
    let git = workspaces.git(rights.clone(), &known.source)?;
    let git = git.repository(&repository.git_directory).without_filters().await?;

    let index = workspaces.directory.join(part(run, ".index"));
    copy_index(&repository.git_directory, store, run, workspaces)?;
    let carried = git.clone().files(&known.source).index(&index);
    let kept_back = workspaces.kept_back_below(&known.source);
    known.notes = take_in(&carried, &known.source, &kept_back).await?;
    let content = carried.line(&["write-tree"]).await?;
    repository.base = base(&git, &content).await?;
    known.notes.extend(submodules(&carried).await?);

    add(&git, &repository, text(&known.tree)?).await?;
    repository.admin = admin(&known.tree, &repository.common)?;
    repository.links = links(&known.tree, &repository.admin)?;
    // There, and on that branch, other filters may be configured than where the user is.
    let own = workspaces.git(rights, &known.tree)?.repository(&repository.admin);
    let own = own.files(&known.tree).without_filters().await?;
    own.run(&["reset", "--quiet", "--hard", "--no-recurse-submodules"]).await?;
    copy_index(&repository.admin, store, run, workspaces)?;
    known.repository = Some(repository);
    Ok(known)
}

/// Makes a worktree without its files. Git looks at all others first, and gives up where somebody is just making one
/// and has not written all of what is known about it.
async fn add(git: &Git, repository: &Repository, path: &str) -> Result<(), WorkspaceError> {
    let Repository { branch, base, .. } = repository;
    let add = ["worktree", "add", "--quiet", "--no-checkout", "-B", branch, path, base];
    for _ in 1..MOST_TRIES {
        match git.complaint(&add).await? {
            None => return Ok(()),
            Some(said) if said.contains("failed to read ") && said.contains("/commondir") => {}
            Some(said) => return Err(WorkspaceError::Git { command: "worktree".to_owned(), said }),
        }
    }
    git.run(&add).await.map(drop)
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
    for name in [format!("refs/heads/{branch}"), applied_name(repository)] {
        if git.try_run(&["rev-parse", "--verify", "--quiet", &name]).await?.is_some() {
            git.run(&["update-ref", "-d", &name]).await?;
        }
    }
    Ok(())
}

/// Has git keep what is applied, as long as the workspace is there.
async fn hold(
    workspaces: &Workspaces,
    repository: &Repository,
    tree: &str,
) -> Result<(), WorkspaceError> {
    let common = &repository.common;
    let git = workspaces.git(Rights(vec![common.clone()]), common)?.repository(common);
    let commit = git.line(&["commit-tree", tree, "-m", "The files as they were applied"]).await?;
    git.run(&["update-ref", &applied_name(repository), &commit]).await.map(drop)
}

/// The name under which git knows what was applied: `refs/convoke/ID`.
fn applied_name(repository: &Repository) -> String {
    format!("refs/{}", repository.branch)
}

fn text(path: &Path) -> Result<&str, WorkspaceError> {
    let no_text = || std::io::Error::other("its name is not UTF-8 text");
    path.to_str().ok_or_else(|| WorkspaceError::files(path, "used")(no_text()))
}
