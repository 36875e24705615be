/** The node's state on disk: one LMDB environment in the data directory, one collection per kind of record. */
import { join } from 'node:path'
import { open, type RootDatabase } from 'lmdb'
import { makeDirectory } from '../make-directory.ts'
import { requireDescriptors } from '../open-descriptors.ts'
import { keepFromOthers } from '../write-file.ts'
import { SingleRecord } from './collection.ts'
import { checkDatabaseFile, reading } from './database-file.ts'
import { DetailsRecord } from './details.ts'
import { durableAtOnce, forgetFile, noteFile } from './durable.ts'
import { watchEnvironment } from './fatal.ts'
import { dropLink } from './lock-in-memory.ts'
import { NodeCollection, type StoredNode } from './nodes.ts'
import { PipelineCollection } from './pipelines.ts'
import { RequestIds } from './requests.ts'
import { type Reserve, reserveWith } from './room.ts'
import { RunCollection } from './runs.ts'
import { SignIn } from './sign-in.ts'
import { TokenCollection } from './tokens.ts'
import { close, watchWrites } from './writers.ts'

/** The files of the store in `directory`: the records, and the file by which LMDB orders its readers and writers. */
export function storeFiles(directory: string): { data: string; lock: string } {
  const data = join(directory, 'penstock.lmdb')
  return { data, lock: `${data}-lock` }
}

/** LMDB opens its lock file once and its data file twice, and ends the process where the system refuses it the second or third. */
const filesOfLmdb = 3

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
  /** The id of the hub by which these nodes know it. */
  readonly hubId: SingleRecord<string>
  readonly requestIds: RequestIds
  readonly #root: RootDatabase

  /**
   * Opens the store in `directory`, made with mode 0700 when missing. One process at a time: whoever opens it has seen to that. `reserve` is asked before
   * the store grows. Throws StoreDamaged where the file cannot be read.
   */
  constructor(directory: string, { reserve }: { reserve?: Reserve } = {}) {
    makeDirectory(directory)
    const { data: path, lock } = storeFiles(directory)
    // With it, lmdb shows what it writes before that is on disk: what the disk then refuses would be there all the same.
    const overlappingSync = checkDatabaseFile(path)
    requireDescriptors(filesOfLmdb, directory)
    // Batches of a turn of the event loop would leave a promise of lmdb's own without a listener when a commit fails.
    this.#root = reading(path, () =>
      open({ path, noSubdir: true, maxDbs: 16, eventTurnBatching: false, overlappingSync }),
    )
    // Where it leads into memory: LMDB has it open.
    dropLink(lock)
    watchWrites(this.#root)
    noteFile(this.#root)
    if (reserve !== undefined) reserveWith(this.#root, reserve)
    keepFromOthers(path)
    this.pipelines = new PipelineCollection(this.#root)
    this.runs = new RunCollection(this.#root)
    this.tokens = new TokenCollection(this.#root)
    this.details = new DetailsRecord(this.#root)
    this.signIn = new SignIn(this.#root)
    this.nodes = new NodeCollection(this.#root)
    this.hubId = new SingleRecord(this.#root, { name: 'hub', key: 'id' })
    this.requestIds = new RequestIds(this.#root)
    watchEnvironment(this.#root)
  }

  /**
   * Puts these nodes on the hub in place of those there are, and gives out no request id below `requestIds` any more: all of it is on disk when this resolves, or nothing of it. For a
   * store whose ids nobody has asked for yet.
   */
  async importHub(hubId: string, nodes: readonly StoredNode[], requestIds: number): Promise<void> {
    await durableAtOnce(this.#root, () =>
      this.#root.transactionSync(() => {
        for (const { id } of this.nodes.all()) this.nodes.removeWithin(id)
        for (const node of nodes) this.nodes.putWithin(node)
        this.hubId.putWithin(hubId)
        this.requestIds.skipWithin(requestIds)
      }),
    )
  }

  /** Brings everything to disk. */
  async close(): Promise<void> {
    forgetFile(this.#root)
    await close(this.#root)
  }
}
