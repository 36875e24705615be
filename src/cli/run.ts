/** `penstock run`: one pipeline in the foreground. */
import { type Command, Option } from 'commander'
import { logLevel, waitingTime, whole, withAllMetrics, withOutput } from './options.ts'
import type { RunCommandOptions } from './run-action.ts'

export function addRun(program: Command): void {
  withAllMetrics(withOutput(program.command('run')))
    .summary('run one pipeline in the foreground, without a server')
    .description('Runs one pipeline in the foreground: live rates every second, a summary at the end. Ctrl-C stops it.')
    .argument('<config.json>', 'the configuration, - for standard input')
    .option('-d, --duration <time>', 'stop after this time: 10s, 500ms, 5m', waitingTime)
    .option('--cpu <number>', 'pin the run to this CPU thread, as the kernel numbers them from 0', whole(0, 1023))
    .option('--performance-mode', 'never sleep: spin on the sockets')
    .addOption(
      new Option('--crypto-backend <backend>', 'what encrypts and signs packets')
        .choices(['auto', 'avx512', 'ipsec-mb', 'openssl'])
        .default('auto')
        .env('PENSTOCK_CRYPTO_BACKEND'),
    )
    .option('--log-level <level>', 'least level of log lines shown on stderr', logLevel, 'INFO')
    .action(async (file: string, options: RunCommandOptions) => {
      const { run } = await import('./run-action.ts')
      await run(file, options)
    })
}
