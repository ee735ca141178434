//! Tests of `report::timeline`: simulated times of meshes that wait for each other.

use spmdc_abi::Site;
use spmdc_compiler::report::timeline::{ChannelTime, TimedStep, add_loop, add_work, limit_of, simulated};

const LATENCY: f64 = 300.0;

/// A transfer between meshes on the same hosts.
const NEAR: ChannelTime = ChannelTime { value: LATENCY, notice: LATENCY };

fn site(line: u32) -> Site {
    Site { file: 0, line, column: 1 }
}

/// A stage that takes a value of `from`, works, and sends one to `to`, in each trip.
fn stage(from: Option<usize>, work: f64, to: Option<usize>, trips: u64) -> Vec<TimedStep> {
    let receive = from.map(|channel| TimedStep::Receive { channel, time: 0.0 });
    let send = to.map(|channel| TimedStep::Send { channel, time: 0.0 });
    let body = receive.into_iter().chain([TimedStep::Work(work)]).chain(send).collect();
    vec![TimedStep::Loop { site: site(3), trips, body }]
}

/// Four stages with this work, on a device each.
fn pipeline(work: [f64; 4], trips: u64) -> Vec<Vec<TimedStep>> {
    let channel = |at: usize| (0..3).contains(&at).then_some(at);
    let stages = work.into_iter().enumerate();
    stages.map(|(at, work)| stage(at.checked_sub(1), work, channel(at), trips)).collect()
}

const STAGES: [(&str, &[u32]); 4] = [("a", &[0]), ("b", &[1]), ("c", &[2]), ("d", &[3])];

fn near(value: f64, expected: f64, within: f64) -> bool {
    (value - expected).abs() <= within
}

#[test]
fn equal_stages_overlap() {
    let found = simulated(&STAGES, &pipeline([1e5; 4], 12), &[NEAR; 3], 100).expect("no mesh waits forever");
    assert_eq!(found.total, 15e5 + 3.0 * LATENCY);
    assert_eq!(found.simulated_trips, None);
    let [found_loop] = found.loops.as_slice() else { panic!("{:?}", found.loops) };
    assert!(
        near(found_loop.rounds(), 15.0, 0.01) && near(found_loop.rounds_in_turns(), 48.0 + 36.0 * LATENCY / 1e5, 1e-9)
    );
    assert_eq!((found_loop.trips, found_loop.slowest_trip), (12, 1e5));
    let idle: Vec<f64> = found.meshes.iter().map(|mesh| found.idle_share(mesh)).collect();
    assert!(idle.iter().all(|&idle| near(idle, 0.2, 0.001)), "{idle:?}");
    assert_eq!((found.meshes[1].spans[0].begin, found.meshes[1].busy), (1e5 + LATENCY, 12e5));
    let trips: Vec<Option<u64>> = found.meshes[3].spans.iter().map(|span| span.trip).collect();
    assert_eq!(trips, (0..12).map(Some).collect::<Vec<_>>());
}

#[test]
fn messages_between_hosts_take_time() {
    let far = [ChannelTime { value: 1e5, notice: 1e4 }; 3];
    let found = simulated(&STAGES, &pipeline([1e5; 4], 12), &far, 100).expect("no mesh waits forever");
    // A stage sends its next value when the next one has taken the last: 1e5 + 1e4 later.
    assert_eq!(found.total, 1e5 + 11.0 * 1.1e5 + 3.0 * 2e5);
    assert!(near(found.loops[0].rounds_in_turns(), 48.0 + 36.0, 1e-9));
    assert_eq!(found.meshes[1].busy, 12e5, "no mesh works for a message on the way");
}

#[test]
fn the_slowest_stage_sets_the_pace() {
    let found =
        simulated(&STAGES, &pipeline([1e4, 1e4, 1e5, 1e4], 12), &[NEAR; 3], 100).expect("no mesh waits forever");
    let found_loop = &found.loops[0];
    assert_eq!((found_loop.slowest.as_str(), found_loop.slowest_trip), ("c", 1e5));
    assert!(near(found_loop.rounds(), 12.3, 0.01), "{}", found_loop.rounds());
    // Each stage is one value ahead of the next: before it sends the last one, the first stage waits for the third to take the eighth.
    let end = found.meshes[0].spans.last().map(|span| span.end);
    assert!(end.is_some_and(|end| near(end, 7.3e5, 1e4)), "{end:?}");
}

#[test]
fn later_trips_take_as_long_as_simulated_ones() {
    let tasks = pipeline([1e4, 3e4, 1e5, 2e4], 1000);
    let [whole, first] =
        [1000, 50].map(|limit| simulated(&STAGES, &tasks, &[NEAR; 3], limit).expect("no mesh waits forever"));
    assert_eq!((whole.simulated_trips, first.simulated_trips), (None, Some(50)));
    assert!(near(first.total / whole.total, 1.0, 0.001), "{} {}", first.total, whole.total);
    let [a, b] = [&first.loops[0], &whole.loops[0]];
    assert!(near(a.rounds() / b.rounds(), 1.0, 0.001) && near(a.in_turns / b.in_turns, 1.0, 0.001), "{a:?} {b:?}");
    for (a, b) in first.meshes.iter().zip(&whole.meshes) {
        assert!(near(a.busy / b.busy, 1.0, 0.001), "{} {}", a.busy, b.busy);
    }
    assert_eq!(limit_of(&tasks), 1000);
    let long = pipeline([1.0; 4], 1 << 40);
    assert!(limit_of(&long) < 20_000 && long.iter().flatten().map(|task| task.events(1 << 13)).sum::<u64>() > 50_000);
}

#[test]
fn a_loop_in_which_a_mesh_works_ahead_is_one_loop() {
    let asks = || vec![TimedStep::Work(1e5), TimedStep::Send { channel: 0, time: 0.0 }];
    let hears = || vec![TimedStep::Receive { channel: 1, time: 0.0 }, TimedStep::Work(1e5)];
    let part = |trips: u64, body: Vec<TimedStep>| TimedStep::Loop { site: site(3), trips, body };
    let both = || [asks(), hears()].concat();
    let answers = stage(Some(0), 2e5, Some(1), 12);
    let in_turns = [vec![part(12, both())], answers.clone()];
    let ahead = [vec![part(1, asks()), part(11, both()), part(1, hears())], answers];
    let [slow, fast] =
        [in_turns, ahead].map(|tasks| simulated(&STAGES[..2], &tasks, &[NEAR; 2], 100).expect("no mesh waits forever"));
    assert!(near(slow.loops[0].rounds(), 24.0, 0.1), "{:?}", slow.loops);
    assert!(near(fast.loops[0].rounds(), 13.0, 0.1), "{:?}", fast.loops);
    assert_eq!((fast.loops.len(), fast.loops[0].trips, fast.loops[0].slowest_trip), (1, 12, 2e5));
    // Four trips ahead are too many for transfers that hold one value.
    let too_far = [vec![part(4, asks()), part(8, both()), part(4, hears())], stage(Some(0), 2e5, Some(1), 12)];
    assert_eq!(simulated(&STAGES[..2], &too_far, &[NEAR; 2], 100), None);
}

#[test]
fn meshes_with_a_common_device_take_turns() {
    let meshes: [(&str, &[u32]); 2] = [("a", &[0, 1]), ("b", &[1, 2])];
    let found =
        simulated(&meshes, &[vec![TimedStep::Work(10.0)], vec![TimedStep::Work(20.0)]], &[], 8).expect("nobody waits");
    assert_eq!((found.total, found.meshes[1].spans[0].begin), (30.0, 10.0));
}

#[test]
fn a_value_that_nobody_sends_is_waited_for_forever() {
    let tasks = [stage(None, 1.0, Some(0), 3), stage(Some(0), 1.0, None, 4)];
    assert_eq!(simulated(&STAGES[..2], &tasks, &[NEAR; 1], 8), None);
}

#[test]
fn loops_without_transfers_are_work() {
    let mut out = Vec::new();
    add_loop(site(1), 5, vec![TimedStep::Work(3.0)], &mut out);
    add_work(1.0, &mut out);
    assert_eq!(out, [TimedStep::Work(16.0)]);
    add_loop(site(1), 5, Vec::new(), &mut out);
    add_loop(site(1), 5, vec![TimedStep::Send { channel: 0, time: 1.0 }], &mut out);
    assert_eq!(out.len(), 2);
}
