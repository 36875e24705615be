/** Files that settings name: certificates, keys, credentials. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'

/** Bytes of such a file, at most. */
const MAX_SETTING_FILE_BYTES = 1 << 20

const CAUSES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'this user may not read it',
  ENXIO: 'it is no regular file',
}

/** The bytes of a regular file; a pipe or a device is never waited for, as nothing could end the process meanwhile. Throws Error that says why it is not read. */
export function readSettingFile(path: string): Buffer {
  let descriptor: number | undefined
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
    const stat = fstatSync(descriptor)
    if (!stat.isFile()) throw new Error('it is no regular file')
    if (stat.size > MAX_SETTING_FILE_BYTES) throw new Error(`it has more than ${MAX_SETTING_FILE_BYTES} bytes`)
    return readFileSync(descriptor)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Error(code === undefined ? message : (CAUSES[code] ?? code), { cause: error })
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}
