/** Files with pipelines and their settings, as `penstock pipelines apply` takes and `export` writes them. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Pipeline } from '@penstock/client'
import { InvalidArgumentError } from 'commander'
import { isObject } from '../text/json-object.ts'
import { suggestion } from '../text/names.ts'
import { below, type Problem } from '../text/pointer.ts'
import { yamlOf } from '../text/yaml.ts'
import { Failure } from './failure.ts'
import { readInput } from './input.ts'
import { logLevel } from './options.ts'
import type { UpdateSettings } from './pipelines-options.ts'
import { cpuPin, policyText, restartPolicy, seconds, startupPolicy } from './pipelines-options.ts'
import { countOf, nameOf, type PlacedProblem, placedLine } from './problems.ts'
import { named } from './terminal.ts'
import { readDocuments, type TextDocument } from './text-documents.ts'

/** All that can be set of a pipeline: what a file leaves out has its default here. */
export type PipelineSettings = Omit<UpdateSettings, 'forceRestart'>

/** A pipeline that a file asks for. */
export interface WantedPipeline {
  readonly settings: PipelineSettings
  readonly file: string
  /** What a node says of the settings, with its place in the file. */
  readonly placed: (problems: readonly Problem[]) => PlacedProblem[]
}

const DEFAULTS = {
  restartPolicy: { never: {} },
  startupPolicy: { manual: {} },
  defaultLoggingLevel: 'INFO',
  instructionsTimeout: 30,
  performanceMode: false,
} as const

/** How a setting is read from a file: as its option on the command line is. */
const SETTINGS: Readonly<Record<string, (given: unknown) => unknown>> = {
  restartPolicy: (given) => restartPolicy(asWritten(given)),
  startupPolicy: (given) => startupPolicy(asWritten(given)),
  defaultLoggingLevel: (given) => logLevel(asWritten(given)),
  instructionsTimeout: (given) => seconds(asWritten(given)),
  cpuPin: (given) => cpuPin(asWritten(given)),
  performanceMode: (given) => {
    if (typeof given !== 'boolean') throw new InvalidArgumentError('Expected true or false.')
    return given
  },
  nodeReferenceId: word,
}

const FIELDS = ['name', 'config', ...Object.keys(SETTINGS)]

/** What stands there, for who says what should. */
function asWritten(given: unknown): string {
  return typeof given === 'string' ? given : (JSON.stringify(given) ?? '')
}

function word(given: unknown): string {
  if (typeof given !== 'string' && typeof given !== 'number')
    throw new InvalidArgumentError('Expected text or a number.')
  return String(given)
}

/** What files are called that are looked for in a directory. */
const FILE_NAMES = /\.(yaml|yml|json)$/

/** The files that arguments name: themselves, or those of a directory by their names, those below it not. */
async function filesOf(given: readonly string[]): Promise<string[]> {
  const files: string[] = []
  for (const path of given) {
    const isDirectory = path !== '-' && (await stat(path).catch(() => undefined))?.isDirectory()
    if (!isDirectory) {
      files.push(path)
      continue
    }
    const found = (await readdir(path)).filter((name) => FILE_NAMES.test(name)).sort()
    if (found.length === 0) throw new Failure(`${path} holds no *.yaml, *.yml or *.json`)
    files.push(...found.map((name) => join(path, name)))
  }
  return files
}

/** The pipelines of all files, in order. Throws a failure with everything that is wrong with any of them, before anything is done. */
export async function readPipelines(given: readonly string[]): Promise<WantedPipeline[]> {
  const wanted: WantedPipeline[] = []
  const faults: string[] = []
  let count = 0
  const names = new Map<string, string>()
  for (const file of await filesOf(given)) {
    for (const document of readDocuments({ file, text: await readInput(file) })) {
      const problems: PlacedProblem[] = []
      const refuse = (pointer: string, message: string) =>
        problems.push({ pointer, message, ...document.placeOf(pointer) })
      for (const [at, value] of pipelinesIn(document.value, refuse)) {
        const settings = settingsIn(value, at, refuse)
        // One without a name has been refused for that.
        const before = settings.name === '' ? undefined : names.get(settings.name)
        const where = document.placeOf(below(at, 'name'))
        if (before !== undefined)
          refuse(below(at, 'name'), `"${named(settings.name)}" is the name of the pipeline at ${before}`)
        names.set(settings.name, `${nameOf(file)}:${where?.line}:${where?.column}`)
        wanted.push({ settings, file, placed: (found) => found.map((problem) => inFile(problem, value, at, document)) })
      }
      faults.push(...problems.map((problem) => placedLine(problem, file)))
      count += problems.length
    }
  }
  if (count > 0) throw new Failure(`${countOf({ length: count })}; nothing was changed\n${faults.join('\n')}`)
  return wanted
}

type Refuse = (pointer: string, message: string) => void
type Fields = Record<string, unknown>

/** The pipelines of a document with their pointers: one, or a list in `pipelines`. */
function pipelinesIn(value: unknown, refuse: Refuse): [string, Fields][] {
  if (!isObject(value)) {
    refuse('', 'expected a pipeline with name and config, or a list of them in pipelines')
    return []
  }
  if (!('pipelines' in value)) return [['', value]]
  const { $schema, pipelines, ...others } = value
  for (const key of Object.keys(others)) {
    refuse(below('', key), `beside pipelines there is no field "${key}": it belongs into a pipeline of the list`)
  }
  if (!Array.isArray(pipelines)) {
    refuse('/pipelines', 'expected a list of pipelines, each with name and config')
    return []
  }
  return pipelines.flatMap((each: unknown, i): [string, Fields][] => {
    const at = below('/pipelines', i)
    if (isObject(each)) return [[at, each]]
    refuse(at, 'expected a pipeline with name and config')
    return []
  })
}

function settingsIn(value: Fields, at: string, refuse: Refuse): PipelineSettings {
  const { $schema, name, config, ...others } = value
  if ('engine_config' in value || 'engineConfig' in value) {
    refuse(at, 'this is a configuration by itself: put it below config, and give the pipeline a name beside that')
    return { ...DEFAULTS, name: '', jsonConfig: '' }
  }
  if (typeof name !== 'string' || name === '') refuse(below(at, 'name'), 'a pipeline needs a name, which is text')
  if (!isObject(config))
    refuse(below(at, 'config'), 'a pipeline needs its configuration here: version, engine_config, …')
  const settings: Fields = {}
  for (const [key, given] of Object.entries(others)) {
    const read = SETTINGS[key]
    const pointer = below(at, key)
    if (read === undefined || !Object.hasOwn(SETTINGS, key)) {
      refuse(pointer, `unknown field "${key}".${suggestion(key, FIELDS)}`)
    } else if (given !== null) {
      try {
        settings[key] = read(given)
      } catch (error) {
        if (!(error instanceof InvalidArgumentError)) throw error
        refuse(pointer, error.message)
      }
    }
  }
  if (settings.cpuPin === 'none') delete settings.cpuPin
  return {
    ...DEFAULTS,
    ...settings,
    name: typeof name === 'string' ? name : '',
    jsonConfig: JSON.stringify(config, null, 2) ?? '',
  }
}

/** The pointers of a node lead into the configuration, those of settings apart. */
function inFile({ pointer, message }: Problem, value: Fields, at: string, document: TextDocument): PlacedProblem {
  const config = isObject(value.config) ? value.config : {}
  const first = pointer.split('/')[1] ?? ''
  const isSetting = FIELDS.includes(first) && !Object.hasOwn(config, first)
  const inPipeline = isSetting ? pointer : pointer === '/jsonConfig' ? '/config' : `/config${pointer}`
  const whole = at + inPipeline
  return { pointer: whole, message, ...document.placeOf(whole) }
}

/** The text of a file that holds these pipelines; throws where two have a name, or one a configuration that is no JSON. */
export function pipelinesText(pipelines: readonly Pipeline[], format: 'yaml' | 'json'): string {
  const names = new Map<string, string>()
  for (const { name, id } of pipelines) {
    const other = names.get(name)
    if (other !== undefined) {
      throw new Failure(
        `"${named(name)}" is the name of ${other} and ${id}: a file knows pipelines by their names; rename one`,
      )
    }
    names.set(name, id)
  }
  const content = { pipelines: pipelines.map(written) }
  return format === 'json' ? `${JSON.stringify(content, null, 2)}\n` : yamlOf(content)
}

function written({ id, jsonConfig, ...pipeline }: Pipeline): Fields {
  let config: unknown
  try {
    config = JSON.parse(jsonConfig)
  } catch {
    throw new Failure(
      `the configuration of pipeline "${named(pipeline.name)}" (${id}) is no JSON: it cannot be exported`,
    )
  }
  const { name, defaultLoggingLevel, instructionsTimeout, cpuPin, performanceMode, nodeReferenceId } = pipeline
  return {
    name,
    restartPolicy: policyText(pipeline.restartPolicy),
    startupPolicy: policyText(pipeline.startupPolicy),
    defaultLoggingLevel,
    instructionsTimeout,
    ...(cpuPin === undefined ? {} : { cpuPin }),
    performanceMode,
    ...(nodeReferenceId === undefined ? {} : { nodeReferenceId }),
    config,
  }
}
