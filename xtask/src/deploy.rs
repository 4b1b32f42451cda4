//! What `deploy/` has, held against the programs that read it: the service by systemd, the chart and the scalers by Helm and the
//! schemas of Kubernetes, dashboard and alerts by Prometheus.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::step::root;

/// The most that `systemd-analyze security` may find exposed, in tenths: 0 is nothing, 100 everything. What is left is the
/// network and the machine's root folder.
const EXPOSURE_MAX: &str = "20";

/// Everything of `deploy/` that is not tried by the alerts' step or by tests beside the code.
pub(crate) fn check(binary: &str) -> Result<()> {
    unit(binary)?;
    charts(binary)
}

/// The service: systemd understands all of it, and finds it closed.
fn unit(binary: &str) -> Result<()> {
    let source = root().join("deploy/systemd/anabranch.service");
    let text = fs::read_to_string(&source)?;
    // The program has to be where the service says; here that is where it was built.
    let program = std::path::absolute(binary)?;
    let text = text.replace("/usr/bin/anabranch", &program.to_string_lossy());
    let folder = root().join("target/deploy");
    fs::create_dir_all(&folder)?;
    let copy = folder.join("anabranch.service");
    fs::write(&copy, text)?;
    let said = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&copy)
        .output()
        .context("cannot start systemd-analyze; is systemd installed?")?;
    // It passes over what it does not know with a word on standard error.
    let complaint = String::from_utf8_lossy(&said.stderr);
    ensure!(
        said.status.success() && complaint.trim().is_empty(),
        "systemd does not take the service: {complaint}"
    );
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    let said = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager", &threshold])
        .arg(&source)
        .output()?;
    if !said.status.success() {
        bail!(
            "the service is open further than {EXPOSURE_MAX} tenths: {}{}",
            String::from_utf8_lossy(&said.stdout),
            String::from_utf8_lossy(&said.stderr)
        );
    }
    Ok(())
}

/// The chart and the scalers, by a Go module of tests with Helm's library in it; there, too, the dashboard before a Prometheus.
fn charts(binary: &str) -> Result<()> {
    let folder = root().join("deploy/check");
    let mut command = Command::new("go");
    command
        .args(["test", "-count=1", "-vet=off", "-mod=readonly", "./..."])
        .current_dir(&folder)
        .env("ANABRANCH", std::path::absolute(binary)?);
    let status = command.status().context("cannot start go; is Go installed?")?;
    ensure!(status.success(), "the checks of deploy/ ended with {status}");
    Ok(())
}
