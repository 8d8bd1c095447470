// `mcp-host completion`: completion scripts of commands and options for bash, zsh and fish.

import { COMMON_OPTIONS, type Command, defineCommand, valueName } from './command.ts'
import { unknownName } from './context.ts'

type Commands = ReadonlyMap<string, Command>

/** Quotes a word for bash, zsh and fish. */
const quote = (text: string) => `'${text.replace(/[\\']/g, '')}'`

const optionsOf = ({ options }: Command) => Object.entries({ ...options, ...COMMON_OPTIONS })

const longOptions = (command: Command) => optionsOf(command).map(([name]) => `--${name}`)

const cases = (commands: Commands, line: (options: string) => string) =>
  [...commands].map(([name, command]) => `    ${name}) ${line(longOptions(command).join(' '))} ;;`).join('\n')

const bash = (commands: Commands) => `_mcp_host() {
  local current=\${COMP_WORDS[COMP_CWORD]} words=
  if [ "$COMP_CWORD" -eq 1 ]; then words='${[...commands.keys()].join(' ')}'
  elif [[ $current == -* ]]; then case \${COMP_WORDS[1]} in
${cases(commands, options => `words='${options}'`)}
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _mcp_host mcp-host`

const zsh = (commands: Commands) => `#compdef mcp-host
_mcp_host() {
  local -a commands options
  commands=(
${[...commands].map(([name, { summary }]) => `    ${quote(`${name}:${summary}`)}`).join('\n')}
  )
  case $words[2] in
${cases(commands, options => `options=(${options})`)}
  esac
  if (( CURRENT == 2 )); then _describe command commands
  elif [[ $PREFIX == -* ]]; then compadd -- $options
  else _files; fi
}
compdef _mcp_host mcp-host`

const fish = (commands: Commands) =>
  [...commands]
    .flatMap(([name, command]) => [
      `complete -c mcp-host -f -n __fish_use_subcommand -a ${name} -d ${quote(command.summary)}`,
      ...optionsOf(command).map(
        ([option, about]) =>
          `complete -c mcp-host -n '__fish_seen_subcommand_from ${name}' -l ${option}${valueName(about) === undefined ? '' : ' -r'} -d ${quote(about.help)}`,
      ),
    ])
    .join('\n')

const SHELLS: Readonly<Record<string, (commands: Commands) => string>> = { bash, zsh, fish }

export const completionCommand = (commands: () => ReadonlyMap<string, () => Promise<Command>>): Command =>
  defineCommand({
    summary: 'Print a completion script for bash, zsh or fish',
    example: 'bash > ~/.local/share/bash-completion/completions/mcp-host',
    positionals: ['SHELL'],
    options: {},
    notes:
      'In zsh, load it with `source <(mcp-host completion zsh)` after compinit. In fish, write it to ~/.config/fish/completions/mcp-host.fish.',
    async run(_values, [given = ''], { print }) {
      const script = SHELLS[given]
      if (!script) throw unknownName('shell', given, Object.keys(SHELLS))
      const loaded = [...commands()].map(async ([name, load]) => [name, await load()] as const)
      print(script(new Map(await Promise.all(loaded))))
    },
  })
