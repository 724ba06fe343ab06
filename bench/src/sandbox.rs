//! What confining a program costs: `true` started and ended, confined in each way there is, beside the
//! same without a sandbox.

use std::path::PathBuf;

use convoke::sandbox::{Backend, ConfinedSpawner, Confinement, Network};
use convoke::tools::{Program, Spawner, UnconfinedSpawner};

use crate::Result;
use crate::measure::{in_turns, time};
use crate::table::Table;

const SAMPLES: usize = 101;
/// The ways to confine, with what each may cost at most.
const WAYS: [(&str, Backend, bool, &str); 4] = [
    ("Landlock", Backend::Landlock, false, "≤ 3 ms"),
    ("Landlock and a list of hosts", Backend::Landlock, true, ""),
    ("bubblewrap", Backend::Bubblewrap, false, ""),
    ("bubblewrap and a list of hosts", Backend::Bubblewrap, true, ""),
];

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let place = tempfile::tempdir()?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let program = || Program::new(vec!["/bin/true".to_owned()], place.path().to_owned());
    let run = |spawner: &dyn Spawner| {
        time(|| {
            threads.block_on(async {
                let status = spawner.spawn(program()).await?.wait().await?;
                if status.success() { Ok(()) } else { Err(format!("{status}").into()) }
            })
        })
    };
    for (name, backend, hosts, aim) in WAYS {
        let hosts = hosts.then(|| Network::Hosts(vec!["example.com".to_owned()]));
        let roots = [place.path().to_owned()];
        let temporary = std::env::temp_dir();
        let confinement = Confinement::for_commands(roots, temporary, home.as_deref())
            .network(hosts.unwrap_or_default());
        match ConfinedSpawner::with_backend(confinement, backend) {
            Err(reason) => table.fact(&format!("`true` behind {name}"), reason.why, ""),
            Ok(spawner) => {
                let pair = in_turns(SAMPLES, || run(&spawner), || run(&UnconfinedSpawner))?;
                table.pair(&format!("`true` behind {name}"), "not confined", pair, "");
                let added = pair.ours.saturating_sub(pair.theirs);
                table.time("what that adds to a command", added, aim);
            }
        }
    }
    Ok(())
}
