"""Runs a command in a pseudo-terminal of 100 x 30, or TERMINAL_SIZE: standard input is typed there, what the terminal shows is written out.

At SIGUSR1 the terminal gets the size that the file TERMINAL_SIZE_FILE has then."""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios

child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(sys.argv[1], sys.argv[1:])


def resize(size):
    columns, rows = map(int, size.split("x"))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def resize_now(*_):
    with open(os.environ["TERMINAL_SIZE_FILE"]) as file:
        resize(file.read())


signal.signal(signal.SIGUSR1, resize_now)
resize(os.environ.get("TERMINAL_SIZE", "100x30"))
sources = [terminal, 0]
while terminal in sources:
    for source in select.select(sources, [], [])[0]:
        try:
            data = os.read(source, 65536)
        except OSError:  # Linux tells the end of a terminal as EIO.
            data = b""
        if not data:
            sources.remove(source)
        elif source == terminal:
            os.write(1, data)
        else:
            os.write(terminal, data)
status = os.waitpid(child, 0)[1]
sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)
