//! A line of a plot: its points, thinned to what a screen can show without losing a peak, as an SVG path.

use crate::numbers::known;

/// How two points are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// A value applies until the next point: bins by their start.
    StepAfter,
    /// A value applies since the previous point: intervals by their end, percentiles.
    StepBefore,
    /// A straight line between points: samples of a state.
    Straight,
}

/// A line of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Number of its colour and dashes, 1 to [`super::MOST_LINES`].
    pub style: usize,
    /// How the points are joined.
    pub join: Join,
    /// Points by ascending x; `None` is a gap.
    pub points: Vec<(f64, Option<f64>)>,
    /// Texts for the readings of the plot; empty where there is no value.
    pub readings: Vec<String>,
    /// Lower edge of a band below the line, joined in the same way as the line; empty without a band.
    pub lower: Vec<(f64, Option<f64>)>,
    /// Intervals around points: x, lower end, upper end.
    pub intervals: Vec<(f64, f64, f64)>,
    /// Whether each point has a mark. For lines with few points, which are read individually.
    pub is_marked: bool,
}

impl Line {
    /// A line without intervals and marks.
    pub fn plain(name: &str, style: usize, join: Join, points: Vec<(f64, Option<f64>)>, readings: Vec<String>) -> Line {
        Line {
            name: name.to_string(),
            style,
            join,
            points: with_gaps(points),
            readings,
            lower: Vec::new(),
            intervals: Vec::new(),
            is_marked: false,
        }
    }

    /// Adds a band below the line, down to these points.
    pub fn with_lower(self, lower: Vec<(f64, Option<f64>)>) -> Line {
        Line { lower: with_gaps(lower), ..self }
    }
}

/// Points whose values are numbers; the others are gaps.
fn with_gaps(points: Vec<(f64, Option<f64>)>) -> Vec<(f64, Option<f64>)> {
    points.into_iter().map(|(x, y)| (x, known(y))).collect()
}

/// For each column of pixels, keeps the first, lowest, highest and last point, and each gap. `points` are in pixels.
pub fn thinned(points: &[(f64, Option<f64>)]) -> Vec<(f64, Option<f64>)> {
    let mut kept = Vec::new();
    let mut start = 0;
    while start < points.len() {
        let column = points[start].0.floor();
        let is_gap = points[start].1.is_none();
        let same = |point: &(f64, Option<f64>)| point.0.floor() == column && point.1.is_none() == is_gap;
        let length = points[start..].iter().take_while(|point| same(point)).count();
        let run = &points[start..start + length];
        if is_gap {
            kept.push(run[0]);
        } else {
            let value = |index: &usize| run[*index].1.unwrap_or(0.0);
            let lowest = (0..length).min_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or(0);
            let highest = (0..length).max_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or(0);
            let mut indices = [0, lowest, highest, length - 1];
            indices.sort_unstable();
            for (position, index) in indices.iter().enumerate() {
                if position == 0 || indices[position - 1] != *index {
                    kept.push(run[*index]);
                }
            }
        }
        start += length;
    }
    kept
}

/// The `d` attribute of an SVG path through points in pixels.
pub fn path(points: &[(f64, Option<f64>)], join: Join) -> String {
    let mut text = String::new();
    let mut before: Option<(f64, f64)> = None;
    for (x, y) in points {
        let Some(y) = y else {
            // A gap ends the last value at its position.
            if let (Some((last_x, _)), Join::StepAfter) = (before, join)
                && last_x != *x
            {
                text.push_str(&format!("H{}", pixel(*x)));
            }
            before = None;
            continue;
        };
        match before {
            None => text.push_str(&format!("M{} {}", pixel(*x), pixel(*y))),
            Some((last_x, last_y)) => match join {
                Join::Straight => text.push_str(&format!("L{} {}", pixel(*x), pixel(*y))),
                Join::StepAfter => text.push_str(&steps(&[('H', *x, last_x), ('V', *y, last_y)])),
                Join::StepBefore => text.push_str(&steps(&[('V', *y, last_y), ('H', *x, last_x)])),
            },
        }
        before = Some((*x, *y));
    }
    text
}

/// The `d` attribute of the area between two lines in pixels that are joined in the same way; gaps are left out.
pub fn area(upper: &[(f64, Option<f64>)], lower: &[(f64, Option<f64>)], join: Join) -> String {
    let known = |points: &[(f64, Option<f64>)]| points.iter().copied().filter(|(_, y)| y.is_some()).collect::<Vec<_>>();
    let (upper, mut lower) = (known(upper), known(lower));
    if upper.is_empty() || lower.is_empty() {
        return String::new();
    }
    lower.reverse();
    // In reverse order, a value that applies since the previous point applies until the next one.
    let back = match join {
        Join::StepAfter => Join::StepBefore,
        Join::StepBefore => Join::StepAfter,
        Join::Straight => Join::Straight,
    };
    format!("{}{}Z", path(&upper, join), path(&lower, back).replacen('M', "L", 1))
}

/// Horizontal and vertical moves; moves of length 0 are left out.
fn steps(moves: &[(char, f64, f64)]) -> String {
    let mut text = String::new();
    for (letter, to, from) in moves {
        let (to, from) = (pixel(*to), pixel(*from));
        if to != from {
            text.push(*letter);
            text.push_str(&to);
        }
    }
    text
}

/// A coordinate with at most one decimal.
pub fn pixel(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_goes_along_one_line_and_back_along_the_other() {
        let upper = [(0.0, Some(1.0)), (10.0, Some(2.0)), (12.0, None)];
        let lower = [(0.0, Some(5.0)), (10.0, Some(6.0))];
        assert_eq!(area(&upper, &lower, Join::StepBefore), "M0 1V2H10L10 6H0V5Z");
        assert_eq!(area(&upper, &lower, Join::Straight), "M0 1L10 2L10 6L0 5Z");
        assert_eq!(area(&upper, &[], Join::Straight), "");
    }

    #[test]
    fn thinning_keeps_the_peak_and_the_gap() {
        let mut points: Vec<(f64, Option<f64>)> =
            (0..10_000).map(|index| (f64::from(index) / 100.0, Some(f64::from(index % 7)))).collect();
        points[5_050].1 = Some(1_000.0);
        points[7_001].1 = None;
        let kept = thinned(&points);
        assert!(kept.len() <= 4 * 100 + 4, "{}", kept.len());
        assert!(kept.contains(&(50.5, Some(1_000.0))));
        assert!(kept.contains(&points[7_001]));
        assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
        assert!(kept.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }

    #[test]
    fn a_value_that_is_no_number_is_a_gap() {
        let points = vec![(0.0, Some(1.0)), (1.0, Some(f64::NAN)), (2.0, Some(f64::INFINITY))];
        let line = Line::plain("", 1, Join::Straight, points.clone(), Vec::new()).with_lower(points);
        assert_eq!(line.points, [(0.0, Some(1.0)), (1.0, None), (2.0, None)]);
        assert_eq!(line.lower, line.points);
    }

    #[test]
    fn few_points_are_kept_as_they_are() {
        let points = [(0.0, Some(1.0)), (1.0, None), (2.0, Some(3.0))];
        assert_eq!(thinned(&points), points);
    }

    #[test]
    fn steps_hold_after_or_before_their_point() {
        let points = [(0.0, Some(5.0)), (10.0, Some(7.0))];
        assert_eq!(path(&points, Join::StepAfter), "M0 5H10V7");
        assert_eq!(path(&points, Join::StepBefore), "M0 5V7H10");
        assert_eq!(path(&points, Join::Straight), "M0 5L10 7");
    }

    #[test]
    fn a_gap_breaks_the_line_and_is_not_drawn_as_zero() {
        let points = [(0.0, Some(5.0)), (10.0, None), (20.0, Some(7.0)), (30.0, Some(7.0))];
        assert_eq!(path(&points, Join::StepAfter), "M0 5H10M20 7H30");
        assert_eq!(path(&points, Join::Straight), "M0 5M20 7L30 7");
    }
}
