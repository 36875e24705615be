/** The node's state on disk: one LMDB environment in the data directory, one collection per kind of record. */
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import { DetailsRecord } from './details.ts'
import { NodeCollection } from './nodes.ts'
import { OwnerCollection } from './owner.ts'
import { PipelineCollection } from './pipelines.ts'
import { RequestIds } from './requests.ts'
import { RunCollection } from './runs.ts'
import { SignIn } from './sign-in.ts'
import { TokenCollection } from './tokens.ts'

export class Store {
  readonly pipelines: PipelineCollection
  readonly runs: RunCollection
  readonly tokens: TokenCollection
  /** What this node is called. */
  readonly details: DetailsRecord
  /** The hub this node is on. */
  readonly signIn: SignIn
  /** The nodes on the hub that this node hosts. */
  readonly nodes: NodeCollection
  readonly requestIds: RequestIds
  readonly #root: RootDatabase
  readonly #owner: OwnerCollection

  /** Opens the store in `directory`, made with mode 0700 when missing. Throws DirectoryInUse when another node has it. */
  constructor(directory: string) {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const path = join(directory, 'penstock.lmdb')
    // Batches of a turn of the event loop would leave a promise of lmdb's own without a listener when a commit fails.
    this.#root = open({ path, noSubdir: true, maxDbs: 16, eventTurnBatching: false })
    chmodSync(path, 0o600)
    this.#owner = new OwnerCollection(this.#root)
    try {
      this.#owner.claim(directory)
    } catch (error) {
      void this.#root.close()
      throw error
    }
    this.pipelines = new PipelineCollection(this.#root)
    this.runs = new RunCollection(this.#root)
    this.tokens = new TokenCollection(this.#root)
    this.details = new DetailsRecord(this.#root)
    this.signIn = new SignIn(this.#root)
    this.nodes = new NodeCollection(this.#root)
    this.requestIds = new RequestIds(this.#root)
  }

  /** Brings everything to disk and gives the directory back. */
  async close(): Promise<void> {
    await this.#root.flushed
    this.#owner.release()
    await this.#root.close()
  }
}
