//! What the program promises, checked on the program itself: `calorimeter` is started as a process in a folder of its own,
//! on the mock device where a case has to go wrong or to come out to the digit, on real devices where it has to be right.

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
