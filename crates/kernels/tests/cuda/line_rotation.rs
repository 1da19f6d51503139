//! Cyclic rotation of lines against the host.

use calorimeter_kernels::native::{LineRotation, NativeError};

use super::{gpu, poisoned};

fn rotated(bytes: &[u8], circle: LineRotation) -> Vec<u8> {
    let mut moved = bytes.to_vec();
    moved.chunks_mut(circle.bytes).for_each(|line| line.rotate_right(circle.shift));
    moved
}

#[test]
#[ignore = "needs CUDA"]
fn rotation_is_exact_and_mismatches_are_detected() {
    let (device, _guard) = gpu();
    // One line and many, shorter and longer than the work of a block, with every word width.
    for lines in [1, 3, 700] {
        for (bytes, by) in
            [(1, 0), (7, 3), (16, 0), (4098, 2), (16384 * 3, 16384), (20000, 4), (40008, 8), (5001, 5000)]
        {
            let circle = LineRotation { lines, bytes, shift: by };
            let content: Vec<u8> = (0..lines * bytes).map(|at| (at * 7919 % 251) as u8).collect();
            let expected = rotated(&content, circle);
            let x = device.upload(&content).unwrap();
            let y = device.rotate_lines(&x, circle).unwrap();
            assert!(y.download().unwrap() == expected, "{circle:?}");
            assert!(device.is_rotation_of(&x, &y, circle).unwrap(), "{circle:?}");
            for at in [0, by, expected.len() / 2, expected.len() - 1] {
                let mut wrong = expected.clone();
                wrong[at] ^= 0x80;
                let wrong = device.upload(&wrong).unwrap();
                assert!(!device.is_rotation_of(&x, &wrong, circle).unwrap(), "{circle:?} at {at}");
            }
        }
    }
    let x = poisoned(&device, 32);
    let error = device.rotate_lines(&x, LineRotation { lines: 1, bytes: 32, shift: 32 }).unwrap_err();
    assert!(matches!(error, NativeError::InvalidSize { limit: 31, value: 32, .. }), "{error}");
    let error = device.is_rotation_of(&x, &x, LineRotation::identity(33)).unwrap_err();
    assert!(matches!(error, NativeError::BufferSize { needed: 33, found: 32, .. }), "{error}");
}

#[test]
#[ignore = "needs CUDA"]
fn half_gigabyte_comparison_beats_download() {
    let (device, _guard) = gpu();
    for by in [0, 1 << 16, 4, 2] {
        let circle = LineRotation { lines: 1, bytes: 512 << 20, shift: by };
        let x = poisoned(&device, circle.bytes);
        let y = device.rotate_lines(&x, circle).unwrap();
        assert!(device.is_rotation_of(&x, &y, circle).unwrap());
        let start = std::time::Instant::now();
        let again = device.rotate_lines(&x, circle).unwrap();
        device.synchronize().unwrap();
        let copied = start.elapsed();
        let start = std::time::Instant::now();
        assert!(device.is_rotation_of(&x, &again, circle).unwrap());
        println!("512 MiB rotated by {by} bytes: copied in {copied:.2?}, compared in {:.2?}", start.elapsed());
    }
    let start = std::time::Instant::now();
    let read = poisoned(&device, 512 << 20).download().unwrap();
    println!("downloaded in {:.2?}", start.elapsed());
    let start = std::time::Instant::now();
    device.upload(&read).unwrap();
    println!("uploaded in {:.2?}", start.elapsed());
}
