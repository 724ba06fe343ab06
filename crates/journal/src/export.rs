//! A run as something to hand on: a page, Markdown, or the bare events.
//!
//! What models, tools and files said was perhaps written by somebody who wants to do harm to whoever reads
//! it. So nothing of it is ever taken for markup, nothing is fetched, and letters that hide or turn
//! others around are made visible. What is too long to be read is cut, and the cut is marked.
//!
//! ```
//! use convoke_core::Event;
//! use convoke_journal::export;
//! use convoke_journal::timeline::Timeline;
//!
//! let line = r#"{"v":1,"seq":1,"ts":1772357400000,"run":"r-1","agent":"main",
//!     "type":"warning","data":{"message":"<b>careful</b>"}}"#;
//! let events: Vec<Event> = vec![serde_json::from_str(line)?];
//! let timeline = Timeline::of(&events);
//! assert!(export::html(&timeline).contains("&lt;b&gt;careful&lt;/b&gt;"));
//! assert!(export::markdown(&timeline).contains("> \\<b>careful\\</b>"));
//! # Ok::<(), serde_json::Error>(())
//! ```

pub mod amounts;
mod axis;
pub mod brief;
mod html;
mod jsonl;
mod markdown;
mod prose;
mod shorten;
mod visible;
mod words;

pub use self::axis::Axis;
pub use self::html::html;
pub use self::jsonl::jsonl;
pub use self::markdown::markdown;
