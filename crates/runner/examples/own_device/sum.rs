//! Addition of two arrays on a thread.

use crate::threads::busy;
use calorimeter_zoo::{OpenRequest, Output, Workload, ZooError};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

/// Sends launches to a thread and receives the results.
struct Sum {
    orders: Sender<()>,
    sums: Receiver<Vec<f32>>,
    launched: u32,
    last: Vec<f32>,
}

/// Starts a thread that owns the arrays and waits for launches.
pub(crate) fn open(opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
    let busy = busy(opening.setup.device);
    let (_, inputs) = opening.operator()?;
    // Launches rotate through the requested number of buffer sets.
    let sets = vec![[0, 1].map(|input: usize| inputs[input].values.to_vec()); opening.setup.sets as usize];
    let (orders, taken) = channel();
    let (made, sums) = channel();
    std::thread::spawn(move || {
        for ((), [a, b]) in taken.into_iter().zip(sets.iter().cycle()) {
            let start = Instant::now();
            let sum: Vec<f32> = a.iter().zip(b).map(|(a, b)| a + b).collect();
            busy.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Release);
            if made.send(sum).is_err() {
                return;
            }
        }
    });
    Ok(Box::new(Sum { orders, sums, launched: 0, last: Vec::new() }))
}

impl Workload for Sum {
    fn launch(&mut self) -> Result<(), ZooError> {
        self.orders.send(()).map_err(|error| ZooError::Device(error.to_string()))?;
        self.launched += 1;
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        for _ in 0..std::mem::take(&mut self.launched) {
            self.last = self.sums.recv().map_err(|error| ZooError::Device(error.to_string()))?;
        }
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        self.launch()?;
        self.synchronize()?;
        Ok(vec![Output { rows: 1, cols: self.last.len(), values: self.last.clone() }])
    }
}
