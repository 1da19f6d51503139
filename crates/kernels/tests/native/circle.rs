//! Lines that are moved on, against the host.

use calorimeter_kernels::native::{Circle, NativeError};

use super::{gpu, poisoned};

fn moved_on(bytes: &[u8], circle: Circle) -> Vec<u8> {
    let mut moved = bytes.to_vec();
    moved.chunks_mut(circle.bytes).for_each(|line| line.rotate_right(circle.by));
    moved
}

#[test]
fn lines_are_moved_on_to_the_byte_and_every_other_byte_is_found_out() {
    let Some((machine, _turn)) = gpu() else { return };
    // One line and many, shorter than a part of one and longer, in words of every width.
    for lines in [1, 3, 700] {
        for (bytes, by) in
            [(1, 0), (7, 3), (16, 0), (4098, 2), (16384 * 3, 16384), (20000, 4), (40008, 8), (5001, 5000)]
        {
            let circle = Circle { lines, bytes, by };
            let content: Vec<u8> = (0..lines * bytes).map(|at| (at * 7919 % 251) as u8).collect();
            let expected = moved_on(&content, circle);
            let x = machine.upload(&content).unwrap();
            let y = machine.moved_on(&x, circle).unwrap();
            assert!(y.download().unwrap() == expected, "{circle:?}");
            assert!(machine.is_moved_on(&x, &y, circle).unwrap(), "{circle:?}");
            for at in [0, by, expected.len() / 2, expected.len() - 1] {
                let mut wrong = expected.clone();
                wrong[at] ^= 0x80;
                let wrong = machine.upload(&wrong).unwrap();
                assert!(!machine.is_moved_on(&x, &wrong, circle).unwrap(), "{circle:?} at {at}");
            }
        }
    }
    let x = poisoned(&machine, 32);
    let error = machine.moved_on(&x, Circle { lines: 1, bytes: 32, by: 32 }).unwrap_err();
    assert!(matches!(error, NativeError::InvalidSize { limit: 31, value: 32, .. }), "{error}");
    let error = machine.is_moved_on(&x, &x, Circle::still(33)).unwrap_err();
    assert!(matches!(error, NativeError::BufferSize { needed: 33, found: 32, .. }), "{error}");
}

#[test]
fn half_a_gigabyte_is_compared_in_less_than_it_takes_to_read_back() {
    let Some((machine, _turn)) = gpu() else { return };
    for by in [0, 1 << 16, 4, 2] {
        let circle = Circle { lines: 1, bytes: 512 << 20, by };
        let x = poisoned(&machine, circle.bytes);
        let y = machine.moved_on(&x, circle).unwrap();
        assert!(machine.is_moved_on(&x, &y, circle).unwrap());
        let start = std::time::Instant::now();
        let again = machine.moved_on(&x, circle).unwrap();
        machine.synchronize().unwrap();
        let copied = start.elapsed();
        let start = std::time::Instant::now();
        assert!(machine.is_moved_on(&x, &again, circle).unwrap());
        println!("512 MiB moved on by {by} bytes: copied in {copied:.2?}, compared in {:.2?}", start.elapsed());
    }
    let start = std::time::Instant::now();
    let read = poisoned(&machine, 512 << 20).download().unwrap();
    println!("read back in {:.2?}", start.elapsed());
    let start = std::time::Instant::now();
    machine.upload(&read).unwrap();
    println!("uploaded in {:.2?}", start.elapsed());
}
