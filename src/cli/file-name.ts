/** Names of files and directories that are written, and of keys, as arguments and options give them. */
import { InvalidArgumentError } from 'commander'

/** Takes a name as it is; an empty one is none. */
export function fileName(given: string): string {
  if (given === '') throw new InvalidArgumentError('The name is empty.')
  return given
}
