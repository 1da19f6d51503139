//! Element-wise operators.

use super::functions::{coarse_gelu, gelu, gelu_tanh, sigmoid, silu};
use super::pass::{FloatElement, RowFunction};
use crate::host::float_simd::FloatSimd;

macro_rules! of_one {
    ($name:ident, $function:expr) => {
        #[derive(Clone, Copy)]
        pub(crate) struct $name;

        impl RowFunction<1, 0, 1> for $name {
            #[inline(always)]
            fn row<L: FloatSimd, N: FloatElement>(
                self,
                lanes: L,
                [x]: [&[N]; 1],
                []: [&[f32]; 0],
                [y]: [&mut [f32]; 1],
            ) {
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = $function(lanes, x.to_f32()));
            }
        }
    };
}

macro_rules! of_two {
    ($name:ident, $function:expr) => {
        #[derive(Clone, Copy)]
        pub(crate) struct $name;

        impl RowFunction<2, 0, 1> for $name {
            #[inline(always)]
            fn row<L: FloatSimd, N: FloatElement>(
                self,
                lanes: L,
                [a, b]: [&[N]; 2],
                []: [&[f32]; 0],
                [y]: [&mut [f32]; 1],
            ) {
                y.iter_mut()
                    .zip(a.iter().zip(b))
                    .for_each(|(y, (&a, &b))| *y = $function(lanes, a.to_f32(), b.to_f32()));
            }
        }
    };
}

/// y = factor * a + b.
#[derive(Clone, Copy)]
pub(super) struct Axpy {
    pub factor: f32,
}

impl RowFunction<2, 0, 1> for Axpy {
    #[inline(always)]
    fn row<L: FloatSimd, N: FloatElement>(self, _: L, [a, b]: [&[N]; 2], []: [&[f32]; 0], [y]: [&mut [f32]; 1]) {
        y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (&a, &b))| *y = self.factor * a.to_f32() + b.to_f32());
    }
}

of_one!(Gelu, gelu);
of_one!(CoarseGelu, coarse_gelu);
of_one!(GeluTanh, gelu_tanh);
of_one!(Silu, silu);
of_one!(Sigmoid, sigmoid);
of_two!(SiluMul, |lanes, a, b| silu(lanes, a) * b);
of_two!(Add, |_, a: f32, b: f32| a + b);
