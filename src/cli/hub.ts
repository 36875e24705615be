/** `penstock hub`: the key of a hub, and its members as a file. */
import { open, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { newIdentity } from '../link/identity.ts'
import { isInCluster } from '../node/cluster-settings.ts'
import type { HubDirectory } from '../node/move-hub.ts'
import { defaultDataDirectory } from '../node/settings.ts'
import { messageOf } from '../text/error-message.ts'
import { Failure, UsageFailure } from './failure.ts'
import { fileName } from './file-name.ts'
import { readInput } from './input.ts'
import { loadNodeConfig } from './node-settings.ts'
import { type Format, withOutput } from './options.ts'
import { named, print, printJson, table } from './terminal.ts'

/** Bytes of a file with a hub's members, at most: 10 KiB for each of 50,000, and about as much as a string can have. */
const MAX_HUB_FILE_BYTES = 500 << 20

export function addHub(program: Command): void {
  const hub = program
    .command('hub')
    .summary('the key of a hub, and its members as a file')
    .description('Works on files of this machine; no node is called.')
  addMoving(hub)
  const key = hub
    .command('key')
    .summary('the key by which nodes know all servers of a hub')
    .description(
      'A hub of several servers has a key that is none of theirs. Each server reads it from a file (hubServer.keyFile) and signs with it what ' +
        'it is to the hub; nodes keep the public half. Whoever holds it can pose as the hub: hand it to the servers and to nobody else.',
    )

  withOutput(key.command('create'))
    .summary('make a hub key')
    .description('Makes a hub key in a new file that only its owner can read.')
    .argument('<file>', 'a file that is not there yet', fileName)
    .action(async (file: string, { output }: { output: Format }) => {
      const { writeHubKey } = await import('../link/hub-key.ts')
      const made = newIdentity()
      writeHubKey(resolve(file), made)
      show({ file, hubId: made.nodeId }, output)
    })

  withOutput(key.command('show'))
    .summary('show the id of a hub key')
    .description('Shows the id of the hub, as its nodes see it, that has the key in a file.')
    .argument('<file>', 'the file with the key', fileName)
    .action(async (file: string, { output }: { output: Format }) => {
      const { readHubKey } = await import('../link/hub-key.ts')
      show({ file, hubId: readHubKey(resolve(file)).nodeId }, output)
    })

  withOutput(key.command('adopt'))
    .summary("make the key of a hub's only server the hub key")
    .description(
      'Makes the key of the node that has been the hub until now the hub key, in a new file, and gives the node another key, and with it another id. ' +
        'The nodes of the hub know it by that key and stay on it. The node must be down. Its pipelines are found under its new id from then on.',
    )
    .argument('<file>', 'a file that is not there yet', fileName)
    .option('--data-dir <dir>', 'where the node keeps its state', defaultDataDirectory())
    .action(async (file: string, { output, dataDir }: { output: Format; dataDir?: string }) => {
      if (dataDir === undefined) throw new UsageFailure('this user has no home directory: give --data-dir')
      const { adoptHubKey } = await import('../node/hub-key.ts')
      const adopted = await adoptHubKey(resolve(dataDir), resolve(file))
      if (output === 'json') {
        printJson({ file, ...adopted })
        return
      }
      show({ file, hubId: adopted.hubId }, output)
      print(`the node is ${adopted.nodeId} from now on`)
      if (adopted.pipelines.length === 0) return
      print('its pipelines, found under that id:')
      print(
        table(
          [{ title: 'ID' }, { title: 'NAME' }],
          adopted.pipelines.map(({ id, name }) => [id, named(name)]),
        ),
      )
    })
}

interface Moving {
  output: Format
  config?: string
  dataDir?: string
  hubKeyFile?: string
  replace?: boolean
}

/** Where the state of the hub is that these options, variables and the configuration file describe. */
async function placeOf({ config: file, dataDir, hubKeyFile }: Moving): Promise<HubDirectory> {
  const { config } = await loadNodeConfig({ config: file, dataDir, hubKeyFile })
  const keyFile = config['hubServer.keyFile']
  return {
    directory: config.dataDirectory,
    keyFile: keyFile === '' ? undefined : keyFile,
    cluster: isInCluster(config) ? config : undefined,
  }
}

/** Writes a new file, which is on disk then; where that fails it takes away what there is of it, so that nobody takes the rest for a backup. */
async function writeNew(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } catch (error) {
    await rm(path, { force: true })
    throw error
  } finally {
    await file.close()
  }
}

function addMoving(hub: Command): void {
  const withPlace = (usage: string): Command =>
    withOutput(hub.command(usage))
      .option('-c, --config <file>', "the node's configuration; with hubServer.cluster the hub's state is in NATS")
      .option(
        '--data-dir <dir>',
        `where the node that hosts the hub keeps its state (default: ${defaultDataDirectory() ?? 'none, as this user has no home directory'})`,
      )
      .option('--hub-key-file <file>', "the hub key (default: that node's own)")

  withPlace('export')
    .summary('write the members of a hub to a file')
    .description(
      'Writes the members of a hub, with their keys and records, to a new file that "penstock hub import" takes. A node that hosts it alone must be down, and ' +
        "the file names that node's pipelines; they stay with the node. Of a hub of several servers it is what NATS has at that moment.",
    )
    .argument('<file>', 'a file that is not there yet', fileName)
    .action(async (file: string, options: Moving) => {
      const { exportHub } = await import('../node/move-hub.ts')
      const { text, hubId, members } = await exportHub(await placeOf(options))
      await writeNew(file, text).catch((error: unknown) => {
        const isThere = (error as NodeJS.ErrnoException).code === 'EEXIST'
        const why = isThere ? 'it is there already; name another file, or remove this one' : messageOf(error)
        throw new Failure(`cannot write ${file}: ${why}`)
      })
      if (options.output === 'json') printJson({ file, hubId, members })
      else print(`${members} members of hub ${hubId} written to ${file}`)
    })

  withPlace('import')
    .summary('take the members of a hub from a file')
    .description(
      'Puts the members in a file on the hub of a node that is down, all of them or, where anything is wrong, none. It must have the key of the hub that ' +
        "they were on, and no members yet. A data directory that is empty or missing becomes a new node's. All servers of a hub of several must be down.",
    )
    .argument('<file>', 'as penstock hub export writes it')
    .option('--replace', 'in place of the members that are in the data directory')
    .action(async (file: string, options: Moving) => {
      const text = await readInput(file, MAX_HUB_FILE_BYTES)
      const { importHub } = await import('../node/move-hub.ts')
      const { HubFileError } = await import('../hub/hub-file.ts')
      const { hubId, members, pipelines } = await importHub(text, await placeOf(options), options).catch(
        (error: unknown) => {
          if (!(error instanceof HubFileError)) throw error
          throw new Failure(`${file} is not taken:\n  ${error.faults.join('\n  ')}`)
        },
      )
      if (options.output === 'json') {
        printJson({ file, hubId, members, pipelines })
        return
      }
      print(`${members} members of hub ${hubId} taken from ${file}`)
      if (pipelines.length === 0) return
      print('pipelines of the node that it was exported on, and the node on which each is now:')
      const rows = pipelines.map(({ id, name, node }) => [id, named(name), node])
      print(table([{ title: 'ID' }, { title: 'NAME' }, { title: 'NODE' }], rows))
    })
}

function show(facts: { file: string; hubId: string }, output: Format): void {
  if (output === 'json') printJson(facts)
  else print(`hub ${facts.hubId}, key in ${facts.file}`)
}
