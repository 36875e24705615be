/** `penstock token`: the tokens with which callers from other machines may use a node's API. */
import type { Command } from 'commander'
import { ago } from './node-details.ts'
import { type Format, withOutput } from './options.ts'
import { type ClientOptions, reachedBy, withClient } from './target.ts'
import { paint, print, printJson, table } from './terminal.ts'

type Common = ClientOptions & { output: Format }

export function addToken(program: Command): void {
  const token = program
    .command('token')
    .summary('access from other machines')
    .description(
      'Works on the tokens of the running node. A caller from another machine sends one as "Authorization: Bearer TOKEN"; ' +
        'the commands take it from PENSTOCK_TOKEN.',
    )
  const add = (usage: string, summary: string): Command =>
    withClient(withOutput(token.command(usage)))
      .summary(summary)
      .description(`${summary[0].toUpperCase()}${summary.slice(1)}.`)

  add('create', 'make a token; it is shown this once')
    .argument('<name>', 'letters, digits, dots, dashes and underscores')
    .action(async (name: string, options: Common) => {
      const client = await reachedBy(options)
      const { token: made, secret } = await client.createToken({ name })
      if (options.output === 'json') {
        printJson({ ...made, secret })
        return
      }
      // The token alone on stdout: TOKEN=$(penstock token create laptop)
      print(secret)
      process.stderr.write(`${paint('keep it:', 'yellow', process.stderr)} the node stores only its hash\n`)
    })

  add('list', 'list the tokens')
    .alias('ls')
    .action(async (options: Common) => {
      const client = await reachedBy(options)
      const { tokens } = await client.getTokens()
      if (options.output === 'json') {
        printJson(tokens)
        return
      }
      const rows = tokens.map(({ name, createdAt, lastUsed }) => [name, createdAt ?? '', ago(lastUsed) || 'never'])
      const columns = [{ title: 'NAME' }, { title: 'CREATED' }, { title: 'LAST USED' }]
      print(rows.length === 0 ? 'no tokens' : table(columns, rows))
    })

  add('revoke', 'revoke a token; who uses it is cut off at once')
    .argument('<name>', 'name of the token')
    .action(async (name: string, options: Common) => {
      const client = await reachedBy(options)
      await client.revokeToken({ name })
      if (options.output === 'json') printJson({ name })
      else print(`revoked ${name}`)
    })
}
