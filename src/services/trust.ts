/** Whose configurations may run commands on the node, and name files outside its directory of files: `pipelines.trusted`. */
import type { CallContext } from '../contract/handlers.ts'
import type { Registry } from '../dataplane/engine/component.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import { filesOutside } from '../dataplane/engine/files.ts'
import type { Problem } from '../text/pointer.ts'

/** Callers of this node's own API; those and callers on the hub server's node; every node on the hub. */
export type Trusted = 'local' | 'hub' | 'members'

/** Id of the node on which a configuration was set, undefined when that is this one: a caller of its own API. */
export type Author = string | undefined

/** Who calls: another node over the hub, as the link has proven, or somebody whom this node's own listeners have let in. */
export function authorOf({ transport, identity }: CallContext): Author {
  return transport === 'link' ? (identity ?? '') : undefined
}

/** What is remembered of who has set a configuration. */
export interface Authorship {
  /** Id of the node on which it was set; absent: this one. */
  readonly author?: string
  /** Id of the hub that this node was on and that one served then; absent: it served none. */
  readonly authorHub?: string
}

export interface TrustOptions {
  /** Where files are that every configuration may name, an absolute path. */
  readonly files: string
  readonly trusted: Trusted
  /** Whether the node with this id serves the hub which this node is on now. */
  isHubServer(nodeId: string): boolean
  /** Id of the hub that this node is on, as a member or as a server; undefined: it is on none. */
  hubId(): string | undefined
}

export class Trust {
  /** Where relative names of files lead. */
  readonly files: string
  readonly #trusted: Trusted
  readonly #isHubServer: (nodeId: string) => boolean
  readonly #hubId: () => string | undefined

  constructor({ files, trusted, isHubServer, hubId }: TrustOptions) {
    this.files = files
    this.#trusted = trusted
    this.#isHubServer = isHubServer
    this.#hubId = hubId
  }

  /** What is to be remembered of somebody who sets a configuration now. */
  authorship(author: Author): Authorship {
    if (author === undefined) return {}
    const hub = this.#isHubServer(author) ? this.#hubId() : undefined
    return hub === undefined ? { author } : { author, authorHub: hub }
  }

  /** What a checked configuration asks for that its author is not trusted with, each with its place; empty when all is well. */
  refusals(config: PipelineConfig, registry: Registry, authorship: Authorship): Problem[] {
    if (this.#trusts(authorship)) return []
    const { author } = authorship
    const setting = `pipelines.trusted: ${this.#isOfHubServer(authorship) ? 'hub' : 'members'}`
    const files = filesOutside(config, registry, this.files).map(({ pointer, name }) => ({
      pointer,
      message:
        `node ${author} may name files in ${this.files} only, not ${JSON.stringify(name)}: put the file there and name it relative to that, ` +
        `or let this node trust it, with ${setting}`,
    }))
    if (config.lifecycle === undefined) return files
    const message = `node ${author} may not have commands run on this node: leave them out, or let this node trust it, with ${setting}`
    return [{ pointer: '/engine_config/lifecycle_handler', message }, ...files]
  }

  #trusts(authorship: Authorship): boolean {
    if (authorship.author === undefined || this.#trusted === 'members') return true
    return this.#trusted === 'hub' && this.#isOfHubServer(authorship)
  }

  /** Which of several servers there are a node may not know yet as it starts, or no longer while one is away: it served this hub when it set it. */
  #isOfHubServer({ author = '', authorHub }: Authorship): boolean {
    if (author === '') return false
    return (authorHub !== undefined && authorHub === this.#hubId()) || this.#isHubServer(author)
  }
}
