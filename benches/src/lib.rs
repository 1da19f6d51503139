//! calorimeter-benches
