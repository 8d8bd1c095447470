// The process facilities of a command: streams, environment, working directory and events. Commands use no other process state.
import { EventEmitter } from 'node:events'
import { readFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { AuthError } from '../client/errors.ts'
import { createSecrets, printable, printableLines, type Secrets } from '../client/text.ts'
import { errorText, StartError } from '../core/http/errors.ts'
import { utf8Text } from '../core/http/utf8-text.ts'
import { type CommandOutput, render } from './render.ts'
import { nearestHint, shellWord } from './text.ts'

export type ProcessEvents = Pick<NodeJS.EventEmitter, 'on' | 'once' | 'off'>

export interface CommandEnvironment {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: CommandOutput
  readonly stderr: CommandOutput
  readonly env: NodeJS.ProcessEnv
  /** Absolute; relative paths of the command line start here. */
  readonly cwd: string
  /** Default: no events. */
  readonly process?: ProcessEvents
  readonly script?: string
  readonly openBrowser?: (url: URL) => Promise<void>
}

export interface CommandContext extends Required<CommandEnvironment> {
  readonly secrets: Secrets
  /** Writes a line to stdout and escapes control characters except line breaks and tabs. */
  print(text: string): void
  /** Prints a line like `print`, with colors at a terminal. */
  show(text: string): void
  /** Writes one line to stderr, without secrets and control characters and of limited length. */
  say(line: string): void
  /** Rewrites `mcp-host` commands so that they run in this shell, such as `npx mcp-host login`. */
  runnable(text: string): string
  exit(code: number): void
}

export type Starter = Pick<CommandContext, 'script' | 'env' | 'cwd'>

export function selfCommand({ script, env, cwd }: Starter, program = process.execPath): string {
  // npm adds project programs to PATH only for its child processes.
  const isOfNpm = env['npm_execpath'] !== undefined || env['npm_command'] !== undefined
  if (isOfNpm || /node_modules[\\/]\.bin[\\/]/.test(script)) return 'npx mcp-host'
  if (/[\\/]mcp-host$/.test(script)) return 'mcp-host'
  const short = relative(cwd, script)
  const file = shellWord(short.startsWith('..') ? script : short)
  return script.endsWith('.ts')
    ? `npx tsx ${file}`
    : `${/[\\/]node$/.test(program) ? 'node' : shellWord(program)} ${file}`
}

const COMMANDS =
  /(?<!npx )\bmcp-host(?= (?:--help|accept|add|audit|call|check|connect|dev|diff|doctor|explain|help|import|init|list|lock|login|logout|openapi|proxy|report|schema|start|status|stdio|tasks|token)\b)/g

const MAX_LINE = 10_000
const DEFAULT_SCRIPT = '/mcp-host'

export function createContext(environment: CommandEnvironment, exit: (code: number) => void): CommandContext {
  const { stdout, stderr, env } = environment
  const secrets = createSecrets()
  const isOfNpx = selfCommand({ script: DEFAULT_SCRIPT, ...environment }).startsWith('npx mcp-host')
  const runnable = (text: string) => (isOfNpx ? text.replace(COMMANDS, 'npx mcp-host') : text)
  return {
    process: new EventEmitter(),
    script: DEFAULT_SCRIPT,
    openBrowser: async url => (await import('../client/node/open-browser.ts')).openBrowser(url, env),
    ...environment,
    secrets,
    print: text => void stdout.write(`${printableLines(text)}\n`),
    show: text => void stdout.write(`${render(runnable(text), stdout, env)}\n`),
    say: line => void stderr.write(`${printable(secrets.scrub(runnable(line)), MAX_LINE)}\n`),
    runnable,
    exit,
  }
}

export const usage = (what: string, cause?: unknown): StartError =>
  new StartError('MH3001', what, { exitCode: 2, cause })

export const unknownName = (noun: string, given: string, known: readonly string[]): StartError =>
  usage(`there is no ${noun} "${printable(given)}"${nearestHint(given, known)}; available: ${known.join(', ')}`)

/** Formats a failure, such as `mcp-host: error MH1301: port 3000 is in use`. */
export const failureText = (error: unknown, text = errorText(error)): string =>
  `mcp-host: error${error instanceof StartError || AuthError.is(error) ? ` ${error.code}` : ''}: ${text}`

async function readStdin({ stdin }: Pick<CommandContext, 'stdin'>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString()
}

const unreadable = (what: string, cause: unknown) => usage(`${what} cannot be read: ${errorText(cause)}`, cause)

/** Reads a text file. `what`: its name in the StartError (exit code 2), which never quotes the text. */
export function readText(file: string, what: string): string {
  try {
    return utf8Text(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw unreadable(what, cause)
  }
}

/** Reads an argument: `-` is stdin, `@file` a file, and other text is the value. Files and stdin are not in process lists. */
export async function readSource(
  context: Pick<CommandContext, 'stdin' | 'cwd'>,
  given: string,
  what: string,
): Promise<string> {
  if (given.startsWith('@')) return readText(resolve(context.cwd, given.slice(1)), what)
  if (given !== '-') return given
  return readStdin(context).catch((cause: unknown) => {
    throw unreadable(what, cause)
  })
}

export async function readToken(context: CommandContext, given: string | undefined): Promise<string | undefined> {
  if (given === undefined) return undefined
  const token = (await readSource(context, given, '--token')).trim().replace(/^Bearer(?: +|$)/i, '')
  if (token === '') throw usage('the token of --token is empty')
  context.secrets.add(token)
  return token
}
