//! Ranges of device memory, and handles for other processes.

use crate::gpu;

#[test]
#[ignore = "needs CUDA"]
fn ranges_are_written_filled_copied_and_read() {
    let (machine, _turn) = gpu();
    let mut buffer = machine.upload(&[0; 1024]).unwrap();
    buffer.upload_at(256, &[7; 100]).unwrap();
    buffer.fill_at(300, 10, 9).unwrap();
    buffer.copy_within(256, 512, 100).unwrap();
    let expected: Vec<u8> = (0..100).map(|at| if (44..54).contains(&at) { 9 } else { 7 }).collect();
    assert_eq!(buffer.download_at(256, 100).unwrap(), expected);
    assert_eq!(buffer.download_at(512, 100).unwrap(), expected);
    let whole = buffer.download().unwrap();
    assert_eq!(whole.iter().filter(|&&byte| byte != 0).count(), 200);
    assert!(buffer.upload_at(1000, &[1; 25]).is_err() && buffer.download_at(1024, 1).is_err());
    assert!(buffer.fill_at(usize::MAX, 2, 1).is_err(), "the end of the range overflows");
    assert!(buffer.copy_within(0, 50, 51).is_err(), "the ranges overlap");
    assert_eq!(buffer.download().unwrap(), whole);
    assert_ne!(buffer.ipc_handle().unwrap(), [0; 64]);
}
