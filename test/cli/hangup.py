"""Runs a command in a terminal, with standard error in a file, and closes the terminal once a text was shown; prints how the command ended."""
import os
import pty
import sys

log, shown, *command = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT, 0o600), 2)
    os.execvp(command[0], command)
seen = b""
while shown.encode() not in seen:
    seen += os.read(terminal, 65536)
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
