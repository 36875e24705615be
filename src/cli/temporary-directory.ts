/** Directories that go away with what is demonstrated. */
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf, messageOf } from '../text/error-message.ts'
import { Failure } from './failure.ts'

const CAUSES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such directory, or none that takes others',
  ENOTDIR: 'it is no directory',
  EACCES: 'this user may not write there',
  EROFS: 'it cannot be written to',
  ENOSPC: 'the disk is full',
  EDQUOT: "this user's quota is used up",
}

/** Makes one, for this user only, whose name begins with `prefix`, where TMPDIR says, else in /tmp. Whoever has it made removes it. */
export async function temporaryDirectory(prefix: string): Promise<string> {
  try {
    return await mkdtemp(join(tmpdir(), prefix))
  } catch (error) {
    const why = CAUSES[codeOf(error) ?? ''] ?? messageOf(error)
    throw new Failure(
      `no directory can be made in ${tmpdir()}: ${why}; set TMPDIR to a directory that can be written to`,
    )
  }
}
