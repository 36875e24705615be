/** Files that a configuration names: which they are, where they are, and their bytes. */
import { isAbsolute, relative, resolve, sep } from 'node:path'
import type { TSchema } from '@sinclair/typebox'
import { FileRefused, readRegularFile } from '../../read-file.ts'
import { below, type Problem, pointerOf } from '../../text/pointer.ts'
import type { AnyComponent, Registry } from './component.ts'
import type { ComponentConfig, PipelineConfig } from './config.ts'
import type { Annotations } from './schema.ts'

type Node = TSchema & Annotations & { properties?: Record<string, Node>; items?: Node }

/** A field of a configuration that names a file. */
interface NamedFile {
  /** JSON pointer into the configuration, in snake_case. */
  readonly pointer: string
  /** As it stands there. */
  readonly name: string
}

/** Whether a schema has fields that name files: most components have none, and their configurations are left as they are. */
const withFiles = new WeakMap<Node, boolean>()

function hasFiles(node: Node): boolean {
  let has = withFiles.get(node)
  if (has === undefined) {
    const { file = false, items, properties = {} } = node
    has = file || (items !== undefined && hasFiles(items)) || Object.values(properties).some(hasFiles)
    withFiles.set(node, has)
  }
  return has
}

/** `value` with every file's name replaced by what `place` makes of it. */
function mapFiles(node: Node, value: unknown, pointer: string, place: (file: NamedFile) => string): unknown {
  if (node.file) {
    const isFile = typeof value === 'string' && !(node.abstract && value.startsWith('@'))
    return isFile ? place({ pointer, name: value }) : value
  }
  if (node.items && Array.isArray(value)) {
    const { items } = node
    return value.map((item, i) => mapFiles(items, item, below(pointer, i), place))
  }
  if (!node.properties || typeof value !== 'object' || value === null) return value
  const { properties } = node
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => {
      const child = properties[name]
      return [name, child ? mapFiles(child, item, below(pointer, name), place) : item]
    }),
  )
}

function mapConfig(
  { components, logFilters, shmConfig, ...others }: PipelineConfig,
  registry: Registry,
  place: (file: NamedFile) => string,
): PipelineConfig {
  const placed = Object.entries(components).map(([name, { key, config }]): [string, ComponentConfig] => {
    const { config: schema } = registry.get(key) as AnyComponent
    if (!hasFiles(schema as Node)) return [name, { key, config }]
    const pointer = pointerOf(['engine_config', 'pipeline', name, key])
    return [name, { key, config: mapFiles(schema as Node, config, pointer, place) as Record<string, unknown> }]
  })
  const filters = logFilters.map((filter, i) => {
    const { file: name } = filter
    if (name === undefined) return filter
    return { ...filter, file: place({ pointer: pointerOf(['engine_config', 'log_filters', i, 'file']), name }) }
  })
  const shmPointer = '/engine_config/shm_config/file_path'
  const shm = shmConfig && { ...shmConfig, file_path: place({ pointer: shmPointer, name: shmConfig.file_path }) }
  return {
    ...others,
    logFilters: filters,
    ...(shm === undefined ? {} : { shmConfig: shm }),
    components: Object.fromEntries(placed),
  }
}

/** The checked configuration with its files as absolute paths, relative ones being in `directory`. */
export function withFilesIn(config: PipelineConfig, registry: Registry, directory: string): PipelineConfig {
  return mapConfig(config, registry, ({ name }) => resolve(directory, name))
}

/** What the rules of components say once their files are absolute paths, which may be too long where the names were not. */
export function pathFaults(config: PipelineConfig, registry: Registry): Problem[] {
  return Object.entries(config.components).flatMap(([name, { key, config: own }]) => {
    const definition = registry.get(key) as AnyComponent
    if (!definition.check || !hasFiles(definition.config as Node)) return []
    const pointer = pointerOf(['engine_config', 'pipeline', name, key])
    return definition.check(own).map((fault) => ({ pointer: pointer + fault.pointer, message: fault.message }))
  })
}

/**
 * The files of a checked configuration that are not in `directory` or below it, going by their names: what a symbolic link in there leads
 * to is for whoever has put it there.
 */
export function filesOutside(config: PipelineConfig, registry: Registry, directory: string): NamedFile[] {
  const outside: NamedFile[] = []
  mapConfig(config, registry, (file) => {
    const path = relative(directory, resolve(directory, file.name))
    if (path === '' || path === '..' || path.startsWith(`..${sep}`) || isAbsolute(path)) outside.push(file)
    return file.name
  })
  return outside
}

const CAUSES: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist; put it there, or correct its name',
  ENOTDIR: 'a part of its path is no directory; correct its name',
  EACCES: 'the user of this process may not read it; let it (chmod, chown)',
  ELOOP: 'its symbolic links lead in a circle',
  ENAMETOOLONG: 'its name is too long',
}

/**
 * The bytes of the regular file `path`, which has `most` of them at most. Throws Error with the path, what is wrong and what to do; neither
 * a device nor a pipe is ever read or waited for.
 */
export function readWhole(path: string, most: number): Uint8Array {
  try {
    return readRegularFile(path, most)
  } catch (cause) {
    throw new Error(`cannot read ${path}: ${causeOf(cause, most)}`, { cause })
  }
}

function causeOf(error: unknown, most: number): string {
  if (!(error instanceof FileRefused)) {
    const { code = '', message } = error as NodeJS.ErrnoException
    return CAUSES[code] ?? message
  }
  const { code, bytes } = error
  if (code === 'NOT_REGULAR') return 'it is no regular file; name one'
  return `it has ${bytes} bytes, ${most} are taken at most; cut it into several files`
}
