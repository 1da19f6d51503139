//! `custom`: shapes listed explicitly.

use crate::parameter::{Parameter, ParameterKind};
use crate::{Generator, NamedShape};

const SHAPES: Parameter = Parameter {
    name: "shapes",
    about: "the shapes as a list of [m, k, n], made in that order",
    kind: ParameterKind::Shapes,
};

pub(super) static CUSTOM: Generator = Generator {
    name: "custom",
    about: "the shapes you list, each called custom",
    parameters: &[SHAPES],
    count: |settings| Ok(Some(settings.shapes(&SHAPES).len() as u64)),
    shapes: |settings, _| {
        Ok(settings.shapes(&SHAPES).iter().map(|shape| NamedShape { name: "custom".into(), shape: *shape }).collect())
    },
};

#[cfg(test)]
mod tests {
    use super::super::listing;

    #[test]
    fn custom_preserves_order_and_duplicates() {
        let made = listing("{name: custom, shapes: [[1024, 512, 2048], [1, 1, 1], [1024, 512, 2048]]}");
        assert_eq!(made, ["custom 1024 512 2048", "custom 1 1 1", "custom 1024 512 2048"]);
    }
}
