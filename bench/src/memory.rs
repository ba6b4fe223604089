//! How much memory a task takes: each in a process of its own, since a peak cannot be taken back.

use crate::{account, noise};
use std::error::Error;
use std::fs::read_to_string;
use std::process::Command;

/// Runs `peak <task>` in a child and reads the MiB that it reports.
pub(crate) fn peak_of(task: &str) -> Result<f64, Box<dyn Error>> {
    let child = Command::new(std::env::current_exe()?).args(["peak", task]).output()?;
    if !child.status.success() {
        return Err(String::from_utf8_lossy(&child.stderr).into());
    }
    Ok(String::from_utf8(child.stdout)?.parse()?)
}

/// Does a task and returns the MiB at its peak: `fill-<draws>` (beyond the output) or `epsilon-<ε>`.
pub(crate) fn peak(task: &str) -> Result<f64, Box<dyn Error>> {
    if let Some(draws) = task.strip_prefix("fill-") {
        let mut out = vec![1; draws.parse()?]; // not 0: the pages must be there before the count begins
        let before = status("VmRSS")?;
        noise::fill_all(&mut out)?;
        return Ok((status("VmHWM")? - before).max(0.0));
    }
    account::price_at(task)?;
    status("VmHWM")
}

/// A line of this process's status, in MiB.
fn status(name: &str) -> Result<f64, Box<dyn Error>> {
    let text = read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("this system does not tell its memory")?;
    Ok(kib.parse::<f64>()? / 1024.0)
}
