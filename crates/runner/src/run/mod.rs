//! A run: the plan's groups one after the other, each record on disk before anything else happens.

mod clocks;
mod contained;
mod crew;
mod desk;
mod error;
mod found_devices;
mod idle;
mod kernels;
mod order;
mod outcome;
mod place;
mod prepare;
mod request;
mod surroundings;

pub use crate::host::now;
pub use crate::worker::{Event, Listener};
pub use error::RunError;
pub use order::{sort_as_planned, sort_briefs_as_planned};
pub use outcome::Outcome;
pub use place::{Place, run_id};
pub use request::Request;

use crate::entries::Autotune;
use crate::environment;
use crate::host::command_line;
use crate::plan::Plan;
use crate::worker::{Executor, WorkerError};
use calorimeter_sinks::Journal;
use calorimeter_sinks::journal::{Header, JournalContents, Resumed};
use crew::Crew;
use desk::Desk;
use found_devices::FoundDevices;
use kernels::Lookout;
use outcome::Ended;
use std::path::PathBuf;

/// A run whose configuration, plan and devices are known to be right.
pub struct Prepared {
    request: Request,
    plan: Plan,
    /// What the files say of where results go.
    pub output_dir: Option<PathBuf>,
    /// What a reader should know of the files.
    pub notes: Vec<String>,
}

impl Prepared {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether its kernels are tuned.
    pub fn autotune(&self) -> Autotune {
        self.request.overrides.autotune
    }

    /// How many processes measure each case.
    pub fn launches(&self) -> u32 {
        self.request.overrides.launches.unwrap_or(1)
    }

    /// Runs the plan in a new directory. The listener hears how many cases there are, what is done to each, and of each record
    /// once it is on disk.
    pub fn start(
        &self,
        place: &Place,
        executor: &mut dyn Executor,
        listener: &mut dyn Listener,
    ) -> Result<Outcome, RunError> {
        let devices = FoundDevices::look(self.plan.devices(), &self.request.overrides)?;
        let _locks = devices.lock_clocks(&self.request.overrides)?;
        let header = self.header(&devices, place);
        let journal = Journal::create(&place.dir, &header)?;
        let contents = JournalContents { header, records: vec![], resumed: vec![], summary: None, warnings: vec![] };
        self.run(&devices, (journal, contents), place, executor, listener)
    }

    /// Goes on with a run that stopped early.
    pub fn resume(
        &self,
        place: &Place,
        executor: &mut dyn Executor,
        listener: &mut dyn Listener,
    ) -> Result<Outcome, RunError> {
        if let Some(link) = contained::link_out(place) {
            return Err(RunError::LeadsOut { link });
        }
        let devices = FoundDevices::look(self.plan.devices(), &self.request.overrides)?;
        let _locks = devices.lock_clocks(&self.request.overrides)?;
        let environment = Some(environment::describe(&devices.all));
        let resumed = Resumed { time: now().to_rfc3339(), argv: command_line(), environment };
        let journal = Journal::resume(&place.dir, &self.request.fingerprint(&self.plan), &resumed)?;
        self.run(&devices, journal, place, executor, listener)
    }

    fn header(&self, devices: &FoundDevices, place: &Place) -> Header {
        let now = now();
        Header {
            run_id: place.run_id(&now),
            started: now.to_rfc3339(),
            argv: command_line(),
            config: self.request.with_plan(&self.plan),
            config_fingerprint: self.request.fingerprint(&self.plan),
            plan_cases: self.plan.len() as u64,
            environment: environment::describe(&devices.all),
            output_dir: Some(place.as_seen_from_run()),
        }
    }

    /// From an open journal to the derived files, which come last.
    fn run(
        &self,
        devices: &FoundDevices,
        (journal, contents): (Journal, JournalContents),
        place: &Place,
        executor: &mut dyn Executor,
        listener: &mut dyn Listener,
    ) -> Result<Outcome, RunError> {
        let JournalContents { header, records, warnings, resumed, .. } = contents;
        let (plan, untimed) = (&self.plan, self.request.overrides.untimed);
        let mut desk = Desk::new(journal, records, plan.len(), listener);
        let floors = &devices.floors();
        let mut crew = Crew { executor, lookout: Lookout::default(), plan, place, devices, floors, untimed };
        let stopped = measure(plan, &mut crew, &mut desk).err();
        Ended { plan, place, devices, floors, notes: &self.notes, header, resumed, warnings, stopped }.finish(desk)
    }
}

/// Group by group: each record is on disk before the next case starts. The error says why workers can no longer be had.
fn measure(plan: &Plan, crew: &mut Crew<'_>, desk: &mut Desk<'_>) -> Result<(), WorkerError> {
    for group in plan.drawn() {
        if desk.is_complete(group) {
            continue;
        }
        desk.begin(group);
        crew.measure(group, desk)?;
        if desk.interrupted() {
            break;
        }
    }
    Ok(())
}
