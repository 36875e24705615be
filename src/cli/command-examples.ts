/** A command line for each command, in an order in which they work one after the other; help, reference and tests take them from here. */

import type { Command } from 'commander'

/** By what is typed to call it. */
export const COMMAND_EXAMPLES: Readonly<Record<string, string>> = {
  up: 'penstock up --hub --data-dir "$(mktemp -d)"',
  validate: 'penstock validate examples/generator.json',
  simulate: 'penstock simulate examples/generator.json --duration 60s',
  'fec advise': `penstock fec advise --loss 2% --rate 10M --packet 1200 --budget 30ms \\
  --packets 2000`,
  schema: 'penstock schema > pipeline-config.schema.json',
  run: 'penstock run examples/generator.json --duration 1s',
  impair: `penstock impair --profile lte --listen 127.0.0.1:0 \\
  --forward 127.0.0.1:8000 -- printenv PENSTOCK_IMPAIR_ADDRESS`,
  components: 'penstock components udp --example',
  'config check': 'penstock config check --http 0.0.0.0:8769',
  doctor: 'penstock doctor',
  version: 'penstock version',
  completion: 'source <(penstock completion bash)',
  'pipelines create': 'penstock pipelines create first examples/generator.json',
  'pipelines validate': 'penstock pipelines validate examples/generator.json',
  'pipelines list': 'penstock pipelines list',
  'pipelines get': 'penstock pipelines get first --config',
  'pipelines start': 'penstock pipelines start first',
  'pipelines logs': 'penstock pipelines logs first --follow',
  'pipelines telemetry': 'penstock pipelines telemetry first sink --count 2',
  'pipelines tap': 'penstock pipelines tap first source --count 3',
  top: 'penstock top --once --sort drops',
  'pipelines update': 'penstock pipelines update first --restart-policy on-failure:5 --dry-run',
  'pipelines stop': 'penstock pipelines stop first',
  'pipelines set': 'penstock pipelines set operate loss=0.05',
  'pipelines export': 'penstock pipelines export first -o site.yaml',
  'pipelines apply': 'penstock pipelines apply site.yaml --dry-run',
  'pipelines delete': 'penstock pipelines delete first',
  status: 'penstock status',
  'nodes list': 'penstock nodes list --service pipelines',
  'nodes set': 'penstock nodes set . --metadata region=eu',
  'authenticate-by-request': `penstock authenticate-by-request http://127.0.0.1:8769 \\
  --url http://127.0.0.1:8779`,
  'authentication-requests list': 'penstock authentication-requests list',
  'authentication-requests watch': 'penstock authentication-requests watch',
  'authentication-requests approve': 'penstock authentication-requests approve --all',
  'authentication-requests reject': 'penstock authentication-requests reject --all',
  'nodes remove': 'penstock nodes remove edge',
  disconnect: 'penstock disconnect --url http://127.0.0.1:8779',
  'token create': 'penstock token create laptop',
  'token list': 'penstock token list',
  'token revoke': 'penstock token revoke laptop',
  'hub export': 'penstock hub export members.jsonl --data-dir ./first-hub',
  'hub import': `penstock hub import members.jsonl --data-dir ./second-hub \\
  --hub-key-file hub.key`,
  'hub key create': 'penstock hub key create hub.key',
  'hub key show': 'penstock hub key show hub.key',
  'hub key adopt': 'penstock hub key adopt adopted.key --data-dir ./first-hub',
  demo: 'penstock demo --duration 2s',
  'demo-cluster': 'penstock demo-cluster',
  'demo-hub': 'penstock demo-hub',
  'demo-operate': 'penstock demo-operate',
}

/** Shows at the end of the help of each command below `program` its example. */
export function showExamples(program: Command, path = ''): void {
  for (const command of program.commands) {
    const own = path === '' ? command.name() : `${path} ${command.name()}`
    const example = COMMAND_EXAMPLES[own]
    if (example !== undefined) command.addHelpText('after', `\nExample:\n  ${example.replaceAll('\n', '\n  ')}`)
    showExamples(command, own)
  }
}
