/** `penstock impair`: a bad link between two UDP endpoints. */
import { type Command, Option } from 'commander'
import { PAYLOAD_V4 } from '../dataplane/components/endpoints/datagram-mtu.ts'
import { DIRECTIONS } from '../node/impairment-profiles.ts'
import type { ImpairOptions } from './impair-action.ts'
import { waitingTime, whole, withOutput } from './options.ts'
import { otherOption } from './other-words.ts'
import { bitRate, burstLength, milliseconds, share } from './quantities.ts'

/** Options of tc-netem(8), toxiproxy and UDPspeeder. */
const OTHER_OPTIONS = [
  ['--latency <time>', 'it is --delay here'],
  ['--bandwidth <rate>', 'it is --rate here, in bit/s'],
  ['--limit <packets>', 'it is --queue here, which counts what waits for the rate'],
  ['-r, --remote <address>', 'it is --forward here'],
  ['--upstream <address>', 'it is --forward here'],
  ['--duplicate <share>', 'no packet is sent twice here'],
  ['--corrupt <share>', 'no packet is damaged here'],
  ['--distribution <name>', 'jitter is uniform here'],
  ['--slot <time>', 'packets are not gathered in slots here'],
  ['--gap <packets>', 'which packets overtake others follows from --jitter here, with --reorder'],
] as const

export function addImpair(program: Command): void {
  const command = withOutput(program.command('impair'))
    .argument('[command...]', 'after --: a command to run over the link')
    .summary('put a bad link between two UDP endpoints')
    .description(
      'Carries datagrams from --listen to --forward and the answers back, over an emulated link: that of a profile, or one made of ' +
        '--loss, --delay, --jitter and --rate, which take the place of what the profile has, in both directions or that of --direction. The first client heard ' +
        'at --listen is the only one served; others are ignored, and the first of them is told of. For another client start it again, ' +
        'or a second one at another address. Ctrl-C ends it with a summary.\n\n' +
        'A command after -- is run over the link, which ends with it, and its exit code is that of impair. It finds the address to send to in ' +
        'PENSTOCK_IMPAIR_ADDRESS, in its parts in PENSTOCK_IMPAIR_HOST and PENSTOCK_IMPAIR_PORT, and that of the server in ' +
        'PENSTOCK_IMPAIR_FORWARD. Signals are passed on to it; what impair has to say goes to standard error.\n\n' +
        'With --json a line when the link is there, one a second, and one for the end.',
    )
    .option('-p, --profile <name|file>', 'a profile of --list, or a file of your own by its path')
    .option('-l, --listen <address>', 'where the client sends to, ip:port or name:port; port 0 lets the system choose')
    .option('-f, --forward <address>', 'where the server is, ip:port or name:port')
    .option('--loss <share>', 'share of the packets that are lost, at random: 5%, 0.05', share('A loss'))
    .option('--burst <packets>', 'lose so many packets in a row, on average: 4, 2.5', burstLength)
    .option('--delay <time>', 'one-way delay: 40ms', milliseconds)
    .option(
      '--jitter <time>',
      'largest deviation from the delay, either way; order is kept without --reorder: 10ms',
      milliseconds,
    )
    .option('--reorder', 'with --jitter: packets overtake those that are held longer')
    .option('--rate <rate>', 'bit/s of UDP payload: 500k, 10M, 1G', bitRate)
    .option(
      '--queue <packets>',
      'packets that wait for the rate (1000, or as the profile has it)',
      whole(0, 2 ** 31 - 1),
    )
    .addOption(
      new Option(
        '--direction <way>',
        'where --loss and the like hold: up, from the client to the server, or down (both)',
      ).choices(DIRECTIONS),
    )
    .option(
      '--mtu <bytes>',
      `longest datagram carried (${PAYLOAD_V4}), in both directions; longer ones are dropped, and the first is warned of. Each packet under way takes a slot ` +
        'of that size: there are 131,072 of them up to some 7,900 bytes, fewer above, 16,000 at 65507, and what finds none is dropped too',
      whole(68, 65_535),
    )
    .option('-s, --seed <number>', 'the same losses and jitter again for the same packets', whole(0, 2 ** 31 - 1))
    .option('-d, --duration <time>', 'stop after this time: 10s, 500ms, 5m', waitingTime)
    .option('--list', 'list the profiles')
    .option('--print', 'print the pipeline configuration and do not run it')
    .action(async (command: string[], options: ImpairOptions) => {
      const { impair } = await import('./impair-action.ts')
      await impair(command, options)
    })
  for (const [flags, what] of OTHER_OPTIONS) command.addOption(otherOption(flags, what))
}
