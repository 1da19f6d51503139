//! Call of a definition under a workload, as foreign work.

use super::safetensors;
use super::schema::{AxisKind, InputSource, KernelDefinition, KernelWorkload, TensorSignature};
use calorimeter_case::{Axes, Element};
use calorimeter_zoo::foreign::{Argument, BufferContent, BufferRole, ScalarArgument};
use serde_json::Value;
use std::path::Path;

/// Share of correct elements that suffices for mixtures of experts, as in flashinfer-bench.
const MOE_MATCHED_SHARE: f64 = 0.95;

/// Largest integer up to which all integers are exact in double precision.
const MAX_EXACT: u64 = 1 << 53;

impl KernelDefinition {
    /// Fails for definitions that flashinfer-bench checks by a rule of their own.
    pub(super) fn check_supported(&self) -> Result<(), String> {
        if self.op_type == "sampling" {
            return Err("sampling is checked by the distribution of its samples, which this version does not do".into());
        }
        if self.name.starts_with("dsa_topk_indexer") {
            return Err("dsa_topk_indexer is checked as a set of indices, which this version does not do".into());
        }
        Ok(())
    }

    /// Minimum share of correct elements.
    pub(super) fn matched_share(&self) -> f64 {
        let is_moe = self.op_type == "moe" || self.name.contains("moe_fp8_block_scale");
        if is_moe { MOE_MATCHED_SHARE } else { 1.0 }
    }

    /// Sizes of the variable axes of a workload, in the order of the definition.
    pub(super) fn axes(&self, workload: &KernelWorkload) -> Result<Axes, String> {
        if let Some(unknown) = workload.axes.keys().find(|name| self.axes.get(name) != Some(&AxisKind::Var {})) {
            return Err(format!("{} has no variable axis {unknown:?}", self.name));
        }
        let variable = self.axes.0.iter().filter(|(_, kind)| *kind == AxisKind::Var {});
        let sizes = variable.map(|(name, _)| {
            let size = workload.axes.get(name).ok_or_else(|| format!("missing size of the axis {name:?}"))?;
            Ok((name.clone(), *size))
        });
        Axes::new(sizes.collect::<Result<Vec<_>, String>>()?).map_err(|error| error.to_string())
    }

    /// Arguments of the call: all inputs, then all outputs.
    pub(super) fn arguments(&self, workload: &KernelWorkload, root: &Path) -> Result<Vec<Argument>, String> {
        if let Some(unknown) = workload.inputs.keys().find(|name| self.inputs.get(name).is_none()) {
            return Err(format!("{} has no input {unknown:?}", self.name));
        }
        let inputs = self.inputs.0.iter().map(|(name, tensor)| {
            let source = workload.inputs.get(name).unwrap_or(&InputSource::Random {});
            self.input(tensor, source, workload, root).map_err(|why| format!("input {name:?}: {why}"))
        });
        let outputs = self.outputs.0.iter().map(|(name, tensor)| {
            let built = self.buffer(tensor, workload, |_, _| Ok((BufferRole::Out, BufferContent::Normal)));
            built.map_err(|why| format!("output {name:?}: {why}"))
        });
        inputs.chain(outputs).collect()
    }

    fn input(
        &self,
        tensor: &TensorSignature,
        source: &InputSource,
        workload: &KernelWorkload,
        root: &Path,
    ) -> Result<Argument, String> {
        match (source, &tensor.shape) {
            (InputSource::Scalar { value }, None) => Ok(Argument::Value(ScalarArgument::F64(number(value)?))),
            (InputSource::Unknown, _) => Err("unsupported type: expected random, scalar or safetensors".into()),
            (InputSource::Scalar { .. }, Some(_)) => Err("a tensor cannot have the type scalar".into()),
            (_, None) => Err("a scalar must have the type scalar; random scalars are not supported".into()),
            (InputSource::Random {}, Some(_)) => self
                .buffer(tensor, workload, |element, _| Ok((BufferRole::In, random_content(&tensor.dtype, element)?))),
            (InputSource::Safetensors { path, tensor_key }, Some(_)) => {
                self.buffer(tensor, workload, |element, shape| {
                    let path = root.join(path);
                    let offset = safetensors::offset(&path, tensor_key, &tensor.dtype, element, shape)?;
                    let path = path.into_os_string().into_string().map_err(|_| "expected a path in UTF-8")?;
                    Ok((BufferRole::In, BufferContent::File { path, offset }))
                })
            }
        }
    }

    /// Buffer that holds a tensor.
    fn buffer(
        &self,
        tensor: &TensorSignature,
        workload: &KernelWorkload,
        content: impl FnOnce(Element, &[u64]) -> Result<(BufferRole, BufferContent), String>,
    ) -> Result<Argument, String> {
        let element = element(&tensor.dtype)?;
        let shape = tensor.shape.as_deref().unwrap_or_default().iter().map(|axis| match self.axes.get(axis) {
            Some(AxisKind::Const { value }) => Ok(*value),
            Some(AxisKind::Var {}) => {
                workload.axes.get(axis).copied().ok_or_else(|| format!("missing size of the axis {axis:?}"))
            }
            Some(AxisKind::Unknown) => Err(format!("unsupported type of the axis {axis:?}")),
            None => Err(format!("unknown axis {axis:?}")),
        });
        let shape = shape.collect::<Result<Vec<u64>, String>>()?;
        let length = shape.iter().try_fold(1u64, |length, &size| length.checked_mul(size));
        let length = length.ok_or_else(|| format!("the shape {shape:?} is too large"))?;
        if length == 0 {
            return Err(format!("empty tensors such as {shape:?} are not supported"));
        }
        let (role, content) = content(element, &shape)?;
        Ok(Argument::Buffer { element, length: length.to_string().parse()?, role, content })
    }
}

/// Element type with a dtype of flashinfer-bench. Truth values are bytes.
fn element(dtype: &str) -> Result<Element, String> {
    let found = if dtype == "bool" { Ok(Element::Unsigned(8)) } else { dtype.parse() };
    found
        .ok()
        .filter(|element: &Element| element.bits().is_multiple_of(8))
        .ok_or_else(|| format!("unsupported dtype {dtype:?}"))
}

/// Content of a random tensor: normal values, or small integers, which are valid indices of most tables.
fn random_content(dtype: &str, element: Element) -> Result<BufferContent, String> {
    let end = match (dtype, element) {
        ("bool", _) => 2,
        (_, Element::Signed(8) | Element::Unsigned(8)) => 128,
        (_, Element::Signed(_) | Element::Unsigned(_)) => 1024,
        _ => return Ok(BufferContent::Normal),
    };
    Ok(BufferContent::IntegersBelow(end.to_string().parse()?))
}

/// Value of a scalar.
fn number(value: &Value) -> Result<f64, String> {
    match value {
        Value::Bool(truth) => Ok(f64::from(u8::from(*truth))),
        Value::Number(number) if number.as_i64().is_some_and(|whole| whole.unsigned_abs() > MAX_EXACT) => {
            Err(format!("the integer {number} is too large: expected at most 2^53"))
        }
        Value::Number(number) => number.as_f64().ok_or_else(|| format!("invalid number {number}")),
        other => Err(format!("invalid value {other}: expected a number or a truth value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition() -> KernelDefinition {
        let text = r#"{
            "name": "scale", "op_type": "misc", "reference": "",
            "axes": {"M": {"type": "var"}, "H": {"type": "const", "value": 4}, "B": {"type": "var", "description": ""}},
            "inputs": {
                "x": {"shape": ["M", "H"], "dtype": "bfloat16"},
                "eps": {"shape": null, "dtype": "float32"},
                "at": {"shape": ["B"], "dtype": "int64"},
                "mask": {"shape": ["M", "B", "H"], "dtype": "bool"}
            },
            "outputs": {"y": {"shape": ["M", "H"], "dtype": "float8_e4m3fn"}, "s": {"shape": [], "dtype": "float32"}}
        }"#;
        serde_json::from_str(text).unwrap()
    }

    fn workload(inputs: Value) -> KernelWorkload {
        serde_json::from_value(json!({"uuid": "u", "axes": {"B": 3, "M": 2}, "inputs": inputs})).unwrap()
    }

    fn arguments(inputs: Value) -> Result<Vec<String>, String> {
        let built = definition().arguments(&workload(inputs), Path::new("/data"))?;
        Ok(built.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn signature_becomes_arguments_in_order() {
        let eps = json!({"type": "scalar", "value": 0.5});
        assert_eq!(
            arguments(json!({"x": {"type": "random"}, "eps": eps})).unwrap(),
            ["bf16:8:in", "f64=0.5", "i64:3:in:below=1024", "u8:24:in:below=2", "e4m3:8:out", "f32:1:out"]
        );
        let axes = definition().axes(&workload(json!({}))).unwrap();
        assert_eq!(axes.to_string(), "M2-B3");
    }

    #[test]
    fn invalid_workloads_are_rejected_by_input() {
        for (inputs, expected) in [
            (json!({}), "\"eps\": a scalar must"),
            (json!({"x": {"type": "scalar", "value": 1}}), "\"x\": a tensor cannot"),
            (json!({"eps": {"type": "scalar", "value": "1"}}), "\"eps\": invalid value"),
            (json!({"x": {"type": "url", "path": "x"}}), "\"x\": unsupported type"),
            (json!({"z": {"type": "random"}}), "no input \"z\""),
            (json!({"x": {"type": "safetensors", "path": "x.st", "tensor_key": "x"}}), "/data/x.st"),
        ] {
            let error = arguments(inputs).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let mut definition = definition();
        definition.axes.0[1].1 = serde_json::from_value(json!({"type": "expr", "expression": "2 * M"})).unwrap();
        let error = definition.arguments(&workload(json!({})), Path::new("/data")).unwrap_err();
        assert!(error.contains("unsupported type of the axis \"H\""), "{error}");
        definition.axes.0[1].1 = AxisKind::Const { value: 4 };
        definition.outputs.0[0].1.dtype = "float4_e2m1".into();
        let inputs = workload(json!({"eps": {"type": "scalar", "value": true}}));
        let error = definition.arguments(&inputs, Path::new("/data")).unwrap_err();
        assert!(error.contains("unsupported dtype \"float4_e2m1\""), "{error}");
    }
}
