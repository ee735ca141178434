//! The number of this process among the processes that a launcher has started, from the launcher's variables alone.
//!
//! It is known before any function of MPI is called: which library to load depends on the launcher, and a program that no launcher has
//! started must not look for one.
//!
//! | started by | number and count of processes |
//! |---|---|
//! | `mpirun` of Open MPI | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` |
//! | `mpiexec` of MPICH and its relatives, `srun --mpi=pmi2` | `PMI_RANK`, `PMI_SIZE` |
//! | `srun --mpi=pmix` | `PMIX_RANK`, `SLURM_STEP_NUM_TASKS` |
//! | `srun` alone | `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS`: rejected, because the processes could not find each other |
//!
//! The first applicable row decides: `mpirun` starts its processes through `srun` in a Slurm allocation. A script of `sbatch` also has
//! `SLURM_PROCID`, but it is not a step: a program started there directly runs alone.

use crate::MpiError;

/// The launchers that MPI libraries can be asked to talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `mpirun` and `mpiexec` of Open MPI.
    OpenMpi,
    /// `mpiexec` of MPICH, Intel MPI or MVAPICH, and `srun --mpi=pmi2`.
    Pmi,
    /// `srun --mpi=pmix`.
    SlurmPmix,
}

impl Launcher {
    /// The launcher as messages name it.
    pub fn name(self) -> &'static str {
        match self {
            Launcher::OpenMpi => "Open MPI's mpirun",
            Launcher::Pmi => "MPICH's mpiexec or srun --mpi=pmi2",
            Launcher::SlurmPmix => "srun --mpi=pmix",
        }
    }
}

/// The place that a launcher has given to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The launcher.
    pub launcher: Launcher,
    /// The number of this process, less than `size`.
    pub rank: usize,
    /// The number of processes, at least 1.
    pub size: usize,
    /// The number of processes on this host, if the launcher tells.
    pub local_size: Option<usize>,
}

impl Launched {
    /// The place of this process; None if no launcher has started it. `variable` gives the value of an environment variable.
    pub fn find(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Launched>, MpiError> {
        let number = |name: &str| -> Result<Option<usize>, MpiError> {
            let Some(text) = variable(name) else { return Ok(None) };
            let number = text.trim().parse().map_err(|_| {
                MpiError::new(format!("the launcher's variable {name} is `{text}`, which is not a number of processes"))
            })?;
            Ok(Some(number))
        };
        let place = |launcher, rank: &str, size: &str, local_size: &str| -> Result<Option<Launched>, MpiError> {
            let (Some(number_of_this), Some(count)) = (number(rank)?, number(size)?) else { return Ok(None) };
            if number_of_this >= count {
                return Err(MpiError::new(format!(
                    "the launcher's variables contradict each other: {rank} is {number_of_this}, and {size} is {count}"
                )));
            }
            let local_size = number(local_size)?.filter(|local| (1..=count).contains(local));
            Ok(Some(Launched { launcher, rank: number_of_this, size: count, local_size }))
        };
        let open_mpi =
            place(Launcher::OpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")?;
        if open_mpi.is_some() {
            return Ok(open_mpi);
        }
        let pmi = place(Launcher::Pmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS")?;
        if pmi.is_some() {
            return Ok(pmi);
        }
        let pmix = place(Launcher::SlurmPmix, "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "")?;
        if pmix.is_some() {
            return Ok(pmix);
        }
        match number("SLURM_STEP_NUM_TASKS")? {
            Some(tasks) if tasks > 1 && variable("SLURM_PROCID").is_some() => Err(MpiError::new(format!(
                "srun started {tasks} processes that cannot communicate with each other"
            ))
            .with_help("write `srun --mpi=pmix` (Open MPI) or `srun --mpi=pmi2` (MPICH); `srun --mpi=list` lists the available ones")),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Result<Option<Launched>, MpiError> {
        Launched::find(|name| Some(variables.iter().find(|(known, _)| *known == name)?.1.to_string()))
    }

    #[test]
    fn every_launcher_tells_the_place_of_a_process() {
        use Launcher::{OpenMpi, Pmi, SlurmPmix};
        /// Variables, and the place that they tell: launcher, number, size, and size on the host.
        type Row<'a> = (&'a [(&'a str, &'a str)], Launcher, usize, usize, Option<usize>);
        let table: [Row<'_>; 6] = [
            // Open MPI 4 and 5.
            (
                &[
                    ("OMPI_COMM_WORLD_RANK", "3"),
                    ("OMPI_COMM_WORLD_SIZE", "8"),
                    ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
                    ("PMIX_RANK", "3"),
                ],
                OpenMpi,
                3,
                8,
                Some(4),
            ),
            // Hydra.
            (&[("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2")], Pmi, 1, 2, Some(2)),
            (&[("PMI_RANK", "0"), ("PMI_SIZE", "1")], Pmi, 0, 1, None),
            (
                &[("PMI_RANK", "5"), ("PMI_SIZE", "6"), ("SLURM_PROCID", "5"), ("SLURM_STEP_NUM_TASKS", "6")],
                Pmi,
                5,
                6,
                None,
            ),
            (
                &[("PMIX_RANK", "2"), ("SLURM_PROCID", "2"), ("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_NTASKS", "4")],
                SlurmPmix,
                2,
                4,
                None,
            ),
            // `mpirun` in an allocation starts one daemon a node as a step of Slurm.
            (
                &[
                    ("OMPI_COMM_WORLD_RANK", "7"),
                    ("OMPI_COMM_WORLD_SIZE", "8"),
                    ("PMIX_RANK", "7"),
                    ("SLURM_PROCID", "1"),
                    ("SLURM_STEP_NUM_TASKS", "2"),
                ],
                OpenMpi,
                7,
                8,
                None,
            ),
        ];
        for (variables, launcher, rank, size, local_size) in table {
            assert_eq!(find(variables), Ok(Some(Launched { launcher, rank, size, local_size })), "{variables:?}");
        }
    }

    #[test]
    fn a_program_without_a_launcher_is_alone() {
        assert_eq!(find(&[]), Ok(None));
        // A script of `sbatch`, an interactive step, and a terminal of which a launcher has left traces.
        assert_eq!(find(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), ("SLURM_LOCALID", "0")]), Ok(None));
        assert_eq!(find(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")]), Ok(None));
        assert_eq!(find(&[("PMIX_RANK", "0")]), Ok(None));
    }

    #[test]
    fn processes_that_cannot_find_each_other_are_refused() {
        let error = find(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "4")]).unwrap_err();
        assert!(error.message.contains("4 processes that cannot communicate with each other"), "{error}");
        assert!(error.help.unwrap().contains("--mpi=pmix"));
        let error = find(&[("PMI_RANK", "2"), ("PMI_SIZE", "2")]).unwrap_err();
        assert!(error.message.contains("PMI_RANK is 2, and PMI_SIZE is 2"), "{error}");
        let error = find(&[("OMPI_COMM_WORLD_RANK", "-1"), ("OMPI_COMM_WORLD_SIZE", "2")]).unwrap_err();
        assert!(error.message.contains("OMPI_COMM_WORLD_RANK is `-1`"), "{error}");
    }
}
