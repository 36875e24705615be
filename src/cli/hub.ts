/** `penstock hub`: the key of a hub with several servers. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { readHubKey, writeHubKey } from '../link/hub-key.ts'
import { newIdentity } from '../link/identity.ts'
import { defaultDataDirectory } from '../node/config.ts'
import { claimDataDirectory } from '../node/data-directory.ts'
import { adoptHubKey } from '../node/hub-key.ts'
import { Store } from '../store/store.ts'
import { type Format, withOutput } from './options.ts'
import { print, printJson, table } from './terminal.ts'

export function addHub(program: Command): void {
  const hub = program
    .command('hub')
    .summary('the key of a hub')
    .description('Works on files of this machine; no node is called.')
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
    .argument('<file>', 'a file that is not there yet')
    .action((file: string, { output }: { output: Format }) => {
      const made = newIdentity()
      writeHubKey(resolve(file), made)
      show({ file, hubId: made.nodeId }, output)
    })

  withOutput(key.command('show'))
    .summary('show the id of a hub key')
    .description('Shows the id of the hub, as its nodes see it, that has the key in a file.')
    .argument('<file>', 'the file with the key')
    .action((file: string, { output }: { output: Format }) => {
      show({ file, hubId: readHubKey(resolve(file)).nodeId }, output)
    })

  withOutput(key.command('adopt'))
    .summary("make the key of a hub's only server the hub key")
    .description(
      'Makes the key of the node that has been the hub until now the hub key, in a new file, and gives the node another key, and with it another id. ' +
        'The nodes of the hub know it by that key and stay on it. The node must be down. Its pipelines are found under its new id from then on.',
    )
    .argument('<file>', 'a file that is not there yet')
    .option('--data-dir <dir>', 'where the node keeps its state', defaultDataDirectory())
    .action(async (file: string, { output, dataDir }: { output: Format; dataDir: string }) => {
      const adopted = await adopt(resolve(dataDir), resolve(file))
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
          adopted.pipelines.map(({ id, name }) => [id, name]),
        ),
      )
    })
}

function show(facts: { file: string; hubId: string }, output: Format): void {
  if (output === 'json') printJson(facts)
  else print(`hub ${facts.hubId}, key in ${facts.file}`)
}

/** The directory is nobody else's meanwhile. */
async function adopt(directory: string, file: string) {
  const release = claimDataDirectory(directory)
  try {
    const store = new Store(directory)
    try {
      return adoptHubKey(directory, file, store)
    } finally {
      await store.close()
    }
  } finally {
    release()
  }
}
