//! `--show-devices`: which process, on which host, has which devices.

use std::fmt::Write;

use crate::text::json::{JsonObject, array};
use spmdc_abi::{MeshProgram, Program};

/// The devices of a process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProcessDevices {
    process: usize,
    host: String,
    devices: Vec<usize>,
}

/// The mesh as messages show it: `X = 2, Y = 4`; of several meshes their names with their devices.
pub(crate) fn mesh_text(program: &Program) -> String {
    if !program.mesh_programs.is_empty() {
        let part = |part: &MeshProgram| format!("{}: {:?}", part.name, part.devices);
        return program.mesh_programs.iter().map(part).collect::<Vec<_>>().join(", ");
    }
    let axes = program.mesh.iter().map(|axis| format!("{} = {}", axis.name, axis.size));
    axes.collect::<Vec<_>>().join(", ")
}

/// These devices of each process, equally many in their order.
pub(crate) fn assigned(devices: &[usize], hosts: &[String]) -> Vec<ProcessDevices> {
    debug_assert_eq!(devices.len() % hosts.len().max(1), 0, "every process has equally many devices");
    let each = devices.len() / hosts.len().max(1);
    let row = |(process, host): (usize, &String)| ProcessDevices {
        process,
        host: host.clone(),
        devices: devices[process * each..(process + 1) * each].to_vec(),
    };
    hosts.iter().enumerate().map(row).collect()
}

/// A table for people.
pub(crate) fn table(processes: &[ProcessDevices]) -> String {
    let host = processes.iter().map(|one| one.host.chars().count()).max().unwrap_or(0).max("host".len());
    let mut text = format!("process  {:host$}  local devices  global devices\n", "host");
    for ProcessDevices { process, host: name, devices } in processes {
        let range = match devices.as_slice() {
            [] => "none".to_string(),
            [one] => one.to_string(),
            [first, .., last] if last - first == devices.len() - 1 => format!("{first} to {last}"),
            several => several.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
        };
        let _ = writeln!(text, "{process:<7}  {name:host$}  {:<13}  {range}", devices.len());
    }
    text
}

/// One JSON object.
pub(crate) fn json(processes: &[ProcessDevices]) -> String {
    let devices: usize = processes.iter().map(|one| one.devices.len()).sum();
    let process = |one: &ProcessDevices| {
        let devices = array(one.devices.iter().map(usize::to_string));
        JsonObject::new().field("process", one.process).text("host", &one.host).field("devices", devices).end()
    };
    let processes = array(processes.iter().map(process));
    JsonObject::new().field("devices", devices).field("processes", processes).end() + "\n"
}

/// The name of this host.
pub(crate) fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the name has room for this many bytes.
    let code = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|&byte| byte == 0).expect("the last byte is zero");
    if code == 0 { String::from_utf8_lossy(&name[..end]).into_owned() } else { "unknown".to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_dealt_in_order() {
        let processes = assigned(&[0, 1, 2, 3, 4, 5], &["a".to_string(), "host-2".to_string()]);
        let expected = "process  host    local devices  global devices\n\
                        0        a       3              0 to 2\n\
                        1        host-2  3              3 to 5\n";
        assert_eq!(table(&processes), expected);
        let expected = r#"{"devices":6,"processes":[{"process":0,"host":"a","devices":[0,1,2]},{"process":1,"host":"host-2","devices":[3,4,5]}]}"#;
        assert_eq!(json(&processes), format!("{expected}\n"));
        assert!(table(&assigned(&[0], &["a".to_string()])).ends_with("0        a     1              0\n"));
        let some = table(&assigned(&[0, 2, 5, 6], &["a".to_string(), "a".to_string()]));
        assert!(some.contains("0, 2\n") && some.ends_with("5 to 6\n"), "{some}");
        assert!(!host_name().is_empty());
    }
}
