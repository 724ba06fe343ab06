//! The `convoke` command.
//!
//! This crate is the edge of the program: the only place that reads the environment, asks the person
//! at the terminal, prints and ends the process. It holds no runtime logic. Each command is a function
//! that takes what was said on the command line and an [`Output`], and returns how it ended.
//!
//! | module | owns |
//! | --- | --- |
//! | [`cli`] | what can be said on the command line |
//! | [`environment`] | what is read from the process: variables, home, working directory |
//! | [`session`] | configuration, trust and runtime for one command |
//! | [`commands`] | one file a command |
//! | [`output`] | everything that is printed |
//! | [`view`] | what is seen of a run |
//! | [`failure`] | errors, and how they look |
//! | [`ended`] | the code of the process |
//! | [`files`] | the few files the command itself reads and writes |
//! | [`pager`] | long texts, page by page |
//! | [`signals`] | Ctrl-C and its kin |
//! | [`typing`] | what is typed while a run works |

mod bytes;
mod cli;
mod commands;
mod duration;
mod ended;
mod environment;
mod failure;
mod files;
mod hooks;
mod moment;
mod output;
mod pager;
mod session;
mod signals;
mod trust;
mod typing;
mod view;

use std::process;

use crate::cli::Parsed;
use crate::ended::Ended;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::output::{Output, Verbosity};

fn main() -> process::ExitCode {
    // Without it, a run that reaches a file-size limit ends without a word.
    drop(convoke::sandbox::report_file_size_limit());
    // Keys are in the environment; programs that run without the sandbox must not read them there.
    convoke::sandbox::close_memory();
    let environment = Environment::read();
    let code = match cli::parse() {
        Ok(Parsed { global, command }) => {
            let mut output = Output::standard(global.color, &environment, global.verbosity());
            let ended = commands::run(command, &global, environment, &mut output);
            finish(ended, &mut output)
        }
        Err(said) => {
            let mut output = Output::standard(said.colour, &environment, Verbosity::Usual);
            said.print(&mut output);
            finish(Ok(said.code().into()), &mut output)
        }
    };
    code.into()
}

/// Says what went wrong, if something did, and hands over everything that was printed.
fn finish(ended: Result<Ended, Failure>, output: &mut Output) -> Ended {
    let ended = ended.unwrap_or_else(|failure| {
        failure.print(output);
        failure.code().into()
    });
    match output.finish() {
        Ok(()) => ended,
        Err(error) => {
            Failure::failed("the output cannot be written").because(&error).print(output);
            ended.failed()
        }
    }
}
