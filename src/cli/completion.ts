/** `penstock completion`: scripts that complete commands, options, choices, component keys, and names that the node knows, in bash and zsh. */
import { Argument, type Command } from 'commander'
import { components } from '../dataplane/components/registry.ts'
import { profileNames } from '../node/impairment-profiles.ts'
import { ASKING } from './complete.ts'
import { print } from './terminal.ts'
import { defaultCommandOf } from './usage.ts'

interface Words {
  /** 'pipelines start'; '' for the program itself. */
  path: string
  words: string[]
}

/** What can follow each command path. */
function wordsOf(command: Command, path: string): Words[] {
  const subcommands = command
    .createHelp()
    .visibleCommands(command)
    .map((each) => each.name())
    .filter((name) => name !== 'help')
  const all = [...command.options, ...(defaultCommandOf(command)?.options ?? [])]
  const options = all.flatMap(({ long, hidden }) => (long && !hidden ? [long] : []))
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])
  const keys = path === 'components' ? [...components.keys()] : []
  const own = { path, words: [...subcommands, ...choices, ...keys, ...options, '--help'] }
  return [own, ...command.commands.flatMap((each) => wordsOf(each, path ? `${path} ${each.name()}` : each.name()))]
}

const FILES =
  'run|simulate|validate|"pipelines create"|"pipelines update"|"pipelines validate"|"pipelines apply"|up|"config check"'

const USUAL_FORMATS = 'table json yaml'

/** What `--output` takes where that is not the usual: other formats, or with none a file. */
function otherFormats(command: Command, path: string): string[] {
  const output = command.options.find(({ long }) => long === '--output')
  const formats = output?.argChoices?.join(' ') ?? ''
  const own = output === undefined || formats === USUAL_FORMATS ? [] : [`    "${path}") formats="${formats}" ;;`]
  return [
    ...own,
    ...command.commands.flatMap((each) => otherFormats(each, path ? `${path} ${each.name()}` : each.name())),
  ]
}

/** What each of these options takes, for the `case` of a script. */
const optionCases =
  () => `-o|--output) candidates="$formats"; asks=""; if [[ -n "$formats" ]]; then files=""; else files=yes; fi ;;
    -p|--profile) candidates="${profileNames().join(' ')}"; files=yes ;;
    --write|--ca|--token-file|--data-dir) candidates=""; files=yes; asks="" ;;
    ${ASKING.options.join('|')}) candidates=""; files=""; asks=yes ;;`

/** Finds the command path typed so far, then what can follow it; `$1` is the word being typed. */
function lookup(program: Command): string {
  const cases = wordsOf(program, '').map(({ path, words }) => `    "${path}") candidates="${words.join(' ')}" ;;`)
  const paths = wordsOf(program, '').map(({ path }) => `"${path}"`)
  return `_penstock_candidates() {
  local path="" word
  shift
  for word in "$@"; do
    case "\${path:+$path }$word" in
      ${paths.filter((path) => path !== '""').join('|')}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  case "$path" in
    ${FILES}) files=yes ;;
  esac
  formats="${USUAL_FORMATS}"
  case "$path" in
${otherFormats(program, '').join('\n')}
  esac
  case "$path" in
    ${ASKING.paths.map((path) => `"${path}"`).join('|')}) asks=yes ;;
  esac
}`
}

const bash = (
  program: Command,
): string => `# penstock completion for bash; load it with: source <(penstock completion bash)
${lookup(program)}
_penstock() {
  local candidates="" files="" asks="" formats="" name
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  _penstock_candidates "\${COMP_WORDS[@]:0:COMP_CWORD}"
  case "$previous" in
    ${optionCases()}
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "$current"))
  if [[ -n "$files" && "$current" != -* ]]; then COMPREPLY+=($(compgen -f -- "$current")); fi
  if [[ -n "$asks" && "$current" != -* ]]; then
    while IFS= read -r name; do
      [[ "$name" == "$current"* ]] && COMPREPLY+=("$(printf %q "$name")")
    done < <(penstock complete -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
  fi
}
complete -o filenames -F _penstock penstock`

const zsh = (program: Command): string => `#compdef penstock
# penstock completion for zsh; load it with: source <(penstock completion zsh), or name it _penstock in a directory of $fpath
${lookup(program)}
_penstock() {
  local candidates="" files="" asks="" formats=""
  _penstock_candidates "\${(@)words[1,CURRENT-1]}"
  case "\${words[CURRENT-1]}" in
    ${optionCases()}
  esac
  compadd -- \${=candidates}
  [[ -n "$files" ]] && _files
  if [[ -n "$asks" && "\${words[CURRENT]}" != -* ]]; then
    compadd -- "\${(@f)$(penstock complete -- "\${(@)words[2,CURRENT-1]}" 2>/dev/null)}"
  fi
}
if [[ "\${funcstack[1]}" == _penstock ]]; then _penstock "$@"; else compdef _penstock penstock; fi`

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .summary('print a completion script for bash or zsh')
    .description('Prints a completion script. Load it with: source <(penstock completion bash)')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh']))
    .action((shell: 'bash' | 'zsh') => print(shell === 'bash' ? bash(program) : zsh(program)))
}
