// The command line of `mcp-host proxy`, read: headers with what the environment puts into them, and how the server is reached.
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { isLoopback } from '../../client/resolve-options.ts'
import { utf8Text } from '../../core/http/utf8-text.ts'
import { LOGIN_OPTIONS } from '../client/login.ts'
import { checkServerUrl } from '../client/logins.ts'
import { type CommandContext, usage } from '../context.ts'
import type { VerbValues } from '../verb.ts'

export const PROXY_OPTIONS = {
  ...LOGIN_OPTIONS,
  header: {
    type: 'string',
    value: '<name: value>',
    multiple: true,
    help: `send this header; \${NAME} in its value is taken from the environment; may be repeated`,
  },
  'header-file': {
    type: 'string',
    value: '<file>',
    multiple: true,
    help: 'send the headers in this file, one a line, # for comments; keep it to yourself: chmod 600',
  },
  proxy: {
    type: 'string',
    value: '<url>',
    help: 'go through this HTTP proxy; none: without; default: as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say',
  },
  transport: {
    type: 'string',
    choices: ['auto', 'http', 'sse'],
    help: 'sse is that of 2024-11-05; default: auto, as the server answers',
  },
  'allow-http': {
    type: 'boolean',
    help: 'take an http URL of another machine: all that is sent can be read on the way',
  },
  'ignore-tool': {
    type: 'string',
    value: '<glob>',
    multiple: true,
    help: 'leave out the tools of this name, where * is any text; may be repeated',
  },
} as const

export type ProxyValues = VerbValues<typeof PROXY_OPTIONS>

/** The address, which nobody but the server may listen to. */
export function readUrl(given: string, { 'allow-http': allowed = false }: ProxyValues): string {
  const url = checkServerUrl(given)
  const { protocol, hostname } = new URL(url)
  if (protocol === 'https:' || isLoopback(hostname) || allowed) return url
  throw usage(
    `${hostname} would be called over plain http, where everybody on the way can read and change what is said; give its https address, or --allow-http where the network is trusted`,
  )
}

/** Values of the environment in the places of their names. Throws a StartError for a name that it does not have. */
function substitute(text: string, { env, secrets }: Pick<CommandContext, 'env' | 'secrets'>): string {
  return text.replace(/\$\{([^}]*)\}/g, (_, name: string) => {
    const value = env[name]
    if (value === undefined) throw usage(`--header: \${${name}} is not in the environment; set ${name}`)
    secrets.add(value.length >= 8 ? value : undefined)
    return value
  })
}

const SENSITIVE = /^(?:authorization|proxy-authorization|cookie)$|token|secret|key|password|auth/i

function warnOfArgv(header: string, { say }: CommandContext) {
  const [name = ''] = header.split(':', 1)
  if (!SENSITIVE.test(name.trim()) || /\$\{/.test(header)) return
  say(
    `warning: the value of --header ${name.trim()} can be read by every program on this machine; write \${NAME} in its place and set NAME in the environment, or give --header-file`,
  )
}

function readHeaderFile(file: string, { say, cwd }: CommandContext): string[] {
  const path = resolve(cwd, file)
  try {
    const { mode } = statSync(path)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      say(`warning: --header-file ${file} can be read by others on this machine; chmod 600 ${file}`)
    }
    const lines = utf8Text(readFileSync(path, 'utf8'))
      .split(/\r?\n/)
      .map(line => line.trim())
    return lines.filter(line => line !== '' && !line.startsWith('#'))
  } catch (cause) {
    throw usage(`--header-file: ${file} cannot be read: ${(cause as Error).message}`, cause)
  }
}

export function readHeaders(
  context: CommandContext,
  { header = [], 'header-file': files = [] }: ProxyValues,
): string[] {
  for (const one of header) if (!one.startsWith('@')) warnOfArgv(one, context)
  return [...files.flatMap(file => readHeaderFile(file, context)), ...header].map(text =>
    text.startsWith('@') ? text : substitute(text, context),
  )
}
