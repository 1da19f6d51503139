//! Guarantees of the program, tested end to end: `calorimeter` runs as a process in a temporary folder. The mock device
//! provides faults and exact times, real devices provide correct results.

mod pseudo_terminal;
mod readers;
mod scene;
mod schema_validator;
mod seeded_random;

mod accelerator_dialect;
mod accelerator_v2_dialect;
mod accuracy_command;
mod broken_files;
mod calibration;
mod clock_locks;
mod commands;
mod compare_command;
mod completions;
mod concurrent_devices;
mod config_schema;
mod crash_safety;
mod custom_device;
mod embedding;
mod external_programs;
mod fault_isolation;
mod flashinfer_bench;
mod golden;
mod hostile_environment;
mod hostile_input;
mod hostile_names;
mod interrupts;
mod invalid_input;
mod late_output_errors;
mod measurement;
mod output_formats;
mod progress_display;
mod python_implementations;
mod real_devices;
mod report_command;
mod report_in_browser;
mod resource_limits;
mod shards;
mod skipped_work;
mod stress;
mod torchao_dialect;
mod training_phases;
