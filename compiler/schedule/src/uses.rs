//! Counts the uses of values, for passes that remove a value from memory.

use crate::order::{Limit, Schedule, Task};
use spmdc_ir::lower::work::Work;
use spmdc_ir::program::{Func, Value};

/// Whether a list of tasks, or a list in a loop or branch of it, has something.
pub(crate) fn any_list(tasks: &[Task], has: &dyn Fn(&[Task]) -> bool) -> bool {
    has(tasks) || tasks.iter().any(|task| task.blocks().into_iter().any(|inner| any_list(inner, has)))
}

/// How often the work of the program uses the values of each class.
pub(crate) struct Uses {
    pub of: Vec<usize>,
    pub writes: Vec<usize>,
}

impl Uses {
    /// The uses in a schedule. Parameters, results and constants have many: they must stay in memory.
    pub fn new(schedule: &Schedule, func: &Func, classes: &[usize]) -> Uses {
        debug_assert_eq!(classes.len(), schedule.types.len(), "every value has a class");
        let mut uses = Uses { of: vec![0; classes.len()], writes: vec![0; classes.len()] };
        let pinned = func.body.params.iter().chain(&func.body.results);
        let pinned = pinned.copied().chain(schedule.constants.iter().map(|(value, _)| *value));
        pinned.for_each(|value| uses.pin(classes[value.0 as usize]));
        uses.count(&schedule.tasks, classes);
        uses
    }

    /// Notes a use by something else than work.
    fn pin(&mut self, class: usize) {
        self.of[class] = usize::MAX / 2;
    }

    fn count(&mut self, tasks: &[Task], classes: &[usize]) {
        let class = |value: &Value| classes[value.0 as usize];
        for task in tasks {
            match task {
                Task::Work(Work::Alias { .. }) => {}
                Task::Work(work) => {
                    work.reads().iter().for_each(|value| self.of[class(value)] += 1);
                    for value in work.writes() {
                        self.of[class(&value)] += 1;
                        self.writes[class(&value)] += 1;
                    }
                }
                Task::For { counter, start, end, carries, stacked, .. } => {
                    let limits = [start, end].into_iter().filter_map(Limit::value);
                    limits.for_each(|value| self.pin(class(&value)));
                    let carried = carries.iter().flat_map(|carry| [&carry.param, &carry.next]);
                    carried.chain(stacked).chain([counter]).for_each(|value| self.pin(class(value)));
                }
                Task::While { carries, flag, .. } => {
                    let carried = carries.iter().flat_map(|carry| [&carry.param, &carry.next]);
                    carried.chain([flag]).for_each(|value| self.pin(class(value)));
                }
                Task::If { flag, results, .. } => {
                    results.iter().chain([flag]).for_each(|value| self.pin(class(value)));
                }
            }
            task.blocks().into_iter().for_each(|inner| self.count(inner, classes));
        }
    }
}
