// `mcp-host completion`: completion scripts of commands and options for bash, zsh and fish.
import { usage } from './context.ts'
import { nearestHint } from './text.ts'
import { COMMON_OPTIONS, defineVerb, type Verb } from './verb.ts'

type Verbs = ReadonlyMap<string, Verb>

/** Quotes a word for bash, zsh and fish. */
const quote = (text: string) => `'${text.replace(/[\\']/g, '')}'`

const optionsOf = ({ options }: Verb) => Object.entries({ ...options, ...COMMON_OPTIONS })

const longOptions = (verb: Verb) => optionsOf(verb).map(([name]) => `--${name}`)

const cases = (verbs: Verbs, line: (options: string) => string) =>
  [...verbs].map(([name, verb]) => `    ${name}) ${line(longOptions(verb).join(' '))} ;;`).join('\n')

const bash = (verbs: Verbs) => `_mcp_host() {
  local current=\${COMP_WORDS[COMP_CWORD]} words=
  if [ "$COMP_CWORD" -eq 1 ]; then words='${[...verbs.keys()].join(' ')}'
  elif [[ $current == -* ]]; then case \${COMP_WORDS[1]} in
${cases(verbs, options => `words='${options}'`)}
  esac; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _mcp_host mcp-host`

const zsh = (verbs: Verbs) => `#compdef mcp-host
_mcp_host() {
  local -a commands options
  commands=(
${[...verbs].map(([name, { summary }]) => `    ${quote(`${name}:${summary}`)}`).join('\n')}
  )
  case $words[2] in
${cases(verbs, options => `options=(${options})`)}
  esac
  if (( CURRENT == 2 )); then _describe command commands
  elif [[ $PREFIX == -* ]]; then compadd -- $options
  else _files; fi
}
compdef _mcp_host mcp-host`

const fish = (verbs: Verbs) =>
  [...verbs]
    .flatMap(([command, verb]) => [
      `complete -c mcp-host -f -n __fish_use_subcommand -a ${command} -d ${quote(verb.summary)}`,
      ...optionsOf(verb).map(
        ([name, { type, help }]) =>
          `complete -c mcp-host -n '__fish_seen_subcommand_from ${command}' -l ${name}${type === 'string' ? ' -r' : ''} -d ${quote(help)}`,
      ),
    ])
    .join('\n')

const SHELLS: Readonly<Record<string, (verbs: Verbs) => string>> = { bash, zsh, fish }

export const completionVerb = (verbs: () => ReadonlyMap<string, () => Promise<Verb>>): Verb =>
  defineVerb({
    summary: 'Print a completion script for bash, zsh or fish',
    example: 'bash > ~/.local/share/bash-completion/completions/mcp-host',
    positionals: ['SHELL'],
    options: {},
    notes:
      'In zsh, load it with `source <(mcp-host completion zsh)` after compinit. In fish, write it to ~/.config/fish/completions/mcp-host.fish.',
    async run(_values, [given = ''], { print }) {
      const script = SHELLS[given]
      const names = Object.keys(SHELLS)
      if (!script)
        throw usage(`there is no shell "${given}"${nearestHint(given, names)}; there are: ${names.join(', ')}`)
      const loaded = [...verbs()].map(async ([name, load]) => [name, await load()] as const)
      print(script(new Map(await Promise.all(loaded))))
    },
  })
