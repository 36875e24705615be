/** Benches reserve hundreds of megabytes of address space each, and unit tests share processes: between files it is given back. */
import { readFileSync } from 'node:fs'
import { afterAll } from 'vitest'
import { collectGarbage } from '../../src/dataplane/engine/garbage.ts'

const MOST_KIBIBYTES = 4 * 2 ** 20

afterAll(() => {
  const kibibytes = Number(/^VmData:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1])
  // Linux starts no command for a process one of whose mappings is larger than the machine's memory.
  if (kibibytes > MOST_KIBIBYTES) collectGarbage()
})
