//! Pseudo-terminal with a given number of columns.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read;
use std::process::Command;

pub(crate) struct Terminal {
    ours: File,
    programs: File,
}

impl Terminal {
    pub(crate) fn with_columns(columns: u16) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let path = ptsname(&ours, Vec::new()).unwrap();
        let programs = File::options().read(true).write(true).open(path.to_str().unwrap()).unwrap();
        tcsetwinsize(&programs, Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        Self { ours: ours.into(), programs }
    }

    /// Standard output of a program.
    pub(crate) fn stdout_of(self, command: &mut Command) -> String {
        let programs = self.programs.try_clone().unwrap();
        self.read(command.stdout(programs))
    }

    /// Standard output and standard error of a program.
    pub(crate) fn output_of(self, command: &mut Command) -> String {
        let programs = self.programs.try_clone().unwrap();
        command.stderr(programs);
        self.stdout_of(command)
    }

    fn read(self, command: &mut Command) -> String {
        let Self { mut ours, programs } = self;
        let mut child = command.spawn().unwrap();
        // Reading fails after the last program has closed the terminal, including this one.
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        drop(programs);
        let mut shown = Vec::new();
        let _ = ours.read_to_end(&mut shown);
        child.wait().unwrap();
        String::from_utf8(shown).unwrap().replace("\r\n", "\n")
    }
}
