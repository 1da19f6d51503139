//! `model`: linear layers of a language model, from its published `config.json`.
//!
//! Layers, with the numbers of the configuration file; `heads` and `kv_heads` are numbers of heads:
//!
//! | layer | M | K | N |
//! |---|---|---|---|
//! | `qkv` | tokens | hidden | (heads + 2 kv_heads) x head size |
//! | `q_kv_a` | tokens | hidden | `q_lora_rank` + `kv_lora_rank` + `qk_rope_head_dim` |
//! | `q_b` | tokens | `q_lora_rank` | heads x (`qk_nope_head_dim` + `qk_rope_head_dim`) |
//! | `kv_b` | tokens | `kv_lora_rank` | heads x (`qk_nope_head_dim` + `v_head_dim`) |
//! | `o` | tokens | heads x size of a value | hidden |
//! | `gate_up`, `down` | tokens | hidden, intermediate | 2 x intermediate, hidden |
//! | `router` | tokens | hidden | experts |
//! | `expert_gate_up`, `expert_down` | tokens x experts per token / experts, rounded up | as `gate_up` and `down` of one expert | |
//! | `shared_gate_up`, `shared_down` | tokens | as `gate_up` and `down` of the shared experts | |
//! | `head` | tokens | hidden | vocabulary |
//!
//! `fused: false` replaces `qkv` by `q` and `kv` (keys and values have equal sizes), `gate_up` by `gate` (of equal size as
//! `up`), and `q_kv_a` by `q_a` and `kv_a`.
//!
//! Tensor parallelism over `tp` devices divides the heads, the intermediate sizes and the vocabulary. Layers behind
//! low-rank compression and routers are replicated, as are key-value heads if there are fewer of them than devices.

use crate::parameter::{GeneratorSettings, Parameter, ParameterKind};
use crate::shape::size_bounds;
use crate::{Generator, NamedShape, ShapeError};
use calorimeter_case::read_text;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const CONFIG: Parameter = Parameter {
    name: "config",
    about: "the config.json of a model; relative to the configuration file",
    kind: ParameterKind::Path,
};

const TOKENS: Parameter = Parameter {
    name: "tokens",
    about: "tokens per batch",
    kind: ParameterKind::Sizes { default: &[1, 16, 256, 4096] },
};

const DEVICES: Parameter = Parameter {
    name: "tp",
    about: "devices among which tensor parallelism divides a layer",
    kind: ParameterKind::Sizes { default: &[1] },
};

const LAYERS: Parameter = Parameter {
    name: "layers",
    about: "layers to include; layers that the model does not have are ignored",
    kind: ParameterKind::Names {
        what: "layer of a model",
        known: &[
            "qkv",
            "q",
            "kv",
            "q_kv_a",
            "q_a",
            "kv_a",
            "q_b",
            "kv_b",
            "o",
            "gate_up",
            "gate",
            "down",
            "router",
            "expert_gate_up",
            "expert_gate",
            "expert_down",
            "shared_gate_up",
            "shared_gate",
            "shared_down",
            "head",
        ],
    },
};

const FUSED: Parameter = Parameter {
    name: "fused",
    about: "true if layers with equal inputs are one layer",
    kind: ParameterKind::Flag { default: true },
};

/// Configuration files have a few kilobytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

pub(super) static MODEL: Generator = Generator {
    name: "model",
    about: "linear layers of a language model, from its config.json",
    parameters: &[CONFIG, TOKENS, DEVICES, LAYERS, FUSED],
    count: |_| Ok(None),
    shapes: |settings, base| shapes(settings, &base.join(settings.path(&CONFIG))),
};

fn shapes(settings: &GeneratorSettings, path: &Path) -> Result<Vec<NamedShape>, ShapeError> {
    let config = ModelConfig::read(path)?;
    let model = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let selected = settings.names(&LAYERS);
    // Layers of equal size are one case.
    let (mut made, mut known) = (Vec::new(), BTreeSet::new());
    for &tp in settings.sizes(&DEVICES) {
        let layers = config.layers(tp, settings.flag(&FUSED))?;
        for layer in layers.iter().filter(|layer| selected.contains(&layer.name)) {
            for &tokens in settings.sizes(&TOKENS) {
                let m = if layer.is_routed { config.rows_per_expert(tokens)? } else { tokens };
                if known.insert([m, layer.k, layer.n]) {
                    let devices = if tp == 1 { String::new() } else { format!("_tp{tp}") };
                    let name = format!("{model}.{}{devices}_m{m}", layer.name);
                    made.push(NamedShape::new(name, [m, layer.k, layer.n])?);
                }
            }
        }
    }
    Ok(made)
}

/// Linear layer of a model on one device.
struct ModelLayer {
    name: &'static str,
    k: u64,
    n: u64,
    /// True if the layer receives only the tokens that are routed to its expert.
    is_routed: bool,
}

/// Sizes in a `config.json`. Other keys are ignored.
#[derive(Debug, Deserialize)]
struct ModelConfig {
    #[serde(default)]
    model_type: String,
    hidden_size: u64,
    num_attention_heads: u64,
    vocab_size: u64,
    num_key_value_heads: Option<u64>,
    head_dim: Option<u64>,
    intermediate_size: Option<u64>,
    num_experts: Option<u64>,
    num_local_experts: Option<u64>,
    n_routed_experts: Option<u64>,
    num_experts_per_tok: Option<u64>,
    experts_per_token: Option<u64>,
    moe_intermediate_size: Option<u64>,
    n_shared_experts: Option<u64>,
    shared_expert_intermediate_size: Option<u64>,
    /// Layers before the first layer with experts.
    first_k_dense_replace: Option<u64>,
    q_lora_rank: Option<u64>,
    kv_lora_rank: Option<u64>,
    qk_nope_head_dim: Option<u64>,
    qk_rope_head_dim: Option<u64>,
    v_head_dim: Option<u64>,
}

impl ModelConfig {
    /// Reads a file. The language model of a model with several modalities is in `text_config`.
    fn read(path: &Path) -> Result<Self, ShapeError> {
        let unreadable = |cause: String| ShapeError::Unreadable { path: path.into(), cause };
        let text = read_text(path, MAX_FILE_BYTES).map_err(|error| unreadable(error.to_string()))?;
        let mut value: Value = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        let language_model = value.get_mut("text_config").map(Value::take).unwrap_or(value);
        // Sizes of zero would divide by zero below; too large ones would overflow.
        for (key, size) in language_model.as_object().into_iter().flatten() {
            let is_size = ["_size", "_dim", "_heads", "_rank"].iter().any(|end| key.ends_with(end));
            if let Some(size) = size.as_u64().filter(|_| is_size) {
                size_bounds(key).check(size)?;
            }
        }
        serde_json::from_value(language_model).map_err(|error| unreadable(error.to_string()))
    }

    /// Layers on one of `tp` devices.
    fn layers(&self, tp: u64, fused: bool) -> Result<Vec<ModelLayer>, ShapeError> {
        let mut layers = self.attention(tp, fused)?;
        let mut mlp = |[both, one, down]: [&'static str; 3], intermediate: u64, is_routed| {
            let part = divide(intermediate, tp, "the intermediate size")?;
            let (name, n) = if fused { (both, part.saturating_mul(2)) } else { (one, part) };
            layers.push(ModelLayer { name, k: self.hidden_size, n, is_routed });
            layers.push(ModelLayer { name: down, k: part, n: self.hidden_size, is_routed });
            Ok(())
        };
        let experts = self.experts();
        let intermediate = || self.intermediate_size.ok_or(missing_key("intermediate_size"));
        if experts.is_none() || self.first_k_dense_replace.is_some_and(|layers| layers > 0) {
            mlp(["gate_up", "gate", "down"], intermediate()?, false)?;
        }
        if let Some(experts) = experts {
            let expert = self.moe_intermediate_size.map_or_else(intermediate, Ok)?;
            mlp(["expert_gate_up", "expert_gate", "expert_down"], expert, true)?;
            let shared = self
                .n_shared_experts
                .map(|count| count.saturating_mul(expert))
                .or(self.shared_expert_intermediate_size);
            // Llama 4 has one shared expert, without a key.
            let shared = shared.or_else(|| self.model_type.starts_with("llama4").then_some(expert));
            if let Some(shared) = shared.filter(|shared| *shared > 0) {
                mlp(["shared_gate_up", "shared_gate", "shared_down"], shared, false)?;
            }
            layers.push(ModelLayer { name: "router", k: self.hidden_size, n: experts, is_routed: false });
        }
        // Vocabularies are padded to a multiple of the devices.
        let n = self.vocab_size.div_ceil(tp);
        layers.push(ModelLayer { name: "head", k: self.hidden_size, n, is_routed: false });
        Ok(layers)
    }

    fn attention(&self, tp: u64, fused: bool) -> Result<Vec<ModelLayer>, ShapeError> {
        let (hidden, heads) = (self.hidden_size, divide(self.num_attention_heads, tp, "the attention heads")?);
        let layer = |name, k, n| ModelLayer { name, k, n, is_routed: false };
        if let Some(kv_rank) = self.kv_lora_rank {
            let size = |size: Option<u64>, key| size.ok_or(missing_key(key));
            let nope = size(self.qk_nope_head_dim, "qk_nope_head_dim")?;
            let rope = size(self.qk_rope_head_dim, "qk_rope_head_dim")?;
            let value = size(self.v_head_dim, "v_head_dim")?;
            let q_rank = size(self.q_lora_rank, "q_lora_rank")?;
            let mut layers = if fused {
                vec![layer("q_kv_a", hidden, q_rank + kv_rank + rope)]
            } else {
                vec![layer("q_a", hidden, q_rank), layer("kv_a", hidden, kv_rank + rope)]
            };
            layers.push(layer("q_b", q_rank, heads * (nope + rope)));
            layers.push(layer("kv_b", kv_rank, heads * (nope + value)));
            layers.push(layer("o", heads * value, hidden));
            return Ok(layers);
        }
        let size = match self.head_dim {
            Some(size) => size,
            None => divide(hidden, self.num_attention_heads, "the hidden size")?,
        };
        let kv_heads = self.num_key_value_heads.unwrap_or(self.num_attention_heads);
        let kv_heads = if kv_heads < tp { 1 } else { divide(kv_heads, tp, "the key-value heads")? };
        let mut layers = if fused {
            vec![layer("qkv", hidden, (heads + 2 * kv_heads) * size)]
        } else {
            vec![layer("q", hidden, heads * size), layer("kv", hidden, kv_heads * size)]
        };
        layers.push(layer("o", heads * size, hidden));
        Ok(layers)
    }

    fn experts(&self) -> Option<u64> {
        self.n_routed_experts.or(self.num_experts).or(self.num_local_experts).filter(|experts| *experts > 0)
    }

    /// Rows of an expert if tokens are distributed evenly.
    fn rows_per_expert(&self, tokens: u64) -> Result<u64, ShapeError> {
        let active = self.num_experts_per_tok.or(self.experts_per_token).ok_or(missing_key("num_experts_per_tok"))?;
        let experts = self.experts().ok_or(missing_key("num_experts"))?;
        Ok(tokens.saturating_mul(active).div_ceil(experts))
    }
}

fn missing_key(key: &'static str) -> ShapeError {
    ShapeError::MissingKey { key }
}

fn divide(size: u64, parts: u64, what: &'static str) -> Result<u64, ShapeError> {
    if size % parts == 0 { Ok(size / parts) } else { Err(ShapeError::NotDivisible { what, size, parts }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MAX_SIZE, ShapeSource};

    const CONFIGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/models");

    /// `name m k n` of each shape without the name of the model.
    fn listing(model: &str, parameters: &str) -> Vec<String> {
        let yaml = format!("{{name: model, config: {model}.json, {parameters}}}");
        let source: ShapeSource = serde_yaml::from_str(&yaml).unwrap();
        let shapes = source.shapes_in(Path::new(CONFIGS)).unwrap();
        let line = |shape: &NamedShape| {
            let name = shape.name.strip_prefix(&format!("{model}.")).unwrap();
            format!("{name} {} {}", shape.shape.k(), shape.shape.n())
        };
        shapes.iter().map(line).collect()
    }

    fn error(text: &str, parameters: &str) -> ShapeError {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), text).unwrap();
        let source: ShapeSource =
            serde_yaml::from_str(&format!("{{name: model, config: config.json, {parameters}}}")).unwrap();
        source.shapes_in(folder.path()).unwrap_err()
    }

    #[test]
    fn dense_layers_follow_from_the_configuration() {
        let expected = [
            "qkv_m1 4096 6144",
            "o_m1 4096 4096",
            "gate_up_m1 4096 28672",
            "down_m1 14336 4096",
            "head_m1 4096 128256",
        ];
        assert_eq!(listing("llama-3.1-8b", "tokens: 1"), expected);
        let expected = [
            "q_tp2_m8 5120 4096",
            "kv_tp2_m8 5120 512",
            "o_tp2_m8 4096 5120",
            "gate_tp2_m8 5120 12800",
            "down_tp2_m8 12800 5120",
        ];
        let layers = "layers: [q, kv, o, gate, down]";
        assert_eq!(listing("qwen3-32b", &format!("tokens: [8], tp: 2, fused: false, {layers}")), expected);
    }

    #[test]
    fn low_rank_attention_and_experts_follow_from_the_configuration() {
        let expected = [
            "q_kv_a_m256 7168 2112",
            "q_b_m256 1536 24576",
            "kv_b_m256 512 32768",
            "o_m256 16384 7168",
            "gate_up_m256 7168 36864",
            "down_m256 18432 7168",
            "expert_gate_up_m8 7168 4096",
            "expert_down_m8 2048 7168",
            "shared_gate_up_m256 7168 4096",
            "shared_down_m256 2048 7168",
            "router_m256 7168 256",
            "head_m256 7168 129280",
        ];
        assert_eq!(listing("deepseek-v3", "tokens: 256"), expected);
        let experts = "tokens: [1, 64], layers: [expert_gate_up, shared_down]";
        assert_eq!(
            listing("llama-4-scout", experts),
            [
                "expert_gate_up_m1 5120 16384",
                "expert_gate_up_m4 5120 16384",
                "shared_down_m1 8192 5120",
                "shared_down_m64 8192 5120"
            ]
        );
    }

    #[test]
    fn layers_of_decode_follow_from_the_configurations() {
        for (decode, model) in [
            ("llama3_8b", "llama-3.1-8b"),
            ("llama3_70b", "llama-3.1-70b"),
            ("qwen3_32b", "qwen3-32b"),
            ("gemma3_27b", "gemma-3-27b"),
            ("deepseek_v3", "deepseek-v3"),
        ] {
            let layers = ["true", "false"].map(|fused| listing(model, &format!("tokens: 1, fused: {fused}"))).concat();
            for line in super::super::listing(&format!("{{name: decode, models: [{decode}], m: [1]}}")) {
                let sizes = line.split_once(' ').unwrap().1.strip_prefix("1 ").unwrap().to_owned();
                assert!(layers.iter().any(|layer| layer.ends_with(&format!(" {sizes}"))), "{line}: {layers:?}");
            }
        }
    }

    #[test]
    fn key_value_heads_are_replicated_on_many_devices() {
        // Eight query heads and one of four key-value heads.
        assert_eq!(listing("qwen3-30b-a3b", "tokens: 1, tp: [8], layers: [qkv]"), ["qkv_tp8_m1 2048 768"]);
    }

    #[test]
    fn layers_of_equal_size_are_one_shape() {
        // Queries and outputs of Llama are square.
        assert_eq!(listing("llama-3.1-8b", "tokens: 1, fused: false, layers: [q, o]"), ["q_m1 4096 4096"]);
    }

    #[test]
    fn all_configurations_of_the_folder_have_shapes() {
        let files: Vec<_> = std::fs::read_dir(CONFIGS).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() >= 15, "{files:?}");
        for file in files {
            let model = file.file_stem().unwrap().to_str().unwrap().to_owned();
            assert!(listing(&model, "tokens: [1, 4096]").len() >= 10, "{model}");
        }
    }

    #[test]
    fn language_models_are_found_among_several_modalities() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"text_config": {"hidden_size": 8, "num_attention_heads": 2, "vocab_size": 32, "intermediate_size": 16}}"#;
        std::fs::write(folder.path().join("c.json"), text).unwrap();
        let source: ShapeSource =
            serde_yaml::from_str("{name: model, config: c.json, tokens: 3, layers: [qkv, head]}").unwrap();
        let shapes: Vec<String> =
            source.shapes_in(folder.path()).unwrap().iter().map(|s| s.shape.to_string()).collect();
        assert_eq!(shapes, ["m3-k8-n24", "m3-k8-n32"]);
    }

    #[test]
    fn invalid_configurations_are_refused() {
        let heads = |count: u64| {
            format!(
                r#"{{"hidden_size": 576, "num_attention_heads": {count}, "vocab_size": 9, "intermediate_size": 8}}"#
            )
        };
        assert_eq!(
            error(&heads(9), "tp: 2"),
            ShapeError::NotDivisible { what: "the attention heads", size: 9, parts: 2 }
        );
        let bounds = size_bounds("num_attention_heads");
        for size in [0, MAX_SIZE + 1] {
            assert_eq!(error(&heads(size), ""), bounds.reject(size));
        }
        let no_mlp = r#"{"hidden_size": 8, "num_attention_heads": 2, "vocab_size": 9}"#;
        assert_eq!(error(no_mlp, ""), ShapeError::MissingKey { key: "intermediate_size" });
        let experts = r#"{"hidden_size": 8, "num_attention_heads": 2, "vocab_size": 9, "intermediate_size": 8, "num_experts": 4}"#;
        assert_eq!(error(experts, ""), ShapeError::MissingKey { key: "num_experts_per_tok" });
        for text in ["{}", "[1]", "{\"hidden_size\": -1", "\u{0}"] {
            assert!(matches!(error(text, ""), ShapeError::Unreadable { .. }), "{text}");
        }
    }
}
