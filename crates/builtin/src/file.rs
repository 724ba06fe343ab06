//! Files and directories, one at a time.
//!
//! Every path goes through the context's roots; nothing here opens one by itself or decides whether it
//! may. Work on files blocks, so it happens off the async threads.

mod info;
mod list;
mod manage;
mod read;
mod write;

use std::sync::Arc;

use convoke_core::{Category, Kind, Repeat};
use convoke_tool::{FunctionTool, Tool};

pub(crate) use info::FileInfo;

/// Returns the tools of this family. `read_file` reads at most `max_read_bytes` at once.
pub fn tools(max_read_bytes: usize) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(
            FunctionTool::new(
                "read_file",
                "Reads a file. `offset` and `limit` read some lines of a long one.",
                move |arguments, context| read::read_file(arguments, context, max_read_bytes),
            )
            .output::<read::FileContent>()
            .category(Category::File)
            .kind(Kind::Read)
            .reads("path")
            .alias("file_path", "path"),
        ),
        Arc::new(
            FunctionTool::new(
                "write_file",
                "Writes a whole file: makes it, with its directories, or replaces one that was read \
                 before.",
                write::write_file,
            )
            .preview(write::preview)
            .category(Category::File)
            .kind(Kind::Edit)
            .takes_secrets()
            .repeat(Repeat::Idempotent)
            .writes("path")
            .alias("file_path", "path"),
        ),
        Arc::new(
            FunctionTool::new(
                "list_files",
                "Lists the files of a directory, with everything below it if `recursive`.",
                list::list_files,
            )
            .category(Category::File)
            .kind(Kind::Read)
            .reads("path")
            .alias("dir_path", "path"),
        ),
        Arc::new(
            FunctionTool::new("ls", "Shows what is in a directory.", list::ls)
                .category(Category::File)
                .kind(Kind::Read)
                .reads("path")
                .effects(list::Ls::effects)
                .alias("dir_path", "path"),
        ),
        Arc::new(
            FunctionTool::new(
                "delete_file",
                "Deletes a file or a link, not a directory. Tells whether there was one. The file has to be read \
                 first.",
                manage::delete_file,
            )
            .preview(manage::preview_delete)
            .category(Category::File)
            .kind(Kind::Delete)
            .repeat(Repeat::Idempotent)
            .writes("path")
            .alias("file_path", "path"),
        ),
        Arc::new(
            FunctionTool::new(
                "move_file",
                "Moves or renames a file or directory. What is at the new place stays, unless \
                 `overwrite` is true. Files that are moved or replaced have to be read first.",
                manage::move_file,
            )
            .preview(manage::preview_move)
            .category(Category::File)
            .kind(Kind::Move)
            .writes("from")
            .writes("to"),
        ),
        Arc::new(
            FunctionTool::new(
                "get_file_info",
                "Tells whether a path exists, and its size and age.",
                info::get_file_info,
            )
            .category(Category::File)
            .kind(Kind::Read)
            .reads("path")
            .alias("file_path", "path"),
        ),
    ]
}
