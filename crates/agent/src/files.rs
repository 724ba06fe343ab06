//! Agents from files: our own form, and the files of other tools as they are.
//!
//! A file is read on its own, into a definition with warnings or into problems; both name the file, the
//! line and the key, and say what to write instead. One bad file never stops the others. What an unknown
//! key says is not used, which is a warning and never an error.
//!
//! Nothing here looks for a home directory or a variable: the caller says which directories there are. A
//! project's files are read only if the project is trusted. Links are followed within the root of their
//! origin, and a file that cannot be an agent (too large, not text, not a file) is not read.
//!
//! What a foreign file says is translated so that an agent can never do more than the file meant: where
//! something cannot be said in our terms, the stricter side is taken, and a warning says so.

mod claude;
mod convoke;
mod directory;
mod document;
mod field;
mod foreign;
mod gemini;
mod load;
mod note;
mod opencode;
mod read;
mod translate;
mod yaml;

pub use directory::{AgentDirectory, AgentFormat, AgentOrigin, ProjectTrust, usual_directories};
pub use foreign::tool_here;
pub use load::{LoadReport, Shadowed, Untrusted, list, load, load_admitted};
pub use note::FileNote;
pub use read::{AgentSource, Draft, FileReading, KeyLines, Loaded, read};
