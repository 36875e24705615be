/** Makes directories step by step. With `recursive`, Node.js 20 never returns where the system says ENOENT of a directory that can hold none, as /proc. */
import { mkdirSync, statSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

const OWN = 0o700

/** Makes a directory and those above it that are missing, with `mode`; what is there stays as it is. Throws what the system says of the step it refuses. */
export function makeDirectory(path: string, mode = OWN): void {
  try {
    makeOne(path, mode)
  } catch (error) {
    if (!lacksParent(path, error)) throw error
    makeDirectory(dirname(path), mode)
    makeOne(path, mode)
  }
}

/** As makeDirectory, but a disk that is slow holds up nobody else. */
export async function makeDirectoryAsync(path: string, mode = OWN): Promise<void> {
  try {
    await makeOneAsync(path, mode)
  } catch (error) {
    if (!lacksParent(path, error)) throw error
    await makeDirectoryAsync(dirname(path), mode)
    await makeOneAsync(path, mode)
  }
}

function makeOne(path: string, mode: number): void {
  if (isThere(path)) return
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    // Another may have made it meanwhile.
    if (!isThere(path)) throw error
  }
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

async function makeOneAsync(path: string, mode: number): Promise<void> {
  const isThere = async () => (await stat(path).catch(() => undefined))?.isDirectory() ?? false
  if (await isThere()) return
  try {
    await mkdir(path, { mode })
  } catch (error) {
    // Another may have made it meanwhile.
    if (!(await isThere())) throw error
  }
}

function lacksParent(path: string, error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT' && dirname(path) !== path
}
