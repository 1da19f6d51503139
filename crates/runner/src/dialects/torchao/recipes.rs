//! Recipe names of torchao's accuracy tables, accepted but not listed.

/// Accepted names.
pub(crate) const RECIPES: [&str; 4] =
    ["int8_rowwise", "int8_rowwise_weight_only", "float8_rowwise", "int4_groupwise_hqq_weight_only"];

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_recipes::Recipe;

    #[test]
    fn torchao_recipe_names_parse() {
        assert!(RECIPES.iter().all(|name| name.parse::<Recipe>().is_ok()));
    }
}
