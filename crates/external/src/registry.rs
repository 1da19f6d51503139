//! Registration of the implementations of external programs.

use crate::factory::ExternalFactory;
use crate::process::Process;
use crate::protocol::Offer;
use crate::{ExternalError, ExternalProgram};
use calorimeter_zoo::{Device, DeviceKind, Implementation, Subject, ZooError, register_implementation};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// Program and the implementations that it offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredProgram {
    /// Command line.
    pub program: ExternalProgram,
    /// Implementations.
    pub offers: Vec<Offer>,
}

/// Programs registered in this process.
static REGISTERED: Mutex<Vec<RegisteredProgram>> = Mutex::new(Vec::new());

/// Programs registered in this process; a worker process registers them again with [`RegisteredProgram::register`].
pub fn registered() -> Vec<RegisteredProgram> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Starts a program, asks for its implementations and registers them. A second call for the same program has no effect.
pub fn register(program: ExternalProgram) -> Result<(), ExternalError> {
    if registered().iter().any(|known| known.program == program) {
        return Ok(());
    }
    let (_process, offers) = Process::start(&program)?;
    RegisteredProgram { program, offers }.register()
}

/// Programs that offer an implementation.
fn programs(implementation: Implementation) -> Vec<ExternalProgram> {
    let name = implementation.to_string();
    let registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let offering = registered.iter().filter(|known| known.offers.iter().any(|offer| offer.name == name));
    offering.map(|known| known.program.clone()).collect()
}

/// True if external programs compute an implementation.
pub fn is_external(implementation: Implementation) -> bool {
    !Implementation::ALL.contains(&implementation) && !programs(implementation).is_empty()
}

/// Starts the processes of an external implementation in advance; does nothing for other implementations. An error is
/// reported when a case is opened.
pub fn start_early(implementation: Implementation) {
    for program in programs(implementation) {
        drop(Process::shared(&program, &implementation.to_string()));
    }
}

impl RegisteredProgram {
    /// Registers the implementations without starting the program.
    pub fn register(self) -> Result<(), ExternalError> {
        for offer in &self.offers {
            self.register_offer(offer)
                .map_err(|reason| ExternalError::Registration { program: self.program.to_string(), reason })?;
        }
        REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).push(self);
        Ok(())
    }

    fn register_offer(&self, offer: &Offer) -> Result<(), String> {
        let subject: Subject = offer.subject.parse().map_err(|error: ZooError| error.to_string())?;
        let implementation = implementation(offer)?;
        for device in &offer.devices {
            let kind = device.parse::<Device>().map_err(|error| error.to_string())?.kind();
            match kind {
                DeviceKind::Cpu => {}
                // A build without CUDA has no memory to share, and no such device.
                DeviceKind::Cuda if cfg!(feature = "native") => {}
                DeviceKind::Cuda => continue,
                _ => {
                    let name = &offer.name;
                    return Err(format!("{name} for {subject} runs on {kind}; this version supports cpu and cuda"));
                }
            }
            let factory = ExternalFactory { program: self.program.clone(), offer: offer.clone() };
            register_implementation(subject, implementation, kind, factory).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Returns the implementation with the name of an offer, and registers a new name. Several subjects and programs may
/// use one name. The name of a built-in implementation is an error.
fn implementation(offer: &Offer) -> Result<Implementation, String> {
    match offer.name.parse() {
        Ok(known) if !Implementation::ALL.contains(&known) => Ok(known),
        Ok(built_in) => Err(format!("the name {built_in} belongs to a built-in implementation")),
        Err(_) => {
            let description: &'static str = Box::leak(offer.description.clone().into_boxed_str());
            Implementation::register(offer.name.clone(), description).map_err(|error| error.to_string())
        }
    }
}
