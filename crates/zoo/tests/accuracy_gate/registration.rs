//! Registration from another crate: custom implementations run alongside the built-in ones, and names are unique. The
//! runner's tests run such an implementation in a separate program.

use calorimeter_case::NameTaken;
use calorimeter_recipes::{Dtype, Element, RecipeVariant};
use calorimeter_shapes::Axes;
use calorimeter_zoo::models::linear::LinearModel;
use calorimeter_zoo::operators::mse_loss::MseLoss;
use calorimeter_zoo::{
    Device, DeviceKind, Implementation, OpenRequest, Operator, Subject, Task, Workload, ZooError,
    register_implementation, register_model, register_operator,
};

/// Reason why an implementation of an operator is unsupported on a device.
fn unsupported_reason(operator: &str, implementation: Implementation, device: Device) -> String {
    task(operator).support(RecipeVariant::BASELINE, implementation, device).unwrap_err().to_string()
}

/// Task of a row operator at a small shape.
fn task(operator: &str) -> Task {
    let axes = Axes::from([("batch", 2), ("sequence", 3), ("dimension", 40)]);
    Task::new(operator.parse().unwrap(), &axes, Element::Float(Dtype::F32), None, 1).unwrap()
}

#[test]
fn unsupported_implementation_lists_alternatives() {
    assert_eq!(
        unsupported_reason("mse_loss", Implementation::Cube, Device::Cuda(0)),
        "mse_loss has no `cube` kernel in this version; `eager`, `fused` and `native` run it"
    );
    assert_eq!(
        unsupported_reason("mse_loss", Implementation::Fused, Device::Cpu),
        "the CPU backend does not fuse; `eager` and `native` run on it, `fused` needs cuda, vulkan or metal"
    );
}

#[test]
fn duplicate_names_are_rejected() {
    assert_eq!(register_operator(MseLoss).err(), Some(NameTaken::new("operator", "mse_loss".into())));
    assert_eq!(register_model(LinearModel).err(), Some(NameTaken::new("model", "linear".into())));
    let error = "mse_los".parse::<Operator>().unwrap_err();
    assert!(matches!(&error, ZooError::Unknown(name) if name.nearest.as_deref() == Some("mse_loss")), "{error}");
}

/// Opener that fails.
fn stub_opener(_: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
    Err(ZooError::Device("opened".into()))
}

#[test]
fn custom_implementation_can_be_registered() {
    let hand = Implementation::register("by_hand", "written out").unwrap();
    // No other test of this process uses this operator.
    let subject: Subject = "cross_entropy".parse().unwrap();
    register_implementation(subject, hand, DeviceKind::Cpu, stub_opener).unwrap();
    assert!(task("cross_entropy").support(RecipeVariant::BASELINE, hand, Device::Cpu).is_ok());
    assert_eq!(
        unsupported_reason("cross_entropy", hand, Device::Vulkan(0)),
        "`by_hand` of cross_entropy supports cpu and not vulkan:0 in this version; `eager` and `fused` run it there"
    );
    assert_eq!(
        register_implementation(subject, hand, DeviceKind::Cpu, stub_opener),
        Err(NameTaken::new("implementation", "by_hand of cross_entropy on cpu".into()))
    );
}
