/** Files that settings name: certificates, keys, credentials. */
import { readRegularFile } from '../read-file.ts'

/** Bytes of such a file, at most. */
const MAX_SETTING_FILE_BYTES = 1 << 20

const CAUSES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'this user may not read it',
  NOT_REGULAR: 'it is no regular file',
  TOO_LONG: `it has more than ${MAX_SETTING_FILE_BYTES} bytes`,
}

/** The bytes of such a file. Throws Error that says why it is not read. */
export function readSettingFile(path: string): Buffer {
  try {
    return readRegularFile(path, MAX_SETTING_FILE_BYTES)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    throw new Error(CAUSES[code] ?? code, { cause: error })
  }
}
