//! calorimeter-examples
