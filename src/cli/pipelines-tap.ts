/** `penstock pipelines tap`: packets on their way through a run. */
import { Option } from 'commander'
import { fileName } from './file-name.ts'
import { whole } from './options.ts'
import { LINK_TYPES } from './pcapng-writer.ts'
import { type AddVerb, type Common, PIPELINE } from './pipelines-options.ts'
import { type TapOptions, tap } from './tap.ts'
import { findRun, targetOf } from './target.ts'

export function addTap(add: AddVerb): void {
  add('tap', 'show packets on their way through a run, or write them as pcapng')
    .description(
      'Copies packets that leave a component of a run, or with --input those that come to it. The run does not wait: what finds no room is ' +
        'dropped and counted. Without --write a line for each packet; with -o json {time, link, length, data}.',
    )
    .argument('<pipeline>', PIPELINE)
    .argument('<component>', 'the name of a component in the configuration')
    .option('--run <id>', 'a run, instead of the current one of the pipeline')
    .option('--input', 'packets that come to the component')
    .option('-w, --write <file>', 'write them as pcapng; - is standard output, as in … -w - | tshark -r -', fileName)
    .option('-c, --count <number>', 'end after this many packets', whole(1, 1_000_000_000))
    .option('-s, --snap-length <bytes>', 'bytes kept of each packet', whole(1, 65_535))
    .addOption(
      new Option(
        '--link-type <type>',
        'what pcapng calls the packets; left out: raw (IP) where they look like it',
      ).choices(Object.keys(LINK_TYPES)),
    )
    .action(
      async (name: string, component: string, options: Common & Omit<TapOptions, 'component'> & { run?: string }) => {
        const { client, node } = await targetOf(options)
        await tap(client, node, await findRun(client, node, name, options.run), { ...options, component })
      },
    )
}
