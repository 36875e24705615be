/** Host names in the addresses of a configuration: which they are, and whose address each becomes, before a run has its thread. */
import { formatSocketAddress, parseHostAddress } from './address.ts'
import { askSystem, type Lookup } from './ask-system.ts'
import type { AnyComponent, Registry } from './component.ts'
import { ComponentError } from './component-error.ts'
import type { ComponentConfig, PipelineConfig } from './config.ts'
import type { SchemaNode } from './schema.ts'

/** How long a run waits for the answer to a name; its start as a whole has 10 s. */
const MAX_LOOKUP_MS = 8_000

/** The first address of a name in each family, the better family first. */
export type Answers = readonly { address: string; family: number }[]

/** A field of a component whose address has a host name. */
interface NamedField {
  field: string
  host: string
  port: number
}

/** What a host name has become, for the run's log. */
export interface ResolvedHost {
  component: string
  field: string
  host: string
  /** With the port. */
  address: string
}

/** A configuration whose addresses are all numbers. */
export interface ResolvedConfig {
  config: PipelineConfig
  hosts: ResolvedHost[]
}

/** The fields of a component's configuration, not those of lists and objects in it, whose address has a host name. */
function namedFields({ key, config }: ComponentConfig, registry: Registry): NamedField[] {
  const { properties = {} } = (registry.get(key) as AnyComponent).config as SchemaNode
  return Object.entries(properties).flatMap(([field, { address }]) => {
    const given = config[field]
    const named = address && typeof given === 'string' ? parseHostAddress(given) : null
    return named ? [{ field, ...named }] : []
  })
}

/** Whether a checked configuration has host names. */
export function hasHostNames({ components }: PipelineConfig, registry: Registry): boolean {
  return Object.values(components).some((component) => namedFields(component, registry).length > 0)
}

/** Throws ComponentError for the first host name in a checked configuration, whose answers nobody can foresee. */
export function refuseHostNames(config: PipelineConfig, registry: Registry): void {
  for (const [name, component] of Object.entries(config.components)) {
    const [first] = namedFields(component, registry)
    if (!first) continue
    const why = 'is a host name, which a simulation does not look up: write an address'
    throw new ComponentError(name, component.key, new Error(`${first.field}: ${first.host} ${why}`))
  }
}

const CAUSES: Readonly<Record<string, string>> = {
  ENOTFOUND: 'no host of that name is known; correct it, or write its address',
  EAI_AGAIN: 'no name server answers; see /etc/resolv.conf and the network, or write its address',
}

function causeOf(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return CAUSES[code] === undefined ? `${message}; write its address` : `${CAUSES[code]} (${code})`
}

/** Every choice of one answer for each of `fields`, those of the first field varying last. */
function* choices(fields: readonly NamedField[], answers: ReadonlyMap<string, Answers>): Generator<string[]> {
  if (fields.length === 0) {
    yield []
    return
  }
  const [{ host, port }, ...others] = fields as [NamedField, ...NamedField[]]
  for (const { address } of answers.get(host) as Answers) {
    for (const rest of choices(others, answers)) yield [formatSocketAddress({ address, port }), ...rest]
  }
}

/** Looks names up for the runs of a node. */
export class HostNames {
  private readonly lookup: Lookup
  private readonly patience: number
  /** What is being asked, by name: a run that starts again and again asks once at a time. */
  private readonly asked = new Map<string, Promise<Answers>>()

  /** `patience`: how long a run waits for an answer, ms. */
  constructor(lookup: Lookup = askSystem, patience = MAX_LOOKUP_MS) {
    this.lookup = lookup
    this.patience = patience
  }

  /**
   * The checked configuration with an address for every host name: the first answer with which the component's own rules hold, such as
   * one family for both ends of a socket. `known` has the answers that the run has had already, and gets the new ones. Rejects with
   * ComponentError when a name has no answer, none in time (`within` ms, where that is less than it waits otherwise), or none that fits.
   */
  async resolve(
    config: PipelineConfig,
    registry: Registry,
    known: Map<string, Answers>,
    within = this.patience,
  ): Promise<ResolvedConfig> {
    const patience = Math.min(within, this.patience)
    const named = Object.entries(config.components).flatMap(([name, component]) => {
      const fields = namedFields(component, registry)
      return fields.length > 0 ? [{ name, component, fields }] : []
    })
    if (named.length === 0) return { config, hosts: [] }
    const components = { ...config.components }
    const hosts: ResolvedHost[] = []
    const asked = named.map(async ({ name, component, fields }) => {
      await Promise.all(fields.map((field) => this.learn(name, component.key, field, known, patience)))
    })
    await Promise.all(asked)
    for (const { name, component, fields } of named) {
      const chosen = fitting(name, component, fields, known, registry)
      components[name] = { ...component, config: { ...component.config, ...chosen } }
      for (const { field, host } of fields)
        hosts.push({ component: name, field, host, address: chosen[field] as string })
    }
    return { config: { ...config, components }, hosts }
  }

  private async learn(
    name: string,
    key: string,
    { field, host }: NamedField,
    known: Map<string, Answers>,
    patience: number,
  ): Promise<void> {
    if (known.has(host)) return
    try {
      known.set(host, await this.inTime(this.ask(host), patience))
    } catch (error) {
      throw new ComponentError(name, key, new Error(`${field}: ${host} has no address: ${causeOf(error)}`))
    }
  }

  private ask(host: string): Promise<Answers> {
    let answers = this.asked.get(host)
    if (!answers) {
      answers = this.lookup(host)
        .then((all) => all.filter(({ family }, i) => all.findIndex((other) => other.family === family) === i))
        .finally(() => this.asked.delete(host))
      this.asked.set(host, answers)
    }
    return answers
  }

  private async inTime(answers: Promise<Answers>, patience: number): Promise<Answers> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      const why = `no answer within ${patience / 1000} s (see /etc/resolv.conf and the network)`
      // A run that has ended meanwhile waits no longer; one that goes on keeps the process itself.
      timer = setTimeout(() => reject(new Error(why)), patience).unref()
    })
    try {
      return await Promise.race([answers, late])
    } finally {
      clearTimeout(timer)
    }
  }
}

/** The addresses for `fields`, by field, with which the component's rules hold. */
function fitting(
  name: string,
  { key, config }: ComponentConfig,
  fields: readonly NamedField[],
  answers: ReadonlyMap<string, Answers>,
  registry: Registry,
): Record<string, string> {
  const { check } = registry.get(key) as AnyComponent
  let why = ''
  for (const choice of choices(fields, answers)) {
    const chosen = Object.fromEntries(fields.map(({ field }, i) => [field, choice[i] as string]))
    const faults = check?.({ ...config, ...chosen }) ?? []
    if (faults.length === 0) return chosen
    why ||= `${Object.values(chosen).join(', ')}: ${faults[0]?.pointer.slice(1)} ${faults[0]?.message}`
  }
  const hosts = fields.map(({ field, host }) => `${field}: ${host}`).join(', ')
  throw new ComponentError(name, key, new Error(`no address of ${hosts} fits: with ${why}; write an address that does`))
}
