//! Medians, percentiles and other summaries of a few numbers.

use std::time::Duration;

/// Nearest-rank percentile of unsorted samples; `None` without samples.
pub(crate) fn percentile(samples: &mut [Duration], percent: usize) -> Option<Duration> {
    samples.sort_unstable();
    let rank = (samples.len() * percent).div_ceil(100).max(1);
    samples.get(rank - 1).copied()
}

/// The middle value, or the mean of the two middle ones.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// Interquartile range relative to the median: a measure of its reliability.
pub(crate) fn spread(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = median(values)?;
    let low = sorted[sorted.len() / 4];
    let high = sorted[(sorted.len() * 3 / 4).min(sorted.len() - 1)];
    (middle > 0.0).then(|| (high - low) / middle)
}

/// Median of `a / b`, pair by pair: both values of a pair were measured in one round, under the same load.
pub(crate) fn median_ratio(a: &[f64], b: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = a.iter().zip(b).filter(|(_, b)| **b > 0.0).map(|(a, b)| a / b).collect();
    median(&ratios)
}

pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(actual: Option<f64>, expected: f64) -> bool {
        actual.is_some_and(|actual| (actual - expected).abs() < 1e-9)
    }

    #[test]
    fn median_takes_the_middle_or_the_mean_of_two() {
        assert!(near(median(&[3.0, 1.0, 2.0]), 2.0));
        assert!(near(median(&[4.0, 1.0, 2.0, 3.0]), 2.5));
        assert!(near(median(&[7.0]), 7.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn percentile_is_nearest_rank() {
        let mut samples: Vec<Duration> = (1..=10).rev().map(Duration::from_micros).collect();
        assert_eq!(percentile(&mut samples, 50), Some(Duration::from_micros(5)));
        assert_eq!(percentile(&mut samples, 99), Some(Duration::from_micros(10)));
        assert_eq!(percentile(&mut samples, 0), Some(Duration::from_micros(1)));
        assert_eq!(percentile(&mut [], 50), None);
    }

    #[test]
    fn ratios_are_paired_by_round() {
        // The second round ran under load: both are slow, and the ratio is unchanged.
        assert!(near(median_ratio(&[2.0, 20.0, 2.0], &[1.0, 10.0, 1.0]), 2.0));
        assert_eq!(median_ratio(&[1.0], &[0.0]), None);
    }

    #[test]
    fn spread_is_the_quartiles_distance() {
        assert!(near(spread(&[10.0; 8]), 0.0));
        assert!(near(spread(&[8.0, 9.0, 10.0, 11.0, 12.0]), 0.2));
    }
}
