//! Guarantees about code outside the repository. Each test builds a package or a changed copy of the repository with
//! Cargo, which takes minutes, so that these tests are a target of their own.

mod external_packages;
mod scene;

mod custom_program;
mod extensibility;
