/** The impairment profiles that come with the package, examples/profiles, as files. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../package-root.ts'

const DIRECTORY = join(packageRoot(), 'examples/profiles')

/** The directions of a link, each a list in a profile. */
export const DIRECTIONS = ['up', 'down'] as const
export type Direction = (typeof DIRECTIONS)[number]

/** The names of the profiles, sorted. */
export function profileNames(): string[] {
  return readdirSync(DIRECTORY)
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length))
    .sort()
}

/** The file of the profile of that name, and its JSON text. Throws when there is none. */
export function profileFile(name: string): { readonly file: string; readonly text: string } {
  const file = join(DIRECTORY, `${name}.json`)
  return { file, text: readFileSync(file, 'utf8') }
}
