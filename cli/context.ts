// The process facilities of a command: streams, environment, working directory and events. Commands use no other process state.
import { EventEmitter } from 'node:events'
import { readFile } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { AuthError } from '../client/errors.ts'
import { createSecrets, printable, printableLines, type Secrets } from '../client/text.ts'
import { errorText, StartError } from '../core/http/errors.ts'
import { utf8Text } from '../core/http/utf8-text.ts'
import { type CommandOutput, render } from './render.ts'
import { shellWord } from './text.ts'

interface CommandInput extends Readable {
  readonly isTTY?: boolean
}

export type ProcessEvents = Pick<NodeJS.EventEmitter, 'on' | 'once' | 'off'>

export interface CommandEnvironment {
  readonly stdin: CommandInput
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

const COMMANDS = /(?<!npx )\bmcp-host(?= (?:login|logout|doctor|tasks|lock|diff|init|explain) ?)/g

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
    show: text => void stdout.write(`${render(text, stdout, env)}\n`),
    say: line => void stderr.write(`${printable(secrets.scrub(runnable(line)), MAX_LINE)}\n`),
    runnable,
    exit,
  }
}

export const usage = (what: string, cause?: unknown): StartError =>
  new StartError('MH3001', what, { exitCode: 2, cause })

/** Formats a failure, such as `mcp-host: error MH1301: port 3000 is in use`. */
export const failureText = (error: unknown, text = errorText(error)): string =>
  `mcp-host: error${error instanceof StartError || AuthError.is(error) ? ` ${error.code}` : ''}: ${text}`

export async function readStdin({ stdin }: Pick<CommandContext, 'stdin'>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString()
}

/** Reads a token: literal, `-` for stdin, or `@file`. The latter two keep it out of process lists. */
export async function readToken(context: CommandContext, given: string | undefined): Promise<string | undefined> {
  if (given === undefined) return undefined
  try {
    const text =
      given === '-'
        ? await readStdin(context)
        : given.startsWith('@')
          ? utf8Text(await readFile(resolve(context.cwd, given.slice(1)), 'utf8'))
          : given
    const token = text.trim().replace(/^Bearer +/i, '')
    context.secrets.add(token)
    return token
  } catch (cause) {
    throw usage(`--token: it cannot be read: ${errorText(cause)}`, cause)
  }
}
