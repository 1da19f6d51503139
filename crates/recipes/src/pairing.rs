//! Which recipes go with which sparsities.

use crate::{Recipe, Sparsity};

/// Every recipe alone; semi-structured sparsity with the recipes whose kernels know it; block sparsity with the baseline.
pub fn pair(recipes: &[Recipe], sparsities: &[Sparsity]) -> Vec<(Recipe, Option<Sparsity>)> {
    let mut pairs: Vec<(Recipe, Option<Sparsity>)> = Vec::new();
    let mut push = |pair| {
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    };
    for &recipe in recipes {
        push((recipe, None));
        for &sparsity in sparsities {
            if sparsity == Sparsity::SemiStructured && takes_semi_structured(recipe) {
                push((recipe, Some(sparsity)));
            }
        }
    }
    if sparsities.contains(&Sparsity::Block) {
        push((Recipe::BASELINE, Some(Sparsity::Block)));
    }
    pairs
}

fn takes_semi_structured(recipe: Recipe) -> bool {
    let name = recipe.to_string();
    recipe == Recipe::BASELINE || ["marlin", "int8dq", "float8dq"].iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paired(recipes: &[&str], sparsities: &[&str]) -> Vec<String> {
        let recipes: Vec<Recipe> = recipes.iter().map(|r| r.parse().unwrap()).collect();
        let sparsities: Vec<Sparsity> = sparsities.iter().map(|s| s.parse().unwrap()).collect();
        pair(&recipes, &sparsities)
            .into_iter()
            .map(|(recipe, sparsity)| sparsity.map_or_else(|| recipe.to_string(), |s| format!("{recipe}+{s}")))
            .collect()
    }

    #[test]
    fn pairs_follow_the_rules_in_the_order_of_the_file() {
        for (recipes, sparsities, expected) in [
            (&["int8wo"][..], &["semi-sparse", "block"][..], &["int8wo", "baseline+block"][..]),
            (&["baseline", "int8wo"], &["semi-sparse"], &["baseline", "baseline+semi-sparse", "int8wo"]),
            (&["marlin", "baseline"], &["2:4"], &["marlin", "marlin+semi-sparse", "baseline", "baseline+semi-sparse"]),
            (&["int8dq", "float8dq-row"], &["block"], &["int8dq", "float8dq-row", "baseline+block"]),
            (&["int8wo", "int8wo"], &[], &["int8wo"]),
        ] {
            assert_eq!(paired(recipes, sparsities), expected);
        }
    }

    #[test]
    fn the_text_none_is_no_sparsity() {
        assert!("None".parse::<Sparsity>().is_err());
    }
}
