//! Statistics of a list of measurements.

/// Names of the statistics, in column order.
pub(super) const STATISTIC_NAMES: [&str; 8] = ["p50", "p90", "p95", "p99", "avg", "max", "num_runs", "min"];

/// Sorted, nonempty list of measurements.
pub(super) struct SortedValues(Vec<f64>);

impl SortedValues {
    /// Sorts the values; `None` for an empty list.
    pub(super) fn new(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then_some(Self(values))
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Mean, computed from distances to the minimum, so that the mean of equal values is exact.
    pub(super) fn mean(&self) -> f64 {
        let (least, _) = self.min_max();
        least + self.0.iter().map(|value| value - least).sum::<f64>() / self.len() as f64
    }

    /// Standard deviation with the divisor n, not n - 1.
    pub(super) fn deviation(&self) -> f64 {
        let mean = self.mean();
        (self.0.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / self.len() as f64).sqrt()
    }

    /// Minimum and maximum.
    pub(super) fn min_max(&self) -> (f64, f64) {
        (self.0[0], self.0[self.len() - 1])
    }

    /// Percentile with linear interpolation, in NumPy's order of operations.
    pub(super) fn percentile(&self, percent: f64) -> f64 {
        let place = percent / 100.0 * (self.len() - 1) as f64;
        let (below, above) = (self.0[place.floor() as usize], self.0[place.ceil() as usize]);
        let part = place.fract();
        if part < 0.5 { below + (above - below) * part } else { above - (above - below) * (1.0 - part) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_equal_numpy() {
        // numpy.percentile([4, 1, 3, 2, 10], …)
        let sorted = SortedValues::new(vec![4.0, 1.0, 3.0, 2.0, 10.0]).unwrap();
        for (percent, expected) in
            [(0.0, 1.0), (10.0, 1.4), (50.0, 3.0), (90.0, 7.6), (95.0, 8.8), (99.0, 9.76), (100.0, 10.0)]
        {
            assert!((sorted.percentile(percent) - expected).abs() < 1e-12, "p{percent}");
        }
        assert_eq!((sorted.mean(), sorted.min_max(), sorted.len()), (4.0, (1.0, 10.0), 5));
        assert_eq!(SortedValues::new(vec![0.1; 300]).unwrap().mean(), 0.1);
        assert_eq!(SortedValues::new(vec![7.0]).unwrap().percentile(99.0), 7.0);
        assert!(SortedValues::new(vec![]).is_none());
    }
}
