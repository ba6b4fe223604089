use super::*;
use whit_noise::fit::chi_square_p_value;

fn random(count: usize, dimension: usize, seed: u64) -> Vec<f32> {
    let mut entropy = Replay::new(seed);
    (0..count * dimension).map(|_| entropy.bits(24) as f32 / 2f32.powi(23) - 1.0).collect()
}

fn settings(clusters: u32, iterations: u32, seed: u64) -> Settings {
    Settings { clusters, iterations, seed, threads: 2 }
}

/// The sum of squared distances to the nearest centroid, point by point, in double precision.
fn objective(points: &[f32], centroids: &[f32], dimension: usize) -> f64 {
    let nearest = |point: &[f32]| {
        centroids.chunks(dimension).map(|centroid| squared_distance(point, centroid)).fold(f64::INFINITY, f64::min)
    };
    points.chunks(dimension).map(nearest).sum()
}

/// Lloyd's iterations as a textbook has them, from the same seeds.
fn naive(points: &[f32], dimension: usize, mut centroids: Vec<f32>, iterations: u32) -> Vec<f32> {
    for _ in 0..iterations {
        let k = centroids.len() / dimension;
        let (mut sums, mut counts) = (vec![0.0_f64; centroids.len()], vec![0.0; k]);
        for point in points.chunks(dimension) {
            let distance = |c: &usize| squared_distance(point, &centroids[c * dimension..][..dimension]);
            let nearest = (0..k).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap();
            counts[nearest] += 1.0;
            (0..dimension).for_each(|j| sums[nearest * dimension + j] += f64::from(point[j]));
        }
        for c in 0..k {
            assert!(counts[c] > 0.0, "this test has no empty clusters");
            (0..dimension).for_each(|j| centroids[c * dimension + j] = (sums[c * dimension + j] / counts[c]) as f32);
        }
    }
    centroids
}

#[test]
fn it_agrees_with_the_textbook() {
    for (count, dimension, clusters) in [(60, 2, 4), (500, 7, 12), (900, 3, 30)] {
        let values = random(count, dimension, 5);
        let points = || Points::new(values.clone(), dimension).unwrap();
        let seeds = cluster(points(), settings(clusters, 0, 11), &mut |_| ()).unwrap();
        let found = cluster(points(), settings(clusters, 6, 11), &mut |_| ()).unwrap();
        let expected = naive(&values, dimension, seeds.centroids, found.iterations);
        let gap = found.centroids.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(gap < 1e-4, "{count} points in {clusters} clusters: centroids are {gap} apart");
        let exact = objective(&values, &found.centroids, dimension);
        assert!((found.objective / exact - 1.0).abs() < 1e-5, "{} and {exact}", found.objective);
        // Each point is in the cluster of its nearest centroid.
        for (point, &own) in values.chunks(dimension).zip(&found.cluster_of) {
            let own = squared_distance(point, &found.centroids[own as usize * dimension..][..dimension]);
            let nearest =
                found.centroids.chunks(dimension).map(|c| squared_distance(point, c)).fold(f64::INFINITY, f64::min);
            assert!(own <= nearest + 1e-5);
        }
    }
}

/// Also where points are far from 0 and where clusters run empty: many points in few places, and more clusters than places hold.
#[test]
fn the_objective_never_rises() {
    let mut repeated = random(40, 3, 9);
    repeated = repeated.iter().copied().cycle().take(40 * 3 * 20).collect();
    let far: Vec<f32> = random(800, 3, 3).iter().map(|x| x + 1000.0).collect();
    for (values, clusters) in [(random(2000, 3, 1), 50), (repeated, 39), (far, 60)] {
        for seed in 0..5 {
            let mut seen: Vec<f64> = Vec::new();
            let points = Points::new(values.clone(), 3).unwrap();
            let found = cluster(points, settings(clusters, 15, seed), &mut |step| {
                if let Progress::Iteration { objective, .. } = step {
                    seen.push(objective);
                }
            })
            .unwrap();
            let slack = 1e-5 * seen[0] + 1e-4;
            assert!(seen.windows(2).all(|pair| pair[1] <= pair[0] + slack), "seed {seed}: {seen:?}");
            let mut used = found.cluster_of.clone();
            used.sort_unstable();
            used.dedup();
            assert!(used.len() as u32 == clusters, "seed {seed}: {} of {clusters} clusters are used", used.len());
        }
    }
}

#[test]
fn separated_clusters_are_recovered() {
    for seed in 0..20 {
        let noise = random(300, 4, seed);
        let values: Vec<f32> =
            noise.iter().enumerate().map(|(i, x)| x + 40.0 * ((i / 4 % 10 + i % 4 * 3) % 10) as f32).collect();
        let found = cluster(Points::new(values, 4).unwrap(), settings(10, 20, seed), &mut |_| ()).unwrap();
        for (i, own) in found.cluster_of.iter().enumerate() {
            assert_eq!(*own, found.cluster_of[i % 10], "seed {seed}: point {i} is with others of its kind");
        }
        assert_eq!(found.cluster_of[..10].iter().collect::<std::collections::BTreeSet<_>>().len(), 10);
    }
}

#[test]
fn a_seed_makes_it_again_whatever_the_threads() {
    let run = |seed, threads| {
        let points = Points::new(random(700, 5, 2), 5).unwrap();
        cluster(points, Settings { threads, ..settings(20, 5, seed) }, &mut |_| ()).unwrap()
    };
    assert_eq!(run(3, 1), run(3, 4));
    assert_ne!(run(3, 1).cluster_of, run(4, 1).cluster_of);
}

/// The probability of each set of `take` seeds among points on a line, by k-means++, exactly: over all orders of them.
/// With `stale`, seeds five and six are both drawn by the distances to the first four, and six must only differ from five.
fn law(points: &[f64], take: usize, stale: bool) -> Vec<f64> {
    fn walk(points: &[f64], chosen: &mut Vec<usize>, chance: f64, take: usize, stale: bool, law: &mut [f64]) {
        if chosen.len() == take {
            law[chosen.iter().map(|i| 1 << i).sum::<usize>()] += chance;
            return;
        }
        let known = if stale && chosen.len() == 5 { 4 } else { chosen.len() };
        let weight = |i: usize| {
            if chosen.contains(&i) {
                return 0.0;
            }
            chosen[..known].iter().map(|&c| (points[i] - points[c]).powi(2)).fold(f64::INFINITY, f64::min).min(1e9)
        };
        let weights: Vec<f64> = (0..points.len()).map(weight).collect();
        let total: f64 = weights.iter().sum();
        for (i, weight) in weights.into_iter().enumerate() {
            if weight > 0.0 {
                chosen.push(i);
                walk(points, chosen, chance * weight / total, take, stale, law);
                chosen.pop();
            }
        }
    }
    let mut law = vec![0.0; 1 << points.len()];
    walk(points, &mut Vec::new(), 1.0, take, stale, &mut law);
    law
}

/// Chi-square on 30,000 seedings of six centres among eight points, of which the last two come in one batch: correct
/// seeds fail once in 10⁶ runs, and a batch whose members do not know of one another is caught.
#[test]
fn batches_have_the_law_of_one_centre_at_a_time() {
    let line = [0.0, 0.3, 1.0, 1.2, 3.0, 3.1, 3.2, 6.0];
    let mut counts = vec![0_u64; 256];
    for seed in 0..30_000 {
        let points = Points::new(line.iter().map(|&x| x as f32).collect(), 1).unwrap();
        let found = cluster(points, Settings { threads: 1, ..settings(6, 0, seed) }, &mut |_| ()).unwrap();
        let set = |c: &f32| line.iter().position(|x| (*x as f32 - c).abs() < 1e-5).unwrap();
        counts[found.centroids.iter().map(|c| 1 << set(c)).sum::<usize>()] += 1;
    }
    let p_value = |law: &[f64]| {
        let cells: Vec<usize> = (0..256).filter(|&cell| law[cell] > 0.0).collect();
        let expected: Vec<f64> = cells.iter().map(|&cell| law[cell] * 30_000.0).collect();
        chi_square_p_value(&cells.iter().map(|&cell| counts[cell]).collect::<Vec<_>>(), &expected)
    };
    let (good, stale) = (p_value(&law(&line, 6, false)), p_value(&law(&line, 6, true)));
    assert!(good > 1e-6, "{good}");
    assert!(stale < 1e-6, "{stale}");
}

#[test]
fn what_cannot_be_clustered_is_said() {
    let points = |values: &[f32]| Points::new(values.to_vec(), 1);
    assert_eq!(points(&[]).unwrap_err(), KmeansError::Nothing);
    assert_eq!(points(&[1.0, f32::NAN]).unwrap_err(), KmeansError::NotFinite(2));
    assert!(Points::new(vec![1.0; 5], 2).is_err());
    let same = cluster(points(&[4.0, 4.0, 5.0]).unwrap(), settings(3, 5, 1), &mut |_| ()).unwrap_err();
    assert_eq!(same.to_string(), "3 clusters were asked for and only 2 different vectors are there: ask for at most 2");
    assert_eq!(cluster(points(&[1.0]).unwrap(), settings(0, 5, 1), &mut |_| ()).unwrap_err(), KmeansError::None);
    let one = cluster(points(&[4.0, 6.0]).unwrap(), settings(1, 5, 1), &mut |_| ()).unwrap();
    assert_eq!((one.centroids, one.objective), (vec![5.0], 2.0));
}
