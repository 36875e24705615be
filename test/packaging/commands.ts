/** What the tests of the packages run: whether a command is there, and one that must succeed. */
import { spawnSync } from 'node:child_process'

/** Whether this machine has a command. */
export const has = (command: string): boolean => spawnSync('which', [command]).status === 0
