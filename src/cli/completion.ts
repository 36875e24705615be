/** `penstock completion`: scripts that complete commands, options, choices, component keys, and names that the node knows, in bash and zsh. */
import { Argument, type Command, type Option } from 'commander'
import { COMPONENT_KEYS } from '../dataplane/engine/component-keys.ts'
import { profileNames } from '../node/impairment-profiles.ts'
import { ASKING } from './complete.ts'
import { print } from './terminal.ts'
import { defaultCommandOf } from './usage.ts'

interface Words {
  /** 'pipelines start'; '' for the program itself. */
  path: string
  words: string[]
}

interface Within {
  path: string
  command: Command
}

/** The command and those in it, with their paths. */
function commandsWithin(command: Command, path: string): Within[] {
  const within = command.commands.flatMap((each) => commandsWithin(each, path ? `${path} ${each.name()}` : each.name()))
  return [{ path, command }, ...within]
}

const optionsOf = (command: Command): Option[] =>
  [...command.options, ...(defaultCommandOf(command)?.options ?? [])].filter(({ hidden }) => !hidden)

/** What can follow each command path. */
function wordsOf({ path, command }: Within): Words {
  const subcommands = command
    .createHelp()
    .visibleCommands(command)
    .map((each) => each.name())
    .filter((name) => name !== 'help')
  const options = optionsOf(command).flatMap(({ long }) => long ?? [])
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])
  const keys = path === 'components' ? [...COMPONENT_KEYS].sort() : []
  return { path, words: [...subcommands, ...choices, ...keys, ...options, '--help'] }
}

const FILES = [
  'run|simulate|validate|"pipelines create"|"pipelines update"|"pipelines validate"|"pipelines apply"|up|"config check"',
  'doctor|"hub export"|"hub import"|"hub key create"|"hub key show"|"hub key adopt"',
].join('|')

/** What the option takes, as the script has it: its choices, files, names that the node knows, or nothing that is known; undefined: it takes none. */
function takenBy({ flags, long, argChoices, required, optional }: Option): string | undefined {
  if (!required && !optional) return undefined
  if (long === '--profile') return `candidates="${profileNames().join(' ')}" files=yes asks=""`
  const isAsked = ASKING.options.includes(long ?? '')
  const isFile = /<(file|dir|directory)>/.test(flags) || /-(file|dir)$/.test(long ?? '')
  return `candidates="${argChoices?.join(' ') ?? ''}" files=${isFile ? 'yes' : '""'} asks=${isAsked ? 'yes' : '""'}`
}

/** What follows an option that takes a value, for the `case` of a script; an option that takes the same in all commands stands there once. */
function valueCases(program: Command): string[] {
  const seen = commandsWithin(program, '').flatMap(({ path, command }) =>
    optionsOf(command).flatMap((option) =>
      [option.short, option.long].map((flag) => ({ path, flag, value: takenBy(option) })),
    ),
  )
  const patterns = new Map<string, Set<string>>()
  for (const { path, flag, value } of seen) {
    if (flag === undefined || value === undefined) continue
    const isSame = seen.every((other) => other.flag !== flag || other.value === value)
    const pattern = isSame ? `*" ${flag}"` : `"${path} ${flag}"`
    patterns.set(value, (patterns.get(value) ?? new Set()).add(pattern))
  }
  return [...patterns].map(([value, each]) => `    ${[...each].join('|')}) ${value} ;;`)
}

/** What stands for another path: `pipelines show` for `pipelines get`, for the `case` of a script. */
function aliasCases(command: Command, path = ''): string[] {
  return command.commands.flatMap((each) => {
    const before = path ? `${path} ` : ''
    const own = each.aliases().map((alias) => `      "${before}${alias}") path="${before}${each.name()}" ;;`)
    return [...own, ...aliasCases(each, `${before}${each.name()}`)]
  })
}

/** Finds the command path typed so far, then what can follow it; `$1` is the word being typed. */
function lookup(program: Command): string {
  const all = commandsWithin(program, '').map(wordsOf)
  const cases = all.map(({ path, words }) => `    "${path}") candidates="${words.join(' ')}" ;;`)
  const paths = all.map(({ path }) => `"${path}"`)
  return `_penstock_candidates() {
  local path="" word
  shift
  for word in "$@"; do
    case "\${path:+$path }$word" in
      ${paths.filter((path) => path !== '""').join('|')}) path="\${path:+$path }$word" ;;
${aliasCases(program).join('\n')}
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  case "$path" in
    ${FILES}) files=yes ;;
  esac
  case "$path" in
    ${ASKING.paths.map((path) => `"${path}"`).join('|')}) asks=yes ;;
  esac
  case "$path $word" in
${valueCases(program).join('\n')}
  esac
}`
}

const bash = (
  program: Command,
): string => `# penstock completion for bash; load it with: source <(penstock completion bash)
${lookup(program)}
# Puts into \`words\` what is typed up to the cursor: bash takes a word apart where COMP_WORDBREAKS says, as at : and =.
_penstock_words() {
  local line="\${COMP_LINE:0:COMP_POINT}" rest part
  words=()
  for part in "\${COMP_WORDS[@]:0:COMP_CWORD}" ""; do
    rest="\${line#"\${line%%[![:space:]]*}"}"
    if [[ -z "$part" ]]; then part="$rest"; fi
    if [[ "$rest" == "$line" && \${#words[@]} -gt 0 ]]; then words[-1]+="$part"; else words+=("$part"); fi
    line="\${rest#"$part"}"
  done
}
# Puts into \`plain\` what the shell makes of the word $1, into \`open\` the quote that is not closed yet, into \`kept\` the length of what the
# shell leaves in place of \`plain\`: it completes what follows the last character of COMP_WORDBREAKS.
_penstock_plain() {
  local word="$1" char next
  plain="" open="" kept=0
  while [[ -n "$word" ]]; do
    char="\${word:0:1}" word="\${word:1}" next="\${word:0:1}"
    case "$open$char" in
      \\"\\"|\\'\\') open="" ;;
      \\"|\\') open="$char" ;;
      \\\\) plain+="$next" word="\${word:1}" ;;
      \\"\\\\) if [[ "$next" == [\\"\\\\\\$\\\`] ]]; then plain+="$next" word="\${word:1}"; else plain+="$char"; fi ;;
      *)
        plain+="$char"
        if [[ -z "$open" && "$COMP_WORDBREAKS" == *"$char"* ]]; then kept=\${#plain}; fi ;;
    esac
  done
}
# Offers a name, written as the quote that is open asks.
_penstock_offer() {
  local name="$1" char
  case "$open" in
    \\') if [[ "$name" == *\\'* ]]; then return; fi ;;
    \\") for char in \\\\ \\" \\$ \\\`; do name="\${name//"$char"/"\\\\$char"}"; done ;;
    *) printf -v name %q "$name" ;;
  esac
  COMPREPLY+=("$name")
}
_penstock() {
  local candidates="" files="" asks="" plain open kept name previous given=() words
  _penstock_words
  for name in "\${words[@]:0:\${#words[@]}-1}"; do
    _penstock_plain "$name"
    given+=("$plain")
  done
  _penstock_plain "\${words[-1]}"
  if [[ "$plain" == --*=* ]]; then
    previous="\${plain%%=*}" plain="\${plain#*=}"
    given+=("$previous")
    kept=$(( kept > \${#previous} ? kept - \${#previous} - 1 : 0 ))
  fi
  _penstock_candidates "\${given[@]}"
  COMPREPLY=()
  if [[ -n "$asks" && "$plain" != -* ]]; then
    while IFS= read -r name; do
      files=""
      if [[ "$name" == "$plain"* ]]; then _penstock_offer "\${name:kept}"; fi
    done < <(penstock complete -- "\${given[@]:1}" 2>/dev/null)
  fi
  while IFS= read -r name; do COMPREPLY+=("\${name:kept}"); done < <(compgen -W "$candidates" -- "$plain")
  if [[ -n "$files" && "$plain" != -* ]]; then
    # What is a file's name is quoted by the shell, and a directory gets its slash.
    compopt -o filenames 2>/dev/null
    while IFS= read -r name; do COMPREPLY+=("\${name:kept}"); done < <(compgen -f -- "$plain")
  fi
}
complete -F _penstock penstock`

const zsh = (program: Command): string => `#compdef penstock
# penstock completion for zsh; load it with: source <(penstock completion zsh), or name it _penstock in a directory of $fpath
${lookup(program)}
_penstock() {
  local candidates="" files="" asks=""
  local -a given names
  given=("\${(@Q)words[1,CURRENT-1]}")
  if [[ "\${words[CURRENT]}" == --*=* ]]; then
    given+=("\${words[CURRENT]%%=*}")
    compset -P 1 '*='
  fi
  _penstock_candidates "\${(@)given}"
  if [[ -n "$asks" && "$PREFIX" != -* ]]; then
    names=("\${(@f)$(penstock complete -- "\${(@)given[2,-1]}" 2>/dev/null)}")
    names=(\${names:#})
    if (( $#names > 0 )); then files=""; compadd -a names; fi
  fi
  compadd -- \${=candidates}
  if [[ -n "$files" ]]; then _files; fi
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
