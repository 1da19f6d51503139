//! Guarantees of the program, tested end to end: `calorimeter` runs as a process in a temporary folder. The mock device
//! provides faults and exact times, real devices provide correct results.

mod drawn;
mod json_schema;
mod outside;
mod pseudo_terminal;
mod readers;
mod scene;

mod accelerator_files;
mod accuracy;
mod additions;
mod bad_input;
mod broken_files;
mod calibration;
mod clock_locks;
mod commands;
mod comparing;
mod completing;
mod embedding;
mod foreign;
mod formats;
mod golden;
mod hostile;
mod hostile_input;
mod hostile_names;
mod interrupts;
mod isolation;
mod journal;
mod late_mistakes;
mod measuring;
mod own_device;
mod own_program;
mod parts;
mod phases;
mod real_devices;
mod report_page;
mod reports;
mod schema;
mod several_devices;
mod starved;
mod torchao_files;
mod torture;
mod twentieth;
mod watching;
