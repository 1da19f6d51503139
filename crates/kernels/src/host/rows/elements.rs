//! Numbers out of numbers, each for itself.

use super::functions::{coarse_gelu, gelu, gelu_tanh, sigmoid, silu};
use super::pass::{Number, RowFunction};
use crate::host::lanes::Lanes;

macro_rules! of_one {
    ($name:ident, $function:expr) => {
        #[derive(Clone, Copy)]
        pub struct $name;

        impl RowFunction<1, 0, 1> for $name {
            #[inline(always)]
            fn row<L: Lanes, N: Number>(self, lanes: L, [x]: [&[N]; 1], []: [&[f32]; 0], [y]: [&mut [f32]; 1]) {
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = $function(lanes, x.wide()));
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
            fn row<L: Lanes, N: Number>(self, lanes: L, [a, b]: [&[N]; 2], []: [&[f32]; 0], [y]: [&mut [f32]; 1]) {
                y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (&a, &b))| *y = $function(lanes, a.wide(), b.wide()));
            }
        }
    };
}

/// A number times a factor, and another number.
#[derive(Clone, Copy)]
pub struct Axpy {
    pub factor: f32,
}

impl RowFunction<2, 0, 1> for Axpy {
    #[inline(always)]
    fn row<L: Lanes, N: Number>(self, _: L, [a, b]: [&[N]; 2], []: [&[f32]; 0], [y]: [&mut [f32]; 1]) {
        y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (&a, &b))| *y = self.factor * a.wide() + b.wide());
    }
}

of_one!(Gelu, gelu);
of_one!(CoarseGelu, coarse_gelu);
of_one!(GeluTanh, gelu_tanh);
of_one!(Silu, silu);
of_one!(Sigmoid, sigmoid);
of_two!(SiluMul, |lanes, a, b| silu(lanes, a) * b);
of_two!(Add, |_, a: f32, b: f32| a + b);
