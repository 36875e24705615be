/** Packet memory in a process that starts commands. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { packetMemory } from './fixture.ts'
import { native } from './native.ts'

const SLOTS = 16_384
const PAGE_BYTES = 4096

/** KiB of this process that the commands it starts have no copy of ("dc" of proc(5)). */
function keptFromCommands(): number {
  const mappings = readFileSync('/proc/self/smaps', 'utf8').split(/^(?=[0-9a-f]+-)/m)
  return mappings
    .filter((mapping) => /^VmFlags:.* dc( |$)/m.test(mapping))
    .reduce((sum, mapping) => sum + Number(/^Size: +(\d+) kB$/m.exec(mapping)?.[1]), 0)
}

test('a command that is started while packets are in use makes no copy of them', () => {
  const memory = packetMemory(SLOTS)
  const id = native.memoryOpen(memory)
  const { data } = memory
  const write = (value: number) => {
    for (let at = 0; at < data.length; at += PAGE_BYTES) data[at] = value
  }
  write(1)
  const before = process.resourceUsage().minorPageFault
  expect(spawnSync('true').status).toBe(0)
  write(2)
  // Other threads of the tests have theirs.
  expect(process.resourceUsage().minorPageFault - before).toBeLessThan(data.length / PAGE_BYTES / 2)
  native.memoryClose(id)
})

test('once it is closed, memory is copied for commands again', () => {
  const memory = packetMemory(SLOTS)
  const id = native.memoryOpen(memory)
  const open = keptFromCommands()
  native.memoryClose(id)
  // V8 keeps pages of its own from commands too, and takes more of them meanwhile.
  expect(open - keptFromCommands()).toBeGreaterThan(memory.data.length / 1024 / 2)
})

test('while it is open a second time it is not', () => {
  const memory = packetMemory(SLOTS)
  const [first, second] = [native.memoryOpen(memory), native.memoryOpen(memory)]
  const open = keptFromCommands()
  native.memoryClose(first)
  expect(open - keptFromCommands()).toBeLessThan(memory.data.length / 1024 / 2)
  native.memoryClose(second)
  expect(open - keptFromCommands()).toBeGreaterThan(memory.data.length / 1024 / 2)
})
