//! A run: measures the groups of a plan; each record is on disk before the next case starts.

mod concurrent;
mod containment;
mod device_thread;
mod dispatcher;
mod environment_changes;
mod error;
mod event;
mod host_memory;
mod interference;
mod kernel_tracer;
mod mixed_clocks;
mod other_users;
mod outcome;
mod output_dirs;
mod plan_order;
mod prepare;
mod record_writer;
mod request;
mod run_devices;

pub use calorimeter_probe::host::now;
pub use error::RunError;
pub use event::{RunEvent, RunListener};
pub use outcome::RunOutcome;
pub use output_dirs::{OutputDirs, run_id};
pub use plan_order::{sort_as_planned, sort_briefs_as_planned};
pub use request::Request;

use crate::entries::Autotune;
use crate::environment;
use crate::plan::{Group, Plan, Prediction};
use crate::worker::{Executor, WorkerListener};
use calorimeter_case::{CaseId, Implementation};
use calorimeter_probe::host::command_line;
use calorimeter_sinks::Journal;
use calorimeter_sinks::journal::{Header, JournalContents, Resumed};
use concurrent::ConcurrentRun;
use dispatcher::Dispatcher;
use kernel_tracer::KernelTracer;
use outcome::RunFinisher;
use record_writer::RecordWriter;
use run_devices::RunDevices;
use std::path::PathBuf;

/// Run whose configuration and plan are validated.
pub struct PreparedRun {
    request: Request,
    plan: Plan,
    /// Output directory of the configuration files.
    pub output_dir: Option<PathBuf>,
    /// Notes about the configuration files.
    pub notes: Vec<String>,
}

impl PreparedRun {
    /// Plan of the run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Autotune setting.
    pub fn autotune(&self) -> Autotune {
        self.request.overrides.autotune
    }

    /// Number of processes that measure each case.
    pub fn launches(&self) -> u32 {
        self.request.overrides.launches.unwrap_or(1)
    }

    /// Predicted duration of every supported case, with its implementation.
    pub fn predictions(&self) -> impl Iterator<Item = (CaseId, Implementation, Prediction)> {
        let (times, untimed) = (f64::from(self.launches()), self.request.overrides.untimed);
        self.plan.predictions().map(move |(case, predicted)| {
            let predicted = if untimed {
                Prediction { preparation: predicted.preparation, ..Prediction::default() }
            } else {
                predicted * times
            };
            (case.id, case.implementation, predicted)
        })
    }

    /// Runs the plan in a new directory. The listener receives the number of cases, the current stage of each, and each
    /// record once it is on disk.
    pub fn start(
        &self,
        place: &OutputDirs,
        executor: &mut dyn Executor,
        listener: &mut dyn RunListener,
    ) -> Result<RunOutcome, RunError> {
        let devices = RunDevices::discover(self.plan.devices(), &self.request.overrides)?;
        let _locks = devices.lock_clocks(&self.request.overrides)?;
        let header = self.header(&devices, place);
        let journal = Journal::create(&place.dir, &header)?;
        let contents = JournalContents { header, records: vec![], resumed: vec![], summary: None, warnings: vec![] };
        self.run(&devices, (journal, contents), place, executor, listener)
    }

    /// Resumes a run that stopped early.
    pub fn resume(
        &self,
        place: &OutputDirs,
        executor: &mut dyn Executor,
        listener: &mut dyn RunListener,
    ) -> Result<RunOutcome, RunError> {
        if let Some(link) = containment::escaping_link(place) {
            return Err(RunError::EscapingLink { link });
        }
        let devices = RunDevices::discover(self.plan.devices(), &self.request.overrides)?;
        let _locks = devices.lock_clocks(&self.request.overrides)?;
        let environment = Some(environment::describe(&devices.all));
        let resumed = Resumed { time: now().to_rfc3339(), argv: command_line(), environment };
        let journal = Journal::resume(&place.dir, &self.request.fingerprint(&self.plan), &resumed)?;
        self.run(&devices, journal, place, executor, listener)
    }

    fn header(&self, devices: &RunDevices, place: &OutputDirs) -> Header {
        let now = now();
        Header {
            run_id: place.run_id(&now),
            started: now.to_rfc3339(),
            argv: command_line(),
            config: self.request.with_plan(&self.plan),
            config_fingerprint: self.request.fingerprint(&self.plan),
            plan_cases: Some(self.plan.len() as u64),
            environment: environment::describe(&devices.all),
            output_dir: Some(place.relative_to_run()),
        }
    }

    /// Measures, then writes the summary and the derived files.
    fn run(
        &self,
        devices: &RunDevices,
        (journal, contents): (Journal, JournalContents),
        place: &OutputDirs,
        executor: &mut dyn Executor,
        listener: &mut dyn RunListener,
    ) -> Result<RunOutcome, RunError> {
        let JournalContents { header, records, warnings, resumed, .. } = contents;
        let (plan, untimed) = (&self.plan, self.request.overrides.untimed);
        let mut writer = RecordWriter::new(journal, records, plan.len(), listener);
        let floors = &devices.floors();
        let mut dispatcher = Dispatcher {
            executor,
            kernel_tracer: KernelTracer::default(),
            plan,
            output_dirs: place,
            devices,
            floors,
            untimed,
        };
        let measured = measure_groups(plan, &mut dispatcher, &mut writer);
        let notes = [&self.notes[..], &measured.notes].concat();
        let stopped = measured.into_error();
        RunFinisher { plan, output_dirs: place, devices, floors, notes: &notes, header, resumed, warnings, stopped }
            .finish(writer)
    }
}

/// Measures concurrent groups first, then the remaining ones sequentially; each record is on disk before the next case
/// starts.
fn measure_groups(plan: &Plan, dispatcher: &mut Dispatcher<'_>, writer: &mut RecordWriter<'_>) -> ConcurrentRun {
    let mut concurrent = concurrent::measure_concurrently(dispatcher, writer);
    let groups = plan.shuffled_groups();
    for (at, &group) in groups.iter().enumerate() {
        if writer.interrupted() {
            break;
        }
        if writer.is_complete(group) || concurrent.covers(plan, group) {
            continue;
        }
        let device = plan.entry(group).device;
        writer.begin_group(group, device);
        let is_next = |other: &&&Group| plan.entry(other).device == device && !writer.is_complete(other);
        let next = groups[at + 1..].iter().find(is_next).copied();
        if let Err(why) = dispatcher.dispatch(group, next, writer) {
            concurrent.lost.push((device, why));
            break;
        }
        writer.finish_group(device);
    }
    concurrent
}
