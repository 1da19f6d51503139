//! Numbers out of numbers, each for itself.

use super::functions::{gelu, gelu_tanh, sigmoid, silu};
use super::pass::RowFunction;

macro_rules! of_one {
    ($name:ident, $function:expr) => {
        #[derive(Clone, Copy)]
        pub struct $name;

        impl RowFunction<1, 0, 1> for $name {
            #[inline(always)]
            fn row(self, [x]: [&[f32]; 1], []: [&[f32]; 0], [y]: [&mut [f32]; 1]) {
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = $function(x));
            }
        }
    };
}

macro_rules! of_two {
    ($name:ident, $function:expr) => {
        #[derive(Clone, Copy)]
        pub struct $name;

        impl RowFunction<2, 0, 1> for $name {
            #[inline(always)]
            fn row(self, [a, b]: [&[f32]; 2], []: [&[f32]; 0], [y]: [&mut [f32]; 1]) {
                y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (&a, &b))| *y = $function(a, b));
            }
        }
    };
}

of_one!(Gelu, gelu);
of_one!(GeluTanh, gelu_tanh);
of_one!(Silu, silu);
of_one!(Sigmoid, sigmoid);
of_two!(SiluMul, |a, b| silu(a) * b);
of_two!(Add, |a: f32, b: f32| a + b);
