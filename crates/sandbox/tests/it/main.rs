//! Programs that really run, confined, and really try; each test once for each backend.
#![expect(clippy::disallowed_methods, reason = "tests make the world they run in")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may fail"
)]

/// Makes a test of each of these, for each backend.
macro_rules! on_each_backend {
    ($($test:ident),* $(,)?) => {
        mod landlock {
            $(#[tokio::test]
            async fn $test() {
                super::$test(convoke_sandbox::Backend::Landlock).await;
            })*
        }
        mod bubblewrap {
            $(#[tokio::test]
            async fn $test() {
                super::$test(convoke_sandbox::Backend::Bubblewrap).await;
            })*
        }
    };
}

mod attacks;
mod chains;
mod everyday;
mod groups;
mod guard;
mod hosts;
mod kernel;
mod limits;
mod nobody;
mod support;
mod walls;
