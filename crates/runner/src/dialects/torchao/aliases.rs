//! Alternative names of keys in torchao files. serde does not expose its aliases.

/// Our key, and its alternative name.
pub(crate) const ALIASES: [(&str, &str); 10] = [
    ("mode", "benchmark_mode"),
    ("recipes", "quantization_config_recipe_names"),
    ("recipes", "quantizations"),
    ("sparsities", "sparsity_config_recipe_names"),
    ("models", "model_params"),
    ("shapes", "matrix_shapes"),
    ("dtype", "high_precision_dtype"),
    ("dtype", "precision"),
    ("model", "model_type"),
    ("torch_compile_mode", "compile"),
];
